#include "scheduler/schedule/schedule_simulate.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/stage_chain.h"

#define GRAPH_COUNT 400

// The generator that searches takes its time, and has tests of its own.
static bool is_left_out(size_t generator, uint64_t seed) {
    return strcmp(pen_schedule_generators[generator]->name, "auto") == 0 && seed % 10 != 0;
}

static const pen_timeline *simulate(const char *name, const pen_stage_graph *graph,
                                    pen_arena *arena) {
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    CHECK_OK(pen_schedule_generator_find(name, arena, &generator));
    CHECK_OK(generator->generate(graph, arena, &schedule));
    CHECK_OK(pen_schedule_simulate(graph, schedule, arena, &timeline));
    return timeline;
}

static void check_chain(const char *name, uint32_t p, uint32_t m, double forward, double backward) {
    pen_arena *arena = check_arena();
    const pen_timeline *timeline =
        simulate(name, stage_chain(arena, p, m, forward, backward, 0), arena);
    const double wanted = (m + p - 1) * (forward + backward);
    CHECK(fabs(timeline->step_seconds - wanted) < 1e-9 * wanted,
          "%s: %u stages, %u microbatches: %g, expected %g", name, p, m, timeline->step_seconds,
          wanted);
    CHECK(fabs(timeline->bubble - (p - 1.0) / (m + p - 1.0)) < 1e-12, "%s: %g", name,
          timeline->bubble);
    for (uint32_t s = 0; s < p; s++) {
        const bool holds_all = strcmp(name, "gpipe") == 0 || p - s > m;
        const uint32_t held = holds_all ? m : p - s;
        CHECK(timeline->in_flight[s] == held, "%s: stage %u of %u holds %u of %u", name, s, p,
              timeline->in_flight[s], m);
        CHECK(timeline->bytes_peak[s] == 110 + 100.0 * held, "%s: %g", name,
              timeline->bytes_peak[s]);
    }
    pen_arena_destroy(arena);
}

static void equals_the_closed_forms_of_chains(void **state) {
    (void)state;
    static const double costs[][2] = {{1, 1}, {1, 2}, {3, 1}, {0.5, 4}, {0.1, 0.23}};
    for (size_t c = 0; c < sizeof costs / sizeof *costs; c++) {
        for (uint32_t p = 1; p <= 9; p += 2) {
            for (uint32_t m = 1; m <= 34; m += 3) {
                check_chain("gpipe", p, m, costs[c][0], costs[c][1]);
                check_chain("1f1b", p, m, costs[c][0], costs[c][1]);
            }
        }
    }
}

static void overlaps_transfers_with_tasks(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    // forward 1, transfer 1 each way, backward 2, two microbatches on two devices, by hand:
    //   device 0  F0 0-1  F1 1-2                     B0 5-7          B1 8-10
    //   link 0>1     F0 1-2  F1 2-3
    //   device 1            F0 2-3   B0 3-5  F1 5-6  B1 6-8
    //   link 1>0                            B0 5-6           B1 8-9
    const pen_timeline *timeline = simulate("1f1b", stage_chain(arena, 2, 2, 1, 2, 1), arena);
    static const pen_task tasks[] = {{PEN_TASK_FORWARD, 0, 0},  {PEN_TASK_FORWARD, 0, 1},
                                     {PEN_TASK_BACKWARD, 0, 0}, {PEN_TASK_BACKWARD, 0, 1},
                                     {PEN_TASK_UPDATE, 0, 0},   {PEN_TASK_FORWARD, 1, 0},
                                     {PEN_TASK_BACKWARD, 1, 0}, {PEN_TASK_FORWARD, 1, 1},
                                     {PEN_TASK_BACKWARD, 1, 1}, {PEN_TASK_UPDATE, 1, 0}};
    static const double starts[] = {0, 1, 6, 9, 11, 2, 3, 5, 6, 8};
    for (uint32_t t = 0; t < 10; t++) {
        const pen_task task = timeline->schedule->tasks[t];
        CHECK(task.kind == tasks[t].kind && task.stage == tasks[t].stage &&
                  task.microbatch == tasks[t].microbatch,
              "task %u", t);
        CHECK(timeline->times.start_seconds[t] == starts[t], "task %u starts at %g", t,
              timeline->times.start_seconds[t]);
    }
    CHECK(timeline->step_seconds == 11, "%g", timeline->step_seconds);
    CHECK(timeline->bubble == 1 - 12.0 / 22, "%g", timeline->bubble);
    CHECK(timeline->times.transfer_count == 4, "%u", timeline->times.transfer_count);
    pen_arena_destroy(arena);
}

