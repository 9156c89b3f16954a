#include <math.h>

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/schedule_simulate.h"
#include "tests/support/check.h"
#include "tests/support/stage_chain.h"

static const pen_timeline *simulate(const pen_stage_graph *graph, pen_arena *arena) {
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    const pen_timeline *timeline;
    CHECK_OK(pen_schedule_generator_find("1f1b", arena, &generator));
    CHECK_OK(generator->generate(graph, arena, &schedule));
    CHECK_OK(pen_schedule_simulate(graph, schedule, arena, &timeline));
    return timeline;
}

static void holds_less_where_memory_is_short(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_stage_graph graph = *stage_chain(arena, 4, 16, 1, 2, 0);
    // 110 bytes, and 100 a microbatch: 2 at most on device 0, which would hold 4
    const double bytes_limit[] = {310, INFINITY, INFINITY, INFINITY};
    const double unlimited = simulate(&graph, arena)->step_seconds;
    graph.bytes_limit = bytes_limit;
    const pen_timeline *timeline = simulate(&graph, arena);
    CHECK(timeline->in_flight[0] == 2, "%u", timeline->in_flight[0]);
    CHECK(timeline->bytes_peak[0] == 310, "%g", timeline->bytes_peak[0]);
    CHECK(timeline->step_seconds > unlimited, "%g", timeline->step_seconds);
    // no more than if each microbatch went alone
    CHECK(timeline->step_seconds < 16 * 12, "%g", timeline->step_seconds);
    pen_arena_destroy(arena);
}

static void says_which_device_is_too_small(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_stage_graph graph = *stage_chain(arena, 4, 16, 1, 2, 0);
    const double bytes_limit[] = {INFINITY, INFINITY, 209, INFINITY};
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    graph.bytes_limit = bytes_limit;
    CHECK_OK(pen_schedule_generator_find("1f1b", arena, &generator));
    CHECK_ERROR(generator->generate(&graph, arena, &schedule), PEN_DOES_NOT_FIT,
                "device 2 needs 210 bytes with 1 microbatches in flight, its limit is 209 bytes");
    pen_arena_destroy(arena);
}

static void counts_slow_transfers_as_stages(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    // a round takes 2 x 3 s of work and 2 x 3 s of transfers: 4 microbatches keep all busy
    const pen_timeline *timeline = simulate(stage_chain(arena, 2, 40, 1, 2, 3), arena);
    CHECK(timeline->in_flight[0] == 4, "%u", timeline->in_flight[0]);
    CHECK(timeline->step_seconds <= 40 * 3 + 9, "%g", timeline->step_seconds);
    // transfers that hardly count change nothing
    timeline = simulate(stage_chain(arena, 2, 40, 1, 2, 0.1), arena);
    CHECK(timeline->in_flight[0] == 2, "%u", timeline->in_flight[0]);
    pen_arena_destroy(arena);
}

static void lets_frozen_stages_hold_nothing(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_stage_graph graph = *stage_chain(arena, 3, 8, 1, 2, 0);
    pen_stage stages[3];
    pen_stage_edge edges[2];
    memcpy(stages, graph.stages, sizeof stages);
    memcpy(edges, graph.edges, sizeof edges);
    stages[0].backward_input_seconds = 0;
    stages[0].backward_weight_seconds = 0;
    edges[0].has_gradient = false;
    stages[0].has_backward = false;
    stages[0].has_update = false;
    graph.stages = stages;
    graph.edges = edges;
    const pen_timeline *timeline = simulate(&graph, arena);
    CHECK(timeline->in_flight[0] == 1, "%u", timeline->in_flight[0]);
    CHECK(timeline->in_flight[1] == 2 && timeline->in_flight[2] == 1, "%u, %u",
          timeline->in_flight[1], timeline->in_flight[2]);
    // one forward of the frozen stage, then a pipeline of two
    CHECK(timeline->step_seconds == 1 + (8 + 2 - 1) * 3, "%g", timeline->step_seconds);
    pen_arena_destroy(arena);
}

static void keeps_branches_busy_together(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    // 0 -> {1, 2} -> 3, each on a device of its own: as fast as a chain of three
    pen_stage_graph graph = *stage_chain(arena, 4, 12, 1, 2, 0);
    const pen_stage_edge edges[] = {{.source = 0, .target = 1, .has_gradient = true},
                                    {.source = 0, .target = 2, .has_gradient = true},
                                    {.source = 1, .target = 3, .has_gradient = true},
                                    {.source = 2, .target = 3, .has_gradient = true}};
    graph.edge_count = 4;
    graph.edges = edges;
    const pen_timeline *timeline = simulate(&graph, arena);
    CHECK(timeline->step_seconds == (12 + 3 - 1) * 3, "%g", timeline->step_seconds);
    CHECK(timeline->in_flight[0] == 3 && timeline->in_flight[1] == 2 &&
              timeline->in_flight[2] == 2 && timeline->in_flight[3] == 1,
          "windows");
    pen_arena_destroy(arena);
}

static void runs_several_stages_on_a_device(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    // four stages in turn on two devices: as interleaved 1F1B does it
    pen_stage_graph graph = *stage_chain(arena, 4, 16, 1, 2, 0);
    pen_stage stages[4];
    memcpy(stages, graph.stages, sizeof stages);
    for (uint32_t s = 0; s < 4; s++) {
        stages[s].device = s % 2;
    }
    graph.stages = stages;
    graph.device_count = 2;
    const pen_timeline *timeline = simulate(&graph, arena);
    const double busy = 16 * 2 * 3;
    CHECK(timeline->step_seconds >= busy + 3 && timeline->step_seconds <= busy + 12, "%g",
          timeline->step_seconds);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(holds_less_where_memory_is_short),
              cmocka_unit_test(says_which_device_is_too_small),
              cmocka_unit_test(counts_slow_transfers_as_stages),
              cmocka_unit_test(lets_frozen_stages_hold_nothing),
              cmocka_unit_test(keeps_branches_busy_together),
              cmocka_unit_test(runs_several_stages_on_a_device))
