// What transfers take, in the simulation: lines that are shared, latencies, and devices that
// compute to send and to receive.
#include <math.h>

#include "scheduler/schedule/auto_schedule.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "tests/support/check.h"
#include "tests/support/stage_chain.h"

#define GRAPH_COUNT 150

static const pen_timeline *simulate(const char *name, const pen_stage_graph *graph,
                                    pen_arena *arena) {
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    CHECK_OK(pen_schedule_generator_find(name, arena, &generator));
    CHECK_OK(generator->generate(graph, arena, &schedule));
    CHECK_OK(pen_schedule_simulate(graph, schedule, arena, &timeline));
    return timeline;
}

static double start_of(const pen_timeline *timeline, pen_task_kind kind, uint32_t stage,
                       uint32_t microbatch) {
    for (uint32_t t = 0; t < timeline->schedule->task_count; t++) {
        const pen_task task = timeline->schedule->tasks[t];
        if (task.kind == kind && task.stage == stage && task.microbatch == microbatch) {
            return timeline->times.start_seconds[t];
        }
    }
    CHECK(false, "there is no such task");
    return 0;
}

// ---- by hand

// Two forward stages on two devices; three microbatches.
static void devices_compute_for_transfers(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_stage stages[] = {{.device = 0, .forward_seconds = 4},
                                {.device = 1, .forward_seconds = 5}};
    const pen_stage_edge edge = {
        .source = 0, .target = 1, .forward_seconds = 2, .forward_handling = {0.5, 1, 0.25}};
    const double limits[] = {INFINITY, INFINITY};
    const pen_stage_graph graph = {.stage_count = 2,
                                   .edge_count = 1,
                                   .device_count = 2,
                                   .microbatch_count = 3,
                                   .stages = stages,
                                   .edges = &edge,
                                   .bytes_limit = limits};
    // device 0: F0 0-4, send -5, F1 5-9, send -10, F2 10-14
    // on the way: 4-6, 9-11, 14-16, and half a second of latency each
    // device 1: receives 4.5-6.5 as it comes, F0 -11.5; what came in 9.5-11.5 is received then,
    //           -11.75: F1 11.75-16.75; what came at 16.5 behind it, -17: F2 17-22
    const pen_timeline *timeline = simulate("gpipe", &graph, arena);
    assert_true(start_of(timeline, PEN_TASK_FORWARD, 0, 1) == 5);
    assert_true(start_of(timeline, PEN_TASK_FORWARD, 0, 2) == 10);
    assert_true(start_of(timeline, PEN_TASK_FORWARD, 1, 0) == 6.5);
    assert_true(start_of(timeline, PEN_TASK_FORWARD, 1, 1) == 11.75);
    assert_true(start_of(timeline, PEN_TASK_FORWARD, 1, 2) == 17);
    assert_true(timeline->step_seconds == 22);
    pen_arena_destroy(arena);
}

// Two devices of one host send to two of another at the same time: over one line.
static void devices_of_a_host_share_its_line(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_stage stages[] = {{.device = 0, .forward_seconds = 1},
                                {.device = 1, .forward_seconds = 1},
                                {.device = 2, .forward_seconds = 1},
                                {.device = 3, .forward_seconds = 1}};
    const pen_stage_edge edges[] = {
        {.source = 0, .target = 2, .forward_bytes = 30, .forward_seconds = 3},
        {.source = 1, .target = 3, .forward_bytes = 30, .forward_seconds = 3}};
    const double limits[] = {INFINITY, INFINITY, INFINITY, INFINITY};
    pen_stage_graph graph = {.stage_count = 4,
                             .edge_count = 2,
                             .device_count = 4,
                             .microbatch_count = 1,
                             .stages = stages,
                             .edges = edges,
                             .bytes_limit = limits};
    assert_true(simulate("gpipe", &graph, arena)->step_seconds == 1 + 3 + 1);
    const pen_device_seat two_hosts[] = {
        {0, 0, 10, 10}, {0, 1, 10, 10}, {1, 2, 10, 10}, {1, 3, 10, 10}};
    graph.seats = two_hosts;
    assert_true(simulate("gpipe", &graph, arena)->step_seconds == 1 + 3 + 3 + 1);
    // a line out that is three times as fast: both go at once but for the line in, of a host each
    const pen_device_seat three_hosts[] = {
        {0, 0, 30, 30}, {0, 1, 30, 30}, {1, 2, 10, 10}, {2, 3, 10, 10}};
    graph.seats = three_hosts;
    assert_true(simulate("gpipe", &graph, arena)->step_seconds == 1 + 1 + 3 + 1);
    // in one process there is no line
    const pen_device_seat one_process[] = {
        {0, 0, 10, 10}, {0, 0, 10, 10}, {0, 0, 10, 10}, {0, 0, 10, 10}};
    graph.seats = one_process;
    assert_true(simulate("gpipe", &graph, arena)->step_seconds == 1 + 3 + 1);
    pen_arena_destroy(arena);
}

