#include "partition/bound/bounds.h"

#include <math.h>

#include "partition/bound/least_costs.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

// Bounds are never above the best placement there is; the share of it that they reach, on average,
// must not fall.
static double mean_share(pen_objective objective, bool is_contiguous, uint64_t seed) {
    double shares = 0.0;
    int count = 0;
    for (int i = 0; i < 250; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = 7,
                                     .device_count_most = 4,
                                     .placement_count_most = 1000,
                                     .objective = objective,
                                     .is_contiguous = is_contiguous,
                                     .has_used_bounds = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        const double best = placement_judge_best(&problem->given, arena);
        double bound;
        CHECK_OK(pen_bound(problem, arena, &bound));
        CHECK(bound >= 0.0 && bound <= best * (1.0 + 1e-12), "seed %llu: bound %.17g of %.17g",
              (unsigned long long)seed, bound, best);
        if (best > 0.0 && best < INFINITY) {
            shares += bound / best;
            count++;
        }
        pen_arena_destroy(arena);
    }
    return shares / count;
}

static void no_bound_is_above_the_best(void **state) {
    (void)state;
    const double throughput = mean_share(PEN_OBJECTIVE_THROUGHPUT, false, 80000);
    const double contiguous = mean_share(PEN_OBJECTIVE_THROUGHPUT, true, 81000);
    const double latency = mean_share(PEN_OBJECTIVE_LATENCY, false, 82000);
    const double traffic = mean_share(PEN_OBJECTIVE_TRAFFIC, false, 83000);
    CHECK(throughput > 0.6 && contiguous > 0.6 && latency > 0.4 && traffic > 0.01,
          "mean shares of the best: %.3f %.3f %.3f %.3f", throughput, contiguous, latency, traffic);
}

static void least_costs_are_the_least(void **state) {
    (void)state;
    uint64_t seed = 84000;
    for (int i = 0; i < 100; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = 20, .device_count_most = 5};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        const pen_problem_given *given = &problem->given;
        double found[20];
        CHECK_OK(pen_bound_least_costs(problem, arena, found));
        for (uint32_t v = 0; v < given->node_count; v++) {
            double least = INFINITY;
            for (uint32_t d = 0; d < given->device_count; d++) {
                if (!pen_problem_allows(problem, problem->group_of_node[v], d)) continue;
                least = fmin(least, given->compute[given->devices[d].kind * given->node_count + v] *
                                        given->devices[d].slowness);
            }
            CHECK(found[v] <= least * (1.0 + 1e-12), "seed %llu: node %u costs %.17g, not %.17g",
                  (unsigned long long)seed, v, least, found[v]);
        }
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(no_bound_is_above_the_best),
              cmocka_unit_test(least_costs_are_the_least))
