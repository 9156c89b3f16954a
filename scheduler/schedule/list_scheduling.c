// A simulation in which the orders arise. Devices wait in a heap by when each can start its next
// task; the earliest is taken, so all that may come before that moment is already known. Costs
// O(log devices + edges of a stage + stages of a device) a task.

#include "scheduler/schedule/list_scheduling.h"

#include <math.h>

#include "scheduler/schedule/exchange_order.h"

// Microbatches of a stage count from 0 here, from the first that it runs.
typedef struct list_stage {
    uint32_t next[PEN_LIST_KIND_COUNT]; // microbatch
    uint32_t microbatch_count;
    uint32_t backward_count; // microbatches, or 0 without a backward pass
    uint32_t window;
    uint32_t hold;
    uint32_t halved;
    bool is_halved;
    double seconds[PEN_LIST_KIND_COUNT];
} list_stage;

// A device with the task that it would start next.
typedef struct list_device {
    double free_seconds;
    double start_seconds; // INFINITY: none is ready
    double wanted;        // start with patience
    double key;
    uint32_t stage;
    pen_list_kind kind;
    uint32_t forwards_left;
    uint32_t held;
    uint32_t window;
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
    const pen_list_scheduling *options;
    uint32_t microbatch_count;
    uint32_t group;
    const pen_list_key *keys;
    list_stage *stages;
    list_device *devices;
    list_arrivals forward;
    list_arrivals backward;
    double *line_free;
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

// Whether only the stage's weight half keeps its next forward task, which is ready, from its place.
static bool list_is_urgent(const list_state *state, uint32_t s) {
    const list_stage *stage = &state->stages[s];
    const uint32_t m = stage->next[PEN_LIST_FORWARD];
    return m < stage->microbatch_count && m - stage->next[PEN_LIST_WEIGHT] >= stage->hold &&
           m - stage->next[PEN_LIST_INPUT] < stage->window &&
           state->forward.pending[(size_t)s * state->microbatch_count + m] == 0;
}

// Takes the next task of a kind of a stage as the device's next if none is better.
static void list_offer(list_state *state, list_device *device, uint32_t s, pen_list_kind kind,
                       double ready) {
    const list_stage *stage = &state->stages[s];
    const uint32_t m = stage->next[kind];
    const pen_list_key *key = &state->keys[(size_t)kind * state->index->graph->stage_count + s];
    const double start = fmax(device->free_seconds, ready);
    double wanted = start;
    if (kind == PEN_LIST_WEIGHT) wanted += state->options->patience * stage->seconds[kind];
    const uint32_t group = m / state->group, member = m % state->group;
    double value = key->base + key->group_step * group + key->step * member;
    if (kind == PEN_LIST_WEIGHT && list_is_urgent(state, s)) {
        wanted = start;
        value = -INFINITY;
    }
    if (wanted > device->wanted || (wanted == device->wanted && value >= device->key)) return;
    device->wanted = wanted;
    device->start_seconds = start;
    device->key = value;
    device->stage = s;
    device->kind = kind;
}

static bool list_may_go_forward(const list_device *device, const list_stage *stage) {
    if (stage->backward_count == 0) return true;
    const uint32_t released = stage->next[stage->is_halved ? PEN_LIST_WEIGHT : PEN_LIST_INPUT];
    const uint32_t held = stage->next[PEN_LIST_FORWARD] - released;
    if (held == 0) return true;
    return held < stage->hold && device->held < device->window &&
           stage->next[PEN_LIST_FORWARD] - stage->next[PEN_LIST_INPUT] < stage->window;
}

static bool list_may_go_back(const list_stage *stage) {
    const uint32_t m = stage->next[PEN_LIST_INPUT];
    if (m >= stage->backward_count || m >= stage->next[PEN_LIST_FORWARD]) return false;
    return !stage->is_halved || m - stage->next[PEN_LIST_WEIGHT] < stage->halved;
}

// What a free device does next: the best of the tasks that are ready, or will be first, by their
// keys. Backward before forward, as it frees memory.
static void list_choose(list_state *state, uint32_t d) {
    const pen_stage_index *index = state->index;
    list_device *device = &state->devices[d];
    const bool goes_back = !state->options->forwards_first || device->forwards_left == 0;
    device->start_seconds = INFINITY;
    device->wanted = INFINITY;
    device->key = INFINITY;
    for (uint32_t i = index->first_stage[d]; i < index->first_stage[d + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        const list_stage *stage = &state->stages[s];
        const size_t row = (size_t)s * state->microbatch_count;
        const uint32_t back = stage->next[PEN_LIST_INPUT];
        const uint32_t forward = stage->next[PEN_LIST_FORWARD];
        if (goes_back && list_may_go_back(stage) && state->backward.pending[row + back] == 0) {
            list_offer(state, device, s, PEN_LIST_INPUT, state->backward.ready_seconds[row + back]);
        }
        if (stage->is_halved && stage->next[PEN_LIST_WEIGHT] < back) {
            list_offer(state, device, s, PEN_LIST_WEIGHT, 0);
        }
        if (forward < stage->microbatch_count && list_may_go_forward(device, stage) &&
            state->forward.pending[row + forward] == 0) {
            list_offer(state, device, s, PEN_LIST_FORWARD,
                       state->forward.ready_seconds[row + forward]);
        }
    }
    list_heap_move(state, d);
}

// The task that a tensor is for.
typedef struct list_target {
    pen_list_kind kind;
    uint32_t stage;
    uint32_t microbatch;
} list_target;

// A tensor reaches its task, which may become its device's next.
static void list_arrive(list_state *state, list_target to, double seconds) {
    list_arrivals *arrivals = to.kind == PEN_LIST_FORWARD ? &state->forward : &state->backward;
    const size_t at = (size_t)to.stage * state->microbatch_count + to.microbatch;
    if (seconds > arrivals->ready_seconds[at]) arrivals->ready_seconds[at] = seconds;
    arrivals->pending[at] -= 1;
    if (arrivals->pending[at] > 0) return;
    if (state->stages[to.stage].next[to.kind] != to.microbatch) return;
    list_choose(state, state->index->graph->stages[to.stage].device);
}

// Sends what a task of device `from` made. Both devices compute for it: the source before its next
// task, the target when it arrives or behind its task.
static void list_send(list_state *state, const pen_route *route, uint32_t from, list_target to,
                      double end) {
    const uint32_t device = state->index->graph->stages[to.stage].device;
    list_device *target = &state->devices[device];
    const double receive = route->handling.receive_seconds;
    double start;
    double arrival = pen_route_send(state->line_free, route, end, &start);
    state->devices[from].free_seconds += route->handling.send_seconds;
    if (receive > 0 && target->free_seconds > arrival) {
        target->free_seconds += receive;
        arrival = target->free_seconds;
        list_choose(state, device);
    } else {
        arrival += fmax(receive - route->seconds, 0);
    }
    list_arrive(state, to, arrival);
}

static void list_send_forward(list_state *state, uint32_t s, uint32_t m, double end) {
    const pen_stage_index *index = state->index;
    const uint32_t from = index->graph->stages[s].device;
    for (uint32_t i = index->first_output[s]; i < index->first_output[s + 1]; i++) {
        const uint32_t e = index->out_edges[i];
        const list_target to = {PEN_LIST_FORWARD, index->graph->edges[e].target, m};
        list_send(state, &index->forward_route[e], from, to, end);
    }
}

static void list_send_backward(list_state *state, uint32_t s, uint32_t m, double end) {
    const pen_stage_index *index = state->index;
    const uint32_t from = index->graph->stages[s].device;
    for (uint32_t i = index->first_input[s]; i < index->first_input[s + 1]; i++) {
        const uint32_t e = index->in_edges[i];
        const pen_stage_edge *edge = &index->graph->edges[e];
        if (!edge->has_gradient) continue;
        const list_target to = {PEN_LIST_INPUT, edge->source, m};
        list_send(state, &index->backward_route[e], from, to, end);
    }
}

// Runs the task that a device has chosen.
static void list_run(list_state *state, uint32_t d) {
    list_device *device = &state->devices[d];
    const uint32_t s = device->stage;
    const pen_list_kind kind = device->kind;
    list_stage *stage = &state->stages[s];
    const uint32_t m = stage->next[kind]++;
    const double end = device->start_seconds + stage->seconds[kind];
    static const pen_task_kind halves[] = {PEN_TASK_FORWARD, PEN_TASK_BACKWARD_INPUT,
                                           PEN_TASK_BACKWARD_WEIGHT};
    const bool is_whole = kind == PEN_LIST_INPUT && !stage->is_halved;
    device->free_seconds = end;
    state->schedule->tasks[device->task_next++] =
        (pen_task){is_whole ? PEN_TASK_BACKWARD : halves[kind], s,
                   state->index->graph->stages[s].first_microbatch + m};
    if (kind == PEN_LIST_FORWARD) {
        device->forwards_left -= 1;
        if (stage->backward_count > 0) device->held += 1;
        list_send_forward(state, s, m, end);
    } else if (kind == PEN_LIST_INPUT) {
        device->held -= 1;
        list_send_backward(state, s, m, end);
    }
    list_choose(state, d);
}

pen_status pen_list_keys_new(const pen_stage_graph *graph, const double rank[PEN_LIST_KIND_COUNT],
                             pen_arena *arena, const pen_list_key **out_keys) {
    pen_list_key *keys;
    PEN_TRY(PEN_NEW(arena, (size_t)PEN_LIST_KIND_COUNT * graph->stage_count, &keys));
    for (uint32_t kind = 0; kind < PEN_LIST_KIND_COUNT; kind++) {
        for (uint32_t s = 0; s < graph->stage_count; s++) {
            const double step = (double)graph->stage_count;
            const double base = rank[kind] * step * (graph->microbatch_count + 1.0);
            keys[(size_t)kind * graph->stage_count + s] =
                (pen_list_key){.base = base - (double)s, .step = step};
        }
    }
    *out_keys = keys;
    return PEN_OK;
}

// How many tasks each stage has, how many it may hold, and what they wait for at the beginning.
static void list_stages_init(list_state *state) {
    const pen_stage_index *index = state->index;
    const pen_stage_graph *graph = index->graph;
    const pen_list_scheduling *options = state->options;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        const bool is_halved =
            index->has_backward[s] && options->is_halved != NULL && options->is_halved[s];
        const double input = pen_stage_backward_input_seconds(stage);
        const uint32_t count = pen_stage_microbatches(graph, stage);
        state->stages[s] = (list_stage){
            .microbatch_count = count,
            .backward_count = index->has_backward[s] ? count : 0,
            .window = options->window[s],
            .hold = options->hold != NULL && is_halved ? options->hold[s] : options->window[s],
            .halved = options->halved != NULL ? options->halved[s] : UINT32_MAX,
            .is_halved = is_halved,
            .seconds = {stage->forward_seconds,
                        is_halved ? input : input + stage->backward_weight_seconds,
                        stage->backward_weight_seconds},
        };
        state->devices[stage->device].forwards_left += count;
        const uint32_t input_count = index->first_input[s + 1] - index->first_input[s];
        const size_t row = (size_t)s * graph->microbatch_count;
        for (uint32_t m = 0; m < count; m++) {
            state->forward.pending[row + m] = input_count;
            state->backward.pending[row + m] = index->gradient_count[s];
        }
    }
}

// Arrays by stage and microbatch; devices wait in a heap by when their next task can start.
static pen_status list_state_init(list_state *state, pen_arena *arena) {
    const pen_stage_graph *graph = state->index->graph;
    const pen_list_scheduling *options = state->options;
    const size_t cells = (size_t)graph->stage_count * graph->microbatch_count;
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &state->stages));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &state->devices));
    PEN_TRY(PEN_NEW(arena, cells, &state->forward.ready_seconds));
    PEN_TRY(PEN_NEW(arena, cells, &state->forward.pending));
    PEN_TRY(PEN_NEW(arena, cells, &state->backward.ready_seconds));
    PEN_TRY(PEN_NEW(arena, cells, &state->backward.pending));
    PEN_TRY(PEN_NEW(arena, state->index->line_count, &state->line_free));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &state->heap));
    state->keys = options->keys;
    state->group = options->group > 0 ? options->group : UINT32_MAX;
    if (state->keys == NULL) {
        // backward before forward: it frees memory, and others wait for it
        static const double rank[PEN_LIST_KIND_COUNT] = {1, 0, 2};
        PEN_TRY(pen_list_keys_new(graph, rank, arena, &state->keys));
    }
    list_stages_init(state);
    for (uint32_t d = 0; d < graph->device_count; d++) {
        list_device *device = &state->devices[d];
        device->task_next = state->schedule->first_task[d];
        device->start_seconds = INFINITY;
        device->window = options->device_window != NULL ? options->device_window[d] : UINT32_MAX;
        list_heap_put(state, d, d);
    }
    return PEN_OK;
}

