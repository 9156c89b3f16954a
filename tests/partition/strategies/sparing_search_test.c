#include "partition/strategies/sparing_search.h"

#include <math.h>
#include <string.h>

#include "partition/objective/placement.h"
#include "partition/objective/step_time.h"
#include "partition/problem/problem_build.h"
#include "scheduler/schedule/schedule_step_time.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"

#define CASES 300

static const char *const schedules[] = {"1f1b", "gpipe", "zero_bubble", "interleaved"};

// A problem of step time under one of the schedules; NULL where none can be built.
static const pen_problem *case_build(uint64_t seed, const pen_problem_sparing *sparing,
                                     pen_arena *arena, pen_schedule_step_time_context **out) {
    const placement_wish wish = {
        .node_count_most = 30, .device_count_most = 5, .objective = PEN_OBJECTIVE_STEP_TIME};
    pen_problem_given given;
    pen_problem *problem;
    placement_case_make(seed, &wish, arena, &given);
    CHECK_OK(pen_schedule_step_time_create(schedules[seed % 4], out));
    given.step_time = pen_schedule_step_time;
    given.step_time_context = *out;
    given.microbatch_count = 1 + (uint32_t)(seed % 7);
    given.sparing = sparing;
    const pen_status status = pen_problem_build(&given, arena, &problem);
    if (status == PEN_OK) return problem;
    pen_status_ignore(status, "the next seed may do");
    return NULL;
}

// No schedule is shorter than what is said without one.
static void least_is_never_above_the_value(void **state) {
    (void)state;
    const pen_problem_sparing sparing = {.step_seconds = 3.0, .sent_seconds = 2.0};
    uint32_t weighed = 0, close = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        pen_arena *arena = check_arena();
        pen_schedule_step_time_context *schedule;
        const pen_problem *problem =
            case_build(seed, seed % 3 == 0 ? &sparing : NULL, arena, &schedule);
        const pen_step_prediction *prediction;
        pen_step_time *step;
        uint32_t *device_of_group;
        if (problem == NULL) goto next;
        CHECK_OK(PEN_NEW(arena, problem->group_count, &device_of_group));
        placement_case_scatter(problem, seed, device_of_group);
        CHECK_OK(pen_step_time_new(problem, arena, &step));
        const pen_status status = pen_step_time_evaluate(
            step, placement_case_spread(problem, device_of_group, arena), &prediction);
        if (status != PEN_OK) {
            pen_status_ignore(status, "some do not fit");
            goto next;
        }
        const double least = pen_step_time_least(step), value = pen_step_time_value(step);
        CHECK(least <= value, "seed %llu: at least %.17g, but is %.17g", (unsigned long long)seed,
              least, value);
        weighed += 1;
        close += least > 0.7 * value;
    next:
        pen_schedule_step_time_destroy(schedule);
        pen_arena_destroy(arena);
    }
    CHECK(weighed > CASES / 3, "%u weighed", weighed);
    CHECK(close > weighed / 4, "%u of %u are near", close, weighed);
}

static double case_sent(const pen_problem *problem, const uint32_t *device_of_node,
                        pen_arena *arena, double *out_seconds) {
    pen_step_time *step;
    const pen_step_prediction *prediction;
    CHECK_OK(pen_step_time_new(problem, arena, &step));
    CHECK_OK(pen_step_time_evaluate(step, device_of_node, &prediction));
    *out_seconds = prediction->step_seconds;
    return pen_stage_graph_sent_seconds(pen_step_time_graph(step));
}

// From a right placement: as long a step as is borne, and less is sent, and more often than not
// there is something to save.
static void sends_less_within_what_is_borne(void **state) {
    (void)state;
    uint32_t tried = 0, saved = 0;
    for (uint64_t seed = 1; seed <= CASES / 3; seed++) {
        pen_arena *arena = check_arena();
        pen_schedule_step_time_context *schedule;
        pen_problem_sparing sparing = {.step_seconds = 1.0, .sent_seconds = 1.0};
        const pen_problem *problem = case_build(seed, &sparing, arena, &schedule);
        pen_placement *placement = NULL;
        uint32_t *device_of_group;
        if (problem == NULL) goto next;
        CHECK_OK(PEN_NEW(arena, problem->group_count, &device_of_group));
        placement_case_scatter(problem, seed, device_of_group);
        pen_status status = pen_placement_new(
            problem, placement_case_spread(problem, device_of_group, arena), arena, &placement);
        if (status == PEN_OK) status = pen_placement_check(problem, placement);
        if (status != PEN_OK) {
            pen_status_ignore(status, "some are not right");
            goto next;
        }
        double before, after;
        const double sent = case_sent(problem, placement->device_of_node, arena, &before);
        if (!(sent > 0.0)) goto next;
        sparing = (pen_problem_sparing){.step_seconds = before * 1.01, .sent_seconds = sent};
        const pen_sparing_options options = {.seed = 1, .seconds = 0.005, .deadline = INFINITY};
        CHECK_OK(pen_sparing_search(problem, &options, placement->device_of_node));
        const double left = case_sent(problem, placement->device_of_node, arena, &after);
        CHECK(left <= sent, "seed %llu sends %.17g, before %.17g", (unsigned long long)seed, left,
              sent);
        // an excess costs twenty times itself, and all that is sent half a step
        CHECK(after <= before * 1.04, "seed %llu: the step takes %.17g, before %.17g",
              (unsigned long long)seed, after, before);
        CHECK_OK(pen_placement_new(problem, placement->device_of_node, arena, &placement));
        CHECK_OK(pen_placement_check(problem, placement));
        tried += 1;
        saved += left < sent;
    next:
        pen_schedule_step_time_destroy(schedule);
        pen_arena_destroy(arena);
    }
    CHECK(tried > 10 && saved > tried / 2, "%u of %u send less", saved, tried);
}

PEN_TEST_MAIN(cmocka_unit_test(least_is_never_above_the_value),
              cmocka_unit_test(sends_less_within_what_is_borne))
