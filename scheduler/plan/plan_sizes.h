// What values and kernels take on each device of a cluster, which may be of several kinds.
//
// Lifetime: in the arena it was made with; the model's devices outlive it.
// Threads:  one, that of the devices.
#ifndef PEN_SCHEDULER_PLAN_PLAN_SIZES_H
#define PEN_SCHEDULER_PLAN_PLAN_SIZES_H

#include "scheduler/plan/kernel_sizes.h"
#include "scheduler/plan/plan_model.h"

typedef struct pen_plan_sizes {
    const void **of_device; // [device_count] contexts for pen_kernel_sizes_of_value and _of_node
    pen_device **devices;   // [device_count] one of each one's kind
    uint64_t *bytes;        // [value_count of the program], where the kinds differ the most of them
    uint64_t *workspace;    // [node_count] likewise
} pen_plan_sizes;

// As the devices' prepare. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_sizes_find(const pen_plan_model *model, uint32_t device_count,
                                             pen_arena *arena, pen_plan_sizes *out_sizes);

#endif // PEN_SCHEDULER_PLAN_PLAN_SIZES_H
