// A run that is simulated with other costs than those of its plan: what it saw, and what is blamed.
#include "scheduler/report/run_blame.h"

#include <math.h>
#include <string.h>

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
#define EXCHANGE_LATER 0.75

#define CHANNELS 5 // the last two once a step, if there is an exchange

typedef struct made_run {
    made_plan *planned;
    pen_stage stages[2];
    pen_stage_edge edge;
    pen_stage_step_edge planned_exchange;
    pen_stage_step_edge exchange;
    pen_stage_graph graph;
    const pen_timeline *timeline;
    uint32_t channel_count;
    pen_trace_channel channels[CHANNELS];
    pen_task tasks[CHANNELS];
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
    if (run->graph.step_edge_count > 0) {
        run->exchange = run->graph.step_edges[0];
        run->exchange.handling.latency_seconds += EXCHANGE_LATER;
        run->graph.step_edges = &run->exchange;
    }
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
    const pen_task_kind kind = transfer->is_step       ? PEN_TASK_UPDATE
                               : transfer->is_backward ? PEN_TASK_BACKWARD
                                                       : PEN_TASK_FORWARD;
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

// Channel by channel: the two values of the forward edge come together, those of the exchange one
// after the other.
static void add_transfer(made_run *run, uint32_t round, const pen_transfer_time *transfer) {
    for (uint32_t c = 0; c < run->channel_count; c++) {
        const pen_trace_channel *channel = &run->channels[c];
        if (channel->is_per_step != transfer->is_step) continue;
        if (!transfer->is_step && channel->is_backward != transfer->is_backward) continue;
        const double start = ready(run, transfer);
        double end = transfer->end_seconds;
        if (c == 3) end = (start + end) / 2;
        pen_trace_event event = {.kind = PEN_TRACE_SEND,
                                 .channel = c,
                                 .sequence =
                                     transfer->is_step ? round : round * 2 + transfer->microbatch,
                                 .bytes = channel->bytes,
                                 .start_seconds = start,
                                 .end_seconds = end};
        add(run, channel->source_device, &event, round);
        event.kind = PEN_TRACE_RECEIVE;
        event.start_seconds = end;
        add(run, channel->target_device, &event, round);
    }
}

static void add_transfers(made_run *run, uint32_t round) {
    for (uint32_t i = 0; i < run->timeline->times.transfer_count; i++) {
        add_transfer(run, round, &run->timeline->times.transfers[i]);
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

// The plan with sums that the first stage, which ends last, sends the second once a step.
static void plan_exchange(made_run *run, pen_arena *arena) {
    pen_plan *plan = &run->planned->plan;
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    run->planned_exchange = (pen_stage_step_edge){.target = 1, .bytes = 80, .seconds = 0.25};
    plan->stages.update_phase_count = 2;
    plan->stages.step_edge_count = 1;
    plan->stages.step_edges = &run->planned_exchange;
    CHECK_OK(pen_schedule_generator_find("gpipe", arena, &generator));
    CHECK_OK(generator->generate(&plan->stages, arena, &schedule));
    CHECK_OK(pen_schedule_simulate(&plan->stages, schedule, arena, &run->planned->timeline));
}

// Channels are called as a run calls them, which a plan does not know.
static void add_channels(made_run *run, bool exchanges) {
    static const char *const names[CHANNELS] = {"first@1", "second@1", "gradient", "x@1", "y@1"};
    run->channel_count = exchanges ? CHANNELS : 3;
    for (uint32_t c = 0; c < run->channel_count; c++) {
        const bool is_first = c != 2;
        run->channels[c] = (pen_trace_channel){.value = names[c],
                                               .source_device = is_first ? 0 : 1,
                                               .target_device = is_first ? 1 : 0,
                                               .is_backward = c == 2,
                                               .is_per_step = c > 2,
                                               .bytes = 40};
        run->tasks[c] =
            (pen_task){is_first ? PEN_TASK_FORWARD : PEN_TASK_BACKWARD, is_first ? 0 : 1, 0};
        if (c > 2) run->tasks[c].kind = PEN_TASK_UPDATE;
    }
}

static made_run *made_run_new(pen_arena *arena, bool exchanges) {
    made_run *run;
    CHECK_OK(PEN_NEW(arena, 1, &run));
    run->planned = made_plan_new(arena);
    if (exchanges) plan_exchange(run, arena);
    run->planned->plan.step_seconds = run->planned->timeline->step_seconds;
    simulate_run(run, arena);
    add_channels(run, exchanges);
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
                             .channel_count = run->channel_count,
                             .channels = run->channels,
                             .stage_count = 2};
    CHECK_OK(pen_planned_memory(&run->planned->plan.stages, arena, &run->trace.stages,
                                &run->trace.fixed_bytes));
    CHECK_OK(
        pen_planned_expect(&run->planned->plan, run->tasks, arena, run->channels, &run->trace));
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
    const made_run *run = made_run_new(arena, false);
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
    const made_run *run = made_run_new(arena, false);
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
    // the way is named where transfers are a good part of the step
    assert_string_equal(blame.source, "a");
    assert_string_equal(blame.target, "b");
    CHECK(NEAR(blame.way_seconds - blame.way_predicted, LATER), "%g", blame.way_seconds);
    pen_run_blame slow = blame;
    const char *more;
    slow.transfer_seconds = 0.2 * slow.measured_seconds;
    CHECK_OK(pen_run_blame_text(&slow, "run.json", arena, &more));
    assert_non_null(strstr(more, " ('a' to 'b' most: "));
    assert_non_null(strstr(text, "--from-run run.json -o PLAN` plans with what was seen; `penstock "
                                 "train PLAN` trains by it\n"));
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

// What goes once a step is a transfer like others: all of it, when the last of it is there.
static void late_exchanges_are_transfers(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const made_run *run = made_run_new(arena, true);
    pen_engine_device_report devices[2];
    const pen_engine_report report = report_of(run, devices);
    pen_trace_seen seen;
    pen_run_blame blame;
    const char *text;
    CHECK_OK(pen_trace_see(&run->trace, arena, &seen));
    assert_int_equal(seen.link_count, 3);
    const pen_seen_link *link = pen_trace_seen_find(&seen, 0, 1, true);
    assert_non_null(link);
    assert_int_equal(link->count, ROUNDS - 1); // both channels are one transfer
    CHECK(NEAR(link->seconds - link->planned_seconds, EXCHANGE_LATER), "%g, not %g", link->seconds,
          link->planned_seconds);
    CHECK_OK(pen_run_blame_find(&run->planned->plan, &report, &run->trace, arena, &blame));
    CHECK(NEAR(blame.waiting_seconds, 0), "%g", blame.waiting_seconds);
    CHECK(NEAR(blame.transfer_seconds, 2 * LATER + EXCHANGE_LATER), "%g", blame.transfer_seconds);
    CHECK_OK(pen_run_blame_text(&blame, "run.json", arena, &text));
    assert_non_null(strstr(text, "transfers +1.00 s, waiting"));
    // a plan has one latency for a link: the mean of the transfers over it
    const char *path = scratch_file("run.json", "", 0);
    pen_cluster_device cluster_devices[2] = {{.name = "a"}, {.name = "b"}};
    const pen_cluster_link kept = {.bandwidth = 1};
    static const uint32_t link_of_pair[4]; // the one link
    const pen_cluster cluster = {2, 1, cluster_devices, &kept, link_of_pair, {0}};
    const pen_cluster *learned;
    CHECK_OK(pen_trace_file_write(&run->trace, path, arena));
    CHECK_OK(pen_cluster_see(&cluster, path, arena, &learned));
    const double mean = (2 * LATER + EXCHANGE_LATER) / 3; // two microbatches, and the exchange
    CHECK(fabs(pen_cluster_link_at(learned, 0, 1)->latency - mean) < 1e-4, "%g, not %g",
          pen_cluster_link_at(learned, 0, 1)->latency, mean);
    pen_arena_destroy(arena);
}

// The file keeps what was seen, and a cluster takes it over by the names of devices.
static void clusters_learn_from_files(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const made_run *run = made_run_new(arena, false);
    const pen_trace *read;
    const char *path = scratch_file("run.json", "", 0);
    CHECK_OK(pen_trace_file_write(&run->trace, path, arena));
    CHECK_OK(pen_trace_file_read(path, arena, &read));
    pen_trace_seen seen;
    CHECK_OK(pen_trace_see(read, arena, &seen));
    pen_cluster_device devices[3] = {{.name = "b"}, {.name = "c"}, {.name = "a"}};
    const pen_cluster_link link = {.bandwidth = 1, .latency = 7};
    static const uint32_t link_of_pair[9]; // the one link
    const pen_cluster cluster = {3, 1, devices, &link, link_of_pair, {0}};
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
              cmocka_unit_test(late_exchanges_are_transfers),
              cmocka_unit_test(clusters_learn_from_files))
