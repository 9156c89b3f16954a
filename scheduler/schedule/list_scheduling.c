// A simulation in which the orders arise. Devices wait in a heap by when each can start its next
// task; the earliest is taken, so all that may come before that moment is already known. Costs
// O(log devices + edges of a stage + stages of a device) a task.
//
// Among tasks that could start at one time, backward goes before forward (it frees memory and
// others wait for it), the lower microbatch before the higher, the later stage before the earlier.

#include "scheduler/schedule/list_scheduling.h"

#include <math.h>

typedef struct list_stage {
    uint32_t forward_next;
    uint32_t backward_next;
    uint32_t backward_count; // microbatches, or 0 without a backward pass
    uint32_t window;
    double forward_seconds;
    double backward_seconds;
} list_stage;

// A device with the task that it would start next.
typedef struct list_device {
    double free_seconds;
    double start_seconds; // INFINITY: none is ready
    uint32_t stage;
    pen_task_kind kind;
    uint32_t forwards_left;
    uint32_t task_next;
    uint32_t heap_index;
} list_device;

// What arrives at a stage for a microbatch. [stage_count][microbatch_count]
typedef struct list_arrivals {
    double *ready_seconds;
    uint32_t *pending;
} list_arrivals;

typedef struct list_state {
    const pen_stage_index *index;
    bool forwards_first;
    uint32_t microbatch_count;
    list_stage *stages;
    list_device *devices;
    list_arrivals forward;
    list_arrivals backward;
    double *link_free;
    uint32_t *heap; // [device_count] devices
    pen_schedule *schedule;
} list_state;

static bool list_is_before(const list_state *state, uint32_t a, uint32_t b) {
    const double start_a = state->devices[a].start_seconds;
    const double start_b = state->devices[b].start_seconds;
    return start_a < start_b || (start_a == start_b && a < b);
}

static void list_heap_put(list_state *state, uint32_t slot, uint32_t device) {
    state->heap[slot] = device;
    state->devices[device].heap_index = slot;
}

