// The schedule that a plan promises: its tasks where it lists them, else those that its generator
// makes of its stages. Checked again, so that a plan which someone edited cannot start what gets
// stuck.
//
// Tasks as text: a letter (F forward, B backward, I and W its halves, U update), the stage, a
// point, the microbatch (of an update: the phase); with spaces between: "F0.0 F0.1 B0.0 B0.1 U0.0".
#ifndef PEN_SCHEDULER_PLAN_PLAN_SCHEDULE_H
#define PEN_SCHEDULER_PLAN_PLAN_SCHEDULE_H

#include "partition/plan/plan.h"
#include "scheduler/schedule/schedule.h"

#define PEN_PLAN_TASK_LIMIT 200000u // that a plan lists

//   NOT_FOUND      the plan's schedule is none that there is; lists them
//   INVALID_INPUT  the stages contradict themselves, or tasks wait for each other; the tasks are
//                  no such text, or not those of the stages
//   DOES_NOT_FIT   a device would be above its limit
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_schedule(const pen_plan *plan, pen_arena *arena,
                                           const pen_schedule **out_schedule);

// The tasks of a device as text. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_format_device(const pen_schedule *schedule, uint32_t device,
                                                    pen_arena *arena, const char **out_text);

// The schedule of texts [device_count]; not checked.
//   INVALID_INPUT  says which device's is no such text, and where; or more than the limit
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_parse(const char *const *texts, uint32_t device_count,
                                            pen_arena *arena, const pen_schedule **out_schedule);

#endif // PEN_SCHEDULER_PLAN_PLAN_SCHEDULE_H
