// From a placement to stages.
//
// Which forward nodes run as a unit, partition/objective/stage_forming.h decides on the problem's
// nodes; here the stages get what a plan says of them: numbers in topological order (those that
// nothing orders by their first node), the nodes that follow, what moves between them, and their
// costs.
//
// Lifetime: in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_LOWER_STAGE_SPLIT_H
#define PEN_PARTITION_LOWER_STAGE_SPLIT_H

#include "partition/lower/memory_model.h"
#include "partition/objective/stage_forming.h"

// `device_of_node` [node_count of the graph]; nodes of a colour are on one device. `forming` is of
// the problem that the graph was lowered to, in which colours are numbers of nodes. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_split_build(const pen_forward_owners *owners,
                                               pen_stage_forming *forming,
                                               const uint32_t *device_of_node, pen_arena *arena,
                                               pen_stage_split *out_split);

// Numbers stages that someone else cut, of the forward nodes, as above, and gives all other nodes
// theirs. `device_of_stage` and `stage_of_node` are overwritten.
//   INVALID_INPUT  stages that wait for each other: names a node of each
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_split_order(const pen_forward_owners *owners,
                                               pen_stage_split *split);

#endif // PEN_PARTITION_LOWER_STAGE_SPLIT_H