// Moves a device to where its new start belongs.
static void list_heap_move(list_state *state, uint32_t device) {
    const uint32_t count = state->index->graph->device_count;
    uint32_t slot = state->devices[device].heap_index;
    while (slot > 0 && list_is_before(state, device, state->heap[(slot - 1) / 2])) {
        list_heap_put(state, slot, state->heap[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    for (uint32_t child = 2 * slot + 1; child < count; child = 2 * slot + 1) {
        if (child + 1 < count && list_is_before(state, state->heap[child + 1], state->heap[child]))
            child += 1;
        if (!list_is_before(state, state->heap[child], device)) break;
        list_heap_put(state, slot, state->heap[child]);
        slot = child;
    }
    list_heap_put(state, slot, device);
}

static uint32_t list_next_microbatch(const list_stage *stage, pen_task_kind kind) {
    return kind == PEN_TASK_FORWARD ? stage->forward_next : stage->backward_next;
}

// Takes a task as the device's next if none is better.
static void list_offer(list_state *state, list_device *device, pen_task task, double ready) {
    const double start = fmax(device->free_seconds, ready);
    if (start > device->start_seconds) return;
    if (start == device->start_seconds) {
        if (device->kind != task.kind) {
            if (task.kind == PEN_TASK_FORWARD) return;
        } else {
            const list_stage *other = &state->stages[device->stage];
            const uint32_t microbatch = list_next_microbatch(other, task.kind);
            // stages of a device are offered in order, so that this one is later than the other
            if (task.microbatch > microbatch) return;
        }
    }
    device->start_seconds = start;
    device->stage = task.stage;
    device->kind = task.kind;
}

static void list_choose(list_state *state, uint32_t d) {
    const pen_stage_index *index = state->index;
    list_device *device = &state->devices[d];
    const bool may_go_back = !state->forwards_first || device->forwards_left == 0;
    device->start_seconds = INFINITY;
    device->kind = PEN_TASK_FORWARD;
    for (uint32_t i = index->first_stage[d]; i < index->first_stage[d + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        const list_stage *stage = &state->stages[s];
        const size_t row = (size_t)s * state->microbatch_count;
        if (may_go_back && stage->backward_next < stage->backward_count &&
            stage->backward_next < stage->forward_next &&
            state->backward.pending[row + stage->backward_next] == 0) {
            list_offer(state, device, (pen_task){PEN_TASK_BACKWARD, s, stage->backward_next},
                       state->backward.ready_seconds[row + stage->backward_next]);
        }
        const bool has_room = stage->backward_count == 0 ||
                              stage->forward_next - stage->backward_next < stage->window;
        if (has_room && stage->forward_next < state->microbatch_count &&
            state->forward.pending[row + stage->forward_next] == 0) {
            list_offer(state, device, (pen_task){PEN_TASK_FORWARD, s, stage->forward_next},
                       state->forward.ready_seconds[row + stage->forward_next]);
        }
    }
    list_heap_move(state, d);
}

// A tensor reaches `task`, which may become its device's next.
static void list_arrive(list_state *state, list_arrivals *arrivals, pen_task task, double seconds) {
    const size_t at = (size_t)task.stage * state->microbatch_count + task.microbatch;
    if (seconds > arrivals->ready_seconds[at]) arrivals->ready_seconds[at] = seconds;
    arrivals->pending[at] -= 1;
    if (arrivals->pending[at] > 0) return;
    if (list_next_microbatch(&state->stages[task.stage], task.kind) != task.microbatch) return;
    list_choose(state, state->index->graph->stages[task.stage].device);
}

static void list_send_forward(list_state *state, pen_task task, double end) {
    const pen_stage_index *index = state->index;
    double start;
    for (uint32_t i = index->first_output[task.stage]; i < index->first_output[task.stage + 1];
         i++) {
        const uint32_t e = index->out_edges[i];
        const pen_stage_edge *edge = &index->graph->edges[e];
        const double arrival = pen_link_send(state->link_free, index->forward_link[e], end,
                                             edge->forward_seconds, &start);
        list_arrive(state, &state->forward,
                    (pen_task){PEN_TASK_FORWARD, edge->target, task.microbatch}, arrival);
    }
}

static void list_send_backward(list_state *state, pen_task task, double end) {
    const pen_stage_index *index = state->index;
    double start;
    for (uint32_t i = index->first_input[task.stage]; i < index->first_input[task.stage + 1]; i++) {
        const uint32_t e = index->in_edges[i];
        const pen_stage_edge *edge = &index->graph->edges[e];
        if (!edge->has_gradient) continue;
        const double arrival = pen_link_send(state->link_free, index->backward_link[e], end,
                                             edge->backward_seconds, &start);
        list_arrive(state, &state->backward,
                    (pen_task){PEN_TASK_BACKWARD, edge->source, task.microbatch}, arrival);
    }
}

// Runs the task that a device has chosen.
static void list_run(list_state *state, uint32_t d) {
    list_device *device = &state->devices[d];
    list_stage *stage = &state->stages[device->stage];
    pen_task task = {device->kind, device->stage, list_next_microbatch(stage, device->kind)};
    double end = device->start_seconds;
    if (task.kind == PEN_TASK_FORWARD) {
        stage->forward_next += 1;
        device->forwards_left -= 1;
        end += stage->forward_seconds;
    } else {
        stage->backward_next += 1;
        end += stage->backward_seconds;
    }
    device->free_seconds = end;
    state->schedule->tasks[device->task_next++] = task;
    if (task.kind == PEN_TASK_FORWARD) {
        list_send_forward(state, task, end);
    } else {
        list_send_backward(state, task, end);
    }
    list_choose(state, d);
}

static pen_status list_state_init(list_state *state, const pen_list_scheduling *options,
                                  pen_arena *arena) {
    const pen_stage_index *index = state->index;
    const pen_stage_graph *graph = index->graph;
    const size_t cells = (size_t)graph->stage_count * graph->microbatch_count;
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &state->stages));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &state->devices));
    PEN_TRY(PEN_NEW(arena, cells, &state->forward.ready_seconds));
    PEN_TRY(PEN_NEW(arena, cells, &state->forward.pending));
    PEN_TRY(PEN_NEW(arena, cells, &state->backward.ready_seconds));
    PEN_TRY(PEN_NEW(arena, cells, &state->backward.pending));
    PEN_TRY(PEN_NEW(arena, index->link_count, &state->link_free));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &state->heap));
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        state->stages[s] = (list_stage){
            .backward_count = index->has_backward[s] ? graph->microbatch_count : 0,
            .window = options->window[s],
            .forward_seconds = stage->forward_seconds,
            .backward_seconds =
                pen_stage_backward_input_seconds(stage) + stage->backward_weight_seconds,
        };
        state->devices[stage->device].forwards_left += graph->microbatch_count;
        const uint32_t input_count = index->first_input[s + 1] - index->first_input[s];
        const size_t row = (size_t)s * graph->microbatch_count;
        for (uint32_t m = 0; m < graph->microbatch_count; m++) {
            state->forward.pending[row + m] = input_count;
            state->backward.pending[row + m] = index->gradient_count[s];
        }
    }
    return PEN_OK;
}

