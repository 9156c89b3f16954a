// A run that is simulated with other costs than those of its plan: what it saw, and what is blamed.
#include "scheduler/report/run_blame.h"

#include <math.h>

#include "partition/costs/cluster.h"
#include "scheduler/plan/plan_seen.h"
#include "scheduler/plan/planned_trace.h"
#include "scheduler/trace/trace_file.h"
#include "scheduler/trace/trace_seen.h"
#include "tests/support/check.h"
#include "tests/support/made_plan.h"
#include "tests/support/scratch.h"

#define NEAR(a, b) (fabs((a) - (b)) < 1e-9)
#define ROUNDS 3
#define ROUND_SECONDS 100.0

// Device b computes so much longer than planned, and values come so much later.
#define SLOWNESS 1.5
#define LATER 0.125

typedef struct made_run {
    made_plan *planned;
    pen_stage stages[2];
    pen_stage_edge edge;
    pen_stage_graph graph;
    const pen_timeline *timeline;
    pen_trace_channel channels[3];
    pen_trace_worker workers[2];
    pen_trace_event *events[2];
    const char *names[2];
    uint32_t worker_of_device[2];
    pen_trace trace;
} made_run;

static void simulate_run(made_run *run, pen_arena *arena) {
    run->graph = run->planned->plan.stages;
    run->stages[0] = run->graph.stages[0];
    run->stages[1] = run->graph.stages[1];
    run->stages[1].forward_seconds *= SLOWNESS;
    run->stages[1].backward_input_seconds *= SLOWNESS;
    run->stages[1].backward_weight_seconds *= SLOWNESS;
    run->stages[1].update_seconds *= SLOWNESS;
    run->edge = run->graph.edges[0];
    run->edge.forward_handling.latency_seconds += LATER;
    run->edge.backward_handling.latency_seconds += LATER;
    run->graph.stages = run->stages;
    run->graph.edges = &run->edge;
    CHECK_OK(pen_schedule_simulate(&run->graph, run->planned->timeline->schedule, arena,
                                   &run->timeline));
}

static void add(made_run *run, uint32_t device, const pen_trace_event *event, uint32_t round) {
    pen_trace_event *made = &run->events[device][run->workers[device].event_count++];
    *made = *event;
    made->device = device;
    made->round = round;
    made->step = round + 1;
    made->start_seconds += round * ROUND_SECONDS;
    made->end_seconds += round * ROUND_SECONDS;
}

// When the task ended that made what a transfer carries.
static double ready(const made_run *run, const pen_transfer_time *transfer) {
    const pen_schedule *schedule = run->timeline->schedule;
    const pen_task_kind kind = transfer->is_backward ? PEN_TASK_BACKWARD : PEN_TASK_FORWARD;
    const uint32_t source = pen_transfer_source(&run->graph, transfer);
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        const pen_task task = schedule->tasks[t];
        if (task.kind == kind && task.stage == source && task.microbatch == transfer->microbatch) {
            return run->timeline->times.end_seconds[t];
        }
    }
    CHECK(false, "there is no such task");
    return 0;
}

// Channel by channel, for the first and the second value of the forward edge come together.
static void add_transfers(made_run *run, uint32_t round) {
    for (uint32_t i = 0; i < run->timeline->times.transfer_count; i++) {
        const pen_transfer_time *transfer = &run->timeline->times.transfers[i];
        for (uint32_t c = 0; c < 3; c++) {
            const pen_trace_channel *channel = &run->channels[c];
            if (channel->is_backward != transfer->is_backward) continue;
            pen_trace_event event = {.kind = PEN_TRACE_SEND,
                                     .channel = c,
                                     .sequence = round * 2 + transfer->microbatch,
                                     .bytes = channel->bytes,
                                     .start_seconds = ready(run, transfer),
                                     .end_seconds = transfer->end_seconds};
            add(run, channel->source_device, &event, round);
            event.kind = PEN_TRACE_RECEIVE;
            event.start_seconds = transfer->end_seconds;
            add(run, channel->target_device, &event, round);
        }
    }
}