// ---- a second simulation, of another make: start times are raised until nothing changes

typedef struct relaxation {
    const pen_stage_graph *graph;
    const pen_schedule *schedule;
    double *end;          // [task_count]
    double *arrival;      // [task_count][edge_count], when what a task sends over an edge is there
    double *step_arrival; // [step_edge_count]
} relaxation;

static bool is_input_pass(pen_task_kind kind) {
    return kind == PEN_TASK_BACKWARD || kind == PEN_TASK_BACKWARD_INPUT;
}

static bool sends_over(const pen_stage_graph *graph, pen_task task, uint32_t e) {
    const pen_stage_edge *edge = &graph->edges[e];
    if (task.kind == PEN_TASK_FORWARD) return edge->source == task.stage;
    return is_input_pass(task.kind) && edge->target == task.stage && edge->has_gradient;
}

// When all that `task` waits for is there.
static double ready_seconds(const relaxation *r, pen_task task) {
    double ready = 0;
    for (uint32_t u = 0; u < r->schedule->task_count; u++) {
        const pen_task other = r->schedule->tasks[u];
        const bool is_same = other.stage == task.stage && other.microbatch == task.microbatch;
        if (task.kind == PEN_TASK_UPDATE && other.kind == PEN_TASK_FORWARD) // for all losses
            ready = fmax(ready, r->end[u]);
        if (task.kind == PEN_TASK_UPDATE && other.stage == task.stage &&
            (other.kind != PEN_TASK_UPDATE || other.microbatch < task.microbatch))
            ready = fmax(ready, r->end[u]);
        if (task.kind == PEN_TASK_UPDATE || other.kind == PEN_TASK_UPDATE) continue;
        if (is_same && is_input_pass(task.kind) && other.kind == PEN_TASK_FORWARD)
            ready = fmax(ready, r->end[u]);
        if (is_same && task.kind == PEN_TASK_BACKWARD_WEIGHT &&
            other.kind == PEN_TASK_BACKWARD_INPUT)
            ready = fmax(ready, r->end[u]);
        if (other.microbatch != task.microbatch) continue;
        for (uint32_t e = 0; e < r->graph->edge_count; e++) {
            const pen_stage_edge *edge = &r->graph->edges[e];
            if (!sends_over(r->graph, other, e)) continue;
            const bool reaches = other.kind == PEN_TASK_FORWARD
                                     ? task.kind == PEN_TASK_FORWARD && edge->target == task.stage
                                     : is_input_pass(task.kind) && edge->source == task.stage;
            if (reaches) ready = fmax(ready, r->arrival[u * r->graph->edge_count + e]);
        }
    }
    for (uint32_t e = 0; e < r->graph->step_edge_count && task.kind == PEN_TASK_UPDATE; e++) {
        const pen_stage_step_edge *edge = &r->graph->step_edges[e];
        const bool reaches = edge->target == task.stage && edge->phase + 1 == task.microbatch;
        if (reaches) ready = fmax(ready, r->step_arrival[e]);
    }
    return ready;
}

// Sends of one device to one other, one after the other.
static void relax_step(relaxation *r, uint32_t t, uint32_t to, double *link_free) {
    const pen_stage_graph *graph = r->graph;
    const pen_task task = r->schedule->tasks[t];
    const uint32_t from = graph->stages[task.stage].device;
    for (uint32_t e = 0; e < graph->step_edge_count; e++) {
        const pen_stage_step_edge *edge = &graph->step_edges[e];
        if (edge->source != task.stage || edge->phase != task.microbatch) continue;
        if (graph->stages[edge->target].device != to) continue;
        r->step_arrival[e] = r->end[t];
        if (from == to) continue;
        r->step_arrival[e] = fmax(r->end[t], *link_free) + edge->seconds;
        *link_free = r->step_arrival[e];
    }
}

