// The stage of every node of a graph, from a plan that lists nodes by name: of the graph that was
// planned, or of another form of its model (another size of microbatch, inference), whose nodes
// have the same names.
//
// Threads: any.
#ifndef PEN_PARTITION_STAGE_ASSIGN_H
#define PEN_PARTITION_STAGE_ASSIGN_H

#include "partition/plan.h"

// *out_stage_of_node: [node_count of the graph]; nodes that the plan does not list go where the
// node is that they are counted for (partition/node_homes.h). Lives in `arena`.
//   INVALID_INPUT  a node that the plan should list; names it
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_assign(const pen_graph *graph, const pen_plan *plan,
                                          pen_arena *arena, const uint32_t **out_stage_of_node);

#endif // PEN_PARTITION_STAGE_ASSIGN_H
