#include "scheduler/report/run_figures.h"

#include <math.h>

#include "scheduler/plan/planned_trace.h"
#include "scheduler/trace/trace_levels.h"
#include "tests/support/check.h"
#include "tests/support/made_plan.h"
#include "tests/support/made_trace.h"

#define NEAR(a, b) (fabs((a) - (b)) < 1e-9)

// A planned step has the figures of one that ran as planned.
static void plans_look_like_runs(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const made_plan *made = made_plan_new(arena);
    const pen_trace *planned;
    const pen_trace_summary *summary;
    CHECK_OK(pen_planned_trace(&made->plan, made->timeline, arena, &planned));
    CHECK_OK(pen_trace_summarize(planned, arena, &summary));
    CHECK(NEAR(summary->step_seconds, made->timeline->step_seconds), "%g", summary->step_seconds);
    CHECK(NEAR(summary->bubble, made->timeline->bubble), "%g", summary->bubble);
    CHECK(NEAR(summary->step_seconds, 10) && NEAR(summary->bubble, 0.35), "%g", summary->bubble);
    assert_int_equal(summary->link_count, 2);
    CHECK(summary->links[0].bytes == 128 && summary->links[1].bytes == 64, "%g",
          summary->links[0].bytes);
    assert_string_equal(planned->channels[0].value, "first and 1 more");
    assert_string_equal(planned->channels[1].value, "gradient");
    CHECK_OK(pen_run_check_trace(&made->plan, planned));
    const pen_trace_entry *entries;
    const pen_trace_level *levels;
    uint32_t count;
    double most[2] = {0};
    CHECK_OK(pen_trace_merge(planned, arena, &entries, &count));
    CHECK_OK(pen_trace_levels(planned, entries, count, arena, &levels, &count));
    for (uint32_t i = 0; i < count; i++) {
        most[levels[i].device] = fmax(most[levels[i].device], levels[i].bytes);
    }
    for (uint32_t d = 0; d < 2; d++) {
        CHECK(NEAR(most[d], made->timeline->bytes_peak[d]), "device %u: %g", d, most[d]);
    }
    pen_arena_destroy(arena);
}

static void puts_both_beside_each_other(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const made_plan *made = made_plan_new(arena);
    const pen_trace *trace = made_trace(arena, 3);
    const pen_trace_summary *summary;
    pen_engine_report *report;
    CHECK_OK(pen_trace_summarize(trace, arena, &summary));
    CHECK_OK(pen_run_figures(&made->plan, made->timeline, trace, summary, arena, &report));
    assert_int_equal(report->device_count, 2);
    CHECK(NEAR(report->step_seconds, report->step_seconds_predicted), "%g", report->step_seconds);
    CHECK(NEAR(report->bubble, report->bubble_predicted), "%g", report->bubble);
    for (uint32_t d = 0; d < 2; d++) {
        const pen_engine_device_report *device = &report->devices[d];
        assert_string_equal(device->worker, d == 0 ? "worker 1" : "worker 2");
        CHECK(NEAR(device->busy_seconds, 6.5) && NEAR(device->busy_seconds_predicted, 6.5), "%g",
              device->busy_seconds);
        CHECK(device->sent_bytes == device->sent_bytes_predicted, "%g", device->sent_bytes);
        CHECK(device->bytes_predicted == (d == 0 ? 120 : 240) && device->bytes < 0, "%g",
              device->bytes);
    }
    CHECK_OK(pen_run_figures(&made->plan, made->timeline, NULL, NULL, arena, &report));
    CHECK(report->bubble < 0 && report->devices[0].busy_seconds < 0, "%g", report->bubble);
    CHECK_OK(pen_trace_summarize(made_trace(arena, 0), arena, &summary));
    CHECK_OK(pen_run_figures(&made->plan, made->timeline, made_trace(arena, 0), summary, arena,
                             &report));
    CHECK(report->step_seconds < 0, "%g", report->step_seconds);
    pen_arena_destroy(arena);
}

static void refuses_traces_of_other_runs(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    made_plan *made = made_plan_new(arena);
    const pen_trace *trace = made_trace(arena, 1);
    made->devices[1].name = "c";
    CHECK_ERROR(pen_run_check_trace(&made->plan, trace), PEN_INVALID_INPUT,
                "device 1 is 'b' in the trace, and 'c' in the plan");
    made->devices[1].name = "b";
    made->plan.device_count = 1;
    CHECK_ERROR(pen_run_check_trace(&made->plan, trace), PEN_INVALID_INPUT,
                "the trace has 2 devices, the plan 1");
    made->plan.device_count = 2;
    made->plan.stages.stage_count = 1;
    CHECK_ERROR(pen_run_check_trace(&made->plan, trace), PEN_INVALID_INPUT,
                "the trace has tasks of stage 1, the plan has 1 stages");
    pen_arena_destroy(arena);
}

static void takes_measured_costs(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    made_plan *made = made_plan_new(arena);
    const pen_trace_summary *summary;
    pen_stage_graph stages;
    const pen_timeline *timeline;
    for (uint32_t s = 0; s < 2; s++) { // all wrong, but what is shared out
        made->stages[s].forward_seconds = 7;
        made->stages[s].backward_input_seconds = 1;
        made->stages[s].backward_weight_seconds = 3;
        made->stages[s].update_seconds = 0;
    }
    CHECK_OK(pen_trace_summarize(made_trace(arena, 3), arena, &summary));
    CHECK_OK(pen_run_measured_stages(&made->plan.stages, summary, arena, &stages));
    CHECK(stages.stages[0].forward_seconds == 1 && stages.stages[1].update_seconds == 0.5, "%g",
          stages.stages[1].update_seconds);
    CHECK(NEAR(stages.stages[0].backward_input_seconds, 0.5), "%g",
          stages.stages[0].backward_input_seconds);
    CHECK(NEAR(stages.stages[0].backward_weight_seconds, 1.5), "%g",
          stages.stages[0].backward_weight_seconds);
    CHECK_OK(pen_schedule_simulate(&stages, made->timeline->schedule, arena, &timeline));
    CHECK(NEAR(timeline->step_seconds, 10) && NEAR(timeline->bubble, 0.35), "%g", timeline->bubble);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(plans_look_like_runs), cmocka_unit_test(puts_both_beside_each_other),
              cmocka_unit_test(refuses_traces_of_other_runs),
              cmocka_unit_test(takes_measured_costs))
