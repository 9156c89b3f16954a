// Coarser problems are the same problem: a placement of the classes has the value that it has when
// handed back to the groups.
#include "partition/search/coarsen.h"

#include <math.h>

#include "partition/objective/load_state.h"
#include "partition/problem/problem_build.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

#define NODES 50

// The merged problem weighs a placement as the finer one does.
static void check_projection(const pen_problem *problem, const uint32_t *class,
                             const uint32_t *device_of_group, pen_arena *arena) {
    pen_problem *merged;
    uint32_t devices[NODES];
    pen_load_state *fine, *coarse;
    const pen_status status =
        pen_problem_merge(problem, class, problem->given.is_contiguous, arena, &merged);
    if (status != PEN_OK) {
        pen_status_ignore(status, "merged groups may be too large");
        return;
    }
    for (uint32_t v = 0; v < problem->given.node_count; v++)
        devices[merged->group_of_node[v]] = device_of_group[problem->group_of_node[v]];
    uint32_t back[NODES];
    for (uint32_t v = 0; v < problem->given.node_count; v++)
        back[problem->group_of_node[v]] = devices[merged->group_of_node[v]];
    CHECK_OK(pen_load_state_new(problem, back, arena, &fine));
    CHECK_OK(pen_load_state_new(merged, devices, arena, &coarse));
    for (uint32_t d = 0; d < problem->given.device_count; d++) {
        CHECK(placement_judge_same(fine->load[d], coarse->load[d]) ||
                  fabs(fine->load[d] - coarse->load[d]) < 1e-9,
              "device %u: %.17g and %.17g", d, fine->load[d], coarse->load[d]);
        assert_true(fabs(fine->bytes[d] - coarse->bytes[d]) < 1e-6);
    }
}

static void check_classes(const pen_problem *problem, const uint32_t *class, uint32_t joined) {
    uint32_t alone = 0;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        assert_true(class[g] < problem -> group_count);
        assert_int_equal(class[class[g]], class[g]);
        alone += class[g] == g;
    }
    assert_int_equal(problem->group_count - alone, joined);
}

static void pairs_keep_the_value(void **state) {
    (void)state;
    uint64_t seed = 110000, joined_total = 0;
    for (int i = 0; i < 200; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {
            .node_count_most = NODES, .device_count_most = 4, .is_contiguous = i % 2 == 0};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        uint32_t class[NODES], devices[NODES], joined, members[NODES] = {0};
        placement_case_scatter(problem, seed, devices);
        CHECK_OK(pen_coarsen_pairs(problem, &(pen_coarsen_options){seed, devices, INFINITY}, arena,
                                   class, &joined));
        check_classes(problem, class, joined);
        for (uint32_t g = 0; g < problem->group_count; g++) {
            assert_true(++members[class[g]] <= 2);
            assert_int_equal(devices[g], devices[class[g]]);
        }
        joined_total += joined;
        if (!problem->given.is_contiguous) check_projection(problem, class, devices, arena);
        // no class costs more than the limit
        CHECK_OK(pen_coarsen_pairs(problem, &(pen_coarsen_options){seed, devices, 0.0}, arena,
                                   class, &joined));
        check_classes(problem, class, joined);
        pen_arena_destroy(arena);
    }
    assert_true(joined_total > 500);
}

static void unordered_groups_join_others(void **state) {
    (void)state;
    uint64_t seed = 120000, joined_total = 0;
    for (int i = 0; i < 200; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {
            .node_count_most = NODES, .device_count_most = 4, .is_contiguous = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        uint32_t class[NODES], joined;
        CHECK_OK(pen_coarsen_unordered(problem, arena, class, &joined));
        check_classes(problem, class, joined);
        for (uint32_t v = 0; v < problem->given.node_count; v++) { // forward ones stay apart
            for (uint32_t u = 0; u < v; u++) {
                const uint32_t a = problem->group_of_node[u], b = problem->group_of_node[v];
                if (!pen_problem_is_forward(&problem->given, u) ||
                    !pen_problem_is_forward(&problem->given, v) || a == b)
                    continue;
                assert_true(class[a] != class[b]);
            }
        }
        joined_total += joined;
        pen_arena_destroy(arena);
    }
    assert_true(joined_total > 50);
}

PEN_TEST_MAIN(cmocka_unit_test(pairs_keep_the_value),
              cmocka_unit_test(unordered_groups_join_others))
