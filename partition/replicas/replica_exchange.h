// What replicas exchange once a step: sums of gradients go to the owners of their parameters, new
// values come back.
//
// Every parameter has one owner: the replica that updates it, in the stage of its own cut that has
// the node; or a device of no replica, which has a stage for that. What is updated together (a
// parameter and what is joined for it) has one owner. Sums leave with the backward pass, phase 0:
// of each replica, as many as its lanes leave blocks (graph/lanes.h). The owner adds them up in
// phase 1; what updates then pass on to each other goes phase by phase; new values leave with the
// phase of their update. Statistics that the forward pass changes go to the first replica for every
// microbatch.
//
// Lifetime: in the arena; borrows the request.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_REPLICAS_REPLICA_EXCHANGE_H
#define PEN_PARTITION_REPLICAS_REPLICA_EXCHANGE_H

#include "partition/plan/plan_solution.h"

typedef struct pen_replica_exchange_request {
    const pen_plan_request *whole;
    const pen_forward_owners *owners;
    uint32_t replica_count; // at least 2; with owners, 1
    const pen_plan_replica *replicas;
    const uint32_t *const *stage_of_node; // [replica_count][node_count], numbered through
    uint32_t stage_count;
    const uint32_t *device_of_stage; // [stage_count]
    uint32_t owner_stage;            // the first of owners; PEN_ID_NONE: replicas update
    const uint32_t *owner_of_node;   // [node_count], of listed nodes (replica_owners.h): a replica,
                                     // or which owner
} pen_replica_exchange_request;

typedef struct pen_replica_exchange {
    uint32_t edge_count;
    const pen_stage_step_edge *edges; // by source, target and phase
    uint32_t phase_count;
    uint32_t transfer_count; // between devices, by source and target
    const pen_plan_transfer *transfers;
    const uint32_t *update_stage;    // [node_count], of listed nodes
    const double *update_seconds;    // [stage_count]
    const uint64_t *received_bytes;  // [devices of the whole] from other processes
    const uint64_t *optimizer_bytes; // [devices of the whole]
    const uint64_t *updated_bytes;   // [devices of the whole] parameters that are updated there
} pen_replica_exchange;

//   UNSUPPORTED    a state that a microbatch leaves to the next: names its node
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_exchange_find(const pen_replica_exchange_request *request,
                                                   pen_arena *arena,
                                                   pen_replica_exchange *out_exchange);

#endif // PEN_PARTITION_REPLICAS_REPLICA_EXCHANGE_H
