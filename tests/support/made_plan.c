#include "tests/support/made_plan.h"

#include <math.h>

#include "tests/support/check.h"

made_plan *made_plan_new(pen_arena *arena) {
    made_plan *made;
    CHECK_OK(PEN_NEW(arena, 1, &made));
    for (uint32_t i = 0; i < 2; i++) {
        made->devices[i] = (pen_plan_device){
            .name = i == 0 ? "a" : "b", .memory = {.total = i == 0 ? 120 : 240}, .load_seconds = 3};
        made->stages[i] = (pen_stage){.device = i,
                                      .has_backward = true,
                                      .has_update = true,
                                      .forward_seconds = 1,
                                      .backward_input_seconds = 0.5,
                                      .backward_weight_seconds = 1.5,
                                      .update_seconds = 0.5,
                                      .fixed_bytes = i == 0 ? 70 : 170,
                                      .workspace_bytes = 30,
                                      .activation_bytes = i == 0 ? 10 : 20};
        made->bytes_limit[i] = i == 0 ? 1000 : INFINITY;
        made->stage_figures[i] = (pen_plan_stage){.name = i == 0 ? "stage 0" : "stage 1"};
    }
    made->edge = (pen_stage_edge){.target = 1,
                                  .forward_bytes = 64,
                                  .has_gradient = true,
                                  .backward_bytes = 32,
                                  .forward_seconds = 0.25,
                                  .backward_seconds = 0.25};
    made->transfers[0] = (pen_plan_transfer){.value = "first", .target = 1, .bytes = 40};
    made->transfers[1] = (pen_plan_transfer){.value = "second", .target = 1, .bytes = 24};
    made->transfers[2] =
        (pen_plan_transfer){.value = "gradient", .source = 1, .bytes = 32, .is_backward = true};
    made->plan = (pen_plan){.strategy = "greedy",
                            .objective = "step_time",
                            .schedule = "gpipe",
                            .microbatch_count = 2,
                            .device_count = 2,
                            .devices = made->devices,
                            .stages = {.stage_count = 2,
                                       .edge_count = 1,
                                       .device_count = 2,
                                       .microbatch_count = 2,
                                       .stages = made->stages,
                                       .edges = &made->edge,
                                       .bytes_limit = made->bytes_limit},
                            .stage_figures = made->stage_figures,
                            .transfer_count = 3,
                            .transfers = made->transfers};
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    CHECK_OK(pen_schedule_generator_find("gpipe", arena, &generator));
    CHECK_OK(generator->generate(&made->plan.stages, arena, &schedule));
    CHECK_OK(pen_schedule_simulate(&made->plan.stages, schedule, arena, &made->timeline));
    return made;
}
