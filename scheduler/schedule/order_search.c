#include "scheduler/schedule/order_search.h"

#include <math.h>
#include <string.h>

#include "base/annealing.h"

#define SEARCH_ARC_LIMIT 512u     // of a critical path, looked at
#define SEARCH_HEAT 0.01          // of a step, that the first orders taken may be worse
#define SEARCH_CLOCK_INTERVAL 64u // simulations from one look at the clock to the next

// What a device's order takes, counted anew when it changes.
typedef struct search_memory {
    uint32_t *held;      // [stage_count] while counting
    uint32_t *between;   // [stage_count]
    uint32_t *in_flight; // [stage_count]
    uint32_t *halved;    // [stage_count]
} search_memory;

typedef struct search_state {
    const pen_task_graph *graph;
    const pen_order_search *options;
    const uint32_t *first_task;
    uint32_t task_count;
    uint32_t *order; // at hand
    uint32_t *best;
    uint32_t *position; // [number_count] in `order`
    uint32_t *arcs;     // positions whose task waits for the one before
    uint32_t arc_count;
    pen_task_run run; // of `order`, but after a move that was not taken
    double seconds;   // of `order`
    double best_seconds;
    uint64_t work;
    uint32_t from, to; // of the move that is weighed
    pen_annealing annealing;
    search_memory memory;
} search_state;

static uint32_t search_below(search_state *search, uint32_t limit) {
    return pen_random_next_below(&search->annealing.random, limit);
}

static uint32_t search_device(const search_state *search, uint32_t number) {
    const pen_task_graph *graph = search->graph;
    return graph->index->graph->stages[graph->tasks[number].stage].device;
}

// ---- what may change places

// Whether two tasks of a device may not be exchanged, whatever the times.
static bool search_is_fixed(const search_state *search, uint32_t before, uint32_t after) {
    const pen_task a = search->graph->tasks[before];
    const pen_task b = search->graph->tasks[after];
    if (a.kind == PEN_TASK_UPDATE || b.kind == PEN_TASK_UPDATE) return true;
    return a.stage == b.stage && (a.kind == b.kind || a.microbatch == b.microbatch);
}

// What a task changes in what its stage holds. The same counting as in schedule_memory.c, on
// numbers that the search keeps.
static void search_count(search_memory *memory, pen_task task, bool has_backward) {
    const uint32_t s = task.stage;
    switch (task.kind) {
    case PEN_TASK_FORWARD:
        if (++memory->held[s] > memory->in_flight[s]) memory->in_flight[s] = memory->held[s];
        if (!has_backward) memory->held[s] -= 1;
        break;
    case PEN_TASK_BACKWARD_INPUT:
        if (++memory->between[s] > memory->halved[s]) memory->halved[s] = memory->between[s];
        break;
    case PEN_TASK_BACKWARD_WEIGHT:
        memory->between[s] -= 1;
        memory->held[s] -= 1;
        break;
    case PEN_TASK_BACKWARD:
        memory->held[s] -= 1;
        break;
    case PEN_TASK_UPDATE:
        break;
    }
}

// Of one device alone, since a move changes one device's order; devices without a limit are not
// looked at.
static bool search_fits(search_state *search, uint32_t device) {
    const pen_stage_index *index = search->graph->index;
    const pen_stage_graph *stages = index->graph;
    search_memory *memory = &search->memory;
    if (isinf(stages->bytes_limit[device])) return true;
    for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        memory->held[s] = 0;
        memory->between[s] = 0;
        memory->in_flight[s] = 0;
        memory->halved[s] = 0;
    }
    for (uint32_t t = search->first_task[device]; t < search->first_task[device + 1]; t++) {
        const pen_task task = search->graph->tasks[search->order[t]];
        search_count(memory, task, index->has_backward[task.stage]);
    }
    double bytes = 0;
    double workspace_bytes = 0;
    for (uint32_t i = index->first_stage[device]; i < index->first_stage[device + 1]; i++) {
        const uint32_t s = index->device_stages[i];
        const pen_stage *stage = &stages->stages[s];
        bytes += stage->fixed_bytes + memory->in_flight[s] * stage->activation_bytes +
                 memory->halved[s] * stage->halved_bytes;
        workspace_bytes = fmax(workspace_bytes, stage->workspace_bytes);
    }
    return bytes + workspace_bytes <= stages->bytes_limit[device];
}

// Moves the task at `from` to `to`, both of one device.
static void search_shift(search_state *search, uint32_t from, uint32_t to) {
    uint32_t *order = search->order;
    const uint32_t number = order[from];
    const uint32_t step = from < to ? 1 : UINT32_MAX; // -1
    for (uint32_t t = from; t != to; t += step) {
        order[t] = order[t + step];
        search->position[order[t]] = t;
    }
    order[to] = number;
    search->position[number] = to;
}

// Where the task at `from` may go on the way to `to`: as far as nothing fixed is in between.
static uint32_t search_reach(const search_state *search, uint32_t from, uint32_t to) {
    const uint32_t *order = search->order;
    uint32_t at = from;
    while (at > to && !search_is_fixed(search, order[at - 1], order[from]))
        at--;
    while (at < to && !search_is_fixed(search, order[from], order[at + 1]))
        at++;
    return at;
}

// ---- where to look

static void search_simulate(search_state *search) {
    pen_task_graph_run(search->graph, search->first_task, search->order, &search->run);
    search->work += search->task_count;
}

