#include "partition/problem/problem_lists.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/random_case.h"

#define OWNERS 12

static bool table_has(bool table[OWNERS][OWNERS], bool reversed, uint32_t owner, uint32_t id) {
    return reversed ? table[id][owner] : table[owner][id];
}

static void lists_are_sorted_sets(void **state) {
    (void)state;
    random_case random = {.seed = 4};
    for (int i = 0; i < 200; i++) {
        pen_arena *arena = check_arena();
        bool table[OWNERS][OWNERS] = {{false}};
        pen_problem_edge edges[60];
        const uint32_t count = (uint32_t)random_between(&random, 0, 60);
        for (uint32_t e = 0; e < count; e++) {
            edges[e].source = (uint32_t)random_between(&random, 0, OWNERS - 1);
            edges[e].target = (uint32_t)random_between(&random, 0, OWNERS - 1);
            table[edges[e].source][edges[e].target] = true;
        }
        for (int reversed = 0; reversed < 2; reversed++) {
            pen_problem_lists lists;
            CHECK_OK(pen_problem_lists_build(OWNERS, edges, count, reversed, arena, &lists));
            uint32_t filled = 0;
            for (uint32_t owner = 0; owner < OWNERS; owner++) {
                assert_int_equal(lists.first[owner], filled);
                for (uint32_t id = 0; id < OWNERS; id++) {
                    if (!table_has(table, reversed, owner, id)) continue;
                    assert_int_equal(lists.ids[filled++], id);
                }
            }
            assert_int_equal(lists.first[OWNERS], filled);
        }
        pen_arena_destroy(arena);
    }
}

// The cost that leaves group g for exactly the groups in `readers`.
static double cost_for(const pen_problem *problem, uint32_t g, const bool *readers) {
    double cost = 0.0;
    for (uint32_t u = 0; u < problem->given.node_count; u++) {
        bool is_same = problem->group_of_node[u] == g;
        bool reads[40] = {false};
        for (uint32_t e = 0; e < problem->given.edge_count; e++) {
            const pen_problem_edge edge = problem->given.edges[e];
            if (edge.source == u) reads[problem->group_of_node[edge.target]] = true;
        }
        reads[g] = false;
        for (uint32_t r = 0; r < problem->group_count; r++)
            is_same = is_same && reads[r] == readers[r];
        if (is_same) cost += problem->given.nodes[u].transfer;
    }
    return cost;
}

static void check_outputs(const pen_problem *problem) {
    double total = 0.0, expected = 0.0;
    for (uint32_t o = 0; o < problem->output_count; o++) {
        bool readers[40] = {false};
        const uint32_t owner = problem->output_owner[o];
        assert_true(problem->own_first[owner] <= o && o < problem->own_first[owner + 1]);
        assert_true(problem->readers.first[o] < problem->readers.first[o + 1]);
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            assert_true(problem->readers.ids[r] != owner);
            readers[problem->readers.ids[r]] = true;
            bool is_read = false;
            const uint32_t reader = problem->readers.ids[r];
            for (uint32_t i = problem->reads.first[reader]; i < problem->reads.first[reader + 1];
                 i++)
                is_read = is_read || problem->reads.ids[i] == o;
            assert_true(is_read);
        }
        assert_true(fabs(cost_for(problem, owner, readers) - problem->output_cost[o]) < 1e-9);
        total += problem->output_cost[o];
    }
    for (uint32_t u = 0; u < problem->given.node_count; u++) {
        bool leaves = false;
        for (uint32_t e = 0; e < problem->given.edge_count; e++) {
            const pen_problem_edge edge = problem->given.edges[e];
            leaves = leaves || (edge.source == u &&
                                problem->group_of_node[u] != problem->group_of_node[edge.target]);
        }
        if (leaves) expected += problem->given.nodes[u].transfer;
    }
    assert_true(fabs(total - expected) < 1e-6);
}

static void outputs_are_what_leaves_groups(void **state) {
    (void)state;
    uint64_t seed = 20000;
    for (int i = 0; i < 200; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {
            .node_count_most = 25, .device_count_most = 3, .is_contiguous = i % 2 == 0};
        check_outputs(placement_case_build(&seed, &wish, arena));
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(lists_are_sorted_sets),
              cmocka_unit_test(outputs_are_what_leaves_groups))
