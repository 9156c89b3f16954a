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

// A task graph while it is made.
typedef struct task_graph_builder {
    pen_task_graph *graph;
    const bool *is_halved;
    uint32_t send_count;
} task_graph_builder;

static void builder_send(task_graph_builder *b, pen_task target, uint32_t link, double seconds) {
    const uint32_t number = pen_task_graph_number(b->graph, target);
    b->graph->sends[b->send_count++] = (pen_task_send){number, link, seconds};
    b->graph->wait_count[number] += 1;
}

static bool builder_is_halved(const task_graph_builder *b, uint32_t s) {
    return b->is_halved != NULL && b->is_halved[s];
}

static void builder_forward(task_graph_builder *b, uint32_t s, uint32_t m) {
    const pen_stage_index *index = b->graph->index;
    for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
        const uint32_t e = index->out_edges[i];
        const pen_stage_edge *edge = &index->graph->edges[e];
        builder_send(b, (pen_task){PEN_TASK_FORWARD, edge->target, m}, index->forward_link[e],
                     edge->forward_seconds);
    }
    if (index->has_backward[s]) {
        builder_send(b, (pen_task){PEN_TASK_BACKWARD, s, m}, PEN_LINK_NONE, 0);
    } else if (index->has_update[s]) {
        builder_send(b, (pen_task){PEN_TASK_UPDATE, s, 0}, PEN_LINK_NONE, 0);
    }
}

static void builder_backward(task_graph_builder *b, uint32_t s, uint32_t m) {
    const pen_stage_index *index = b->graph->index;
    if (!index->has_backward[s]) return;
    for (uint32_t i = index->first_input[s]; i < index->first_input[s + 1]; i++) {
        const uint32_t e = index->in_edges[i];
        const pen_stage_edge *edge = &index->graph->edges[e];
        if (!edge->has_gradient) continue;
        builder_send(b, (pen_task){PEN_TASK_BACKWARD, edge->source, m}, index->backward_link[e],
                     edge->backward_seconds);
    }
    if (builder_is_halved(b, s)) {
        builder_send(b, (pen_task){PEN_TASK_BACKWARD_WEIGHT, s, m}, PEN_LINK_NONE, 0);
    } else if (index->has_update[s]) {
        builder_send(b, (pen_task){PEN_TASK_UPDATE, s, 0}, PEN_LINK_NONE, 0);
    }
}

static void builder_update(task_graph_builder *b, uint32_t s, uint32_t phase) {
    const pen_stage_index *index = b->graph->index;
    if (!index->has_update[s] || phase + 1 == index->phase_count) return;
    for (uint32_t i = index->first_step[s]; i < index->first_step[s + 1]; i++) {
        const uint32_t e = index->step_edges[i];
        const pen_stage_step_edge *edge = &index->graph->step_edges[e];
        if (edge->phase != phase) continue;
        builder_send(b, (pen_task){PEN_TASK_UPDATE, edge->target, phase + 1}, index->step_link[e],
                     edge->seconds);
    }
    builder_send(b, (pen_task){PEN_TASK_UPDATE, s, phase + 1}, PEN_LINK_NONE, 0);
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
    switch (task.kind) {
    case PEN_TASK_FORWARD:
        builder_forward(b, task.stage, task.microbatch);
        break;
    case PEN_TASK_BACKWARD:
    case PEN_TASK_BACKWARD_INPUT:
        builder_backward(b, task.stage, task.microbatch);
        break;
    case PEN_TASK_BACKWARD_WEIGHT:
        if (is_halved && graph->index->has_update[task.stage]) {
            builder_send(b, (pen_task){PEN_TASK_UPDATE, task.stage, 0}, PEN_LINK_NONE, 0);
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
            for (uint32_t m = 0; m < stages->microbatch_count; m++) {
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

pen_status pen_task_run_new(const pen_task_graph *graph, pen_arena *arena, pen_task_run *out_run) {
    const uint32_t device_count = graph->index->graph->device_count;
    *out_run = (pen_task_run){0};
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->start));
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->end));
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->ready));
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->cause));
    PEN_TRY(PEN_NEW(arena, graph->number_count, &out_run->waits));
    PEN_TRY(PEN_NEW(arena, graph->index->link_count, &out_run->link_free));
    PEN_TRY(PEN_NEW(arena, device_count, &out_run->free));
    PEN_TRY(PEN_NEW(arena, device_count, &out_run->next));
    return PEN_NEW(arena, (size_t)device_count + 1, &out_run->stack);
}

// A walk: what pen_task_graph_run works on.
typedef struct graph_walk {
    const pen_task_graph *graph;
    const uint32_t *first_task;
    const uint32_t *order;
    pen_task_run *run;
    uint32_t stack_count;
} graph_walk;

static void graph_walk_send(graph_walk *walk, uint32_t number, uint32_t device) {
    const pen_task_graph *graph = walk->graph;
    pen_task_run *run = walk->run;
    const double end = run->end[number];
    for (uint32_t i = graph->first_send[number]; i < graph->first_send[number + 1]; i++) {
        const pen_task_send *send = &graph->sends[i];
        double start;
        const double there = pen_link_send(run->link_free, send->link, end, send->seconds, &start);
        if (there >= run->ready[send->target]) {
            run->ready[send->target] = there;
            run->cause[send->target] = number;
        }
        run->waits[send->target] -= 1;
        if (run->waits[send->target] > 0) continue;
        const uint32_t d = graph->index->graph->stages[graph->tasks[send->target].stage].device;
        if (d == device || run->next[d] == walk->first_task[d + 1]) continue;
        if (walk->order[run->next[d]] == send->target) run->stack[walk->stack_count++] = d;
    }
}

static void graph_walk_device(graph_walk *walk, uint32_t d) {
    pen_task_run *run = walk->run;
    for (; run->next[d] < walk->first_task[d + 1]; run->next[d]++) {
        const uint32_t number = walk->order[run->next[d]];
        if (run->waits[number] > 0) return;
        const double start = fmax(run->ready[number], run->free[d]);
        run->start[number] = start;
        run->end[number] = start + walk->graph->seconds[number];
        run->free[d] = run->end[number];
        graph_walk_send(walk, number, d);
    }
}

// One simulation of an order; infinite when it gets stuck. Allocates nothing.
void pen_task_graph_run(const pen_task_graph *graph, const uint32_t *first_task,
                        const uint32_t *order, pen_task_run *run) {
    const uint32_t device_count = graph->index->graph->device_count;
    graph_walk walk = {graph, first_task, order, run, 0};
    memcpy(run->waits, graph->wait_count, graph->number_count * sizeof *run->waits);
    memset(run->ready, 0, graph->number_count * sizeof *run->ready);
    memset(run->cause, 0xff, graph->number_count * sizeof *run->cause);
    memset(run->link_free, 0, graph->index->link_count * sizeof *run->link_free);
    memset(run->free, 0, device_count * sizeof *run->free);
    memcpy(run->next, first_task, device_count * sizeof *run->next);
    for (uint32_t d = device_count; d-- > 0;) {
        graph_walk_device(&walk, d);
        while (walk.stack_count > 0) {
            graph_walk_device(&walk, run->stack[--walk.stack_count]);
        }
    }
    run->step_seconds = 0;
    for (uint32_t d = 0; d < device_count; d++) {
        if (run->next[d] < first_task[d + 1]) run->step_seconds = INFINITY;
        run->step_seconds = fmax(run->step_seconds, run->free[d]);
    }
}
