#include "scheduler/schedule/task_graph.h"

#include <math.h>
#include <string.h>

uint32_t pen_task_graph_number(const pen_task_graph *graph, pen_task task) {
    const uint32_t microbatch_count = graph->index->graph->microbatch_count;
    const uint32_t cells = graph->index->graph->stage_count * microbatch_count;
    const uint32_t cell = task.stage * microbatch_count + task.microbatch;
    switch (task.kind) {
    case PEN_TASK_FORWARD:
        return cell;
    case PEN_TASK_BACKWARD:
    case PEN_TASK_BACKWARD_INPUT:
        return cells + cell;
    case PEN_TASK_BACKWARD_WEIGHT:
        return 2 * cells + cell;
    case PEN_TASK_UPDATE:
        return 3 * cells + task.stage * graph->index->phase_count + task.microbatch;
    }
    PEN_NEVER("a task has one of the kinds");
}

void pen_task_graph_order(const pen_task_graph *graph, const pen_schedule *schedule,
                          uint32_t *out_order) {
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        out_order[t] = pen_task_graph_number(graph, schedule->tasks[t]);
    }
}

// A task graph while it is made.
typedef struct task_graph_builder {
    pen_task_graph *graph;
    const bool *is_halved;
    uint32_t send_count;
    uint32_t device; // of the task at hand
} task_graph_builder;

// `route` is that of edge `edge`; NULL: the value stays on the device.
static void builder_send(task_graph_builder *b, pen_task target, const pen_route *route,
                         uint32_t edge) {
    const uint32_t number = pen_task_graph_number(b->graph, target);
    const pen_stage *stages = b->graph->index->graph->stages;
    const bool is_local = stages[target.stage].device == b->device;
    b->graph->sends[b->send_count++] = (pen_task_send){number, edge, is_local ? NULL : route};
    if (!is_local) b->graph->remote_count += 1;
    b->graph->wait_count[number] += 1;
}

static bool builder_is_halved(const task_graph_builder *b, uint32_t s) {
    return b->is_halved != NULL && b->is_halved[s];
}

static void builder_forward(task_graph_builder *b, uint32_t s, uint32_t m) {
    const pen_stage_index *index = b->graph->index;
    for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
        const uint32_t e = index->out_edges[i];
        builder_send(b, (pen_task){PEN_TASK_FORWARD, index->graph->edges[e].target, m},
                     &index->forward_route[e], e);
    }
    if (index->has_backward[s]) {
        builder_send(b, (pen_task){PEN_TASK_BACKWARD, s, m}, NULL, 0);
    } else if (index->has_update[s]) {
        builder_send(b, (pen_task){PEN_TASK_UPDATE, s, 0}, NULL, 0);
    }
}

static void builder_backward(task_graph_builder *b, uint32_t s, uint32_t m) {
    const pen_stage_index *index = b->graph->index;
    if (!index->has_backward[s]) return;
    for (uint32_t i = index->first_input[s]; i < index->first_input[s + 1]; i++) {
        const uint32_t e = index->in_edges[i];
        const pen_stage_edge *edge = &index->graph->edges[e];
        if (!edge->has_gradient) continue;
        builder_send(b, (pen_task){PEN_TASK_BACKWARD, edge->source, m}, &index->backward_route[e],
                     e);
    }
    if (builder_is_halved(b, s)) {
        builder_send(b, (pen_task){PEN_TASK_BACKWARD_WEIGHT, s, m}, NULL, 0);
    } else if (index->has_update[s]) {
        builder_send(b, (pen_task){PEN_TASK_UPDATE, s, 0}, NULL, 0);
    }
}

static void builder_update(task_graph_builder *b, uint32_t s, uint32_t phase) {
    const pen_stage_index *index = b->graph->index;
    if (!index->has_update[s] || phase + 1 == index->phase_count) return;
    for (uint32_t i = index->first_step[s]; i < index->first_step[s + 1]; i++) {
        const uint32_t e = index->step_edges[i];
        const pen_stage_step_edge *edge = &index->graph->step_edges[e];
        if (edge->phase != phase) continue;
        builder_send(b, (pen_task){PEN_TASK_UPDATE, edge->target, phase + 1}, &index->step_route[e],
                     e);
    }
    builder_send(b, (pen_task){PEN_TASK_UPDATE, s, phase + 1}, NULL, 0);
}

