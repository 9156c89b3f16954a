#include "scheduler/schedule/schedule_memory.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/stage_chain.h"

// Two stages on one device, of 100 and 30 bytes a microbatch.
static pen_stage_graph two_stages(pen_stage *stages, pen_stage_edge *edge, double *limit) {
    stages[0] = (pen_stage){.has_backward = true,
                            .fixed_bytes = 1000,
                            .workspace_bytes = 5,
                            .activation_bytes = 100,
                            .halved_bytes = 9};
    stages[1] = (pen_stage){
        .has_backward = true, .fixed_bytes = 2000, .workspace_bytes = 7, .activation_bytes = 30};
    *edge = (pen_stage_edge){.source = 0, .target = 1, .has_gradient = true};
    *limit = INFINITY;
    return (pen_stage_graph){2, 1, 1, 2, stages, edge, limit, 0, 0, NULL, NULL, 0};
}

static void counts_what_is_held(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_stage stages[2];
    pen_stage_edge edge;
    double limit;
    const pen_stage_graph graph = two_stages(stages, &edge, &limit);
    pen_task tasks[] = {{PEN_TASK_FORWARD, 0, 0},         // 100
                        {PEN_TASK_FORWARD, 1, 0},         // 130
                        {PEN_TASK_BACKWARD, 1, 0},        // 100
                        {PEN_TASK_FORWARD, 0, 1},         // 200
                        {PEN_TASK_BACKWARD_INPUT, 0, 0},  // 200: the weight half needs them
                        {PEN_TASK_BACKWARD_INPUT, 0, 1},  // 200
                        {PEN_TASK_BACKWARD_WEIGHT, 0, 0}, // 100
                        {PEN_TASK_FORWARD, 1, 1},         // 130
                        {PEN_TASK_BACKWARD, 1, 1},        {PEN_TASK_BACKWARD_WEIGHT, 0, 1},
                        {PEN_TASK_UPDATE, 0, 0},          {PEN_TASK_UPDATE, 1, 0}};
    uint32_t first_task[] = {0, 12};
    const pen_schedule schedule = {1, 12, first_task, tasks};
    uint32_t in_flight[2];
    uint32_t halved[2];
    double bytes_peak;
    CHECK_OK(pen_schedule_memory(&graph, &schedule, arena, in_flight, halved, &bytes_peak));
    CHECK(halved[0] == 2 && halved[1] == 0, "%u, %u", halved[0], halved[1]);
    CHECK(in_flight[0] == 2 && in_flight[1] == 1, "%u, %u", in_flight[0], in_flight[1]);
    CHECK(bytes_peak == 1000 + 2000 + 7 + 230 + 2 * 9, "%g", bytes_peak);
    pen_arena_destroy(arena);
}

static void lets_go_after_a_forward_without_backward(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_stage stages[2];
    pen_stage_edge edge;
    double limit;
    const pen_stage_graph graph = two_stages(stages, &edge, &limit);
    stages[0].has_backward = false;
    stages[1].has_backward = false;
    edge.has_gradient = false;
    pen_task tasks[] = {{PEN_TASK_FORWARD, 0, 0},
                        {PEN_TASK_FORWARD, 0, 1},
                        {PEN_TASK_FORWARD, 1, 0},
                        {PEN_TASK_FORWARD, 1, 1}};
    uint32_t first_task[] = {0, 4};
    const pen_schedule schedule = {1, 4, first_task, tasks};
    uint32_t in_flight[2];
    double bytes_peak;
    CHECK_OK(pen_schedule_memory(&graph, &schedule, arena, in_flight, NULL, &bytes_peak));
    CHECK(in_flight[0] == 1 && in_flight[1] == 1, "%u, %u", in_flight[0], in_flight[1]);
    CHECK(bytes_peak == 3007 + 130, "%g", bytes_peak);
    pen_arena_destroy(arena);
}

static void names_the_first_device_above_its_limit(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_stage_graph graph = *stage_chain(arena, 3, 2, 1, 1, 0);
    const double bytes_limit[] = {100, 200, 299};
    const uint32_t in_flight[] = {3, 2, 1};
    double bytes_peak[] = {100, 200, 300};
    graph.bytes_limit = bytes_limit;
    CHECK_ERROR(pen_schedule_check_memory(&graph, in_flight, bytes_peak), PEN_DOES_NOT_FIT,
                "device 2 needs 300 bytes with 1 microbatches in flight, its limit is 299 bytes");
    bytes_peak[2] = 299;
    CHECK_OK(pen_schedule_check_memory(&graph, in_flight, bytes_peak));
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(counts_what_is_held),
              cmocka_unit_test(lets_go_after_a_forward_without_backward),
              cmocka_unit_test(names_the_first_device_above_its_limit))
