
#include <math.h>

#include "base/format/quantity.h"
#include "partition/plan/plan_explain.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"

static const pen_plan *plan_of(const char *model, const char *placement, pen_plan_job **out_job,
                               pen_arena *arena) {
    const char *rest;
    CHECK_OK(
        pen_arena_format(arena, &rest, "%splacement: {%s}\n", PLANNED_FOUR_DEVICES, placement));
    *out_job = planned_start(planned_reference(arena, model, 4, rest));
    return planned_place(*out_job, arena);
}

// "on 'b' a step would take 31.2 us longer": the device and the seconds; false for other reasons.
static bool read_reason(const pen_plan *plan, const char *reason, uint32_t *out_device,
                        double *out_seconds) {
    char name[32], number[32], unit[8];
    if (strstr(reason, " longer") == NULL) return false;
    if (sscanf(reason, "on '%31[^']' a step would take %31s %7s longer", name, number, unit) != 3) {
        return false;
    }
    strncat(number, unit, sizeof number - strlen(number) - 1);
    CHECK(pen_quantity_parse(number, PEN_UNIT_SECONDS, out_seconds), "%s: '%s'", reason, number);
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if (strcmp(plan->devices[d].name, name) == 0) *out_device = d;
    }
    return true;
}

// What a reason says a move would cost, the plan worked out anew says too.
static void reasons_are_true(void **state) {
    (void)state;
    uint32_t checked = 0;
    for (size_t m = 0; planned_models[m] != NULL; m++) {
        pen_arena *arena = check_arena();
        pen_plan_job *plan_job;
        const pen_plan *plan =
            plan_of(planned_models[m],
                    "strategy: dynamic_programming, contiguous: true, stages: {minimum: 2}",
                    &plan_job, arena);
        const pen_plan_request *request;
        pen_planner *planner;
        CHECK_OK(pen_plan_job_get_request(plan_job, plan->schedule, &request));
        CHECK_OK(pen_planner_new(request, arena, &planner));
        for (uint32_t n = 0; n < plan->node_count; n++) {
            uint32_t device = 0;
            double seconds;
            if (!read_reason(plan, plan->nodes[n].reason, &device, &seconds)) continue;
            pen_plan_explanation found;
            CHECK_OK(pen_plan_explain(planner, plan, plan->nodes[n].name, arena, &found));
            const double expected = found.devices[device].step_seconds - plan->step_seconds;
            // a plan's steps are made of costs that are rounded to five digits
            const double rounding = 1e-9 + 2e-5 * plan->step_seconds;
            CHECK(fabs(seconds - expected) <= 0.006 * expected + rounding, "%s, '%s': %s, found %g",
                  planned_models[m], plan->nodes[n].name, plan->nodes[n].reason, expected);
            checked++;
        }
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
    CHECK(checked >= 10, "%u reasons", checked);
}

// Where another objective was asked for, nothing is said in seconds of a step.
static void reasons_fit_the_objective(void **state) {
    (void)state;
    static const char *const objectives[] = {"throughput", "latency", "traffic"};
    for (size_t i = 0; i < 3; i++) {
        pen_arena *arena = check_arena();
        const char *placement;
        pen_plan_job *plan_job;
        uint32_t told = 0;
        CHECK_OK(pen_arena_format(arena, &placement,
                                  "strategy: greedy, objective: %s, stages: {minimum: 2}",
                                  objectives[i]));
        const pen_plan *plan = plan_of("lenet", placement, &plan_job, arena);
        for (uint32_t n = 0; n < plan->node_count; n++) {
            const char *reason = plan->nodes[n].reason;
            CHECK(strstr(reason, "a step would") == NULL, "%s: %s", objectives[i], reason);
            told += strstr(reason, objectives[i]) != NULL;
        }
        CHECK(told > 0, "no reason tells of %s", objectives[i]);
        pen_plan_job_destroy(plan_job);
        pen_arena_destroy(arena);
    }
}

static void words_fit_the_case(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_plan_job *plan_job;
    const pen_plan *plan =
        plan_of("lenet", "strategy: manual, pin: [{nodes: \"^.\", to: b}]", &plan_job, arena);
    for (uint32_t n = 0; n < plan->node_count; n++) {
        assert_string_equal(plan->nodes[n].reason, "pinned to 'b'");
    }
    pen_plan_job_destroy(plan_job);
    plan = plan_of("lenet", "strategy: greedy, stages: {maximum: 1}", &plan_job, arena);
    for (uint32_t n = 0; n < plan->node_count; n++) {
        assert_non_null(strstr(plan->nodes[n].reason, "alone is the best that was found"));
    }
    pen_plan_job_destroy(plan_job);
    plan_job = planned_start(planned_reference(arena, "mlp", 4, PLANNED_ONE_DEVICE));
    plan = planned_place(plan_job, arena);
    assert_string_equal(plan->nodes[0].reason, "the only device");
    pen_plan_job_destroy(plan_job);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(reasons_are_true), cmocka_unit_test(reasons_fit_the_objective),
              cmocka_unit_test(words_fit_the_case))
