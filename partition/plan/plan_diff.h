// What differs between two plans: where nodes are, stages, memory, times.
//
// Nodes are matched by name; devices by name too. The plans need not be of one model or cluster:
// what only one has is said.
//
// Lifetime: in the arena; borrows the plans.
#ifndef PEN_PARTITION_PLAN_PLAN_DIFF_H
#define PEN_PARTITION_PLAN_PLAN_DIFF_H

#include "base/format/json_writer.h"
#include "base/text.h"
#include "partition/plan/plan.h"

// NULL where one of the plans lacks it.
typedef struct pen_plan_node_change {
    const char *name;
    const char *device_before;
    const char *device_after;
} pen_plan_node_change;

typedef struct pen_plan_device_change {
    const pen_plan_device *before;
    const pen_plan_device *after;
} pen_plan_device_change;

typedef struct pen_plan_diff {
    const pen_plan *before;
    const pen_plan *after;
    bool is_same_model;
    bool is_same_cluster;
    uint32_t node_count;
    const pen_plan_node_change *nodes; // [node_count], those that moved, in the order of the plans
    uint32_t device_count;
    const pen_plan_device_change *devices; // [device_count], all
} pen_plan_diff;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_diff_build(const pen_plan *before, const pen_plan *after,
                                             pen_arena *arena, pen_plan_diff *out_diff);

void pen_plan_diff_dump(const pen_plan_diff *diff, pen_text *text);
// Writes the keys of an object that the caller began and ends.
void pen_plan_diff_write_json(const pen_plan_diff *diff, pen_json_writer *json);

#endif // PEN_PARTITION_PLAN_PLAN_DIFF_H
