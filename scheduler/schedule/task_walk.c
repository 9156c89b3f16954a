#include "scheduler/schedule/task_walk.h"

#include "base/text.h"

// What is looked at when tasks wait for each other.
typedef struct walk_state {
    const pen_stage_index *index;
    const pen_schedule *schedule;
    const uint32_t *task_next; // [device_count] the first that did not run
} walk_state;

static bool walk_update_waits_for(const pen_stage_index *index, pen_task task, pen_task other) {
    if (other.kind == PEN_TASK_FORWARD) return true; // for all losses
    if (task.microbatch == 0) return other.stage == task.stage && other.kind != PEN_TASK_UPDATE;
    if (other.kind != PEN_TASK_UPDATE || other.microbatch + 1 != task.microbatch) return false;
    if (other.stage == task.stage) return true;
    for (uint32_t i = index->first_step[other.stage]; i < index->first_step[other.stage + 1]; i++) {
        const pen_stage_step_edge *edge = &index->graph->step_edges[index->step_edges[i]];
        if (edge->target == task.stage && edge->phase == other.microbatch) return true;
    }
    return false;
}

// Whether `task` still waits for `other`, which has not run.
static bool walk_waits_for(const walk_state *walk, pen_task task, pen_task other) {
    const pen_stage_index *index = walk->index;
    const pen_stage_graph *graph = index->graph;
    if (task.kind == PEN_TASK_UPDATE) return walk_update_waits_for(index, task, other);
    if (other.microbatch != task.microbatch || other.kind == PEN_TASK_UPDATE) return false;
    if (task.kind == PEN_TASK_BACKWARD_WEIGHT) {
        return other.stage == task.stage && other.kind == PEN_TASK_BACKWARD_INPUT;
    }
    if (task.kind != PEN_TASK_FORWARD && other.stage == task.stage) {
        return other.kind == PEN_TASK_FORWARD;
    }
    const bool is_forward = task.kind == PEN_TASK_FORWARD;
    if (is_forward != (other.kind == PEN_TASK_FORWARD)) return false;
    if (other.kind == PEN_TASK_BACKWARD_WEIGHT) return false;
    const uint32_t source = is_forward ? other.stage : task.stage;
    const uint32_t target = is_forward ? task.stage : other.stage;
    for (uint32_t i = index->first_output[source]; i < index->first_output[source + 1]; i++) {
        const pen_stage_edge *edge = &graph->edges[index->out_edges[i]];
        if (edge->target == target && (is_forward || edge->has_gradient)) return true;
    }
    return false;
}

// The first task not run, of any device, that the next task of `device` waits for.
static bool walk_find_cause(const walk_state *walk, uint32_t device, pen_task *out_cause) {
    const pen_schedule *schedule = walk->schedule;
    const pen_task task = schedule->tasks[walk->task_next[device]];
    for (uint32_t d = 0; d < schedule->device_count; d++) {
        for (uint32_t t = walk->task_next[d]; t < schedule->first_task[d + 1]; t++) {
            if (!walk_waits_for(walk, task, schedule->tasks[t])) continue;
            *out_cause = schedule->tasks[t];
            return true;
        }
    }
    return false;
}

// Nothing can go on: each device's next task waits for a task behind another device's next one.
// Following that leads into a circle.
static pen_status walk_name_circle(const walk_state *walk, pen_arena *arena) {
    const pen_schedule *schedule = walk->schedule;
    const pen_stage_graph *graph = walk->index->graph;
    bool *seen;
    pen_task cause;
    PEN_TRY(PEN_NEW(arena, graph->device_count, &seen));
    uint32_t d = 0;
    while (walk->task_next[d] == schedule->first_task[d + 1])
        d++;
    while (!seen[d]) {
        seen[d] = true;
        if (!walk_find_cause(walk, d, &cause)) {
            return pen_error(PEN_INTERNAL, "a schedule is stuck on device %u without a cause", d);
        }
        d = graph->stages[cause.stage].device;
    }
    pen_text text;
    const char *separator = "";
    char name[PEN_TASK_TEXT_BYTES];
    pen_text_init(&text, arena);
    pen_text_print(&text, "tasks wait for each other: ");
    const uint32_t first = d;
    do {
        const pen_task task = schedule->tasks[walk->task_next[d]];
        pen_text_print(&text, "%s%s on device %u waits", separator, pen_task_format(task, name), d);
        if (!walk_find_cause(walk, d, &cause)) break;
        d = graph->stages[cause.stage].device;
        pen_text_print(&text, " for %s", pen_task_format(cause, name));
        const pen_task next = schedule->tasks[walk->task_next[d]];
        if (next.kind != cause.kind || next.stage != cause.stage ||
            next.microbatch != cause.microbatch) {
            pen_text_print(&text, ", which comes after %s", pen_task_format(next, name));
        }
        separator = "; ";
    } while (d != first);
    return pen_text_error(&text, PEN_INVALID_INPUT);
}

// The tasks of a schedule as an order of numbers, and the graph that they are of.
static pen_status walk_order(const pen_stage_index *index, const pen_schedule *schedule,
                             pen_arena *arena, pen_task_graph **out_graph, uint32_t **out_order) {
    bool *is_halved;
    PEN_TRY(PEN_NEW(arena, index->graph->stage_count, &is_halved));
    pen_schedule_find_halved(schedule, index->graph->stage_count, is_halved);
    PEN_TRY(pen_task_graph_new(index, is_halved, arena, out_graph));
    PEN_TRY(PEN_NEW(arena, schedule->task_count, out_order));
    pen_task_graph_order(*out_graph, schedule, *out_order);
    return PEN_OK;
}

// One run of the simulation, by numbers, whose times are then told in the schedule's order.
pen_status pen_task_walk(const pen_stage_index *index, const pen_schedule *schedule,
                         pen_arena *arena, pen_task_times *out_times) {
    pen_task_graph *graph;
    pen_task_run run;
    uint32_t *order;
    *out_times = (pen_task_times){0};
    PEN_TRY(walk_order(index, schedule, arena, &graph, &order));
    PEN_TRY(pen_task_run_new(graph, true, arena, &run));
    PEN_TRY(PEN_NEW(arena, schedule->task_count, &out_times->start_seconds));
    PEN_TRY(PEN_NEW(arena, schedule->task_count, &out_times->end_seconds));
    pen_task_graph_run(graph, schedule->first_task, order, &run);
    const walk_state walk = {index, schedule, run.next};
    for (uint32_t d = 0; d < schedule->device_count; d++) {
        if (run.next[d] < schedule->first_task[d + 1]) return walk_name_circle(&walk, arena);
    }
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        out_times->start_seconds[t] = run.start[order[t]];
        out_times->end_seconds[t] = run.end[order[t]];
    }
    out_times->transfer_count = run.transfer_count;
    out_times->transfers = run.transfers;
    return PEN_OK;
}

uint32_t pen_transfer_source(const pen_stage_graph *graph, const pen_transfer_time *transfer) {
    if (transfer->is_step) return graph->step_edges[transfer->edge].source;
    const pen_stage_edge *edge = &graph->edges[transfer->edge];
    return transfer->is_backward ? edge->target : edge->source;
}

uint32_t pen_transfer_target(const pen_stage_graph *graph, const pen_transfer_time *transfer) {
    if (transfer->is_step) return graph->step_edges[transfer->edge].target;
    const pen_stage_edge *edge = &graph->edges[transfer->edge];
    return transfer->is_backward ? edge->source : edge->target;
}
