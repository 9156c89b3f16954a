#include "partition/problem/problem_build.h"
#include "partition/strategies/exhaustive.h"

#include <math.h>

#include "partition/strategies/strategies.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

static const pen_strategy_options usual = {
    .seed = 1, .time_limit_seconds = 10.0, .thread_count = 1};

static const pen_strategy *find_exhaustive(pen_arena *arena) {
    const pen_strategy *strategy;
    CHECK_OK(pen_strategy_find("exhaustive", arena, &strategy));
    return strategy;
}

// One case against all placements of its nodes, judged by other code.
static void check_case(uint64_t seed, const placement_wish *wish, int *io_fitting) {
    pen_arena *arena = check_arena();
    pen_problem_given given;
    pen_problem *problem;
    pen_placement *placement;
    placement_case_make(seed, wish, arena, &given);
    const double best = placement_judge_best(&given, arena);
    pen_status status = pen_problem_build(&given, arena, &problem);
    if (status == PEN_OK) {
        status = pen_place(problem, find_exhaustive(arena), &usual, arena, &placement);
        CHECK(pen_status_get_code(status) != PEN_INVALID_INPUT,
              "seed %llu: a built problem is right", (unsigned long long)seed);
    }
    if (status == PEN_OK) {
        *io_fitting += 1;
        const char *fault = placement_judge_fault(&given, placement->device_of_node);
        CHECK(fault == NULL, "seed %llu: %s", (unsigned long long)seed, fault);
        CHECK(placement_judge_same(placement->value, best), "seed %llu: %.17g, but %.17g is best",
              (unsigned long long)seed, placement->value, best);
        CHECK(placement_judge_same(placement->lower_bound, best),
              "seed %llu: proved %.17g of %.17g", (unsigned long long)seed, placement->lower_bound,
              best);
    } else {
        const pen_status_code code = pen_status_get_code(status);
        CHECK(code == PEN_DOES_NOT_FIT || code == PEN_INVALID_INPUT, "seed %llu: code %d",
              (unsigned long long)seed, (int)code);
        CHECK(isinf(best), "seed %llu: does not fit, but %.17g is possible",
              (unsigned long long)seed, best);
        pen_status_ignore(status, "as the judge says");
    }
    pen_arena_destroy(arena);
}

static void check_cases(pen_objective objective, bool is_contiguous, uint64_t seed) {
    const placement_wish wish = {.is_plain = true,
                                 .node_count_most = 6,
                                 .device_count_most = 4,
                                 .placement_count_most = 800,
                                 .objective = objective,
                                 .is_contiguous = is_contiguous,
                                 .has_used_bounds = true};
    int fitting = 0;
    for (uint64_t i = 0; i < 150; i++)
        check_case(seed + i, &wish, &fitting);
    CHECK(fitting > 90 && fitting < 150, "%d of 150 cases fit", fitting);
}

static void finds_the_best_throughput(void **state) {
    (void)state;
    check_cases(PEN_OBJECTIVE_THROUGHPUT, false, 1000);
}

static void finds_the_best_contiguous_throughput(void **state) {
    (void)state;
    check_cases(PEN_OBJECTIVE_THROUGHPUT, true, 2000);
}

static void finds_the_best_latency(void **state) {
    (void)state;
    check_cases(PEN_OBJECTIVE_LATENCY, false, 3000);
    check_cases(PEN_OBJECTIVE_LATENCY, true, 4000);
}

static void finds_the_least_traffic(void **state) {
    (void)state;
    check_cases(PEN_OBJECTIVE_TRAFFIC, false, 5000);
    check_cases(PEN_OBJECTIVE_TRAFFIC, true, 6000);
}

static void only_writes_what_is_better(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const placement_wish wish = {.is_plain = true,
                                 .node_count_most = 6,
                                 .device_count_most = 3,
                                 .placement_count_most = 800,
                                 .is_unconstrained = true};
    const pen_exhaustive_options many = {.visit_limit = 100000, .deadline = INFINITY};
    const pen_exhaustive_options one = {.visit_limit = 1, .deadline = INFINITY};
    uint64_t seed = 77;
    for (int i = 0; i < 20; i++) {
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        uint32_t devices[6] = {9, 9, 9, 9, 9, 9};
        double value = INFINITY;
        bool is_complete;
        CHECK_OK(pen_exhaustive_search(problem, &many, arena, devices, &value, &is_complete));
        assert_true(is_complete);
        assert_true(devices[0] != 9);
        const double best = value;
        devices[0] = 9;
        CHECK_OK(pen_exhaustive_search(problem, &many, arena, devices, &value, &is_complete));
        assert_true(is_complete && value == best && devices[0] == 9);
        if (best == 0.0) continue;
        CHECK_OK(pen_exhaustive_search(problem, &one, arena, devices, &value, &is_complete));
        assert_false(is_complete);
    }
    pen_arena_destroy(arena);
}

static void refuses_what_is_too_large(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const placement_wish wish = {
        .node_count_most = 40, .device_count_most = 3, .is_unconstrained = true};
    uint64_t seed = 1;
    const pen_problem *problem;
    do {
        problem = placement_case_build(&seed, &wish, arena);
    } while (problem->group_count <= 24);
    pen_placement *placement;
    CHECK_ERROR(pen_place(problem, find_exhaustive(arena), &usual, arena, &placement),
                PEN_UNSUPPORTED, "groups of nodes are too many, at most 24 can be tried");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(finds_the_best_throughput),
              cmocka_unit_test(finds_the_best_contiguous_throughput),
              cmocka_unit_test(finds_the_best_latency), cmocka_unit_test(finds_the_least_traffic),
              cmocka_unit_test(only_writes_what_is_better),
              cmocka_unit_test(refuses_what_is_too_large))