static pen_status list_schedule_new(const pen_stage_index *index, pen_arena *arena,
                                    pen_schedule **out_schedule) {
    const pen_stage_graph *graph = index->graph;
    pen_schedule *schedule;
    PEN_TRY(PEN_NEW(arena, 1, &schedule));
    schedule->device_count = graph->device_count;
    PEN_TRY(PEN_NEW(arena, (size_t)graph->device_count + 1, &schedule->first_task));
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const uint32_t passes = index->has_backward[s] ? 2 : 1;
        schedule->first_task[graph->stages[s].device + 1] +=
            passes * graph->microbatch_count + (index->has_update[s] ? index->phase_count : 0);
    }
    for (uint32_t d = 0; d < graph->device_count; d++) {
        schedule->first_task[d + 1] += schedule->first_task[d];
    }
    schedule->task_count = schedule->first_task[graph->device_count];
    PEN_TRY(PEN_NEW(arena, schedule->task_count, &schedule->tasks));
    *out_schedule = schedule;
    return PEN_OK;
}

pen_status pen_list_schedule(const pen_stage_index *index, const pen_list_scheduling *options,
                             pen_arena *arena, const pen_schedule **out_schedule) {
    list_state state = {
        .index = index,
        .forwards_first = options->forwards_first,
        .microbatch_count = index->graph->microbatch_count,
    };
    const uint32_t device_count = index->graph->device_count;
    PEN_TRY(list_schedule_new(index, arena, &state.schedule));
    PEN_TRY(list_state_init(&state, options, arena));
    for (uint32_t d = 0; d < device_count; d++) {
        state.devices[d].task_next = state.schedule->first_task[d];
        state.devices[d].start_seconds = INFINITY;
        list_heap_put(&state, d, d);
    }
    for (uint32_t d = 0; d < device_count; d++) {
        list_choose(&state, d);
    }
    while (device_count > 0 && isfinite(state.devices[state.heap[0]].start_seconds)) {
        list_run(&state, state.heap[0]);
    }
    for (uint32_t s = 0; s < index->graph->stage_count; s++) {
        const list_stage *stage = &state.stages[s];
        PEN_ASSERT(stage->forward_next == state.microbatch_count &&
                   stage->backward_next == stage->backward_count);
    }
    for (uint32_t phase = 0; phase < index->phase_count; phase++) {
        for (uint32_t s = 0; s < index->graph->stage_count; s++) {
            list_device *device = &state.devices[index->graph->stages[s].device];
            if (!index->has_update[s]) continue;
            state.schedule->tasks[device->task_next++] = (pen_task){PEN_TASK_UPDATE, s, phase};
        }
    }
    *out_schedule = state.schedule;
    return PEN_OK;
}
