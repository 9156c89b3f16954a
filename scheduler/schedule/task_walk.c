#include "scheduler/schedule/task_walk.h"

#include "base/text.h"

// Tasks that wait are numbered: forward tasks by stage and microbatch, then backward tasks (whole
// or input half), then weight halves, then updates by stage and phase.
typedef struct walk_state {
    const pen_stage_index *index;
    const pen_schedule *schedule;
    pen_task_times *times;
    size_t cells; // stages x microbatches
    double *ready_seconds;
    uint32_t *pending;    // what each task still waits for
    double *free_seconds; // [device_count]
    uint32_t *task_next;  // [device_count]
    double *link_free;
    uint32_t *stack; // devices that may go on
    uint32_t stack_count;
    uint32_t device; // that goes on now
} walk_state;

static size_t walk_number(const walk_state *walk, pen_task task) {
    const size_t cell = (size_t)task.stage * walk->index->graph->microbatch_count + task.microbatch;
    switch (task.kind) {
    case PEN_TASK_FORWARD:
        return cell;
    case PEN_TASK_BACKWARD:
    case PEN_TASK_BACKWARD_INPUT:
        return walk->cells + cell;
    case PEN_TASK_BACKWARD_WEIGHT:
        return 2 * walk->cells + cell;
    case PEN_TASK_UPDATE:
        return 3 * walk->cells + (size_t)task.stage * walk->index->phase_count + task.microbatch;
    }
    PEN_NEVER("a task has one of the kinds");
}

// Something that `task` waits for is there at `seconds`.
static void walk_arrive(walk_state *walk, pen_task task, double seconds) {
    const size_t number = walk_number(walk, task);
    if (seconds > walk->ready_seconds[number]) walk->ready_seconds[number] = seconds;
    walk->pending[number] -= 1;
    if (walk->pending[number] > 0) return;
    const uint32_t d = walk->index->graph->stages[task.stage].device;
    if (d == walk->device || walk->task_next[d] == walk->schedule->first_task[d + 1]) return;
    if (walk_number(walk, walk->schedule->tasks[walk->task_next[d]]) != number) return;
    walk->stack[walk->stack_count++] = d;
}

static void walk_send(walk_state *walk, uint32_t e, pen_task task, double ready) {
    const pen_stage_index *index = walk->index;
    const bool is_backward = task.kind != PEN_TASK_FORWARD;
    const uint32_t link = is_backward ? index->backward_link[e] : index->forward_link[e];
    const pen_stage_edge *edge = &index->graph->edges[e];
    double start;
    const double end =
        pen_link_send(walk->link_free, link, ready,
                      is_backward ? edge->backward_seconds : edge->forward_seconds, &start);
    if (link != PEN_LINK_NONE) {
        walk->times->transfers[walk->times->transfer_count++] =
            (pen_transfer_time){e, task.microbatch, is_backward, false, start, end};
    }
    walk_arrive(walk, task, end);
}

// What a phase of updates makes, for the next phase.
static void walk_release_update(walk_state *walk, pen_task task, double end) {
    const pen_stage_index *index = walk->index;
    const uint32_t s = task.stage;
    const uint32_t next = task.microbatch + 1;
    double start;
    if (next == index->phase_count) return;
    for (uint32_t i = index->first_step[s]; i < index->first_step[s + 1]; i++) {
        const uint32_t e = index->step_edges[i];
        const pen_stage_step_edge *edge = &index->graph->step_edges[e];
        if (edge->phase != task.microbatch) continue;
        const uint32_t link = index->step_link[e];
        const double arrival = pen_link_send(walk->link_free, link, end, edge->seconds, &start);
        if (link != PEN_LINK_NONE) {
            walk->times->transfers[walk->times->transfer_count++] =
                (pen_transfer_time){e, edge->phase, false, true, start, arrival};
        }
        walk_arrive(walk, (pen_task){PEN_TASK_UPDATE, edge->target, next}, arrival);
    }
    walk_arrive(walk, (pen_task){PEN_TASK_UPDATE, s, next}, end);
}

// All that a task's end lets go on.
static void walk_release(walk_state *walk, pen_task task, double end) {
    const pen_stage_index *index = walk->index;
    const uint32_t s = task.stage;
    const uint32_t m = task.microbatch;
    if (task.kind == PEN_TASK_FORWARD) {
        for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
            const uint32_t target = index->graph->edges[index->out_edges[i]].target;
            walk_send(walk, index->out_edges[i], (pen_task){PEN_TASK_FORWARD, target, m}, end);
        }
        if (index->has_backward[s]) {
            walk_arrive(walk, (pen_task){PEN_TASK_BACKWARD, s, m}, end);
        } else if (index->has_update[s]) {
            walk_arrive(walk, (pen_task){PEN_TASK_UPDATE, s, 0}, end);
        }
    }
    if (task.kind == PEN_TASK_BACKWARD || task.kind == PEN_TASK_BACKWARD_INPUT) {
        for (uint32_t i = index->first_input[s]; i < index->first_input[s + 1]; i++) {
            const pen_stage_edge *edge = &index->graph->edges[index->in_edges[i]];
            if (!edge->has_gradient) continue;
            walk_send(walk, index->in_edges[i], (pen_task){PEN_TASK_BACKWARD, edge->source, m},
                      end);
        }
    }
    if (task.kind == PEN_TASK_BACKWARD_INPUT) {
        walk_arrive(walk, (pen_task){PEN_TASK_BACKWARD_WEIGHT, s, m}, end);
    }
    if (task.kind == PEN_TASK_BACKWARD || task.kind == PEN_TASK_BACKWARD_WEIGHT) {
        if (index->has_update[s]) walk_arrive(walk, (pen_task){PEN_TASK_UPDATE, s, 0}, end);
    }
    if (task.kind == PEN_TASK_UPDATE) walk_release_update(walk, task, end);
}

