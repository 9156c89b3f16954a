// Goes through a schedule as the runtime would (task_graph.h), and says when each task and each
// transfer begins and ends, or which tasks wait for each other.
#ifndef PEN_SCHEDULER_SCHEDULE_TASK_WALK_H
#define PEN_SCHEDULER_SCHEDULE_TASK_WALK_H

#include <stdbool.h>

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/stage_index.h"
#include "scheduler/schedule/task_graph.h"

typedef struct pen_task_times {
    double *start_seconds; // [task_count], in the schedule's order
    double *end_seconds;   // [task_count]
    uint32_t transfer_count;
    pen_transfer_time
        *transfers; // [transfer_count], those between devices, in the order in which they set off
} pen_task_times;

// The stages between which it goes.
uint32_t pen_transfer_source(const pen_stage_graph *graph, const pen_transfer_time *transfer);
uint32_t pen_transfer_target(const pen_stage_graph *graph, const pen_transfer_time *transfer);

// The schedule's tasks are the graph's (pen_schedule_check_tasks). Takes each task and edge once.
//   INVALID_INPUT  tasks wait for each other in a circle, which the message names
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_task_walk(const pen_stage_index *index, const pen_schedule *schedule,
                                       pen_arena *arena, pen_task_times *out_times);

#endif // PEN_SCHEDULER_SCHEDULE_TASK_WALK_H
