// Proves a schedule usable. Generators are not trusted, nor are schedules that were read.
#ifndef PEN_SCHEDULER_SCHEDULE_SCHEDULE_CHECK_H
#define PEN_SCHEDULER_SCHEDULE_SCHEDULE_CHECK_H

#include "scheduler/schedule/schedule.h"

// Proves that each task of the graph is there once, on its stage's device, and the backward tasks
// of a stage all whole or all in halves; that the tasks of a kind of each stage are in microbatch
// order; that the updates of a device come last, in the order of phases; that
// what tasks wait for contains no circle together with the orders of the devices, so that no run
// can get stuck, neither for want of places for tensors on their way (schedule_inbox.h); and that
// no device ever holds more than its limit.
//   INVALID_INPUT  names the task, or the whole circle; or the graph contradicts itself
//   DOES_NOT_FIT   names the device and the bytes
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_check(const pen_stage_graph *graph,
                                            const pen_schedule *schedule, pen_arena *arena);

// The first two of these alone. INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_check_tasks(const pen_stage_graph *graph,
                                                  const pen_schedule *schedule, pen_arena *arena);

#endif // PEN_SCHEDULER_SCHEDULE_SCHEDULE_CHECK_H