// A task's number, time, and what it sends on to: plain arrays, which the search simulates
// thousands of times.
static void builder_add(task_graph_builder *b, pen_task task) {
    pen_task_graph *graph = b->graph;
    const uint32_t number = pen_task_graph_number(graph, task);
    const bool is_halved = builder_is_halved(b, task.stage);
    if (task.kind == PEN_TASK_BACKWARD && is_halved) task.kind = PEN_TASK_BACKWARD_INPUT;
    graph->tasks[number] = task;
    graph->seconds[number] = pen_task_seconds(graph->index->graph, task);
    graph->first_send[number] = b->send_count;
    b->device = graph->index->graph->stages[task.stage].device;
    switch (task.kind) {
    case PEN_TASK_FORWARD:
        graph->forward_count += 1;
        builder_forward(b, task.stage, task.microbatch);
        break;
    case PEN_TASK_BACKWARD:
    case PEN_TASK_BACKWARD_INPUT:
        builder_backward(b, task.stage, task.microbatch);
        break;
    case PEN_TASK_BACKWARD_WEIGHT:
        if (is_halved && graph->index->has_update[task.stage]) {
            builder_send(b, (pen_task){PEN_TASK_UPDATE, task.stage, 0}, NULL, 0);
        }
        break;
    case PEN_TASK_UPDATE:
        builder_update(b, task.stage, task.microbatch);
        break;
    }
    graph->first_send[number + 1] = b->send_count;
}

// Tasks are numbered by kind, stage and microbatch, so that a number can be computed and need not
// be looked up.
pen_status pen_task_graph_new(const pen_stage_index *index, const bool *is_halved, pen_arena *arena,
                              pen_task_graph **out_graph) {
    const pen_stage_graph *stages = index->graph;
    const uint32_t cells = stages->stage_count * stages->microbatch_count;
    const uint32_t updates = stages->stage_count * index->phase_count;
    const size_t numbers = 3 * (size_t)cells + updates;
    const size_t sends = 2 * (size_t)stages->edge_count * stages->microbatch_count +
                         3 * (size_t)cells + updates + stages->step_edge_count;
    task_graph_builder b = {.is_halved = is_halved};
    PEN_TRY(PEN_NEW(arena, 1, &b.graph));
    b.graph->index = index;
    b.graph->number_count = (uint32_t)numbers;
    PEN_TRY(PEN_NEW(arena, numbers, &b.graph->tasks));
    PEN_TRY(PEN_NEW(arena, numbers, &b.graph->seconds));
    PEN_TRY(PEN_NEW(arena, numbers, &b.graph->wait_count));
    PEN_TRY(PEN_NEW(arena, numbers + 1, &b.graph->first_send));
    PEN_TRY(PEN_NEW(arena, sends, &b.graph->sends));
    static const pen_task_kind kinds[] = {PEN_TASK_FORWARD, PEN_TASK_BACKWARD,
                                          PEN_TASK_BACKWARD_WEIGHT};
    for (uint32_t kind = 0; kind < 3; kind++) {
        for (uint32_t s = 0; s < stages->stage_count; s++) {
            const uint32_t first = stages->stages[s].first_microbatch;
            const uint32_t count = pen_stage_microbatches(stages, &stages->stages[s]);
            for (uint32_t m = first; m < first + count; m++) {
                builder_add(&b, (pen_task){kinds[kind], s, m});
            }
        }
    }
    for (uint32_t s = 0; s < stages->stage_count; s++) {
        for (uint32_t p = 0; p < index->phase_count; p++) {
            builder_add(&b, (pen_task){PEN_TASK_UPDATE, s, p});
        }
    }
    *out_graph = b.graph;
    return PEN_OK;
}

