// Stages that run ranges of a step's microbatches: replicas.
//
// The oracle is each replica's own graph with its share as the whole step: where replicas exchange
// nothing, a step of all takes as long as the slowest alone, and tasks are the same but for the
// numbers of microbatches.

#include <math.h>
#include <string.h>

#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/stage_chain.h"

#define CHECK_SAME(a, b) CHECK((a) == (b), "%u, expected %u", (uint32_t)(a), (uint32_t)(b))
#define REPLICAS 3
#define MICROBATCHES 12

typedef struct ranges_case {
    pen_stage_graph graph;
    pen_stage stages[16];
    pen_stage_edge edges[16];
    double bytes_limit[16];
    const pen_stage_graph *alone[REPLICAS];
    uint32_t first_stage[REPLICAS + 1];
    uint32_t first[REPLICAS + 1]; // microbatches
} ranges_case;

static void draw_case(dice *d, pen_arena *arena, ranges_case *c) {
    *c = (ranges_case){.first = {0, (uint32_t)dice_between(d, 1, 5),
                                 (uint32_t)dice_between(d, 6, 10), MICROBATCHES}};
    uint32_t edge_count = 0;
    for (uint32_t r = 0; r < REPLICAS; r++) {
        const uint32_t count = c->first[r + 1] - c->first[r];
        const uint32_t at = c->first_stage[r];
        c->alone[r] = stage_chain(arena, (uint32_t)dice_between(d, 1, 4), count,
                                  (double)dice_between(d, 1, 9), (double)dice_between(d, 2, 9),
                                  (double)dice_between(d, 0, 3));
        for (uint32_t s = 0; s < c->alone[r]->stage_count; s++) {
            c->stages[at + s] = c->alone[r]->stages[s];
            c->stages[at + s].device += at;
            c->stages[at + s].first_microbatch = c->first[r];
            c->stages[at + s].microbatch_count = count;
        }
        for (uint32_t e = 0; e < c->alone[r]->edge_count; e++) {
            c->edges[edge_count] = c->alone[r]->edges[e];
            c->edges[edge_count].source += at;
            c->edges[edge_count++].target += at;
        }
        c->first_stage[r + 1] = at + c->alone[r]->stage_count;
    }
    for (uint32_t i = 0; i < 16; i++) {
        c->bytes_limit[i] = INFINITY;
    }
    c->graph = (pen_stage_graph){.stage_count = c->first_stage[REPLICAS],
                                 .edge_count = edge_count,
                                 .device_count = c->first_stage[REPLICAS],
                                 .microbatch_count = MICROBATCHES,
                                 .stages = c->stages,
                                 .edges = c->edges,
                                 .bytes_limit = c->bytes_limit};
}

// The tasks of a replica are those that it has alone.
static void check_tasks(const ranges_case *c, uint32_t r, const pen_schedule *whole,
                        const pen_schedule *alone) {
    for (uint32_t d = 0; d < alone->device_count; d++) {
        const uint32_t at = c->first_stage[r] + d,
                       count = alone->first_task[d + 1] - alone->first_task[d];
        CHECK_SAME(whole->first_task[at + 1] - whole->first_task[at], count);
        for (uint32_t t = 0; t < count; t++) {
            const pen_task here = whole->tasks[whole->first_task[at] + t];
            const pen_task there = alone->tasks[alone->first_task[d] + t];
            const bool is_update = there.kind == PEN_TASK_UPDATE;
            CHECK_SAME(here.kind, there.kind);
            CHECK_SAME(here.stage, there.stage + c->first_stage[r]);
            CHECK_SAME(here.microbatch, there.microbatch + (is_update ? 0 : c->first[r]));
        }
    }
}

