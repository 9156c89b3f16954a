#include <math.h>

#include "scheduler/schedule/schedule_simulate.h"
#include "tests/support/check.h"
#include "tests/support/stage_chain.h"

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

// A chain of p·v stages, stage i on device i mod p.
static pen_stage_graph turns(pen_arena *arena, uint32_t p, uint32_t v, uint32_t m, double f,
                             double b) {
    pen_stage_graph graph = *stage_chain(arena, p * v, m, f / v, b / v, 0);
    pen_stage *stages;
    CHECK_OK(PEN_NEW(arena, p * v, &stages));
    for (uint32_t s = 0; s < p * v; s++) {
        stages[s] = graph.stages[s];
        stages[s].device = s % p;
    }
    graph.stages = stages;
    graph.device_count = p;
    return graph;
}

// In all but a few cases, and there within 1 %.
static void equals_the_closed_form_of_chains(void **state) {
    (void)state;
    static const double backward[] = {1, 1.5, 2};
    uint32_t case_count = 0;
    uint32_t equal_count = 0;
    for (uint32_t i = 0; i < 4 * 5 * 4 * 3; i++) {
        const uint32_t v = i % 4 + 1;
        const uint32_t p = i / 4 % 5 + 2;
        const uint32_t m = p * (i / 20 % 4 + 1);
        const double b = backward[i / 80];
        pen_arena *arena = check_arena();
        const pen_stage_graph graph = turns(arena, p, v, m, 1, b);
        const pen_timeline *timeline = simulate("interleaved", &graph, arena);
        const double expected = m * (1 + b) + (p - 1) * (1 + b) / v;
        CHECK(timeline->step_seconds <= 1.01 * expected, "%u stages on each of %u devices: %g, %g",
              v, p, timeline->step_seconds, expected);
        case_count += 1;
        if (timeline->step_seconds <= expected * (1 + 1e-9)) equal_count += 1;
        for (uint32_t d = 0; d < p; d++) {
            uint32_t held = 0;
            for (uint32_t s = d; s < p * v; s += p) {
                held += timeline->in_flight[s];
            }
            CHECK(held <= v * m && held <= v * ((v - 1) * p + 2 * (p - 1 - d) + 1), "%u", held);
        }
        pen_arena_destroy(arena);
    }
    CHECK(equal_count + 2 >= case_count, "%u of %u", equal_count, case_count);
}

// Several stages on some devices only, a branch, a stage without a backward pass: faster than the
// same stages one microbatch at a time, and the check accepts it.
static void takes_uneven_stages(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_stage_graph graph = *stage_chain(arena, 5, 8, 1, 2, 0.1);
    pen_stage stages[5];
    memcpy(stages, graph.stages, sizeof stages);
    const uint32_t devices[] = {0, 1, 0, 2, 1};
    double all = 0;
    for (uint32_t s = 0; s < 5; s++) {
        stages[s].device = devices[s];
        stages[s].forward_seconds = 1 + s % 3;
        all += 8 * pen_stage_microbatch_seconds(&stages[s]);
    }
    graph.stages = stages;
    graph.device_count = 3;
    const pen_timeline *timeline = simulate("interleaved", &graph, arena);
    CHECK(timeline->step_seconds < 0.6 * all, "%g of %g", timeline->step_seconds, all);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(equals_the_closed_form_of_chains),
              cmocka_unit_test(takes_uneven_stages))