// Room for every task, counted: passes by whether there is a backward pass and whether it is
// halved, and updates by phase.
pen_status pen_schedule_new(const pen_stage_index *index, const bool *is_halved, pen_arena *arena,
                            pen_schedule **out_schedule) {
    const pen_stage_graph *graph = index->graph;
    pen_schedule *schedule;
    PEN_TRY(PEN_NEW(arena, 1, &schedule));
    schedule->device_count = graph->device_count;
    PEN_TRY(PEN_NEW(arena, (size_t)graph->device_count + 1, &schedule->first_task));
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        uint32_t passes = 1;
        if (index->has_backward[s]) passes = is_halved != NULL && is_halved[s] ? 3 : 2;
        schedule->first_task[graph->stages[s].device + 1] +=
            passes * pen_stage_microbatches(graph, &graph->stages[s]) +
            (index->has_update[s] ? index->phase_count : 0);
    }
    for (uint32_t d = 0; d < graph->device_count; d++) {
        schedule->first_task[d + 1] += schedule->first_task[d];
    }
    schedule->task_count = schedule->first_task[graph->device_count];
    PEN_TRY(PEN_NEW(arena, schedule->task_count, &schedule->tasks));
    *out_schedule = schedule;
    return PEN_OK;
}

static void list_add_updates(list_state *state) {
    const pen_stage_index *index = state->index;
    for (uint32_t phase = 0; phase < index->phase_count; phase++) {
        for (uint32_t s = 0; s < index->graph->stage_count; s++) {
            list_device *device = &state->devices[index->graph->stages[s].device];
            if (!index->has_update[s]) continue;
            state->schedule->tasks[device->task_next++] = (pen_task){PEN_TASK_UPDATE, s, phase};
        }
    }
}

