// A replica as a request of its own: its devices as a cluster, its microbatches as a step.
//
// What is demanded of a placement holds within each replica: a pin binds in the replica that has
// its device, and is unknown to others; what is forbidden on a device likewise; `stages` counts the
// devices of each. Stacks of sums are as deep as the replica's lanes make them; of optimizer states
// a replica is said to have its share; with owners, none.
//
// Lifetime: in the arena; borrows the whole request.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_REPLICAS_REPLICA_VIEW_H
#define PEN_PARTITION_REPLICAS_REPLICA_VIEW_H

#include "partition/plan/plan_solution.h"

typedef struct pen_replica_view {
    pen_plan_request request;
    pen_planned_graph planned;
    pen_cluster cluster;
    pen_cost_model costs;
    pen_placement_spec placement;
} pen_replica_view;

// One of `replica_count` replicas. `reserved` [devices of the whole]: bytes that its placement must
// leave.
//   NOT_FOUND      something is forbidden on a device that is not there
//   INVALID_INPUT  a pattern that is none
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_view_new(const pen_plan_request *whole,
                                              const pen_plan_replica *replica,
                                              uint32_t replica_count, const uint64_t *reserved,
                                              pen_arena *arena, const pen_replica_view **out_view);

// The first microbatch of a lane of the request's step; for the number of lanes, the step's end.
uint32_t pen_replica_microbatch(const pen_plan_request *request, uint32_t lane);

// Whether a value is a stack of sums of lanes.
bool pen_replica_is_stack(const pen_graph *graph, const pen_value *value);
// Whether such a stack has each lane by itself, not added as a tree.
bool pen_replica_is_apart(const pen_graph *graph, const pen_value *value);

#endif // PEN_PARTITION_REPLICAS_REPLICA_VIEW_H
