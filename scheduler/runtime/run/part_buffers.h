// How many places each value of a part needs, from the order in which its device runs its tasks.
//
// Within one task values share the arena, as on one device. What one task makes and another reads
// is kept for every microbatch that is between the two: as many copies as there are microbatches
// there at once. A value that comes from another device has one copy more than are held, for the
// one that arrives meanwhile. Copies are used in turn: microbatch m has copy m mod copies, which
// is free by then, since tasks of a kind run in microbatch order. What updates read has one copy.
//
// Lifetime: in the arena it was made with. Threads: immutable once returned.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_PART_BUFFERS_H
#define PEN_SCHEDULER_RUNTIME_RUN_PART_BUFFERS_H

#include "graph/passes/cut/cut_stages.h"
#include "graph/task.h"

typedef struct pen_part_buffers {
    // [value_count of the part's graph]: 0: has no copies: lives within a task, or persists by its
    // kind (parameters, states, accumulated sums, scalars, constants); else the copies it has. A
    // view has its source's number.
    uint32_t *copies;
    // [value_count] microbatches between the first task that makes or reads the value and the last
    // that reads it, at most at once; 0 where copies is
    uint32_t *held;
} pen_part_buffers;

typedef struct pen_part_buffers_request {
    const pen_cut *cut;
    uint32_t device;
    const pen_task *tasks; // [task_count] of the device, in order; updates for all phases
    uint32_t task_count;
    uint32_t first_microbatch; // that the device runs,
    uint32_t microbatch_count; // and how many: 0 where it has updates alone
} pen_part_buffers_request;

// What is sent is kept until the transport lets go of it: two copies at least where there is more
// than one microbatch.
//   INTERNAL  a list without its tasks
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_part_buffers_plan(const pen_part_buffers_request *request,
                                               pen_arena *arena, pen_part_buffers *out_buffers);

// The value whose bytes it is: itself, or through views what it looks at.
pen_value_id pen_part_value_root(const pen_graph *graph, pen_value_id value);

// The position in `tasks` of list `list` of the part for `microbatch`; PEN_ID_NONE: not there.
uint32_t pen_part_task_position(const pen_part_buffers_request *request, uint32_t list,
                                uint32_t microbatch);

#endif // PEN_SCHEDULER_RUNTIME_RUN_PART_BUFFERS_H