// Takes the device that can start first, again and again. At the end every task has run: stages are
// in order, so nothing can wait for ever.
pen_status pen_list_schedule(const pen_stage_index *index, const pen_list_scheduling *options,
                             pen_arena *arena, const pen_schedule **out_schedule) {
    list_state state = {
        .index = index,
        .options = options,
        .microbatch_count = index->graph->microbatch_count,
    };
    const uint32_t device_count = index->graph->device_count;
    PEN_TRY(pen_schedule_new(index, options->is_halved, arena, &state.schedule));
    PEN_TRY(list_state_init(&state, arena));
    for (uint32_t d = 0; d < device_count; d++) {
        list_choose(&state, d);
    }
    while (device_count > 0 && isfinite(state.devices[state.heap[0]].start_seconds)) {
        list_run(&state, state.heap[0]);
    }
    for (uint32_t s = 0; s < index->graph->stage_count; s++) {
        const list_stage *stage = &state.stages[s];
        PEN_ASSERT(stage->next[PEN_LIST_FORWARD] == stage->microbatch_count &&
                   stage->next[PEN_LIST_INPUT] == stage->backward_count &&
                   (!stage->is_halved || stage->next[PEN_LIST_WEIGHT] == stage->backward_count));
    }
    list_add_updates(&state);
    *out_schedule = state.schedule;
    return pen_exchange_order(index, options->is_halved, arena, state.schedule);
}

void pen_stage_index_find_halves(const pen_stage_index *index, bool *out_is_halved) {
    const pen_stage_graph *graph = index->graph;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        bool is_awaited = false;
        for (uint32_t i = index->first_input[s]; i < index->first_input[s + 1]; i++) {
            if (graph->edges[index->in_edges[i]].has_gradient) is_awaited = true;
        }
        out_is_halved[s] = is_awaited && stage->has_backward && !stage->is_recomputed &&
                           stage->backward_weight_seconds > 0;
    }
}
