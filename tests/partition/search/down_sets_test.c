#include "partition/search/down_sets.h"

#include "partition/search/linear_orders.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"

#define GROUPS 12

// Groups of each set as bits, from the parents.
static void read_bits(const pen_down_sets *sets, uint32_t *bits) {
    bits[0] = 0;
    assert_int_equal(sets->size[0], 0);
    assert_int_equal(sets->parent[0], 0);
    for (uint32_t s = 1; s < sets->count; s++) {
        assert_true(sets->parent[s] < s && sets->size[s] == sets->size[sets->parent[s]] + 1);
        assert_true(sets->size[s] >= sets->size[s - 1]);
        bits[s] = bits[sets->parent[s]] | 1u << sets->last[s];
        for (uint32_t other = 0; other < s; other++)
            assert_true(bits[other] != bits[s]);
    }
}

static bool is_down_set(const pen_problem *problem, uint32_t set) {
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if ((set >> g & 1) == 0) continue;
        for (uint32_t e = problem->before.first[g]; e < problem->before.first[g + 1]; e++) {
            if ((set >> problem->before.ids[e] & 1) == 0) return false;
        }
    }
    return true;
}

// Links lead to every set of the family that has one group more, `all`: to each such down-set.
static void check_links(const pen_down_sets *sets, const uint32_t *bits) {
    for (uint32_t s = 0; s < sets->count; s++) {
        for (uint32_t l = sets->link_first[s]; l < sets->link_first[s + 1]; l++) {
            const uint32_t target = sets->link_target[l];
            assert_int_equal(bits[s] >> sets->link_group[l] & 1, 0);
            assert_int_equal(bits[target], bits[s] | 1u << sets->link_group[l]);
        }
    }
}

static void check_all(const pen_problem *problem, pen_arena *arena) {
    pen_down_sets *sets;
    uint32_t bits[1u << GROUPS], expected = 0, links = 0;
    for (uint32_t set = 0; set < 1u << problem->group_count; set++) {
        if (!is_down_set(problem, set)) continue;
        expected++;
        for (uint32_t g = 0; g < problem->group_count; g++)
            links += (set >> g & 1) == 0 && is_down_set(problem, set | 1u << g);
    }
    CHECK_OK(pen_down_sets_all(problem, &problem->after, expected, arena, &sets));
    assert_non_null(sets);
    assert_true(sets->is_complete);
    assert_int_equal(sets->count, expected);
    assert_int_equal(sets->link_first[sets->count], links);
    read_bits(sets, bits);
    assert_int_equal(bits[sets->count - 1], (1u << problem->group_count) - 1);
    for (uint32_t s = 0; s < sets->count; s++)
        assert_true(is_down_set(problem, bits[s]));
    check_links(sets, bits);
    if (expected < 3) return;
    CHECK_OK(pen_down_sets_all(problem, &problem->after, expected - 1, arena, &sets));
    assert_null(sets);
}

static void check_orders(const pen_problem *problem, pen_arena *arena) {
    uint32_t orders[4 * GROUPS], bits[4 * GROUPS + 1];
    pen_down_sets *sets;
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_OK(pen_linear_order(problem, 5, i, arena, orders + i * problem->group_count));
    }
    CHECK_OK(pen_down_sets_of_orders(problem, orders, 4, arena, &sets));
    assert_true(sets->count <= 4 * GROUPS + 1);
    read_bits(sets, bits);
    check_links(sets, bits);
    for (uint32_t i = 0; i < 4; i++) { // each prefix is there, once
        uint32_t prefix = 0;
        for (uint32_t j = 0; j < problem->group_count; j++) {
            prefix |= 1u << orders[i * problem->group_count + j];
            assert_true(is_down_set(problem, prefix));
            uint32_t found = 0;
            for (uint32_t s = 0; s < sets->count; s++)
                found += bits[s] == prefix;
            assert_int_equal(found, 1);
        }
    }
}

static void families_are_as_counted(void **state) {
    (void)state;
    uint64_t seed = 60000;
    for (int i = 0; i < 150; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {
            .node_count_most = GROUPS, .device_count_most = 3, .is_contiguous = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        if (problem->group_count <= 10) check_all(problem, arena);
        check_orders(problem, arena);
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(families_are_as_counted))
