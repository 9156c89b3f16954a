#include "scheduler/schedule/exchange_order.h"

#include <math.h>
#include <string.h>

#include "scheduler/schedule/task_graph.h"

typedef struct exchange_work {
    const pen_stage_index *index;
    const pen_task_graph *graph;
    const uint32_t *first_task; // [device_count + 1]
    uint32_t task_count;
    uint32_t *order; // [task_count] that is simulated
    uint32_t *moved; // [task_count] scratch
    uint32_t *held;  // [task_count] scratch: updates of a device
    uint32_t *past;  // [stage_count] scratch: the position behind its other tasks
    pen_task_run run;
    bool only_senders;
} exchange_work;

static double exchange_simulate(exchange_work *w) {
    pen_task_graph_run(w->graph, w->first_task, w->order, &w->run);
    return w->run.step_seconds;
}

static bool exchange_sends(const exchange_work *w, pen_task task) {
    const pen_stage_index *index = w->index;
    for (uint32_t i = index->first_step[task.stage]; i < index->first_step[task.stage + 1]; i++) {
        if (index->graph->step_edges[index->step_edges[i]].phase == task.microbatch) return true;
    }
    return false;
}

static bool exchange_moves(const exchange_work *w, uint32_t number, uint32_t phase) {
    const pen_task task = w->graph->tasks[number];
    if (task.kind != PEN_TASK_UPDATE || task.microbatch != phase) return false;
    return !w->only_senders || exchange_sends(w, task);
}

// Takes out the updates of a phase, in the order in which they become ready.
static uint32_t exchange_take(exchange_work *w, uint32_t device, uint32_t phase) {
    uint32_t count = 0;
    for (uint32_t t = w->first_task[device]; t < w->first_task[device + 1]; t++) {
        const uint32_t number = w->order[t];
        if (!exchange_moves(w, number, phase)) continue;
        uint32_t at = count++;
        for (; at > 0 && w->run.ready[w->held[at - 1]] > w->run.ready[number]; at--) {
            w->held[at] = w->held[at - 1];
        }
        w->held[at] = number;
    }
    return count;
}

// Behind which position of a device the updates of each of its stages may be.
static void exchange_find_past(exchange_work *w, uint32_t device) {
    for (uint32_t t = w->first_task[device]; t < w->first_task[device + 1]; t++) {
        const pen_task task = w->graph->tasks[w->order[t]];
        if (task.kind != PEN_TASK_UPDATE) w->past[task.stage] = t + 1;
    }
}

// Whether an update that is ready goes in front of the task at a position. What begins at the same
// moment may be what it waited for: an update of a lower phase that takes no time.
static bool exchange_goes_before(const exchange_work *w, uint32_t update, uint32_t position) {
    const pen_task task = w->graph->tasks[w->order[position]];
    const double ready = w->run.ready[update], start = w->run.start[w->order[position]];
    if (w->past[w->graph->tasks[update].stage] > position || ready > start) return false;
    return ready < start || task.kind != PEN_TASK_UPDATE ||
           task.microbatch >= w->graph->tasks[update].microbatch;
}

// Puts the updates of a phase in front of the first task that begins when they are ready.
static void exchange_move_device(exchange_work *w, uint32_t device, uint32_t phase) {
    const uint32_t count = exchange_take(w, device, phase);
    uint32_t next = 0, to = w->first_task[device];
    exchange_find_past(w, device);
    for (uint32_t t = w->first_task[device]; t < w->first_task[device + 1]; t++) {
        while (next < count && exchange_goes_before(w, w->held[next], t)) {
            w->moved[to++] = w->held[next++];
        }
        if (!exchange_moves(w, w->order[t], phase)) w->moved[to++] = w->order[t];
    }
    while (next < count) {
        w->moved[to++] = w->held[next++];
    }
}

// An order that begins with all updates last; its step, INFINITY where tasks wait for each other.
static double exchange_try(exchange_work *w, bool only_senders) {
    const uint32_t device_count = w->index->graph->device_count;
    w->only_senders = only_senders;
    for (uint32_t phase = 0; phase < w->index->phase_count; phase++) {
        if (isinf(exchange_simulate(w))) return INFINITY;
        for (uint32_t d = 0; d < device_count; d++) {
            exchange_move_device(w, d, phase);
        }
        memcpy(w->order, w->moved, w->task_count * sizeof *w->order);
    }
    return exchange_simulate(w);
}

// Both ways to put them begin with all updates last; that stays where neither is shorter.
pen_status pen_exchange_order(const pen_stage_index *index, const bool *is_halved, pen_arena *arena,
                              pen_schedule *schedule) {
    exchange_work w = {
        .index = index, .first_task = schedule->first_task, .task_count = schedule->task_count};
    pen_task_graph *graph;
    uint32_t *last;
    if (index->graph->exchange != PEN_EXCHANGE_OVERLAPPED || schedule->task_count == 0) {
        return PEN_OK;
    }
    PEN_TRY(pen_task_graph_new(index, is_halved, arena, &graph));
    PEN_TRY(pen_task_run_new(graph, false, arena, &w.run));
    PEN_TRY(PEN_NEW(arena, w.task_count, &last));
    PEN_TRY(PEN_NEW(arena, w.task_count, &w.order));
    PEN_TRY(PEN_NEW(arena, w.task_count, &w.moved));
    PEN_TRY(PEN_NEW(arena, w.task_count, &w.held));
    PEN_TRY(PEN_NEW(arena, index->graph->stage_count, &w.past));
    w.graph = graph;
    pen_task_graph_order(graph, schedule, last);
    memcpy(w.order, last, w.task_count * sizeof *last);
    double best = exchange_simulate(&w);
    for (int only_senders = 0; only_senders < 2; only_senders++) {
        memcpy(w.order, last, w.task_count * sizeof *last);
        const double seconds = exchange_try(&w, only_senders == 1);
        if (!(seconds < best)) continue;
        best = seconds;
        for (uint32_t t = 0; t < w.task_count; t++) {
            schedule->tasks[t] = graph->tasks[w.order[t]];
        }
    }
    return PEN_OK;
}
