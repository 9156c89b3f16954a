// Whether updates may run among the other tasks of their device.
//
// A schedule knows stages, and that updates of a stage come after its other tasks. Stages of one
// device may have values in common besides: a parameter that two read, a sum to which both add, a
// norm of all gradients. What holds is the order with all updates last, by phase: tasks that read
// and change one value must come as they do there.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_UPDATE_ORDER_H
#define PEN_SCHEDULER_RUNTIME_RUN_UPDATE_ORDER_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/passes/cut/cut.h"

// The tasks of a device in order, and the list of its part that each runs (PEN_ID_NONE: none).
typedef struct pen_update_order {
    const pen_part *part;
    uint32_t task_count;
    pen_task *tasks;        // [task_count]
    uint32_t *list_of_task; // [task_count]
} pen_update_order;

// *out_is_safe: every value is read and changed as with updates last. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_update_order_check(const pen_update_order *order, pen_arena *arena,
                                                bool *out_is_safe);

// Puts updates last, in the order of phases. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_update_order_put_last(const pen_update_order *order, pen_arena *arena);

#endif // PEN_SCHEDULER_RUNTIME_RUN_UPDATE_ORDER_H
