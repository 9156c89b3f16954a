// The step time of a stage graph under a named schedule, as a pen_step_time_fn: generates, checks
// and simulates. Handed to partition/, which searches placements by it.
//
// Lifetime: heap. Keeps the memory of its calls, so that thousands of them ask the system for it
//           only at first.
// Threads:  any number at once, each with memory of its own.
#ifndef PEN_SCHEDULER_SCHEDULE_SCHEDULE_STEP_TIME_H
#define PEN_SCHEDULER_SCHEDULE_SCHEDULE_STEP_TIME_H

#include "scheduler/schedule/schedule.h"

typedef struct pen_schedule_step_time_context pen_schedule_step_time_context;

// NOT_FOUND lists the schedules that there are. `auto` stands for the fastest of those that have a
// name, without a search, and the one that is given. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_step_time_create(
    const char *schedule_name, pen_schedule_step_time_context **out_context);

// Gives an `auto` context a schedule that was found for some stages, or takes it back (NULL).
// Borrowed. When no call is under way.
void pen_schedule_step_time_give(pen_schedule_step_time_context *context,
                                 const pen_schedule *schedule);

// When no call is under way. Accepts NULL.
void pen_schedule_step_time_destroy(pen_schedule_step_time_context *context);

// A pen_step_time_fn; `context` is a pen_schedule_step_time_context.
//   INVALID_INPUT  the graph contradicts itself
//   DOES_NOT_FIT   the schedule cannot keep the devices within their memory; nothing is written
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_step_time(const void *context, const pen_stage_graph *graph,
                                                pen_step_prediction *out_prediction);

#endif // PEN_SCHEDULER_SCHEDULE_SCHEDULE_STEP_TIME_H
