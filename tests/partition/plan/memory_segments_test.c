#include "partition/plan/memory_segments.h"
#include "partition/problem/problem_build.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/planned.h"

// The planner's graph, contiguous and without limits.
static pen_problem *lower(const pen_planner *planner, pen_arena *arena) {
    const pen_planner_wish wish = {.objective = PEN_OBJECTIVE_THROUGHPUT,
                                   .is_contiguous = true,
                                   .bytes_limit = planner->no_limit,
                                   .microbatches = planner->one_microbatch};
    pen_problem_given given;
    pen_problem *problem;
    CHECK_OK(pen_planner_lower(planner, &wish, arena, &given));
    CHECK_OK(pen_problem_build(&given, arena, &problem));
    return problem;
}

// Finds segments under `rest` of a job and works them out: what is returned is what devices take.
// Returns the fullness, and how many devices are used.
static double find(const char *model, const char *rest, uint32_t *out_used) {
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job = planned_start(planned_reference(arena, model, 4, rest));
    const pen_planner *planner = planned_planner(plan_job, arena);
    const pen_problem *problem = lower(planner, arena);
    const uint32_t device_count = problem->given.device_count;
    uint32_t *device_of_group, *device_of_node, *ones;
    double fullness, found = 0.0;
    CHECK_OK(PEN_NEW(arena, problem->group_count, &device_of_group));
    CHECK_OK(PEN_NEW(arena, planner->owners->node_count, &device_of_node));
    CHECK_OK(PEN_NEW(arena, planner->owners->node_count, &ones));
    CHECK_OK(
        pen_memory_segments_find(planner, problem, INFINITY, arena, device_of_group, &fullness));
    *out_used = 0;
    if (fullness < INFINITY) {
        pen_plan_solution solution;
        bool is_used[16] = {false};
        for (uint32_t n = 0; n < planner->owners->node_count; n++) {
            const uint32_t g = problem->group_of_node[n];
            device_of_node[n] = device_of_group[g];
            is_used[device_of_node[n]] = true;
            ones[n] = 1;
            CHECK(pen_problem_allows(problem, g, device_of_node[n]), "%s: node %u", model, n);
        }
        CHECK_OK(pen_plan_solve(planner, device_of_node, arena, &solution));
        for (uint32_t d = 0; d < device_count; d++) {
            const pen_device_memory memory =
                pen_memory_model_device(solution.stage_memory, &solution.split, ones, d);
            found = fmax(found, (double)memory.total / planner->bytes_limit[d]);
            *out_used += is_used[d];
        }
        CHECK(found <= fullness * (1.0 + 1e-9), "%s: %g of the memory, said %g", model, found,
              fullness);
        CHECK(solution.fits == (found <= 1.0), "%s: %g of the memory", model, found);
    }
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
    return fullness;
}

#define TIGHT(tail)                                                                                \
    "devices: [{name: a, memory: 20KiB, threads: 1}, {name: b, memory: 40KiB, threads: 1}, "       \
    "{name: c, memory: 20KiB, threads: 1}]\n"                                                      \
    "placement: {strategy: auto" tail "}\n"

static void the_fullest_device_is_as_told(void **state) {
    (void)state;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        uint32_t used;
        const double fullness = find(planned_models[m], TIGHT(""), &used);
        CHECK(fullness > 1.0 && fullness < INFINITY && used > 0, "%s: %g on %u devices",
              planned_models[m], fullness, used);
    }
}

static void one_device_is_enough_where_it_is(void **state) {
    (void)state;
    uint32_t used;
    assert_true(find("lenet", PLANNED_FOUR_DEVICES, &used) <= 1.0);
    assert_int_equal(used, 1);
}

static void numbers_of_devices_are_kept(void **state) {
    (void)state;
    uint32_t used;
    const double free = find("branching_cnn", TIGHT(""), &used);
    const double two = find("branching_cnn", TIGHT(", stages: {maximum: 2}"), &used);
    assert_true(used <= 2 && two >= free);
    assert_true(find("lenet", PLANNED_FOUR_DEVICES "placement: {stages: {minimum: 3}}\n", &used) <=
                1.0);
    assert_true(used >= 3);
}

static void pins_are_kept(void **state) {
    (void)state;
    uint32_t used;
    const double pinned =
        find("lenet", TIGHT(", pin: [{nodes: \"^/conv1\", to: b}]"), &used); // and checked there
    assert_true(pinned >= find("lenet", TIGHT(""), &used) / 1.01);
    assert_true(pinned < INFINITY);
}

PEN_TEST_MAIN(cmocka_unit_test(the_fullest_device_is_as_told),
              cmocka_unit_test(one_device_is_enough_where_it_is),
              cmocka_unit_test(numbers_of_devices_are_kept), cmocka_unit_test(pins_are_kept))
