// What the stages of a placement send each other, and what they cost.
#ifndef PEN_PARTITION_LOWER_STAGE_COSTS_H
#define PEN_PARTITION_LOWER_STAGE_COSTS_H

#include "partition/lower/graph_problem.h"
#include "partition/lower/memory_model.h"
#include "partition/lower/stage_memory.h"
#include "partition/objective/stage_forming.h"
#include "partition/problem/stage_graph.h"

// A value that one stage makes and another reads; a parameter: that one stage updates, and that
// another has a copy of.
typedef struct pen_stage_transfer {
    pen_value_id value; // a root, or a view of what is fed or a parameter
    uint32_t source;    // stages
    uint32_t target;
    uint64_t bytes;
    double seconds; // on its way; 0 on one device
    pen_stage_handling handling;
    bool is_backward; // else of the forward pass
    bool is_per_step; // not for every microbatch
    uint32_t phase;   // of the updates, that it leaves with; if it is per step
} pen_stage_transfer;

typedef struct pen_stage_transfers {
    const pen_stage_transfer *items; // [count], by source, target and value
    uint32_t count;
    uint32_t phase_count; // of updates, at least 1
} pen_stage_transfers;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_transfers_find(const pen_planned_graph *planned,
                                                  const pen_forward_owners *owners,
                                                  const pen_cluster *cluster,
                                                  const pen_stage_split *split, pen_arena *arena,
                                                  pen_stage_transfers *out_transfers);

typedef struct pen_stage_costs_request {
    const pen_planned_graph *planned;
    const pen_forward_owners *owners;
    const pen_cluster *cluster;
    const pen_cost_model *costs;
    const pen_stage_split *split;
    const pen_stage_transfers *transfers;
    const pen_stage_memory *memory; // [stage_count]
    const pen_stage_extra *extra;   // [stage_count]
    const bool *is_recomputed;      // [stage_count], of those with a backward pass
    const double *bytes_limit;      // [device_count]
} pen_stage_costs_request;

// What a schedule needs to know of the stages. Seconds are rounded to what a plan file says, so
// that the schedule of a plan that was read is the one that was made. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_costs_find(const pen_stage_costs_request *request,
                                              pen_arena *arena, pen_stage_graph *out_graph);

#endif // PEN_PARTITION_LOWER_STAGE_COSTS_H
