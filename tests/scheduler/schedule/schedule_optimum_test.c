// Against the optimum: all orders of all devices of tiny stage graphs, with the backward tasks of
// each stage whole and in halves.
#include <math.h>

#include "base/sanitizer.h"
#include "scheduler/schedule/auto_schedule.h"
#include "scheduler/schedule/list_scheduling.h"
#include "scheduler/schedule/schedule_memory.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "scheduler/schedule/task_graph.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/stage_chain.h"

#define GRAPH_COUNT (PEN_IS_SANITIZED ? 20 : 60) // all of them take a minute there
#define ORDER_LIMIT 40000u

typedef struct orders {
    uint32_t count;
    uint32_t length;
    uint32_t *items; // [count][length] task numbers
} orders;

typedef struct optimum {
    const pen_stage_graph *stages;
    const pen_stage_index *index;
    const pen_task_graph *graph;
    pen_schedule *schedule;
    orders devices[3];
    uint32_t order[64];
    uint32_t used[64]; // tasks of a device that are placed, while its orders are listed
    pen_task_run run;
    pen_arena *arena;
    double best;
} optimum;

// Whether a task may come after those in `placed`: its stage's of the same kind and lower
// microbatches, and what it is made from, are there.
static bool may_follow(const optimum *o, const uint32_t *placed, uint32_t count, pen_task task) {
    uint32_t same = 0, before = 0;
    for (uint32_t i = 0; i < count; i++) {
        const pen_task other = o->graph->tasks[placed[i]];
        if (other.stage != task.stage) continue;
        if (other.kind == task.kind) same += 1;
        const bool is_made_from = task.kind == PEN_TASK_BACKWARD_WEIGHT
                                      ? other.kind == PEN_TASK_BACKWARD_INPUT
                                      : other.kind == PEN_TASK_FORWARD;
        if (is_made_from && other.microbatch == task.microbatch) before += 1;
    }
    if (task.kind == PEN_TASK_UPDATE) return true; // they are placed last, in order
    return same == task.microbatch && (task.kind == PEN_TASK_FORWARD || before == 1);
}

static void list_orders(optimum *o, uint32_t device, uint32_t *placed, uint32_t count) {
    orders *list = &o->devices[device];
    const uint32_t first = o->schedule->first_task[device];
    if (count == list->length) {
        CHECK(list->count < ORDER_LIMIT, "too many orders");
        memcpy(&list->items[list->count++ * list->length], placed, count * sizeof *placed);
        return;
    }
    for (uint32_t t = 0; t < list->length; t++) {
        if (o->used[first + t] != 0) continue;
        const uint32_t number = o->order[first + t];
        const pen_task task = o->graph->tasks[number];
        // updates stand behind all others, and keep their order
        bool is_early = false;
        for (uint32_t u = 0; u < t && task.kind == PEN_TASK_UPDATE; u++) {
            if (o->used[first + u] == 0) is_early = true;
        }
        if (is_early || !may_follow(o, placed, count, task)) continue;
        o->used[first + t] = 1;
        placed[count] = number;
        list_orders(o, device, placed, count + 1);
        o->used[first + t] = 0;
    }
}

static bool fits(const optimum *o, const uint32_t *order) {
    uint32_t in_flight[4], halved[4];
    double bytes_peak[3];
    pen_task tasks[64];
    const pen_schedule schedule = {o->schedule->device_count, o->schedule->task_count,
                                   o->schedule->first_task, tasks};
    for (uint32_t t = 0; t < schedule.task_count; t++) {
        tasks[t] = o->graph->tasks[order[t]];
    }
    CHECK_OK(pen_schedule_memory(o->stages, &schedule, o->arena, in_flight, halved, bytes_peak));
    for (uint32_t d = 0; d < schedule.device_count; d++) {
        if (bytes_peak[d] > o->stages->bytes_limit[d]) return false;
    }
    return true;
}

// Every order of this device and those behind it, with those before as they are.
static void try_orders(optimum *o, uint32_t device) {
    if (device == o->schedule->device_count) {
        pen_task_graph_run(o->graph, o->schedule->first_task, o->order, &o->run);
        if (o->run.step_seconds < o->best && fits(o, o->order)) o->best = o->run.step_seconds;
        return;
    }
    const orders *list = &o->devices[device];
    for (uint32_t i = 0; i < list->count; i++) {
        memcpy(&o->order[o->schedule->first_task[device]], &list->items[i * list->length],
               list->length * sizeof *o->order);
        try_orders(o, device + 1);
    }
}