static void relax_link(relaxation *r, uint32_t from, uint32_t to) {
    const pen_stage_graph *graph = r->graph;
    double link_free = 0;
    for (uint32_t t = r->schedule->first_task[from]; t < r->schedule->first_task[from + 1]; t++) {
        const pen_task task = r->schedule->tasks[t];
        if (task.kind == PEN_TASK_UPDATE) relax_step(r, t, to, &link_free);
        for (uint32_t e = 0; e < graph->edge_count; e++) {
            if (!sends_over(graph, task, e)) continue;
            const bool is_forward = task.kind == PEN_TASK_FORWARD;
            const uint32_t other = is_forward ? graph->edges[e].target : graph->edges[e].source;
            if (graph->stages[other].device != to) continue;
            double *arrival = &r->arrival[t * graph->edge_count + e];
            if (from == to) {
                *arrival = r->end[t];
                continue;
            }
            *arrival = fmax(r->end[t], link_free) + (is_forward ? graph->edges[e].forward_seconds
                                                                : graph->edges[e].backward_seconds);
            link_free = *arrival;
        }
    }
}

static double relax(const pen_stage_graph *graph, const pen_schedule *schedule, pen_arena *arena,
                    double **out_end) {
    relaxation r = {.graph = graph, .schedule = schedule};
    CHECK_OK(PEN_NEW(arena, schedule->task_count, &r.end));
    CHECK_OK(PEN_NEW(arena, (size_t)schedule->task_count * graph->edge_count, &r.arrival));
    CHECK_OK(PEN_NEW(arena, graph->step_edge_count, &r.step_arrival));
    bool changed = true;
    double last = 0;
    for (uint32_t round = 0; changed; round++) {
        CHECK(round <= 4 * schedule->task_count, "times keep growing");
        changed = false;
        for (uint32_t d = 0; d < schedule->device_count; d++) {
            double free_seconds = 0;
            for (uint32_t t = schedule->first_task[d]; t < schedule->first_task[d + 1]; t++) {
                const double end = fmax(free_seconds, ready_seconds(&r, schedule->tasks[t])) +
                                   pen_task_seconds(graph, schedule->tasks[t]);
                if (end > r.end[t]) changed = true;
                r.end[t] = end;
                free_seconds = end;
                last = fmax(last, end);
            }
            for (uint32_t to = 0; to < schedule->device_count; to++) {
                relax_link(&r, d, to);
            }
        }
    }
    *out_end = r.end;
    return last;
}

// Cuts the backward tasks of some stages in halves; the weight halves come at once, or together
// before the updates.
static const pen_schedule *split(const pen_schedule *schedule, dice *d, pen_arena *arena) {
    pen_schedule *halves;
    CHECK_OK(PEN_NEW(arena, 1, &halves));
    CHECK_OK(PEN_NEW(arena, schedule->device_count + 1, &halves->first_task));
    CHECK_OK(PEN_NEW(arena, 2 * schedule->task_count, &halves->tasks));
    halves->device_count = schedule->device_count;
    const int64_t stage_mask = dice_between(d, 0, 511);
    const bool is_late = dice_between(d, 0, 1) == 1;
    uint32_t n = 0;
    for (uint32_t device = 0; device < schedule->device_count; device++) {
        const uint32_t end = schedule->first_task[device + 1];
        uint32_t late = schedule->first_task[device]; // weight halves wanted from here
        for (uint32_t t = schedule->first_task[device]; t <= end; t++) {
            const bool at_end = t == end || schedule->tasks[t].kind == PEN_TASK_UPDATE;
            for (; at_end && is_late && late < t; late++) {
                pen_task half = schedule->tasks[late];
                if (half.kind != PEN_TASK_BACKWARD || (stage_mask >> half.stage & 1) == 0) continue;
                half.kind = PEN_TASK_BACKWARD_WEIGHT;
                halves->tasks[n++] = half;
            }
            if (t == end) break;
            pen_task task = schedule->tasks[t];
            if (task.kind == PEN_TASK_BACKWARD && (stage_mask >> task.stage & 1) != 0) {
                task.kind = PEN_TASK_BACKWARD_INPUT;
                halves->tasks[n++] = task;
                task.kind = PEN_TASK_BACKWARD_WEIGHT;
                if (is_late) continue;
            }
            halves->tasks[n++] = task;
        }
        halves->first_task[device + 1] = n;
    }
    halves->task_count = n;
    return halves;
}