static void check_case(const ranges_case *c, const pen_schedule_generator *generator,
                       pen_arena *arena, bool compares_tasks) {
    const pen_schedule *whole, *alone;
    const pen_timeline *all, *own;
    double slowest = 0;
    CHECK_OK(generator->generate(&c->graph, arena, &whole));
    CHECK_OK(pen_schedule_check(&c->graph, whole, arena));
    CHECK_OK(pen_schedule_simulate(&c->graph, whole, arena, &all));
    for (uint32_t r = 0; r < REPLICAS; r++) {
        CHECK_OK(generator->generate(c->alone[r], arena, &alone));
        CHECK_OK(pen_schedule_simulate(c->alone[r], alone, arena, &own));
        slowest = fmax(slowest, own->step_seconds);
        if (compares_tasks) check_tasks(c, r, whole, alone);
    }
    if (compares_tasks) {
        CHECK(fabs(all->step_seconds - slowest) <= 1e-9 * slowest, "%g, alone %g",
              all->step_seconds, slowest);
    }
}

// Interleaving and the search look at all stages together, so there only the check judges.
static void replicas_run_as_if_alone(void **state) {
    (void)state;
    dice d = {.seed = 1};
    for (int round = 0; round < 60; round++) {
        pen_arena *arena = check_arena();
        ranges_case c;
        draw_case(&d, arena, &c);
        for (uint32_t i = 0; pen_schedule_generators[i] != NULL; i++) {
            const char *name = pen_schedule_generators[i]->name;
            const bool is_apart = strcmp(name, "auto") != 0 && strcmp(name, "interleaved") != 0;
            check_case(&c, pen_schedule_generators[i], arena, is_apart);
        }
        pen_arena_destroy(arena);
    }
}

// What one replica sends another once a step is waited for.
static void exchange_is_waited_for(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    dice d = {.seed = 2};
    ranges_case c;
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    const pen_timeline *before, *after;
    draw_case(&d, arena, &c);
    CHECK_OK(pen_schedule_generator_find("1f1b", arena, &generator));
    CHECK_OK(generator->generate(&c.graph, arena, &schedule));
    CHECK_OK(pen_schedule_simulate(&c.graph, schedule, arena, &before));
    pen_stage_step_edge edges[REPLICAS];
    for (uint32_t r = 1; r < REPLICAS; r++) {
        edges[r - 1] = (pen_stage_step_edge){
            .source = c.first_stage[r], .target = 0, .phase = 0, .bytes = 1, .seconds = 100};
    }
    c.graph.step_edges = edges;
    c.graph.step_edge_count = REPLICAS - 1;
    c.graph.update_phase_count = 2;
    CHECK_OK(generator->generate(&c.graph, arena, &schedule));
    CHECK_OK(pen_schedule_check(&c.graph, schedule, arena));
    CHECK_OK(pen_schedule_simulate(&c.graph, schedule, arena, &after));
    CHECK(after->step_seconds >= 100, "%g", after->step_seconds);
    CHECK(after->step_seconds <= before->step_seconds + 100 + 1e-9, "%g, before %g",
          after->step_seconds, before->step_seconds);
    pen_arena_destroy(arena);
}

static void refuses_wrong_ranges(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    dice d = {.seed = 3};
    ranges_case c;
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    CHECK_OK(pen_schedule_generator_find("gpipe", arena, &generator));
    do {
        draw_case(&d, arena, &c);
    } while (c.graph.edge_count == 0);
    CHECK_OK(generator->generate(&c.graph, arena, &schedule));
    pen_task *task = &schedule->tasks[schedule->first_task[c.first_stage[1]]];
    const pen_task right = *task;
    task->microbatch = 0;
    CHECK_ERROR(pen_schedule_check(&c.graph, schedule, arena), PEN_INVALID_INPUT,
                "is none of its stage's, which has microbatches");
    *task = right;
    const uint32_t target = c.edges[0].target;
    c.stages[target].microbatch_count -= 1;
    c.stages[target].first_microbatch += 1;
    CHECK_ERROR(generator->generate(&c.graph, arena, &schedule), PEN_INVALID_INPUT,
                "which run other microbatches");
    c.stages[target].microbatch_count = MICROBATCHES;
    CHECK_ERROR(generator->generate(&c.graph, arena, &schedule), PEN_INVALID_INPUT,
                "a step has 12");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(replicas_run_as_if_alone), cmocka_unit_test(exchange_is_waited_for),
              cmocka_unit_test(refuses_wrong_ranges))
