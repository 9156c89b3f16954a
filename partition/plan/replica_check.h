// Whether the replicas of a plan hold together.
#ifndef PEN_PARTITION_PLAN_REPLICA_CHECK_H
#define PEN_PARTITION_PLAN_REPLICA_CHECK_H

#include "partition/plan/plan.h"

// Part of pen_plan_check, and before nodes are looked at: lanes in order and none left out, devices
// in one replica each, stages on the devices of their replica and numbered through, with its range
// of microbatches, edges within a replica. Owners are in no replica, with a stage each behind all.
// Of a plan without replicas, that stages run all.
//   INVALID_INPUT  names the replica, or the owner
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_check(const pen_plan *plan, pen_arena *arena);

// That all replicas have the same nodes, and that a node's parameters are updated in one stage;
// with owners, in one of theirs.
//   INVALID_INPUT  names the node and the replica
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_check_nodes(const pen_plan *plan, pen_arena *arena);

// Which replica a stage is of; 0 without replicas; that of an owner: PEN_ID_NONE.
uint32_t pen_plan_replica_of_stage(const pen_plan *plan, uint32_t stage);
// The first stage of owners, behind those of replicas; without owners, the number of stages.
uint32_t pen_plan_owner_stage(const pen_plan *plan);
// And a device: PEN_ID_NONE: of none.
uint32_t pen_plan_replica_of_device(const pen_plan *plan, uint32_t device);

// "a", or with replicas "a (replica 1)", or "a (owner)". OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_label_device(const pen_plan *plan, uint32_t device,
                                               pen_arena *arena, const char **out_label);

#endif // PEN_PARTITION_PLAN_REPLICA_CHECK_H