// Something that happens: a task ends, or values arrive.
typedef struct pen_task_event {
    double seconds;
    uint64_t number; // of two at one moment the lower comes first
    uint32_t task;   // that ends, or whose values arrive
    uint32_t send;   // PEN_TASK_NONE: the task ends
} task_event;

// The heap holds at most one end of a task for each device, and each send once.
pen_status pen_task_run_new(const pen_task_graph *graph, bool keeps_transfers, pen_arena *arena,
                            pen_task_run *out_run) {
    const uint32_t device_count = graph->index->graph->device_count;
    *out_run = (pen_task_run){0};
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->start));
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->end));
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->ready));
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->cause));
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->waits));
    PEN_TRY(PEN_NEW(arena, graph->index->line_count, &out_run->line_free));
    PEN_TRY(PEN_NEW(arena, device_count, &out_run->free));
    PEN_TRY(PEN_NEW(arena, device_count, &out_run->next));
    PEN_TRY(PEN_NEW(arena, device_count, &out_run->running));
    if (keeps_transfers) PEN_TRY(PEN_NEW(arena, graph->remote_count, &out_run->transfers));
    return PEN_NEW(arena, (size_t)device_count + graph->remote_count, &out_run->events);
}

// A walk: what pen_task_graph_run works on.
typedef struct graph_walk {
    const pen_task_graph *graph;
    const uint32_t *first_task;
    const uint32_t *order;
    pen_task_run *run;
} graph_walk;

static bool event_is_before(const task_event *a, const task_event *b) {
    return a->seconds < b->seconds || (a->seconds == b->seconds && a->number < b->number);
}

static void graph_walk_push(pen_task_run *run, double seconds, uint32_t task, uint32_t send) {
    const task_event event = {seconds, run->event_number++, task, send};
    uint32_t slot = run->event_count++;
    while (slot > 0 && event_is_before(&event, &run->events[(slot - 1) / 2])) {
        run->events[slot] = run->events[(slot - 1) / 2];
        slot = (slot - 1) / 2;
    }
    run->events[slot] = event;
}

static task_event graph_walk_pop(pen_task_run *run) {
    const task_event first = run->events[0];
    const task_event last = run->events[--run->event_count];
    uint32_t slot = 0;
    for (uint32_t child = 1; child < run->event_count; child = 2 * slot + 1) {
        if (child + 1 < run->event_count &&
            event_is_before(&run->events[child + 1], &run->events[child])) {
            child += 1;
        }
        if (!event_is_before(&run->events[child], &last)) break;
        run->events[slot] = run->events[child];
        slot = child;
    }
    run->events[slot] = last;
    return first;
}

static uint32_t graph_walk_device(const graph_walk *walk, uint32_t number) {
    return walk->graph->index->graph->stages[walk->graph->tasks[number].stage].device;
}

// Begins the next task of a device that runs none, if all that it waits for is there.
static void graph_walk_begin(graph_walk *walk, uint32_t device) {
    pen_task_run *run = walk->run;
    if (run->running[device] != PEN_TASK_NONE) return;
    if (run->next[device] == walk->first_task[device + 1]) return;
    const uint32_t number = walk->order[run->next[device]];
    const bool is_update = walk->graph->tasks[number].kind == PEN_TASK_UPDATE;
    if (run->waits[number] > 0 || (is_update && run->forwards_left > 0)) return;
    run->next[device] += 1;
    run->start[number] = fmax(run->ready[number], run->free[device]);
    if (is_update) run->start[number] = fmax(run->start[number], run->losses_seconds);
    run->end[number] = run->start[number] + walk->graph->seconds[number];
    run->free[device] = run->end[number];
    run->running[device] = number;
    graph_walk_push(run, run->end[number], number, PEN_TASK_NONE);
}

// A task has one less to wait for.
static void graph_walk_arrive(graph_walk *walk, uint32_t number, uint32_t target, double seconds) {
    pen_task_run *run = walk->run;
    if (seconds >= run->ready[target]) {
        run->ready[target] = seconds;
        run->cause[target] = number;
    }
    run->waits[target] -= 1;
}

