#include "partition/search/initial_placement.h"

#include <math.h>

#include "partition/search/fitting.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

#define NODES 60

static void segments_are_right(void **state) {
    (void)state;
    uint64_t seed = 150000;
    int found = 0, proved = 0;
    for (int i = 0; i < 120; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = i % 3 == 0 ? 7 : NODES,
                                     .device_count_most = 4,
                                     .placement_count_most = i % 3 == 0 ? 2500 : 0,
                                     .is_contiguous = i % 2 == 0};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        pen_initial_placement start;
        double bound;
        const pen_initial_options options = {
            .seed = 1, .order_count = 6, .deadline = INFINITY, .set_limit = 500};
        CHECK_OK(pen_initial_segments(problem, &options, arena, &start, &bound));
        bool is_met[NODES] = {false};
        for (uint32_t j = 0; j < problem->group_count; j++) {
            assert_false(is_met[start.line[j]]);
            is_met[start.line[j]] = true;
        }
        if (start.is_found) {
            const uint32_t *devices = placement_case_spread(problem, start.device_of_group, arena);
            const char *fault = placement_judge_fault(&problem->given, devices);
            CHECK(fault == NULL, "seed %llu: %s", (unsigned long long)seed, fault);
            const double value = placement_judge_value(&problem->given, devices, arena);
            if (problem->given.link == NULL) {
                CHECK(value <= start.value * (1.0 + 1e-9), "seed %llu: says %.17g, is %.17g",
                      (unsigned long long)seed, start.value, value);
            }
        }
        if (bound > 0.0 && wish.placement_count_most > 0.0 && bound < INFINITY) {
            CHECK(placement_judge_same(bound, placement_judge_best(&problem->given, arena)),
                  "seed %llu: proved %.17g", (unsigned long long)seed, bound);
            proved++;
        }
        found += start.is_found;
        pen_arena_destroy(arena);
    }
    CHECK(found > 80 && proved > 5, "%d found, %d proved", found, proved);
}

static void repairs_are_right(void **state) {
    (void)state;
    uint64_t seed = 160000;
    int repaired = 0;
    for (int i = 0; i < 300; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {
            .node_count_most = NODES, .device_count_most = 6, .is_contiguous = i % 2 == 0};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        uint32_t devices[NODES];
        pen_initial_placement start;
        double bound;
        const pen_initial_options options = {.seed = 1, .order_count = 1, .deadline = INFINITY};
        CHECK_OK(pen_initial_segments(problem, &options, arena, &start, &bound));
        placement_case_scatter(problem, seed, devices);
        devices[0] = PEN_PROBLEM_ANY; // a group that has none yet
        const pen_status status = pen_initial_repair(problem, start.line, arena, devices);
        if (status == PEN_OK) {
            const uint32_t *spread = placement_case_spread(problem, devices, arena);
            const char *fault = placement_judge_fault(&problem->given, spread);
            CHECK(fault == NULL, "seed %llu: %s", (unsigned long long)seed, fault);
            repaired++;
        }
        assert_true(status == PEN_OK || pen_status_get_code(status) == PEN_DOES_NOT_FIT);
        pen_status_ignore(status, "memory may be tight");
        pen_arena_destroy(arena);
    }
    CHECK(repaired > 200, "%d of 300 repaired", repaired);
}

// The search for anything that fits: right, and true when it finds nothing.
static void fitting_is_true(void **state) {
    (void)state;
    uint64_t seed = 170000;
    int fitting_count = 0;
    for (int i = 0; i < 300; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = 7,
                                     .device_count_most = 4,
                                     .placement_count_most = 2500,
                                     .is_contiguous = i % 2 == 0,
                                     .has_used_bounds = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        uint32_t devices[7];
        pen_fitting fitting;
        CHECK_OK(pen_fitting_find(problem, 1000000, arena, devices, &fitting));
        assert_true(fitting.is_complete);
        const bool is_possible = placement_judge_best(&problem->given, arena) < INFINITY;
        CHECK(fitting.is_found == is_possible, "seed %llu", (unsigned long long)seed);
        if (is_possible) {
            const uint32_t *spread = placement_case_spread(problem, devices, arena);
            const char *fault = placement_judge_fault(&problem->given, spread);
            CHECK(fault == NULL, "seed %llu: %s", (unsigned long long)seed, fault);
        }
        fitting_count += is_possible;
        CHECK_OK(pen_fitting_find(problem, 0, arena, devices, &fitting));
        assert_false(fitting.is_complete || fitting.is_found);
        pen_arena_destroy(arena);
    }
    CHECK(fitting_count > 200 && fitting_count < 298, "%d of 300 fit", fitting_count);
}

PEN_TEST_MAIN(cmocka_unit_test(segments_are_right), cmocka_unit_test(repairs_are_right),
              cmocka_unit_test(fitting_is_true))
