// Tasks as numbers, for searches that simulate the same tasks in thousands of orders.
//
// The same simulation as task_walk.h, of orders that are arrays of task numbers: nothing is
// allocated and nothing checked. Tasks are numbered by kind, stage and microbatch; numbers of tasks
// that there are not stay unused.
//
// Lifetime: in the arena they were made with; a task graph borrows the index.
// Threads:  a task graph is immutable; a run belongs to one thread.
#ifndef PEN_SCHEDULER_SCHEDULE_TASK_GRAPH_H
#define PEN_SCHEDULER_SCHEDULE_TASK_GRAPH_H

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/stage_index.h"

#define PEN_TASK_NONE UINT32_MAX

typedef struct pen_task_send {
    uint32_t target; // task
    uint32_t link;   // PEN_LINK_NONE: there at once
    double seconds;
} pen_task_send;

typedef struct pen_task_graph {
    const pen_stage_index *index;
    uint32_t number_count;
    pen_task *tasks;      // [number_count]
    double *seconds;      // [number_count]
    uint32_t *wait_count; // [number_count] sends that it waits for
    uint32_t *first_send; // [number_count + 1]
    pen_task_send *sends; // in the order in which they go
} pen_task_graph;

// What a simulation comes to.
typedef struct pen_task_run {
    double step_seconds; // INFINITY: it got stuck
    double *start;       // [number_count]
    double *end;         // [number_count]
    double *ready;       // [number_count] when all that it waits for was there
    uint32_t *cause;     // [number_count] whose send came last; PEN_TASK_NONE: none
    uint32_t *waits;     // [number_count] scratch, as below
    double *link_free;
    double *free;
    uint32_t *next;
    uint32_t *stack;
} pen_task_run;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_task_graph_new(const pen_stage_index *index, const bool *is_halved,
                                            pen_arena *arena, pen_task_graph **out_graph);
PEN_NODISCARD pen_status pen_task_run_new(const pen_task_graph *graph, pen_arena *arena,
                                          pen_task_run *out_run);

uint32_t pen_task_graph_number(const pen_task_graph *graph, pen_task task);

// Runs orders [first_task of the devices]: device d runs order[first_task[d]] up to, without,
// order[first_task[d + 1]].
void pen_task_graph_run(const pen_task_graph *graph, const uint32_t *first_task,
                        const uint32_t *order, pen_task_run *run);

#endif // PEN_SCHEDULER_SCHEDULE_TASK_GRAPH_H
