#include "partition/search/line_fill.h"

#include <math.h>

#include "partition/bound/load_bound.h"
#include "partition/problem/problem_build.h"
#include "partition/search/initial_placement.h"
#include "partition/search/linear_orders.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"

#define CASE_COUNT 300

static const placement_wish wish = {.node_count_most = 10,
                                    .device_count_most = 4,
                                    .placement_count_most = 100000.0,
                                    .objective = PEN_OBJECTIVE_THROUGHPUT,
                                    .is_contiguous = true};

// Fills along the first line; *out_devices are those of nodes when something was found.
static pen_line_fill_result fill(const pen_problem *problem, uint64_t seed, pen_arena *arena,
                                 uint32_t **out_devices) {
    const pen_problem *chained;
    pen_device_classes *classes;
    uint32_t *line, *device_of_group;
    double bound;
    pen_line_fill_result result = {0};
    const pen_status status = pen_initial_chain(problem, arena, &chained);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        pen_status_ignore(status, "a case with nothing to find");
        return result;
    }
    CHECK_OK(status);
    CHECK_OK(pen_device_classes_new(chained, 0, arena, &classes));
    CHECK_OK(pen_load_bound(chained, arena, &bound));
    CHECK_OK(PEN_NEW(arena, chained->group_count, &line));
    CHECK_OK(PEN_NEW(arena, chained->group_count, &device_of_group));
    CHECK_OK(pen_linear_order(chained, 0, 0, arena, line));
    const pen_line_fill_options options = {.classes = classes,
                                           .seed = seed,
                                           .bound = bound,
                                           .value_limit = INFINITY,
                                           .precision = 1e-4,
                                           .deadline = INFINITY};
    CHECK_OK(pen_line_fill(chained, line, &options, arena, device_of_group, &result));
    if (result.is_found) *out_devices = placement_case_spread(chained, device_of_group, arena);
    return result;
}

static void what_is_found_is_right(void **state) {
    (void)state;
    uint32_t found = 0;
    for (uint64_t seed = 1; seed <= CASE_COUNT; seed++) {
        pen_arena *arena = check_arena();
        uint32_t *devices = NULL;
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        const pen_line_fill_result result = fill(problem, seed % 3, arena, &devices);
        if (result.is_found) {
            const char *fault = placement_judge_fault(&problem->given, devices);
            CHECK(fault == NULL, "seed %u: %s", (unsigned)seed, fault);
            const double value = placement_judge_value(&problem->given, devices, arena);
            const double best = placement_judge_best(&problem->given, arena);
            CHECK(value >= best * (1.0 - 1e-9), "seed %u: %g below %g", (unsigned)seed, value,
                  best);
            if (problem->given.link == NULL) {
                CHECK(value <= result.value * (1.0 + 1e-9), "seed %u: %g, told %g", (unsigned)seed,
                      value, result.value);
            }
            found++;
        }
        pen_arena_destroy(arena);
    }
    CHECK(found > CASE_COUNT / 4, "%u found", found);
}

// A chain without transfers on equal devices: filling is exact, the optimum is found by trying all
// cuts.
static double best_cut(const double *cost, uint32_t count, uint32_t device_count) {
    double best[64][9];
    for (uint32_t d = 0; d <= device_count; d++) {
        for (uint32_t end = 0; end <= count; end++) {
            best[end][d] = end == 0 ? 0.0 : INFINITY;
            double sum = 0.0;
            for (uint32_t begin = end; d > 0 && begin-- > 0;) {
                sum += cost[begin];
                best[end][d] = fmin(best[end][d], fmax(best[begin][d - 1], sum));
            }
        }
    }
    return best[count][device_count];
}

static void chains_are_cut_best(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= CASE_COUNT; seed++) {
        pen_arena *arena = check_arena();
        dice d = {seed, 0};
        const uint32_t count = (uint32_t)dice_between(&d, 2, 50);
        const uint32_t device_count = (uint32_t)dice_between(&d, 1, 8);
        double cost[64];
        pen_problem_node nodes[64];
        pen_problem_edge edges[64];
        pen_problem_device devices[8];
        for (uint32_t v = 0; v < count; v++) {
            cost[v] = (double)dice_between(&d, 1, 1000);
            nodes[v] = (pen_problem_node){.color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY};
            edges[v] = (pen_problem_edge){v, v + 1};
        }
        for (uint32_t i = 0; i < device_count; i++) {
            devices[i] = (pen_problem_device){
                .slowness = 1.0, .send = 1.0, .receive = 1.0, .bytes_limit = INFINITY};
        }
        const pen_problem_given given = {.objective = PEN_OBJECTIVE_THROUGHPUT,
                                         .is_contiguous = true,
                                         .device_count = device_count,
                                         .kind_count = 1,
                                         .node_count = count,
                                         .edge_count = count - 1,
                                         .devices = devices,
                                         .nodes = nodes,
                                         .edges = edges,
                                         .compute = cost};
        pen_problem *problem;
        uint32_t *found;
        CHECK_OK(pen_problem_build(&given, arena, &problem));
        const pen_line_fill_result result = fill(problem, 0, arena, &found);
        const double best = best_cut(cost, count, device_count);
        assert_true(result.is_found);
        CHECK(result.value >= best * (1.0 - 1e-12) && result.value <= best * 1.001,
              "seed %u: %g, best %g", (unsigned)seed, result.value, best);
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(what_is_found_is_right), cmocka_unit_test(chains_are_cut_best))