// The best with these halves.
static double optimum_of(const pen_stage_graph *stages, const bool *is_halved, double best,
                         pen_arena *arena) {
    static optimum o;
    pen_task_graph *graph;
    uint32_t placed[64];
    o = (optimum){.stages = stages, .arena = arena, .best = best};
    CHECK_OK(pen_stage_index_new(stages, arena, &o.index));
    CHECK_OK(pen_task_graph_new(o.index, is_halved, arena, &graph));
    CHECK_OK(pen_task_run_new(graph, false, arena, &o.run));
    CHECK_OK(pen_schedule_new(o.index, is_halved, arena, &o.schedule));
    o.graph = graph;
    CHECK(o.schedule->task_count <= 64, "%u", o.schedule->task_count);
    for (uint32_t d = 0; d < stages->device_count; d++) {
        uint32_t t = o.schedule->first_task[d];
        for (uint32_t number = 0; number < graph->number_count; number++) {
            const pen_task task = graph->tasks[number];
            const pen_stage *stage = &stages->stages[task.stage];
            if (stage->device != d) continue;
            if (task.kind == PEN_TASK_BACKWARD_WEIGHT && !is_halved[task.stage]) continue;
            if (task.kind == PEN_TASK_UPDATE && !stage->has_update) continue;
            if (task.kind != PEN_TASK_FORWARD && task.kind != PEN_TASK_UPDATE &&
                !stage->has_backward)
                continue;
            o.order[t++] = number;
        }
        CHECK(t == o.schedule->first_task[d + 1], "%u", t);
        orders *list = &o.devices[d];
        list->length = t - o.schedule->first_task[d];
        CHECK_OK(PEN_NEW(arena, (size_t)ORDER_LIMIT * list->length, &list->items));
        list_orders(&o, d, placed, 0);
    }
    try_orders(&o, 0);
    return o.best;
}

static double draw(dice *d, double from, double to) {
    return from + (to - from) * (double)dice_between(d, 0, 1000000) * 1e-6;
}

// Up to 3 stages; two of them on one device only for 2 microbatches.
static pen_stage_graph *draw_graph(pen_arena *arena, uint64_t seed) {
    dice d = {.seed = seed + 1000};
    const uint32_t stage_count = (uint32_t)dice_between(&d, 2, 3);
    const uint32_t device_count = dice_between(&d, 0, 3) == 0 ? 2 : stage_count;
    pen_stage_graph *graph;
    pen_stage *stages;
    pen_stage_edge *edges;
    double *bytes_limit;
    CHECK_OK(PEN_NEW(arena, 1, &graph));
    CHECK_OK(PEN_NEW(arena, 3, &stages));
    CHECK_OK(PEN_NEW(arena, 3, &edges));
    CHECK_OK(PEN_NEW(arena, 3, &bytes_limit));
    *graph = *stage_chain(arena, stage_count, device_count < stage_count ? 2 : 3, 1, 1, 0);
    for (uint32_t s = 0; s < stage_count; s++) {
        stages[s] = graph->stages[s];
        stages[s].device = s % device_count;
        stages[s].forward_seconds = draw(&d, 0.2, 2);
        stages[s].backward_input_seconds = draw(&d, 0.2, 2);
        stages[s].backward_weight_seconds = draw(&d, 0.1, 2);
        stages[s].halved_bytes = 20;
    }
    for (uint32_t e = 0; e + 1 < stage_count; e++) {
        edges[e] = graph->edges[e];
        edges[e].forward_seconds = draw(&d, 0, 0.5);
        edges[e].backward_seconds = draw(&d, 0, 0.5);
        if (stage_count == 3 && seed % 3 == 0) edges[e].target = 2; // 0 and 1 both feed 2
        if (stages[edges[e].source].device == stages[edges[e].target].device) {
            edges[e].forward_seconds = 0;
            edges[e].backward_seconds = 0;
        }
    }
    const bool is_limited = dice_between(&d, 0, 1) == 1;
    for (uint32_t i = 0; i < device_count; i++) {
        bytes_limit[i] = is_limited ? 250.0 + 100 * (double)dice_between(&d, 0, 2) : INFINITY;
        if (device_count < stage_count) bytes_limit[i] += is_limited ? 300 : 0;
    }
    graph->stages = stages;
    graph->edges = edges;
    graph->device_count = device_count;
    graph->bytes_limit = bytes_limit;
    return graph;
}

static void is_close_to_the_optimum(void **state) {
    (void)state;
    const pen_auto_options options = {.seed = 1, .work_limit = 1000000};
    double gap = 0, most = 0, named = 0;
    uint32_t optimal = 0;
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = draw_graph(arena, seed);
        const pen_schedule *schedule;
        const pen_timeline *timeline;
        pen_auto_report report;
        double best = INFINITY;
        CHECK_OK(pen_auto_schedule(graph, &options, arena, &schedule, &report));
        CHECK_OK(pen_schedule_simulate(graph, schedule, arena, &timeline));
        for (uint32_t mask = 0; mask < 1u << graph->stage_count; mask++) {
            const bool is_halved[3] = {(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
            best = optimum_of(graph, is_halved, best, arena);
        }
        const double found = timeline->step_seconds / best - 1;
        CHECK(found >= -1e-12, "graph %llu: %g is below the optimum, %g", (unsigned long long)seed,
              timeline->step_seconds, best);
        CHECK(report.lower_bound <= best, "%g, %g", report.lower_bound, best);
        if (found < 1e-9) optimal += 1;
        gap += found;
        most = fmax(most, found);
        named += report.best_named_seconds / best - 1;
        pen_arena_destroy(arena);
    }
    printf("auto: optimal on %u of %u tiny stage graphs, %.3f %% above the optimum in the mean, "
           "%.2f %% at most; the best named schedule %.2f %%\n",
           optimal, (uint32_t)GRAPH_COUNT, 100 * gap / GRAPH_COUNT, 100 * most,
           100 * named / GRAPH_COUNT);
    CHECK(optimal > GRAPH_COUNT * 3 / 4 && most < 0.1, "%u optimal, at most %g above", optimal,
          most);
}

PEN_TEST_MAIN(cmocka_unit_test(is_close_to_the_optimum))