static void add_tasks(made_run *run, uint32_t round) {
    const pen_schedule *schedule = run->timeline->schedule;
    for (uint32_t d = 0; d < 2; d++) {
        for (uint32_t t = schedule->first_task[d]; t < schedule->first_task[d + 1]; t++) {
            const pen_trace_event event = {.kind = PEN_TRACE_TASK,
                                           .task = schedule->tasks[t],
                                           .channel = PEN_TRACE_NO_CHANNEL,
                                           .start_seconds = run->timeline->times.start_seconds[t],
                                           .end_seconds = run->timeline->times.end_seconds[t]};
            add(run, d, &event, round);
        }
    }
}

static made_run *made_run_new(pen_arena *arena) {
    made_run *run;
    CHECK_OK(PEN_NEW(arena, 1, &run));
    run->planned = made_plan_new(arena);
    run->planned->plan.step_seconds = run->planned->timeline->step_seconds;
    simulate_run(run, arena);
    for (uint32_t c = 0; c < 3; c++) {
        const pen_plan_transfer *transfer = &run->planned->transfers[c];
        run->channels[c] = (pen_trace_channel){.value = transfer->value,
                                               .source_device = transfer->source,
                                               .target_device = transfer->target,
                                               .is_backward = transfer->is_backward,
                                               .bytes = transfer->bytes};
    }
    for (uint32_t d = 0; d < 2; d++) {
        CHECK_OK(PEN_NEW(arena, 100, &run->events[d]));
        run->workers[d] =
            (pen_trace_worker){.name = d == 0 ? "one" : "two", .events = run->events[d]};
        run->names[d] = d == 0 ? "a" : "b";
        run->worker_of_device[d] = d;
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        add_tasks(run, round);
        add_transfers(run, round);
    }
    run->trace = (pen_trace){.worker_count = 2,
                             .workers = run->workers,
                             .device_count = 2,
                             .device_names = run->names,
                             .worker_of_device = run->worker_of_device,
                             .channel_count = 3,
                             .channels = run->channels,
                             .stage_count = 2};
    CHECK_OK(pen_planned_memory(&run->planned->plan.stages, arena, &run->trace.stages,
                                &run->trace.fixed_bytes));
    CHECK_OK(pen_planned_expect(&run->planned->plan, arena, run->channels, &run->trace));
    return run;
}

static void check_seen(const pen_trace *trace, pen_arena *arena) {
    pen_trace_seen seen;
    CHECK_OK(pen_trace_see(trace, arena, &seen));
    CHECK(NEAR(seen.slowness[0], 1) && NEAR(seen.slowness[1], SLOWNESS), "%g and %g",
          seen.slowness[0], seen.slowness[1]);
    assert_int_equal(seen.link_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(NEAR(seen.links[i].seconds - seen.links[i].planned_seconds, LATER), "%g, not %g",
              seen.links[i].seconds, seen.links[i].planned_seconds);
    }
}

static void runs_say_what_they_saw(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const made_run *run = made_run_new(arena);
    check_seen(&run->trace, arena);
    pen_trace old = run->trace;
    pen_trace_seen seen;
    old.planned_slowness = NULL;
    CHECK_ERROR(pen_trace_see(&old, arena, &seen), PEN_INVALID_INPUT, "of an earlier version");
    pen_arena_destroy(arena);
}

static pen_engine_report report_of(const made_run *run, pen_engine_device_report *devices) {
    for (uint32_t d = 0; d < 2; d++) {
        devices[d] = (pen_engine_device_report){.name = run->names[d],
                                                .busy_seconds_predicted =
                                                    run->planned->timeline->busy_seconds[d],
                                                .busy_seconds = run->timeline->busy_seconds[d]};
    }
    return (pen_engine_report){.device_count = 2,
                               .devices = devices,
                               .step_seconds_predicted = run->planned->plan.step_seconds,
                               .step_seconds = run->timeline->step_seconds,
                               .bubble_predicted = run->planned->timeline->bubble,
                               .bubble = run->timeline->bubble};
}

