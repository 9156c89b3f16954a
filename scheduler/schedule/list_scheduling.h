// Orders tasks as they would come about: whenever a device is free, it takes the best task that is
// ready by then. The generators differ in how many microbatches a stage may hold, and in whether a
// device finishes its forward tasks first.
//
// A stage may always hold one microbatch, so this never gets stuck: of the lowest microbatch that
// is not done with, every stage either has run it or may.
#ifndef PEN_SCHEDULER_SCHEDULE_LIST_SCHEDULING_H
#define PEN_SCHEDULER_SCHEDULE_LIST_SCHEDULING_H

#include <stdbool.h>

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/stage_index.h"

typedef struct pen_list_scheduling {
    const uint32_t *window; // [stage_count] microbatches that a stage may hold, at least 1; those
                            // without a backward pass hold none
    bool forwards_first;    // a device begins backward tasks only after all its forward tasks
} pen_list_scheduling;

// Updates come last on their device. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_list_schedule(const pen_stage_index *index,
                                           const pen_list_scheduling *options, pen_arena *arena,
                                           const pen_schedule **out_schedule);

#endif // PEN_SCHEDULER_SCHEDULE_LIST_SCHEDULING_H
