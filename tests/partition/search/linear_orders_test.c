#include "partition/search/linear_orders.h"

#include "tests/support/check.h"
#include "tests/support/placement_generator.h"

#define NODES 60

static void check_order(const pen_problem *problem, const uint32_t *order) {
    uint32_t position[NODES];
    memset(position, 0xff, sizeof position);
    for (uint32_t i = 0; i < problem->group_count; i++) {
        assert_true(order[i] < problem->group_count && position[order[i]] == UINT32_MAX);
        position[order[i]] = i;
    }
    for (uint32_t g = 0; g < problem->group_count; g++) {
        for (uint32_t e = problem->after.first[g]; e < problem->after.first[g + 1]; e++)
            assert_true(position[g] < position[problem->after.ids[e]]);
    }
}

static void orders_are_topological_and_repeat(void **state) {
    (void)state;
    uint64_t seed = 90000;
    int differing = 0;
    for (int i = 0; i < 60; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {
            .node_count_most = NODES, .device_count_most = 4, .is_contiguous = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        const size_t bytes = problem->group_count * sizeof(uint32_t);
        for (uint32_t variant = 0; variant < 12; variant++) {
            uint32_t order[NODES], again[NODES], other[NODES];
            CHECK_OK(pen_linear_order(problem, 3, variant, arena, order));
            CHECK_OK(pen_linear_order(problem, 3, variant, arena, again));
            CHECK_OK(pen_linear_order(problem, 4, variant, arena, other));
            check_order(problem, order);
            check_order(problem, other);
            assert_memory_equal(order, again, bytes);
            const bool differs = memcmp(order, other, bytes) != 0;
            if (variant < 2) assert_false(differs);
            differing += differs;
        }
        pen_arena_destroy(arena);
    }
    assert_true(differing > 100);
}

PEN_TEST_MAIN(cmocka_unit_test(orders_are_topological_and_repeat))