static void terms_sum_up_to_the_difference(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const made_run *run = made_run_new(arena);
    pen_engine_device_report devices[2];
    pen_engine_report report = report_of(run, devices);
    pen_run_blame blame;
    const char *text;
    CHECK_OK(pen_run_blame_find(&run->planned->plan, &report, &run->trace, arena, &blame));
    assert_true(blame.is_known && blame.is_off && blame.has_transfers);
    assert_string_equal(blame.device, "b");
    const double all = blame.compute_seconds + blame.transfer_seconds + blame.waiting_seconds;
    CHECK(NEAR(all, report.step_seconds - report.step_seconds_predicted), "%g", all);
    CHECK(NEAR(blame.waiting_seconds, 0), "%g", blame.waiting_seconds);
    CHECK(NEAR(blame.transfer_seconds, 2 * LATER), "%g", blame.transfer_seconds);
    CHECK_OK(pen_run_blame_text(&blame, "run.json", arena, &text));
    assert_non_null(strstr(text, "most by computing: a step took"));
    assert_non_null(strstr(text, "('b' most: 1.50 times as long), transfers +250 ms, waiting"));
    assert_non_null(strstr(text, "--from-run run.json` plans with what was seen\n"));
    // a second of nothing is waiting
    report.step_seconds += 10;
    CHECK_OK(pen_run_blame_find(&run->planned->plan, &report, &run->trace, arena, &blame));
    CHECK(NEAR(blame.waiting_seconds, 10), "%g", blame.waiting_seconds);
    CHECK_OK(pen_run_blame_text(&blame, "run.json", arena, &text));
    assert_non_null(strstr(text, "most by waiting"));
    // without a trace, transfers are part of it
    CHECK_OK(pen_run_blame_find(&run->planned->plan, &report, NULL, arena, &blame));
    assert_false(blame.has_transfers);
    CHECK_OK(pen_run_blame_text(&blame, NULL, arena, &text));
    assert_non_null(strstr(text, ", transfers and waiting +"));
    // and where nothing is off, nothing is said
    report.step_seconds = 1.05 * report.step_seconds_predicted;
    report.bubble = report.bubble_predicted + 0.04;
    CHECK_OK(pen_run_blame_find(&run->planned->plan, &report, NULL, arena, &blame));
    assert_false(blame.is_off);
    CHECK_OK(pen_run_blame_text(&blame, NULL, arena, &text));
    assert_string_equal(text, "");
    pen_arena_destroy(arena);
}

// The file keeps what was seen, and a cluster takes it over by the names of devices.
static void clusters_learn_from_files(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const made_run *run = made_run_new(arena);
    const pen_trace *read;
    const char *path = scratch_file("run.json", "", 0);
    CHECK_OK(pen_trace_file_write(&run->trace, path, arena));
    CHECK_OK(pen_trace_file_read(path, arena, &read));
    pen_trace_seen seen;
    CHECK_OK(pen_trace_see(read, arena, &seen));
    pen_cluster_device devices[3] = {{.name = "b"}, {.name = "c"}, {.name = "a"}};
    pen_cluster_link links[9] = {{.bandwidth = 1}};
    for (uint32_t i = 0; i < 9; i++) {
        links[i].latency = 7;
    }
    const pen_cluster cluster = {3, devices, links};
    const pen_cluster *learned;
    CHECK_OK(pen_cluster_see(&cluster, path, arena, &learned));
    CHECK(fabs(learned->devices[0].slowness - SLOWNESS) < 1e-4, "%g", learned->devices[0].slowness);
    assert_true(learned->devices[1].slowness == 0);
    CHECK(fabs(pen_cluster_link_at(learned, 2, 0)->latency - LATER) < 1e-4, "%g",
          pen_cluster_link_at(learned, 2, 0)->latency);
    assert_true(pen_cluster_link_at(learned, 1, 0)->latency == 7);
    devices[0].name = "x";
    devices[2].name = "y";
    CHECK_ERROR(pen_cluster_see(&cluster, path, arena, &learned), PEN_INVALID_INPUT,
                "none of which is a device of the job");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(runs_say_what_they_saw),
              cmocka_unit_test(terms_sum_up_to_the_difference),
              cmocka_unit_test(clusters_learn_from_files))
