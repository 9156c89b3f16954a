#include "partition/objective/latency.h"
#include "partition/problem/problem_build.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

// 0 -> 1 -> 2, 0 -> 2, each 1 second, each result 0.5 to send and to read.
static void pieces_of_a_chain(void **state) {
    (void)state;
    static const pen_problem_edge edges[3] = {{0, 1}, {1, 2}, {0, 2}};
    static const double compute[3] = {1.0, 1.0, 1.0};
    pen_problem_node nodes[3];
    pen_problem_device devices[2];
    for (int v = 0; v < 3; v++) {
        nodes[v] =
            (pen_problem_node){.transfer = 0.5, .color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY};
    }
    for (int d = 0; d < 2; d++) {
        devices[d] = (pen_problem_device){
            .slowness = 1.0, .send = 1.0, .receive = 1.0, .bytes_limit = INFINITY};
    }
    const pen_problem_given given = {.objective = PEN_OBJECTIVE_LATENCY,
                                     .device_count = 2,
                                     .kind_count = 1,
                                     .node_count = 3,
                                     .edge_count = 3,
                                     .devices = devices,
                                     .nodes = nodes,
                                     .edges = edges,
                                     .compute = compute};
    pen_arena *arena = check_arena();
    pen_problem *problem;
    pen_latency *latency;
    double total;
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    CHECK_OK(pen_latency_new(problem, arena, &latency));
    assert_true(pen_latency_evaluate(latency, (uint32_t[]){0, 0, 0}, &total) == 3.0);
    assert_true(total == 3.0);
    // the piece {0} sends, {1} reads and sends, {2} reads both
    assert_true(pen_latency_evaluate(latency, (uint32_t[]){0, 1, 0}, &total) == 5.5);
    // {0, 1} sends both results, {2} reads both
    assert_true(pen_latency_evaluate(latency, (uint32_t[]){0, 0, 1}, NULL) == 5.0);
    pen_arena_destroy(arena);
}

// One evaluator for many placements, so that nothing may be left from one to the next.
static void agrees_with_the_judge(void **state) {
    (void)state;
    uint64_t seed = 140000;
    for (int i = 0; i < 150; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = 16,
                                     .device_count_most = 5,
                                     .objective = PEN_OBJECTIVE_LATENCY,
                                     .is_contiguous = i % 3 == 0};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        pen_latency *latency;
        CHECK_OK(pen_latency_new(problem, arena, &latency));
        for (uint64_t j = 0; j < 20; j++) {
            uint32_t devices[16];
            placement_case_scatter(problem, seed * 100 + j, devices);
            const uint32_t *spread = placement_case_spread(problem, devices, arena);
            const double expected = placement_judge_value(&problem->given, spread, arena);
            const double found = pen_latency_evaluate(latency, spread, NULL);
            CHECK(placement_judge_same(expected, found), "seed %llu: %.17g, judged %.17g",
                  (unsigned long long)seed, found, expected);
        }
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(pieces_of_a_chain), cmocka_unit_test(agrees_with_the_judge))