static void agrees_with_another_simulation(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = stage_graph_random(arena, seed);
        dice d = {.seed = seed ^ 0x5eed};
        for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
            if (is_left_out(i, seed)) continue;
            const pen_schedule *schedule;
            const pen_timeline *timeline;
            double *end;
            CHECK_OK(pen_schedule_generators[i]->generate(graph, arena, &schedule));
            if (dice_between(&d, 0, 1) == 1) schedule = split(schedule, &d, arena);
            CHECK_OK(pen_schedule_simulate(graph, schedule, arena, &timeline));
            const double last = relax(graph, schedule, arena, &end);
            CHECK(last == timeline->step_seconds, "graph %llu: %g, expected %g",
                  (unsigned long long)seed, timeline->step_seconds, last);
            for (uint32_t t = 0; t < schedule->task_count; t++) {
                CHECK(end[t] == timeline->times.end_seconds[t], "graph %llu, task %u",
                      (unsigned long long)seed, t);
            }
        }
        pen_arena_destroy(arena);
    }
}

// ---- bounds that hold for every schedule

static double busiest_seconds(const pen_stage_graph *graph) {
    double busiest = 0;
    for (uint32_t d = 0; d < graph->device_count; d++) {
        double busy = 0;
        for (uint32_t s = 0; s < graph->stage_count; s++) {
            const pen_stage *stage = &graph->stages[s];
            if (stage->device != d) continue;
            busy +=
                stage->update_seconds +
                graph->microbatch_count * (stage->forward_seconds + stage->backward_input_seconds +
                                           stage->backward_weight_seconds);
        }
        busiest = fmax(busiest, busy);
    }
    return busiest;
}

// The longest way of one microbatch: forward to a stage, and back over edges with gradients.
static double way_seconds(const pen_stage_graph *graph) {
    double forward[16] = {0};
    double backward[16] = {0};
    double longest = 0;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        for (uint32_t e = 0; e < graph->edge_count; e++) {
            if (graph->edges[e].target != s) continue;
            forward[s] =
                fmax(forward[s], forward[graph->edges[e].source] + graph->edges[e].forward_seconds);
        }
        forward[s] += graph->stages[s].forward_seconds;
    }
    for (uint32_t s = graph->stage_count; s-- > 0;) {
        backward[s] = forward[s];
        for (uint32_t e = 0; e < graph->edge_count; e++) {
            if (graph->edges[e].source != s || !graph->edges[e].has_gradient) continue;
            backward[s] = fmax(backward[s],
                               backward[graph->edges[e].target] + graph->edges[e].backward_seconds);
        }
        backward[s] += graph->stages[s].backward_input_seconds;
        longest = fmax(longest, backward[s] + graph->stages[s].backward_weight_seconds +
                                    graph->stages[s].update_seconds);
    }
    return longest;
}

static void is_never_below_the_bounds(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2 * GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = stage_graph_random(arena, seed);
        for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
            if (is_left_out(i, seed)) continue;
            const pen_timeline *timeline = simulate(pen_schedule_generators[i]->name, graph, arena);
            CHECK(timeline->step_seconds >= busiest_seconds(graph), "graph %llu: %g",
                  (unsigned long long)seed, timeline->step_seconds);
            CHECK(timeline->step_seconds >= way_seconds(graph), "graph %llu: %g",
                  (unsigned long long)seed, timeline->step_seconds);
            CHECK(timeline->bubble >= 0 && timeline->bubble <= 1, "%g", timeline->bubble);
        }
        pen_arena_destroy(arena);
    }
}

static void refuses_a_schedule_of_other_stages(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_timeline *timeline = simulate("1f1b", stage_chain(arena, 3, 2, 1, 1, 0), arena);
    CHECK_ERROR(pen_schedule_simulate(stage_chain(arena, 4, 2, 1, 1, 0), timeline->schedule, arena,
                                      &timeline),
                PEN_INVALID_INPUT, "a schedule is for 3 devices, the stages are on 4");
    CHECK_ERROR(pen_schedule_simulate(stage_chain(arena, 3, 3, 1, 1, 0), timeline->schedule, arena,
                                      &timeline),
                PEN_INVALID_INPUT, "the task 'forward of stage 0, microbatch 2' is missing");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(equals_the_closed_forms_of_chains),
              cmocka_unit_test(overlaps_transfers_with_tasks),
              cmocka_unit_test(agrees_with_another_simulation),
              cmocka_unit_test(is_never_below_the_bounds),
              cmocka_unit_test(refuses_a_schedule_of_other_stages))
