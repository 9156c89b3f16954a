#include "scheduler/schedule/plan_schedule.h"

#include <string.h>

#include "scheduler/schedule/schedule_check.h"

pen_status pen_plan_schedule(const pen_plan *plan, pen_arena *arena,
                             const pen_schedule **out_schedule) {
    const pen_schedule_generator *generator;
    const pen_schedule *schedule;
    PEN_TRY(pen_schedule_generator_find(plan->schedule, arena, &generator));
    PEN_TRY(generator->generate(&plan->stages, arena, &schedule));
    PEN_TRY(pen_schedule_check(&plan->stages, schedule, arena));
    *out_schedule = schedule;
    return PEN_OK;
}

void pen_schedule_find_halves(const pen_schedule *schedule, uint32_t stage_count,
                              bool *out_is_halved) {
    memset(out_is_halved, 0, stage_count * sizeof *out_is_halved);
    for (uint32_t t = 0; t < schedule->task_count; t++) {
        if (schedule->tasks[t].kind != PEN_TASK_BACKWARD_INPUT) continue;
        out_is_halved[schedule->tasks[t].stage] = true;
    }
}