// ---- a second simulation, of another make: whatever comes next is looked for among all there is

typedef struct flight {
    double arrival;
    double receive;
    double seconds; // in which the bytes come in
    pen_task target;
    uint32_t device; // of the target
    bool is_over;
} flight;

typedef struct looker {
    const pen_stage_graph *graph;
    const pen_schedule *schedule;
    double out_free[8], in_free[8]; // of hosts
    double process_out_free[8], process_in_free[8];
    double pair_free[8][8];
    double device_free[8];
    uint32_t next[8];   // [device_count] tasks
    bool is_running[8]; // whether the task before `next` runs
    double *end;        // [task_count]
    bool *is_done;      // [task_count]
    flight *flights;
    uint32_t flight_count;
} looker;

static bool is_input_pass(pen_task_kind kind) {
    return kind == PEN_TASK_BACKWARD || kind == PEN_TASK_BACKWARD_INPUT;
}

// Whether `task` reads what `other` made over edge `e`.
static bool reads_over(const pen_stage_edge *edge, pen_task task, pen_task other) {
    if (task.microbatch != other.microbatch) return false;
    if (task.kind == PEN_TASK_FORWARD) {
        return other.kind == PEN_TASK_FORWARD && edge->source == other.stage &&
               edge->target == task.stage;
    }
    return is_input_pass(task.kind) && is_input_pass(other.kind) && edge->has_gradient &&
           edge->target == other.stage && edge->source == task.stage;
}

// Of an update: all losses too.
static bool is_own_input(pen_task task, pen_task other) {
    if (task.kind == PEN_TASK_UPDATE && other.kind == PEN_TASK_FORWARD) return true;
    if (task.stage != other.stage) return false;
    const bool is_same = task.microbatch == other.microbatch;
    if (is_input_pass(task.kind)) return is_same && other.kind == PEN_TASK_FORWARD;
    if (task.kind == PEN_TASK_BACKWARD_WEIGHT) {
        return is_same && other.kind == PEN_TASK_BACKWARD_INPUT;
    }
    return task.kind == PEN_TASK_UPDATE &&
           (other.kind != PEN_TASK_UPDATE || other.microbatch < task.microbatch);
}

static bool is_same_task(pen_task a, pen_task b) {
    return a.kind == b.kind && a.stage == b.stage && a.microbatch == b.microbatch;
}

// Whether something that the task reads is not there yet: not made, or on its way.
static bool waits(const looker *l, pen_task task) {
    const pen_stage_graph *graph = l->graph;
    for (uint32_t u = 0; u < l->schedule->task_count; u++) {
        if (l->is_done[u]) continue;
        const pen_task other = l->schedule->tasks[u];
        if (is_own_input(task, other)) return true;
        for (uint32_t e = 0; e < graph->edge_count; e++) {
            if (reads_over(&graph->edges[e], task, other)) return true;
        }
        for (uint32_t e = 0; e < graph->step_edge_count; e++) {
            const pen_stage_step_edge *edge = &graph->step_edges[e];
            if (task.kind == PEN_TASK_UPDATE && other.kind == PEN_TASK_UPDATE &&
                edge->target == task.stage && edge->source == other.stage &&
                edge->phase == other.microbatch && edge->phase + 1 == task.microbatch) {
                return true;
            }
        }
    }
    for (uint32_t f = 0; f < l->flight_count; f++) {
        if (!l->flights[f].is_over && is_same_task(l->flights[f].target, task)) return true;
    }
    return false;
}

