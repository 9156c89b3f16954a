// The conformance suite of schedule generators: whoever is listed is tested.
#include <math.h>

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/schedule_check.h"
#include "scheduler/schedule/schedule_memory.h"
#include "tests/support/check.h"
#include "tests/support/dice.h"
#include "tests/support/stage_chain.h"

#define GRAPH_COUNT 500

// The generator that searches takes its time, and has tests of its own.
static bool is_left_out(size_t generator, uint64_t seed) {
    return strcmp(pen_schedule_generators[generator]->name, "auto") == 0 && seed % 10 != 0;
}

static void finds_by_name(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_schedule_generator *generator;
    for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
        CHECK_OK(pen_schedule_generator_find(pen_schedule_generators[i]->name, arena, &generator));
        CHECK(generator == pen_schedule_generators[i], "%s", generator->name);
        CHECK(strlen(generator->summary) > 10, "%s", generator->name);
    }
    CHECK_ERROR(pen_schedule_generator_find("2f2b", arena, &generator), PEN_NOT_FOUND,
                "unknown schedule '2f2b', possible: 1f1b, gpipe, interleaved, zero_bubble, auto");
    pen_arena_destroy(arena);
}

// Counts tasks without the help of the check.
static void check_each_task_once(const pen_stage_graph *graph, const pen_schedule *schedule) {
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        uint32_t counts[PEN_TASK_KIND_COUNT] = {0};
        for (uint32_t t = 0; t < schedule->task_count; t++) {
            if (schedule->tasks[t].stage == s) counts[schedule->tasks[t].kind] += 1;
        }
        CHECK(counts[PEN_TASK_FORWARD] == graph->microbatch_count, "stage %u", s);
        CHECK(counts[PEN_TASK_BACKWARD_INPUT] == counts[PEN_TASK_BACKWARD_WEIGHT], "stage %u", s);
        CHECK(counts[PEN_TASK_BACKWARD] + counts[PEN_TASK_BACKWARD_INPUT] ==
                  (stage->has_backward ? graph->microbatch_count : 0),
              "stage %u", s);
        const uint32_t phase_count = pen_stage_graph_phases(graph);
        CHECK(counts[PEN_TASK_UPDATE] == (stage->has_update ? phase_count : 0), "stage %u", s);
    }
}

static void check_same(const pen_schedule *a, const pen_schedule *b) {
    CHECK(a->task_count == b->task_count, "%u, %u", a->task_count, b->task_count);
    for (uint32_t t = 0; t < a->task_count; t++) {
        CHECK(a->tasks[t].kind == b->tasks[t].kind && a->tasks[t].stage == b->tasks[t].stage &&
                  a->tasks[t].microbatch == b->tasks[t].microbatch,
              "task %u", t);
    }
}

static void schedules_any_stages(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = stage_graph_random(arena, seed);
        for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
            if (is_left_out(i, seed)) continue;
            const pen_schedule *schedule;
            const pen_schedule *again;
            CHECK_OK(pen_schedule_generators[i]->generate(graph, arena, &schedule));
            CHECK_OK(pen_schedule_check(graph, schedule, arena));
            check_each_task_once(graph, schedule);
            CHECK_OK(pen_schedule_generators[i]->generate(graph, arena, &again));
            check_same(schedule, again);
        }
        pen_arena_destroy(arena);
    }
}

// What each device needs at least: one microbatch of each stage.
static double least_bytes(const pen_stage_graph *graph, uint32_t device) {
    double fixed = 0;
    double workspace = 0;
    double activation = 0;
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        if (graph->stages[s].device != device) continue;
        fixed += graph->stages[s].fixed_bytes;
        workspace = fmax(workspace, graph->stages[s].workspace_bytes);
        activation += graph->stages[s].activation_bytes;
    }
    return fixed + workspace + activation;
}

static void keeps_to_the_memory_or_says_so(void **state) {
    (void)state;
    uint32_t fitted[8] = {0};
    uint32_t refused[8] = {0};
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        pen_stage_graph *graph = stage_graph_random(arena, seed);
        dice d = {.seed = seed};
        double bytes_limit[8];
        for (uint32_t i = 0; i < graph->device_count; i++) {
            bytes_limit[i] = floor(least_bytes(graph, i) * (double)dice_between(&d, 7, 24) / 8);
        }
        graph->bytes_limit = bytes_limit;
        for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
            if (is_left_out(i, seed)) continue;
            const pen_schedule *schedule;
            const pen_status status = pen_schedule_generators[i]->generate(graph, arena, &schedule);
            if (status == PEN_OK) {
                fitted[i] += 1;
                CHECK_OK(pen_schedule_check(graph, schedule, arena));
            } else {
                refused[i] += 1;
                CHECK_ERROR(status, PEN_DOES_NOT_FIT, "bytes with");
            }
        }
        pen_arena_destroy(arena);
    }
    for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
        CHECK(fitted[i] > 2 && refused[i] > 2, "%s: %u fitted, %u refused",
              pen_schedule_generators[i]->name, fitted[i], refused[i]);
    }
}

static void never_needs_more_memory_than_gpipe(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < GRAPH_COUNT; seed++) {
        pen_arena *arena = check_arena();
        const pen_stage_graph *graph = stage_graph_random(arena, seed);
        const pen_schedule_generator *gpipe;
        const pen_schedule *schedule;
        uint32_t in_flight[2][16];
        uint32_t halved[16];
        double bytes_peak[2][8];
        CHECK_OK(pen_schedule_generator_find("gpipe", arena, &gpipe));
        CHECK_OK(gpipe->generate(graph, arena, &schedule));
        CHECK_OK(pen_schedule_memory(graph, schedule, arena, in_flight[0], NULL, bytes_peak[0]));
        for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
            if (is_left_out(i, seed)) continue;
            CHECK_OK(pen_schedule_generators[i]->generate(graph, arena, &schedule));
            CHECK_OK(
                pen_schedule_memory(graph, schedule, arena, in_flight[1], halved, bytes_peak[1]));
            for (uint32_t d = 0; d < graph->device_count; d++) {
                double halved_bytes = 0;
                for (uint32_t s = 0; s < graph->stage_count; s++) {
                    if (graph->stages[s].device != d) continue;
                    halved_bytes += halved[s] * graph->stages[s].halved_bytes;
                }
                CHECK(bytes_peak[1][d] <= bytes_peak[0][d] + halved_bytes,
                      "%s: graph %llu, device %u: %g, %g", pen_schedule_generators[i]->name,
                      (unsigned long long)seed, d, bytes_peak[1][d], bytes_peak[0][d]);
            }
            for (uint32_t s = 0; s < graph->stage_count; s++) {
                CHECK(in_flight[1][s] <= in_flight[0][s], "graph %llu, stage %u",
                      (unsigned long long)seed, s);
            }
        }
        pen_arena_destroy(arena);
    }
}

static void refuses_graphs_that_contradict_themselves(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    for (size_t i = 0; pen_schedule_generators[i] != NULL; i++) {
        const pen_schedule *schedule;
        pen_stage_graph graph = *stage_chain(arena, 2, 4, 1, 1, 0);
        graph.microbatch_count = 0;
        CHECK_ERROR(pen_schedule_generators[i]->generate(&graph, arena, &schedule),
                    PEN_INVALID_INPUT, "a step has 0 microbatches, expected at least 1");
    }
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(finds_by_name), cmocka_unit_test(schedules_any_stages),
              cmocka_unit_test(keeps_to_the_memory_or_says_so),
              cmocka_unit_test(never_needs_more_memory_than_gpipe),
              cmocka_unit_test(refuses_graphs_that_contradict_themselves))
