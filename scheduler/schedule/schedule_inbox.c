#include "scheduler/schedule/schedule_inbox.h"

#include <string.h>

#include "base/text.h"
#include "scheduler/schedule/task_graph.h"

// A walk without times: how far each device has come.
typedef struct inbox_walk {
    const pen_stage_index *index;
    const pen_schedule *schedule;
    const pen_schedule_inboxes *inboxes;
    const pen_task_graph *tasks;
    const bool *is_halved;
    uint32_t *waits; // [number_count] of the tasks
    bool *is_done;   // [number_count]
    uint32_t *next;  // [device_count]
} inbox_walk;

// The task that reads what stage `s` gets for microbatch `m` last.
static pen_task inbox_reader(const inbox_walk *walk, uint32_t s, uint32_t m) {
    if (!walk->index->has_backward[s]) return (pen_task){PEN_TASK_FORWARD, s, m};
    return (pen_task){walk->is_halved[s] ? PEN_TASK_BACKWARD_WEIGHT : PEN_TASK_BACKWARD, s, m};
}

// Whether a place that `task` fills is taken still, and by what it is read last. *out_reader may be
// a task that was not asked for when it is not.
static bool inbox_is_full(const inbox_walk *walk, uint32_t e, bool is_backward, uint32_t m,
                          pen_task *out_reader) {
    const pen_stage_edge *edge = &walk->index->graph->edges[e];
    const uint32_t places = is_backward ? walk->inboxes->backward[e] : walk->inboxes->forward[e];
    if (walk->index->forward_link[e] == PEN_LINK_NONE || m < places) return false;
    *out_reader = inbox_reader(walk, is_backward ? edge->source : edge->target, m - places);
    return !walk->is_done[pen_task_graph_number(walk->tasks, *out_reader)];
}

// The first place that `task` has to wait for.
static bool inbox_waits(const inbox_walk *walk, pen_task task, pen_task *out_reader) {
    const pen_stage_index *index = walk->index;
    const uint32_t s = task.stage;
    if (task.kind == PEN_TASK_FORWARD) {
        for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
            if (inbox_is_full(walk, index->out_edges[i], false, task.microbatch, out_reader))
                return true;
        }
    }
    if (task.kind == PEN_TASK_BACKWARD || task.kind == PEN_TASK_BACKWARD_INPUT) {
        for (uint32_t i = index->first_input[s]; i < index->first_input[s + 1]; i++) {
            const uint32_t e = index->in_edges[i];
            if (!index->graph->edges[e].has_gradient) continue;
            if (inbox_is_full(walk, e, true, task.microbatch, out_reader)) return true;
        }
    }
    return false;
}

// Runs what can be run of a device. Returns whether anything was.
static bool inbox_go_on(inbox_walk *walk, uint32_t device) {
    const pen_task_graph *tasks = walk->tasks;
    const uint32_t before = walk->next[device];
    pen_task reader;
    while (walk->next[device] < walk->schedule->first_task[device + 1]) {
        const pen_task task = walk->schedule->tasks[walk->next[device]];
        const uint32_t number = pen_task_graph_number(tasks, task);
        if (walk->waits[number] > 0 || inbox_waits(walk, task, &reader)) break;
        walk->is_done[number] = true;
        walk->next[device] += 1;
        for (uint32_t i = tasks->first_send[number]; i < tasks->first_send[number + 1]; i++) {
            walk->waits[tasks->sends[i].target] -= 1;
        }
    }
    return walk->next[device] > before;
}

// What the next task of a device waits for: a task that has not run, and whether for its place.
static bool inbox_find_cause(const inbox_walk *walk, uint32_t device, pen_task *out_cause,
                             bool *out_is_place) {
    const pen_task_graph *tasks = walk->tasks;
    const pen_task task = walk->schedule->tasks[walk->next[device]];
    const uint32_t wanted = pen_task_graph_number(tasks, task);
    *out_is_place = walk->waits[wanted] == 0;
    if (*out_is_place) return inbox_waits(walk, task, out_cause);
    for (uint32_t d = 0; d < walk->schedule->device_count; d++) {
        for (uint32_t t = walk->next[d]; t < walk->schedule->first_task[d + 1]; t++) {
            const uint32_t number = pen_task_graph_number(tasks, walk->schedule->tasks[t]);
            for (uint32_t i = tasks->first_send[number]; i < tasks->first_send[number + 1]; i++) {
                if (tasks->sends[i].target != wanted) continue;
                *out_cause = walk->schedule->tasks[t];
                return true;
            }
        }
    }
    return false;
}

// Follows causes from device to device until one comes again: that is the circle, and the message
// goes around it once.
static pen_status inbox_name_circle(const inbox_walk *walk, uint32_t device, pen_arena *arena) {
    const pen_stage_graph *graph = walk->index->graph;
    char name[PEN_TASK_TEXT_BYTES];
    const char *separator = "";
    pen_text text;
    pen_task cause;
    bool is_place, *seen;
    PEN_TRY(PEN_NEW(arena, graph->device_count, &seen));
    while (!seen[device]) { // into the circle
        seen[device] = true;
        if (!inbox_find_cause(walk, device, &cause, &is_place)) {
            return pen_error(PEN_INTERNAL, "a schedule is stuck on device %u without a cause",
                             device);
        }
        device = graph->stages[cause.stage].device;
    }
    const uint32_t first = device;
    pen_text_init(&text, arena);
    pen_text_add(&text, "tasks wait for each other and for places: ");
    do {
        const pen_task task = walk->schedule->tasks[walk->next[device]];
        pen_text_print(&text, "%s%s on device %u waits", separator, pen_task_format(task, name),
                       device);
        if (!inbox_find_cause(walk, device, &cause, &is_place)) break;
        device = graph->stages[cause.stage].device;
        pen_text_print(&text, " for %s%s", is_place ? "the place that is read by " : "",
                       pen_task_format(cause, name));
        separator = "; ";
    } while (device != first);
    return pen_text_error(&text, PEN_INVALID_INPUT);
}