static void graph_walk_note(graph_walk *walk, uint32_t number, const pen_task_send *send,
                            double start, double end) {
    pen_task_run *run = walk->run;
    const pen_task task = walk->graph->tasks[number];
    if (run->transfers == NULL) return;
    run->transfers[run->transfer_count++] = (pen_transfer_time){
        .edge = send->edge,
        .microbatch = task.microbatch,
        .is_backward = task.kind == PEN_TASK_BACKWARD || task.kind == PEN_TASK_BACKWARD_INPUT,
        .is_step = task.kind == PEN_TASK_UPDATE,
        .start_seconds = start,
        .end_seconds = end};
}

// A task ends: its values set off, and the device goes on when it has sent them.
static void graph_walk_end(graph_walk *walk, uint32_t number) {
    const pen_task_graph *graph = walk->graph;
    pen_task_run *run = walk->run;
    const uint32_t device = graph_walk_device(walk, number);
    const double end = run->end[number];
    run->running[device] = PEN_TASK_NONE;
    if (graph->tasks[number].kind == PEN_TASK_FORWARD && --run->forwards_left == 0) {
        run->losses_seconds = end;
    }
    for (uint32_t i = graph->first_send[number]; i < graph->first_send[number + 1]; i++) {
        const pen_task_send *send = &graph->sends[i];
        double start;
        if (send->route == NULL) {
            graph_walk_arrive(walk, number, send->target, end);
            continue;
        }
        const double there = pen_route_send(run->line_free, send->route, end, &start);
        run->free[device] += send->route->handling.send_seconds;
        graph_walk_note(walk, number, send, start, there);
        graph_walk_push(run, there, number, i);
    }
    graph_walk_begin(walk, device);
    if (graph->tasks[number].kind != PEN_TASK_FORWARD || run->forwards_left > 0) return;
    for (uint32_t d = 0; d < graph->index->graph->device_count; d++) {
        graph_walk_begin(walk, d); // updates may
    }
}

// Values arrive: the device has received them as they came, or does so behind what it runs.
static void graph_walk_receive(graph_walk *walk, const task_event *event) {
    const pen_task_send *send = &walk->graph->sends[event->send];
    pen_task_run *run = walk->run;
    const uint32_t device = graph_walk_device(walk, send->target);
    const double there = pen_route_receive(&run->free[device], send->route, event->seconds);
    graph_walk_arrive(walk, event->task, send->target, there);
    graph_walk_begin(walk, device);
}

// One simulation of an order; infinite when it gets stuck. Allocates nothing.
void pen_task_graph_run(const pen_task_graph *graph, const uint32_t *first_task,
                        const uint32_t *order, pen_task_run *run) {
    const uint32_t device_count = graph->index->graph->device_count;
    graph_walk walk = {graph, first_task, order, run};
    memcpy(run->waits, graph->wait_count, graph->number_count * sizeof *run->waits);
    memset(run->ready, 0, graph->number_count * sizeof *run->ready);
    memset(run->cause, 0xff, graph->number_count * sizeof *run->cause);
    memset(run->line_free, 0, graph->index->line_count * sizeof *run->line_free);
    memset(run->free, 0, device_count * sizeof *run->free);
    memset(run->running, 0xff, device_count * sizeof *run->running);
    memcpy(run->next, first_task, device_count * sizeof *run->next);
    run->transfer_count = 0;
    run->event_count = 0;
    run->event_number = 0;
    run->forwards_left = graph->forward_count;
    run->losses_seconds = 0;
    run->step_seconds = 0;
    for (uint32_t d = 0; d < device_count; d++) {
        graph_walk_begin(&walk, d);
    }
    while (run->event_count > 0) {
        const task_event event = graph_walk_pop(run);
        if (event.send != PEN_TASK_NONE) {
            graph_walk_receive(&walk, &event);
            continue;
        }
        run->step_seconds = fmax(run->step_seconds, event.seconds);
        graph_walk_end(&walk, event.task);
    }
    for (uint32_t d = 0; d < device_count; d++) {
        if (run->next[d] < first_task[d + 1]) run->step_seconds = INFINITY;
    }
}
