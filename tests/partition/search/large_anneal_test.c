#include "partition/search/large_anneal.h"

#include <math.h>

#include "base/clock.h"
#include "partition/search/initial_placement.h"
#include "partition/search/large_search.h"
#include "partition/search/linear_orders.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

#define CASE_COUNT 200

static double value_of(const pen_problem *problem, const uint32_t *device_of_group,
                       pen_arena *arena) {
    return placement_judge_value(&problem->given,
                                 placement_case_spread(problem, device_of_group, arena), arena);
}

// A line of the groups, and the search's own small problems placed on it.
static uint32_t *make_line(const pen_problem *problem, pen_arena *arena) {
    uint32_t *line;
    CHECK_OK(PEN_NEW(arena, problem->group_count, &line));
    for (uint32_t g = 0; g < problem->group_count; g++)
        line[g] = g;
    if (problem->given.is_contiguous) CHECK_OK(pen_linear_order(problem, 0, 0, arena, line));
    return line;
}

static void check_refined(bool is_contiguous) {
    const placement_wish wish = {.node_count_most = 40,
                                 .device_count_most = 6,
                                 .objective = PEN_OBJECTIVE_THROUGHPUT,
                                 .is_contiguous = is_contiguous};
    uint32_t better = 0;
    for (uint64_t seed = 1; seed <= CASE_COUNT; seed++) {
        pen_arena *arena = check_arena();
        uint32_t *device_of_group;
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        const uint32_t *line = make_line(problem, arena);
        CHECK_OK(PEN_NEW(arena, problem->group_count, &device_of_group));
        placement_case_scatter(problem, seed, device_of_group);
        const pen_status status = pen_initial_repair(problem, line, arena, device_of_group);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
            pen_status_ignore(status, "a case with nothing to refine");
            pen_arena_destroy(arena);
            continue;
        }
        CHECK_OK(status);
        const double before = value_of(problem, device_of_group, arena);
        double value;
        const pen_annealing_options options = {.seed = seed,
                                               .step_count = 5000,
                                               .deadline = INFINITY,
                                               .warmth_first = 0.01,
                                               .warmth_last = 0.0001};
        CHECK_OK(pen_large_anneal(problem, line, &options, device_of_group, &value));
        const uint32_t *devices = placement_case_spread(problem, device_of_group, arena);
        const char *fault = placement_judge_fault(&problem->given, devices);
        CHECK(fault == NULL, "seed %u: %s", (unsigned)seed, fault);
        const double after = value_of(problem, device_of_group, arena);
        CHECK(fabs(after - value) <= 1e-9 * after, "seed %u: %g, told %g", (unsigned)seed, after,
              value);
        CHECK(after <= before * (1.0 + 1e-9), "seed %u: %g was %g", (unsigned)seed, after, before);
        better += after < 0.99 * before;
        pen_arena_destroy(arena);
    }
    CHECK(better > CASE_COUNT / 10, "%u were made better", better);
}

static void free_placements_stay_right_and_get_better(void **state) {
    (void)state;
    check_refined(false);
}

static void ordered_placements_stay_right_and_get_better(void **state) {
    (void)state;
    check_refined(true);
}

// The whole search, on problems so small that the best placement can be told.
static void search_is_right_on_small_problems(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= CASE_COUNT; seed++) {
        pen_arena *arena = check_arena();
        pen_initial_placement start;
        const placement_wish wish = {.node_count_most = 9,
                                     .device_count_most = 4,
                                     .placement_count_most = 50000.0,
                                     .objective = PEN_OBJECTIVE_THROUGHPUT,
                                     .is_contiguous = seed % 2 == 0};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        const double best = placement_judge_best(&problem->given, arena);
        const double begin = pen_clock_seconds();
        const pen_large_search_options options = {
            .seed = seed, .begin = begin, .deadline = begin + 0.01, .thread_count = 2};
        const pen_status status = pen_large_search(problem, &options, arena, &start);
        if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
            pen_status_ignore(status, "tight memory may be beyond the search");
        } else {
            CHECK_OK(status);
            const uint32_t *devices = placement_case_spread(problem, start.device_of_group, arena);
            const char *fault = placement_judge_fault(&problem->given, devices);
            CHECK(fault == NULL, "seed %u: %s", (unsigned)seed, fault);
            const double value = placement_judge_value(&problem->given, devices, arena);
            CHECK(value >= best * (1.0 - 1e-9), "seed %u: %g below %g", (unsigned)seed, value,
                  best);
        }
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(free_placements_stay_right_and_get_better),
              cmocka_unit_test(ordered_placements_stay_right_and_get_better),
              cmocka_unit_test(search_is_right_on_small_problems))
