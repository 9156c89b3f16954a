// Improves the orders of a schedule: moves tasks to earlier or later places on their device, mostly
// where a task that the end of the step depends on waits for the one before it, and simulates
// again. Worse orders are taken for a while, ever less as the work goes on (simulated annealing);
// the best is kept.
//
// Keeps what a schedule has to keep: microbatch order within a kind of a stage, updates last, and
// no device above its limit. Orders that get stuck are not taken.
//
// The work is counted in tasks simulated, so equal arguments give equal results, unless is_over
// stops it.
#ifndef PEN_SCHEDULER_SCHEDULE_ORDER_SEARCH_H
#define PEN_SCHEDULER_SCHEDULE_ORDER_SEARCH_H

#include "scheduler/schedule/task_graph.h"

typedef struct pen_order_search {
    uint64_t seed;
    uint64_t work_limit;            // tasks simulated
    double lower_bound;             // seconds; the search ends when it gets there
    bool (*is_over)(void *context); // NULL: never; asked now and then
    void *context;
} pen_order_search;

// `order` [task_count], as pen_task_graph_run takes it, fits and does not get stuck; it becomes the
// best, and *out_seconds its step. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_order_search_run(const pen_task_graph *graph,
                                              const pen_order_search *options,
                                              const uint32_t *first_task, uint32_t *order,
                                              pen_arena *arena, double *out_seconds);

#endif // PEN_SCHEDULER_SCHEDULE_ORDER_SEARCH_H