static void begin(looker *l, uint32_t d, double now) {
    if (l->is_running[d] || l->next[d] == l->schedule->first_task[d + 1]) return;
    const pen_task task = l->schedule->tasks[l->next[d]];
    if (waits(l, task)) return;
    l->end[l->next[d]] = fmax(now, l->device_free[d]) + pen_task_seconds(l->graph, task);
    l->device_free[d] = l->end[l->next[d]];
    l->is_running[d] = true;
    l->next[d] += 1;
}

typedef struct load {
    double bytes;
    double seconds;
    const pen_stage_handling *handling;
} load;

// Puts values on their way from device `from` at `now`.
static void set_off(looker *l, uint32_t from, pen_task target, double now, load sent) {
    const uint32_t to = l->graph->stages[target.stage].device;
    const pen_device_seat *seats = l->graph->seats;
    double start = now, there;
    if (from == to) return;
    if (seats == NULL) {
        start = fmax(start, l->pair_free[from][to]);
        there = l->pair_free[from][to] = start + sent.seconds;
    } else if (seats[from].host != seats[to].host) {
        start = fmax(start, l->out_free[seats[from].host]);
        l->out_free[seats[from].host] = start + sent.bytes / seats[from].out_rate;
        double *in = &l->in_free[seats[to].host];
        *in = fmax(start, *in) + sent.bytes / seats[to].in_rate;
        there = fmax(*in, start + sent.seconds);
    } else if (seats[from].process != seats[to].process) {
        double *out = &l->process_out_free[seats[from].process];
        double *in = &l->process_in_free[seats[to].process];
        start = fmax(start, *out);
        *out = start + sent.seconds;
        there = *in = fmax(start, *in) + sent.seconds;
    } else {
        there = start + sent.seconds;
    }
    l->device_free[from] += sent.handling->send_seconds;
    l->flights[l->flight_count++] = (flight){.arrival = there + sent.handling->latency_seconds,
                                             .receive = sent.handling->receive_seconds,
                                             .seconds = sent.seconds,
                                             .target = target,
                                             .device = to};
}

// The pass back of a stage for a microbatch, as the schedule has it: whole, or its input half.
static pen_task input_pass(const looker *l, uint32_t stage, uint32_t microbatch) {
    for (uint32_t t = 0; t < l->schedule->task_count; t++) {
        const pen_task task = l->schedule->tasks[t];
        if (is_input_pass(task.kind) && task.stage == stage && task.microbatch == microbatch) {
            return task;
        }
    }
    return (pen_task){0};
}

static void finish(looker *l, uint32_t d) {
    const pen_stage_graph *graph = l->graph;
    const uint32_t t = l->next[d] - 1;
    const pen_task task = l->schedule->tasks[t];
    const double now = l->end[t];
    l->is_running[d] = false;
    l->is_done[t] = true;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        if (task.kind == PEN_TASK_FORWARD && edge->source == task.stage) {
            set_off(l, d, (pen_task){PEN_TASK_FORWARD, edge->target, task.microbatch}, now,
                    (load){edge->forward_bytes, edge->forward_seconds, &edge->forward_handling});
        }
        if (is_input_pass(task.kind) && edge->target == task.stage && edge->has_gradient) {
            set_off(l, d, input_pass(l, edge->source, task.microbatch), now,
                    (load){edge->backward_bytes, edge->backward_seconds, &edge->backward_handling});
        }
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        const pen_stage_step_edge *edge = &graph->step_edges[e];
        if (task.kind == PEN_TASK_UPDATE && edge->source == task.stage &&
            edge->phase == task.microbatch) {
            set_off(l, d, (pen_task){PEN_TASK_UPDATE, edge->target, edge->phase + 1}, now,
                    (load){edge->bytes, edge->seconds, &edge->handling});
        }
    }
}

