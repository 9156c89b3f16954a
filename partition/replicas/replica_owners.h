// Who updates which parameters: one of the replicas, or one of the devices that are owners.
//
// What is updated together (a parameter with several uses, and what is joined for it) has one
// owner. Owners are of listed nodes: all parameters whose updates go with the node.
#ifndef PEN_PARTITION_REPLICAS_REPLICA_OWNERS_H
#define PEN_PARTITION_REPLICAS_REPLICA_OWNERS_H

#include "partition/lower/graph_problem.h"

// One of `count` owners for each listed node, balanced by the bytes of parameters. out_owner:
// [node_count]. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_owners_choose(const pen_planned_graph *planned,
                                                   const pen_forward_owners *owners,
                                                   uint32_t replica_count, pen_arena *arena,
                                                   const uint32_t **out_replica);

// Whether what is updated together has one owner. `stage` [node_count] is where each listed node's
// owner updates. INVALID_INPUT names two nodes. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_owners_check(const pen_planned_graph *planned,
                                                  const pen_forward_owners *owners,
                                                  const uint32_t *owner, const uint32_t *stage,
                                                  pen_arena *arena);

#endif // PEN_PARTITION_REPLICAS_REPLICA_OWNERS_H
