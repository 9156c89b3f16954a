#include "partition/strategies/gathering.h"

#include "partition/objective/placement.h"
#include "partition/objective/step_time.h"
#include "partition/problem/problem_build.h"
#include "scheduler/schedule/schedule_step_time.h"
#include "tests/support/check.h"
#include "tests/support/placement_generator.h"

#define CASES 200
#define SHARE 0.02

static const char *const schedules[] = {"1f1b", "gpipe", "zero_bubble", "interleaved"};

// A problem of step time under one of the schedules; NULL where none can be built.
static const pen_problem *case_build(uint64_t seed, pen_arena *arena,
                                     pen_schedule_step_time_context **out) {
    const placement_wish wish = {
        .node_count_most = 30, .device_count_most = 6, .objective = PEN_OBJECTIVE_STEP_TIME};
    pen_problem_given given;
    pen_problem *problem;
    placement_case_make(seed, &wish, arena, &given);
    CHECK_OK(pen_schedule_step_time_create(schedules[seed % 4], out));
    given.step_time = pen_schedule_step_time;
    given.step_time_context = *out;
    given.microbatch_count = 1 + (uint32_t)(seed % 7);
    const pen_status status = pen_problem_build(&given, arena, &problem);
    if (status == PEN_OK) return problem;
    pen_status_ignore(status, "the next seed may do");
    return NULL;
}

// From a right placement: right again, on no more devices, and hardly longer. Quite often some
// device is spared.
static void fewer_devices_for_a_step_alike(void **state) {
    (void)state;
    uint32_t tried = 0, fewer = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        pen_arena *arena = check_arena();
        pen_schedule_step_time_context *schedule;
        const pen_problem *problem = case_build(seed, arena, &schedule);
        pen_placement *before = NULL, *after = NULL;
        uint32_t *device_of_group;
        if (problem == NULL) goto next;
        CHECK_OK(PEN_NEW(arena, problem->group_count, &device_of_group));
        placement_case_scatter(problem, seed, device_of_group);
        uint32_t *device_of_node = placement_case_spread(problem, device_of_group, arena);
        pen_status status = pen_placement_new(problem, device_of_node, arena, &before);
        if (status == PEN_OK) status = pen_placement_check(problem, before);
        if (status != PEN_OK) {
            pen_status_ignore(status, "some are not right");
            goto next;
        }
        CHECK_OK(pen_gathering_run(problem, SHARE, arena, device_of_node));
        CHECK_OK(pen_placement_new(problem, device_of_node, arena, &after));
        CHECK_OK(pen_placement_check(problem, after));
        CHECK(after->value <= before->value * (1.0 + SHARE) * (1.0 + 1e-12),
              "seed %llu: the step takes %.17g, before %.17g", (unsigned long long)seed,
              after->value, before->value);
        CHECK(after->used_count <= before->used_count, "seed %llu: %u devices, before %u",
              (unsigned long long)seed, after->used_count, before->used_count);
        tried += 1;
        fewer += after->used_count < before->used_count;
    next:
        pen_schedule_step_time_destroy(schedule);
        pen_arena_destroy(arena);
    }
    CHECK(tried > 10 && fewer > tried / 4, "%u of %u use fewer", fewer, tried);
}

PEN_TEST_MAIN(cmocka_unit_test(fewer_devices_for_a_step_alike))
