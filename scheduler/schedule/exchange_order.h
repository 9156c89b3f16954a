// Puts the updates of a schedule among its other tasks, so that what they exchange travels while
// backward passes are computed.
//
// A sum of gradients can set off as soon as the last backward task of its stage is done, and the
// new value can come back while earlier stages of the device still compute. Phase by phase, the
// schedule is simulated and the updates of that phase are put where what they wait for has come,
// before the task that would begin next. Of three orders the one with the shortest simulated step
// is taken: all updates early, those early that send something, all last.
//
// Costs as many simulations as twice the phases.
#ifndef PEN_SCHEDULER_SCHEDULE_EXCHANGE_ORDER_H
#define PEN_SCHEDULER_SCHEDULE_EXCHANGE_ORDER_H

#include "scheduler/schedule/schedule.h"
#include "scheduler/schedule/stage_index.h"

// Changes `schedule`, whose updates come last, if the graph's exchange is to overlap.
// `is_halved` [stage_count] or NULL: as it was made with. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_exchange_order(const pen_stage_index *index, const bool *is_halved,
                                            pen_arena *arena, pen_schedule *schedule);

#endif // PEN_SCHEDULER_SCHEDULE_EXCHANGE_ORDER_H