// Counts of what each task waits for; the walk takes them down.
static pen_status inbox_walk_new(const pen_stage_index *index, const pen_schedule *schedule,
                                 const pen_schedule_inboxes *inboxes, pen_arena *arena,
                                 inbox_walk *out_walk) {
    pen_task_graph *tasks;
    bool *is_halved;
    PEN_TRY(PEN_NEW(arena, index->graph->stage_count, &is_halved));
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        if (schedule->tasks[t].kind != PEN_TASK_BACKWARD_INPUT) continue;
        is_halved[schedule->tasks[t].stage] = true;
    }
    PEN_TRY(pen_task_graph_new(index, is_halved, arena, &tasks));
    *out_walk = (inbox_walk){.index = index,
                             .schedule = schedule,
                             .inboxes = inboxes,
                             .tasks = tasks,
                             .is_halved = is_halved};
    PEN_TRY(PEN_NEW(arena, tasks->number_count, &out_walk->waits));
    PEN_TRY(PEN_NEW(arena, tasks->number_count, &out_walk->is_done));
    PEN_TRY(PEN_NEW(arena, schedule->device_count, &out_walk->next));
    memcpy(out_walk->waits, tasks->wait_count, tasks->number_count * sizeof *out_walk->waits);
    memcpy(out_walk->next, schedule->first_task, schedule->device_count * sizeof *out_walk->next);
    return PEN_OK;
}

// Goes as far as it gets. Returns a device that is stuck, or the number of devices.
static uint32_t inbox_run(inbox_walk *walk) {
    const pen_schedule *schedule = walk->schedule;
    bool moves = true;
    while (moves) {
        moves = false;
        for (uint32_t d = 0; d < schedule->device_count; d++) {
            if (inbox_go_on(walk, d)) moves = true;
        }
    }
    uint32_t stuck = 0;
    while (stuck < schedule->device_count && walk->next[stuck] == schedule->first_task[stuck + 1]) {
        stuck++;
    }
    return stuck;
}

pen_status pen_schedule_check_inboxes(const pen_stage_index *index, const pen_schedule *schedule,
                                      const pen_schedule_inboxes *inboxes, pen_arena *arena) {
    inbox_walk walk;
    PEN_TRY(inbox_walk_new(index, schedule, inboxes, arena, &walk));
    const uint32_t stuck = inbox_run(&walk);
    return stuck == schedule->device_count ? PEN_OK : inbox_name_circle(&walk, stuck, arena);
}

// Adds a place wherever a task waits for one. Returns whether any does.
static bool inbox_grow(const inbox_walk *walk, pen_schedule_inboxes *inboxes) {
    const pen_stage_index *index = walk->index;
    bool grew = false;
    pen_task reader;
    for (uint32_t d = 0; d < walk->schedule->device_count; d++) {
        if (walk->next[d] == walk->schedule->first_task[d + 1]) continue;
        const pen_task task = walk->schedule->tasks[walk->next[d]];
        const uint32_t s = task.stage;
        if (walk->waits[pen_task_graph_number(walk->tasks, task)] > 0) continue;
        for (uint32_t i = index->first_output[s];
             task.kind == PEN_TASK_FORWARD && i < index->first_output[s + 1]; i++) {
            const uint32_t e = index->out_edges[i];
            if (!inbox_is_full(walk, e, false, task.microbatch, &reader)) continue;
            inboxes->forward[e] += 1;
            grew = true;
        }
        for (uint32_t i = index->first_input[s];
             task.kind != PEN_TASK_FORWARD && i < index->first_input[s + 1]; i++) {
            const uint32_t e = index->in_edges[i];
            if (!index->graph->edges[e].has_gradient) continue;
            if (!inbox_is_full(walk, e, true, task.microbatch, &reader)) continue;
            inboxes->backward[e] += 1;
            grew = true;
        }
    }
    return grew;
}

pen_status pen_schedule_inboxes_find(const pen_stage_index *index, const pen_schedule *schedule,
                                     const uint32_t *in_flight, pen_arena *arena,
                                     pen_schedule_inboxes *out_inboxes) {
    const pen_stage_graph *graph = index->graph;
    inbox_walk walk;
    PEN_TRY(PEN_NEW(arena, graph->edge_count, &out_inboxes->forward));
    PEN_TRY(PEN_NEW(arena, graph->edge_count, &out_inboxes->backward));
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        out_inboxes->forward[e] = in_flight[graph->edges[e].target] + 1;
        out_inboxes->backward[e] = in_flight[graph->edges[e].source] + 1;
    }
    PEN_TRY(inbox_walk_new(index, schedule, out_inboxes, arena, &walk));
    // a walk goes on from where it was stuck; at as many places as microbatches none is full
    for (;;) {
        const uint32_t stuck = inbox_run(&walk);
        if (stuck == schedule->device_count) return PEN_OK;
        if (!inbox_grow(&walk, out_inboxes)) return inbox_name_circle(&walk, stuck, arena);
    }
}