static double look(const pen_stage_graph *graph, const pen_schedule *schedule, pen_arena *arena,
                   double **out_end) {
    looker l = {.graph = graph, .schedule = schedule};
    const size_t flights =
        (size_t)schedule->task_count * (graph->edge_count + 1) + graph->step_edge_count;
    double last = 0;
    CHECK_OK(PEN_NEW(arena, schedule->task_count, &l.end));
    CHECK_OK(PEN_NEW(arena, schedule->task_count, &l.is_done));
    CHECK_OK(PEN_NEW(arena, flights, &l.flights));
    for (uint32_t d = 0; d < graph->device_count; d++) {
        l.next[d] = schedule->first_task[d];
    }
    for (double now = 0; now < INFINITY;) {
        for (uint32_t d = 0; d < graph->device_count; d++) {
            begin(&l, d, now);
        }
        uint32_t device = UINT32_MAX;
        flight *arriving = NULL;
        now = INFINITY;
        for (uint32_t d = 0; d < graph->device_count; d++) {
            if (!l.is_running[d] || l.end[l.next[d] - 1] >= now) continue;
            now = l.end[l.next[d] - 1];
            device = d;
        }
        for (uint32_t f = 0; f < l.flight_count; f++) {
            if (l.flights[f].is_over || l.flights[f].arrival >= now) continue;
            now = l.flights[f].arrival;
            arriving = &l.flights[f];
        }
        if (arriving != NULL) {
            arriving->is_over = true;
            if (arriving->receive > 0) {
                const double first_byte = now - arriving->seconds;
                l.device_free[arriving->device] =
                    fmax(first_byte, l.device_free[arriving->device]) + arriving->receive;
            }
        } else if (device != UINT32_MAX) {
            last = fmax(last, now);
            finish(&l, device);
        }
    }
    *out_end = l.end;
    return last;
}

static void agrees_with_another_simulation(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = stage_graph_priced(arena, seed);
        for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
            const pen_schedule_generator *generator = pen_schedule_generators[i];
            if (strcmp(generator->name, "auto") == 0) continue; // its orders are of the same kinds
            double *end;
            const pen_timeline *timeline = simulate(generator->name, graph, arena);
            const double last = look(graph, timeline->schedule, arena, &end);
            CHECK(fabs(last - timeline->step_seconds) < 1e-9 * last, "graph %llu, %s: %g, not %g",
                  (unsigned long long)seed, generator->name, timeline->step_seconds, last);
            for (uint32_t t = 0; t < timeline->schedule->task_count; t++) {
                CHECK(fabs(end[t] - timeline->times.end_seconds[t]) < 1e-9 * (1 + end[t]),
                      "graph %llu, %s, task %u", (unsigned long long)seed, generator->name, t);
            }
        }
        pen_arena_destroy(arena);
    }
}

// What is said to be a bound is one for all schedules.
static void bounds_are_below_all_schedules(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = stage_graph_priced(arena, seed);
        const pen_auto_options options = {.seed = seed, .work_limit = 2000};
        const pen_schedule *schedule;
        pen_auto_report report;
        CHECK_OK(pen_auto_schedule(graph, &options, arena, &schedule, &report));
        CHECK(report.seconds >= report.lower_bound, "graph %llu: %g is below %g",
              (unsigned long long)seed, report.seconds, report.lower_bound);
        CHECK(report.seconds <= report.best_named_seconds, "graph %llu", (unsigned long long)seed);
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(devices_compute_for_transfers),
              cmocka_unit_test(devices_of_a_host_share_its_line),
              cmocka_unit_test(agrees_with_another_simulation),
              cmocka_unit_test(bounds_are_below_all_schedules))
