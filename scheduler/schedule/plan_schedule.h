// The schedule that a plan promises: its tasks where it lists them, else those that its generator
// makes of its stages. Checked again, so that a plan which someone edited cannot start what gets
// stuck.
#ifndef PEN_SCHEDULER_SCHEDULE_PLAN_SCHEDULE_H
#define PEN_SCHEDULER_SCHEDULE_PLAN_SCHEDULE_H

#include "partition/plan.h"
#include "scheduler/schedule/schedule.h"

//   NOT_FOUND      the plan's schedule is none that there is; lists them
//   INVALID_INPUT  the stages contradict themselves, or tasks wait for each other
//   DOES_NOT_FIT   a device would be above its limit
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_schedule(const pen_plan *plan, pen_arena *arena,
                                           const pen_schedule **out_schedule);

// Which stages run the halves of their backward tasks apart. out_is_halved: [stage_count of the
// graph that the schedule is of].
void pen_schedule_find_halves(const pen_schedule *schedule, uint32_t stage_count,
                              bool *out_is_halved);

#endif // PEN_SCHEDULER_SCHEDULE_PLAN_SCHEDULE_H
