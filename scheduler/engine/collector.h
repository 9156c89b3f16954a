// Outputs of a pipeline are brought to the process that asked for them by a device of its own: one
// more than the plan has, in this process, that runs the last stage. This has a copy of each output
// and nothing else, so outputs travel as values between stages do: with credit, checksums, and
// proved not to get stuck.
//
// Lifetime: in the arena; borrows the plan and its schedule.
// Threads:  immutable once returned.
#ifndef PEN_SCHEDULER_ENGINE_COLLECTOR_H
#define PEN_SCHEDULER_ENGINE_COLLECTOR_H

#include "scheduler/compile/program_cut.h"

#define PEN_COLLECTOR_NAME "outputs" // of the device, in messages

// The plan and its schedule with that device and its stage, both with the highest number.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_collector_add(const pen_plan *plan, const pen_schedule *schedule,
                                           pen_arena *arena, const pen_plan **out_plan,
                                           const pen_schedule **out_schedule);

// Cuts a program that was compiled to collect along such a plan. As pen_program_cut
PEN_NODISCARD pen_status pen_collector_cut(const pen_program *program, const pen_plan *plan,
                                           const pen_schedule *schedule, pen_arena *arena,
                                           pen_program_parts *out_parts);

#endif // PEN_SCHEDULER_ENGINE_COLLECTOR_H
