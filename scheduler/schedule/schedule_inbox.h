// That places for tensors on their way never keep a schedule from going on.
//
// A tensor of a microbatch takes a place from when its task makes it until the last task that reads
// it is done. Of an edge's places there are those of the sender and those of the receiver; a task
// that makes a tensor waits until one is free, so the task for microbatch m waits for the last
// reading task of microbatch m - places. What a stage gets forward is read last by its backward
// task, or its weight half; without a backward pass by its forward task. A gradient is read last by
// the backward task, or the weight half.
#ifndef PEN_SCHEDULER_SCHEDULE_SCHEDULE_INBOX_H
#define PEN_SCHEDULER_SCHEDULE_SCHEDULE_INBOX_H

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/stage_index.h"

// [edge_count] each: places, at least 1; of edges within a device they do not count.
typedef struct pen_schedule_inboxes {
    uint32_t *forward;
    uint32_t *backward;
} pen_schedule_inboxes;

// The places that let a schedule run to its end: for each tensor as many as its reader holds
// microbatches, and one for the one that arrives meanwhile; more where it would get stuck, since
// tensors of edges that skip stages lie there longer. `in_flight` [stage_count] as of
// pen_schedule_memory. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_inboxes_find(const pen_stage_index *index,
                                                   const pen_schedule *schedule,
                                                   const uint32_t *in_flight, pen_arena *arena,
                                                   pen_schedule_inboxes *out_inboxes);

// The schedule passes the rest of pen_schedule_check.
//   INVALID_INPUT  tasks wait in a circle for each other and for places; names the circle
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_check_inboxes(const pen_stage_index *index,
                                                    const pen_schedule *schedule,
                                                    const pen_schedule_inboxes *inboxes,
                                                    pen_arena *arena);

#endif // PEN_SCHEDULER_SCHEDULE_SCHEDULE_INBOX_H