// Follows what the end of the step waited for, back to its beginning, and notes where that is the
// task before on the device.
static void search_find_arcs(search_state *search) {
    const pen_task_run *run = &search->run;
    uint32_t number = search->order[0];
    for (uint32_t t = 1; t < search->task_count; t++) {
        if (run->end[search->order[t]] > run->end[number]) number = search->order[t];
    }
    search->arc_count = 0;
    for (uint32_t steps = 0; steps < search->task_count; steps++) {
        const uint32_t at = search->position[number];
        const bool is_first = at == search->first_task[search_device(search, number)];
        const bool waits_for_device = run->start[number] > run->ready[number];
        if (!is_first && (waits_for_device || run->cause[number] == PEN_TASK_NONE)) {
            if (search->arc_count < SEARCH_ARC_LIMIT) search->arcs[search->arc_count++] = at;
            number = search->order[at - 1];
        } else if (run->cause[number] != PEN_TASK_NONE) {
            number = run->cause[number];
        } else {
            return;
        }
    }
}

// A move: the task at *out_from goes to *out_to, another place on its device.
static void search_draw(search_state *search, uint32_t *out_from, uint32_t *out_to) {
    const uint32_t reach = search_below(search, 4) == 0 ? 8 : 2;
    uint32_t at = search_below(search, search->task_count);
    if (search->arc_count > 0 && search_below(search, 8) > 0) {
        at = search->arcs[search_below(search, search->arc_count)];
    }
    const uint32_t device = search_device(search, search->order[at]);
    const uint32_t first = search->first_task[device];
    const uint32_t last = search->first_task[device + 1] - 1;
    const uint32_t far = 1 + search_below(search, reach);
    if (search_below(search, 2) == 0 || at == first) { // the task goes before the one before it
        *out_from = at;
        *out_to = at - first < far ? first : at - far;
    } else { // the one before goes behind it
        *out_from = at - 1;
        *out_to = last - (at - 1) < far ? last : at - 1 + far;
    }
}

static bool search_propose(void *context) {
    search_state *search = context;
    uint32_t to;
    search_draw(search, &search->from, &to);
    search->to = search_reach(search, search->from, to);
    search->work += 1; // so that draws without a move end too
    return search->from != search->to;
}

static double search_weigh(void *context, double bearable) {
    search_state *search = context;
    (void)bearable;
    search_shift(search, search->from, search->to);
    if (!search_fits(search, search_device(search, search->order[search->to]))) return INFINITY;
    search_simulate(search);
    return search->run.step_seconds - search->seconds;
}

static void search_keep(void *context) {
    search_state *search = context;
    search->seconds = search->run.step_seconds;
    search_find_arcs(search);
    if (search->seconds >= search->best_seconds) return;
    search->best_seconds = search->seconds;
    memcpy(search->best, search->order, search->task_count * sizeof *search->best);
}

static void search_refuse(void *context) {
    search_state *search = context;
    search_shift(search, search->to, search->from);
}

// Cools with the square of the work that is left: by the time that most of it is done, little is
// accepted that is worse.
static bool search_look(void *context, uint64_t step) {
    search_state *search = context;
    const pen_order_search *options = search->options;
    if (search->work >= options->work_limit || search->best_seconds <= options->lower_bound) {
        return false;
    }
    if (step % SEARCH_CLOCK_INTERVAL == 0 && options->is_over != NULL &&
        options->is_over(options->context)) {
        return false;
    }
    const double left = 1 - (double)search->work / (double)options->work_limit;
    search->annealing.warmth = search->annealing.options->warmth_first * left * left;
    return true;
}

static const pen_annealing_objective search_objective = {.look_steps = 1,
                                                         .look = search_look,
                                                         .propose = search_propose,
                                                         .weigh = search_weigh,
                                                         .keep = search_keep,
                                                         .refuse = search_refuse};

static pen_status search_init(search_state *search, pen_arena *arena) {
    const pen_task_graph *graph = search->graph;
    const uint32_t stage_count = graph->index->graph->stage_count;
    PEN_TRY(pen_task_run_new(graph, false, arena, &search->run));
    PEN_TRY(PEN_NEW(arena, search->task_count, &search->best));
    PEN_TRY(PEN_NEW(arena, graph->number_count, &search->position));
    PEN_TRY(PEN_NEW(arena, SEARCH_ARC_LIMIT, &search->arcs));
    PEN_TRY(PEN_NEW(arena, stage_count, &search->memory.held));
    PEN_TRY(PEN_NEW(arena, stage_count, &search->memory.between));
    PEN_TRY(PEN_NEW(arena, stage_count, &search->memory.in_flight));
    PEN_TRY(PEN_NEW(arena, stage_count, &search->memory.halved));
    for (uint32_t t = 0; t < search->task_count; t++) {
        search->position[search->order[t]] = t;
        search->best[t] = search->order[t];
    }
    return PEN_OK;
}

// Moves tasks within their device's order and simulates again. The warmth stays the same
// throughout: the best order found is kept aside.
pen_status pen_order_search_run(const pen_task_graph *graph, const pen_order_search *options,
                                const uint32_t *first_task, uint32_t *order, pen_arena *arena,
                                double *out_seconds) {
    search_state search = {.graph = graph,
                           .options = options,
                           .first_task = first_task,
                           .task_count = first_task[graph->index->graph->device_count],
                           .order = order};
    *out_seconds = 0;
    if (search.task_count == 0) return PEN_OK;
    PEN_TRY(search_init(&search, arena));
    search_simulate(&search);
    search_find_arcs(&search);
    search.seconds = search.run.step_seconds;
    search.best_seconds = search.seconds;
    const double heat = SEARCH_HEAT * search.seconds;
    const pen_annealing_options cooling = {
        .seed = options->seed, .deadline = INFINITY, .warmth_first = heat, .warmth_last = heat};
    pen_annealing_begin(&search.annealing, "order search", &cooling);
    pen_annealing_run(&search.annealing, &search_objective, &search);
    memcpy(order, search.best, search.task_count * sizeof *order);
    *out_seconds = search.best_seconds;
    return PEN_OK;
}
