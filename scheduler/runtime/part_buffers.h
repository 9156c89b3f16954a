// How many places each value of a part needs, from the order in which its device runs its tasks.
//
// Within one task values share the arena, as on one device. What one task makes and another reads
// is kept for every microbatch that is between the two: as many copies as there are microbatches
// there at once. A value that comes from another device has one copy more than are held, for the
// one that arrives meanwhile. Copies are used in turn: microbatch m has copy m mod copies, which is
// free since tasks of a kind run in microbatch order.
//
// Lifetime: in the arena it was made with. Threads: immutable once returned.
#ifndef PEN_SCHEDULER_RUNTIME_PART_BUFFERS_H
#define PEN_SCHEDULER_RUNTIME_PART_BUFFERS_H

#include "graph/passes/cut_stages.h"
#include "scheduler/schedule/schedule.h"

typedef struct pen_part_buffers {
    // [value_count of the part's graph]: 0: has no copies: of one task, or persistent by its kind
    // (parameters, states, accumulated sums, scalars, constants); else the copies it has
    uint32_t *copies;
    // [value_count] the last list that reads the value in this part, PEN_ID_NONE: none
    uint32_t *last_list;
} pen_part_buffers;

// `tasks` [task_count]: those of the part's device, in order. Values that go to other devices are
// kept until the transport lets go of them: at least 2 copies where a second microbatch comes.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_part_buffers_plan(const pen_cut *cut, uint32_t device,
                                               const pen_task *tasks, uint32_t task_count,
                                               pen_arena *arena, pen_part_buffers *out_buffers);

#endif // PEN_SCHEDULER_RUNTIME_PART_BUFFERS_H
