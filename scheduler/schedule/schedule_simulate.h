// The time line of a schedule: when each task and each transfer begins and ends, how long a step
// takes, how much of it is spent waiting, and what is held in memory.
//
// Sends run while the next task computes; a link carries one tensor at a time (task_walk.h). The
// same numbers are compared with what a run measures.
//
// Lifetime: a time line lives in the arena it was made with, and borrows graph and schedule.
// Threads:  immutable once returned.
#ifndef PEN_SCHEDULER_SCHEDULE_SCHEDULE_SIMULATE_H
#define PEN_SCHEDULER_SCHEDULE_SCHEDULE_SIMULATE_H

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/task_walk.h"

// What goes from one device to another in a step.
typedef struct pen_link_traffic {
    uint32_t source; // device
    uint32_t target;
    uint32_t transfer_count;
    double bytes;
    double busy_seconds;
} pen_link_traffic;

typedef struct pen_timeline {
    const pen_stage_graph *graph;
    const pen_schedule *schedule;
    pen_task_times times;
    double step_seconds;  // end of the last task
    double bubble;        // share of the time of the devices that have stages, in which they idle
    double *busy_seconds; // [device_count]
    uint32_t *in_flight;  // [stage_count] microbatches held at once, at most
    uint32_t *halved;     // [stage_count] of them between the halves of their backward task
    double *bytes_peak;   // [device_count]
    uint32_t link_count;
    pen_link_traffic *links; // [link_count], those that are used, by their first transfer
} pen_timeline;

//   INVALID_INPUT  the schedule is not one of the graph, or gets stuck; or the graph is wrong
//   OUT_OF_MEMORY
// Memory above a device's limit is no error here: pen_schedule_check_memory says it.
PEN_NODISCARD pen_status pen_schedule_simulate(const pen_stage_graph *graph,
                                               const pen_schedule *schedule, pen_arena *arena,
                                               const pen_timeline **out_timeline);

#endif // PEN_SCHEDULER_SCHEDULE_SCHEDULE_SIMULATE_H
