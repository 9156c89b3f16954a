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

static pen_stage_graph chain(pen_arena *arena, uint32_t p, uint32_t m, const double *costs) {
    pen_stage_graph graph = *stage_chain(arena, p, m, costs[0], 0, 0);
    pen_stage *stages;
    CHECK_OK(PEN_NEW(arena, p, &stages));
    for (uint32_t s = 0; s < p; s++) {
        stages[s] = graph.stages[s];
        stages[s].backward_input_seconds = costs[1];
        stages[s].backward_weight_seconds = costs[2];
    }
    graph.stages = stages;
    return graph;
}

// Of a uniform chain: time above what the tasks of a device take is at most (p - 1)(f + b - w),
// table 2 of the paper, with no more memory than 1F1B.
static void keeps_to_the_published_bubble(void **state) {
    (void)state;
    static const double costs[][3] = {{1, 1, 1}, {1, 1, 0.5}, {1, 1.25, 0.75},
                                      {2, 2, 1}, {1, 2, 1},   {3, 3.5, 2.5}};
    double worst = -1;
    for (size_t c = 0; c < sizeof costs / sizeof *costs; c++) {
        const double f = costs[c][0], b = costs[c][1], w = costs[c][2];
        for (uint32_t p = 2; p <= 8; p++) {
            for (uint32_t m = p; m <= 4 * p; m++) {
                pen_arena *arena = check_arena();
                const pen_stage_graph graph = chain(arena, p, m, costs[c]);
                const pen_timeline *timeline = simulate("zero_bubble", &graph, arena);
                const double found = timeline->step_seconds - m * (f + b + w);
                const double published = (p - 1) * (f + b - w);
                worst = fmax(worst, found - published);
                for (uint32_t s = 0; s < p; s++) {
                    CHECK(timeline->in_flight[s] <= p, "stage %u of %u holds %u", s, p,
                          timeline->in_flight[s]);
                }
                pen_arena_destroy(arena);
            }
        }
    }
    CHECK(worst <= 1e-9, "bubble %g above the published", worst);
}

// 1F1B takes the two halves of (p - 1) w more; without weight halves it is the same.
static void gains_what_weight_halves_fill(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const double costs[] = {1, 1, 1};
    pen_stage_graph graph = chain(arena, 4, 12, costs);
    CHECK(simulate("1f1b", &graph, arena)->step_seconds == 12 * 3 + 3 * 3, "1f1b");
    CHECK(simulate("zero_bubble", &graph, arena)->step_seconds == 12 * 3 + 3, "zero_bubble");
    const double whole[] = {1, 2, 0};
    graph = chain(arena, 4, 12, whole);
    const pen_timeline *timeline = simulate("zero_bubble", &graph, arena);
    CHECK(timeline->step_seconds == 12 * 3 + 3 * 3, "%g", timeline->step_seconds);
    for (uint32_t t = 0; t < timeline->schedule->task_count; t++) {
        const pen_task_kind kind = timeline->schedule->tasks[t].kind;
        CHECK(kind != PEN_TASK_BACKWARD_INPUT && kind != PEN_TASK_BACKWARD_WEIGHT, "task %u", t);
    }
    pen_arena_destroy(arena);
}

// Where memory is short windows shrink, in the end to whole backward tasks.
static void takes_less_where_memory_is_short(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const double costs[] = {1, 1, 1};
    pen_stage_graph graph = chain(arena, 4, 8, costs);
    pen_stage stages[4];
    double last = 0;
    memcpy(stages, graph.stages, sizeof stages);
    for (uint32_t s = 0; s < 4; s++) {
        stages[s].halved_bytes = 50;
    }
    graph.stages = stages;
    for (uint32_t held = 8; held >= 1; held--) {
        const double limit = 110 + 100 * held;
        const double bytes_limit[] = {limit, limit, limit, limit};
        graph.bytes_limit = bytes_limit;
        const pen_timeline *timeline = simulate("zero_bubble", &graph, arena);
        CHECK(timeline->step_seconds >= last, "%u: %g", held, timeline->step_seconds);
        last = timeline->step_seconds;
        for (uint32_t d = 0; d < 4; d++) {
            CHECK(timeline->bytes_peak[d] <= limit, "%g of %g", timeline->bytes_peak[d], limit);
        }
    }
    CHECK(last > 60, "one microbatch at a time takes only %g", last);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(gains_what_weight_halves_fill),
              cmocka_unit_test(takes_less_where_memory_is_short),
              cmocka_unit_test(keeps_to_the_published_bubble))