// Runs the tasks of a device until one has to wait.
static void walk_device(walk_state *walk, uint32_t d) {
    const pen_schedule *schedule = walk->schedule;
    walk->device = d;
    double free_seconds = walk->free_seconds[d];
    uint32_t t = walk->task_next[d];
    for (; t < schedule->first_task[d + 1]; t++) {
        const pen_task task = schedule->tasks[t];
        const size_t number = walk_number(walk, task);
        if (walk->pending[number] > 0) break;
        const double ready = walk->ready_seconds[number];
        const double start = ready > free_seconds ? ready : free_seconds;
        free_seconds = start + pen_task_seconds(walk->index->graph, task);
        walk->times->start_seconds[t] = start;
        walk->times->end_seconds[t] = free_seconds;
        walk->task_next[d] = t + 1;
        walk_release(walk, task, free_seconds);
    }
    walk->free_seconds[d] = free_seconds;
    walk->task_next[d] = t;
}

// What each task waits for: inputs, gradients and its own forward task, the halves before, and for
// updates all microbatches.
static pen_status walk_init(walk_state *walk, pen_arena *arena) {
    const pen_stage_index *index = walk->index;
    const pen_stage_graph *graph = index->graph;
    const uint32_t microbatch_count = graph->microbatch_count;
    walk->cells = (size_t)graph->stage_count * microbatch_count;
    const size_t number_count = 3 * walk->cells + (size_t)graph->stage_count * index->phase_count;
    const size_t transfer_count =
        2 * (size_t)graph->edge_count * microbatch_count + graph->step_edge_count;
    PEN_TRY(PEN_NEW(arena, number_count, &walk->ready_seconds));
    PEN_TRY(PEN_NEW(arena, number_count, &walk->pending));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &walk->free_seconds));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &walk->task_next));
    PEN_TRY(PEN_NEW(arena, index->link_count, &walk->link_free));
    PEN_TRY(PEN_NEW(arena, (size_t)graph->device_count + 1, &walk->stack));
    PEN_TRY(PEN_NEW(arena, walk->schedule->task_count, &walk->times->start_seconds));
    PEN_TRY(PEN_NEW(arena, walk->schedule->task_count, &walk->times->end_seconds));
    PEN_TRY(PEN_NEW(arena, transfer_count, &walk->times->transfers));
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const size_t row = (size_t)s * microbatch_count;
        const uint32_t input_count = index->first_input[s + 1] - index->first_input[s];
        for (uint32_t m = 0; m < microbatch_count; m++) {
            walk->pending[row + m] = input_count;
            walk->pending[walk->cells + row + m] = index->gradient_count[s] + 1;
            walk->pending[2 * walk->cells + row + m] = 1;
        }
        uint32_t *updates = walk->pending + 3 * walk->cells + (size_t)s * index->phase_count;
        updates[0] = microbatch_count;
        for (uint32_t phase = 1; phase < index->phase_count; phase++) {
            updates[phase] = 1;
        }
    }
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        const pen_stage_step_edge *edge = &graph->step_edges[e];
        walk->pending[3 * walk->cells + (size_t)edge->target * index->phase_count + edge->phase +
                      1] += 1;
    }
    for (uint32_t d = 0; d < graph->device_count; d++) {
        walk->task_next[d] = walk->schedule->first_task[d];
    }
    return PEN_OK;
}

static bool walk_update_waits_for(const pen_stage_index *index, pen_task task, pen_task other) {
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

pen_status pen_task_walk(const pen_stage_index *index, const pen_schedule *schedule,
                         pen_arena *arena, pen_task_times *out_times) {
    walk_state walk = {.index = index, .schedule = schedule, .times = out_times};
    *out_times = (pen_task_times){0};
    PEN_TRY(walk_init(&walk, arena));
    for (uint32_t d = schedule->device_count; d-- > 0;) {
        // the stack holds each device at most once: one that waits is put there by the one arrival
        // that completes its next task
        walk_device(&walk, d);
        while (walk.stack_count > 0) {
            walk_device(&walk, walk.stack[--walk.stack_count]);
        }
    }
    for (uint32_t d = 0; d < schedule->device_count; d++) {
        if (walk.task_next[d] < schedule->first_task[d + 1]) return walk_name_circle(&walk, arena);
    }
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
