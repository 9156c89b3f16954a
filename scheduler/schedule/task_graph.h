// Tasks as numbers, for searches that simulate the same tasks in thousands of orders.
//
// The one simulation that there is: what happens at one moment happens before what happens later.
//   - A device runs its tasks in order, each when the device is free and all that it waits for has
//     arrived.
//   - When a task ends, its values set off; what the device computes to send them keeps it from its
//     next task.
//   - A device that is free computes what receiving takes while the bytes come in; what arrives
//     while a task runs waits for its end. Only when that is computed is a value there.
//   - A line carries one thing at a time, in the order in which they became ready.
//   - Updates begin when all forward tasks of all devices are done: until all losses are known to
//   be
//     finite (docs/decisions/updates-wait-for-go.md).
// Orders are arrays of task numbers: nothing is allocated and nothing checked. Tasks are numbered
// by kind, stage and microbatch; numbers of tasks that there are not stay unused.
//
// Lifetime: in the arena they were made with; a task graph borrows the index.
// Threads:  a task graph is immutable; a run belongs to one thread.
#ifndef PEN_SCHEDULER_SCHEDULE_TASK_GRAPH_H
#define PEN_SCHEDULER_SCHEDULE_TASK_GRAPH_H

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/stage_index.h"

#define PEN_TASK_NONE UINT32_MAX

// Values on their way. They go with an edge of the stage graph, forward or backward, or with a step
// edge.
typedef struct pen_transfer_time {
    uint32_t edge;
    uint32_t microbatch; // of a step edge: the phase
    bool is_backward;
    bool is_step; // `edge` is a step edge
    double start_seconds;
    double end_seconds; // latency included; what the target computes to receive them is not
} pen_transfer_time;

typedef struct pen_task_send {
    uint32_t target;        // task
    uint32_t edge;          // of the route
    const pen_route *route; // NULL: there at once
} pen_task_send;

typedef struct pen_task_graph {
    const pen_stage_index *index;
    uint32_t number_count;
    pen_task *tasks;       // [number_count]
    double *seconds;       // [number_count]
    uint32_t *wait_count;  // [number_count] sends that it waits for
    uint32_t *first_send;  // [number_count + 1]
    pen_task_send *sends;  // in the order in which they go
    uint32_t remote_count; // sends that have a route
    uint32_t forward_count;
} pen_task_graph;

// What a simulation comes to.
typedef struct pen_task_run {
    double step_seconds; // INFINITY: it got stuck
    double *start;       // [number_count]
    double *end;         // [number_count]
    double *ready;       // [number_count] when all that it waits for was there
    uint32_t *cause;     // [number_count] whose send came last; PEN_TASK_NONE: none
    uint32_t transfer_count;
    pen_transfer_time *transfers; // between devices, in the order in which they set off; NULL: are
                                  // not kept
    uint32_t *waits;              // [number_count] scratch, as below
    double *line_free;
    double *free;                  // [device_count]
    uint32_t *next;                // [device_count]
    uint32_t *running;             // [device_count] the task; PEN_TASK_NONE: none
    struct pen_task_event *events; // a heap, the next first
    uint32_t event_count;
    uint64_t event_number;
    uint32_t forwards_left; // forward tasks that are not done
    double losses_seconds;  // when the last was
} pen_task_run;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_task_graph_new(const pen_stage_index *index, const bool *is_halved,
                                            pen_arena *arena, pen_task_graph **out_graph);
PEN_NODISCARD pen_status pen_task_run_new(const pen_task_graph *graph, bool keeps_transfers,
                                          pen_arena *arena, pen_task_run *out_run);

uint32_t pen_task_graph_number(const pen_task_graph *graph, pen_task task);

// The tasks of a schedule as numbers: fills out_order [task_count of the schedule].
void pen_task_graph_order(const pen_task_graph *graph, const pen_schedule *schedule,
                          uint32_t *out_order);

// Runs orders [first_task of the devices]: device d runs order[first_task[d]] up to, without,
// order[first_task[d + 1]].
void pen_task_graph_run(const pen_task_graph *graph, const uint32_t *first_task,
                        const uint32_t *order, pen_task_run *run);

#endif // PEN_SCHEDULER_SCHEDULE_TASK_GRAPH_H
