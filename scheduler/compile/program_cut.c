#include "scheduler/compile/program_cut.h"

#include "scheduler/runtime/run/run_form.h"

// What a plan says of stages, in the arrays that the cut takes.
pen_status pen_program_cut(const pen_program *program, const pen_stage_graph *stages,
                           const pen_schedule *schedule, const uint32_t *stage_of_node,
                           pen_arena *arena, const pen_cut **out_cut) {
    uint32_t *device_of_stage;
    bool *is_halved, *is_recomputed;
    PEN_TRY(PEN_NEW(arena, stages->stage_count, &device_of_stage));
    PEN_TRY(PEN_NEW(arena, stages->stage_count, &is_halved));
    PEN_TRY(PEN_NEW(arena, stages->stage_count, &is_recomputed));
    for (uint32_t s = 0; s < stages->stage_count; s++) {
        device_of_stage[s] = stages->stages[s].device;
        is_recomputed[s] = stages->stages[s].is_recomputed;
    }
    pen_schedule_find_halved(schedule, stages->stage_count, is_halved);
    const pen_cut_request request = {.graph = program->graph,
                                     .order = program->order,
                                     .order_count = program->order_count,
                                     .fed = program->inputs,
                                     .fed_count = program->fed_count,
                                     .kept = program->kept,
                                     .kept_count = program->kept_count,
                                     .device_count = stages->device_count,
                                     .stage_count = stages->stage_count,
                                     .device_of_stage = device_of_stage,
                                     .stage_of_node = stage_of_node,
                                     .is_halved = is_halved,
                                     .is_recomputed = is_recomputed};
    return pen_cut_stages(&request, arena, out_cut);
}
