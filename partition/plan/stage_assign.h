// The stages of a plan, for any compiled form of the plan's model: for training or evaluation, of
// whatever microbatch size.
//
// A plan lists forward nodes of the training graph by name. Forms differ in little: layout changes
// go with the node that a plan counts them for, all that is no forward node with its home. What the
// plan lists and the form lacks is passed over. A form without a backward pass may have nodes that
// the plan does not list (it fuses some, or no longer does): such a one is of the stage in which
// the last of its operands is made, or, made from nothing computed, of the earliest that reads it.
// One that stands for several nodes of the plan, which differ in training alone, is of the earliest
// stage that reads it.
//
// Threads: any.
#ifndef PEN_PARTITION_PLAN_STAGE_ASSIGN_H
#define PEN_PARTITION_PLAN_STAGE_ASSIGN_H

#include "partition/plan/plan.h"

// `*out_stage_of_node` [node_count of the graph]: stages of the plan. Whether values flow from
// earlier to later stages, pen_cut_stages checks. Lives in `arena`.
//   INVALID_INPUT  a node of a training form that the plan should list; a plan that lists a node
//                  twice, or in a stage that it does not have, or none of the form's; names a node
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_assign(const pen_graph *graph, const pen_plan *plan,
                                          pen_arena *arena, const uint32_t **out_stage_of_node);

// The same for a plan of several replicas: stages of one of them.
PEN_NODISCARD pen_status pen_stage_assign_replica(const pen_graph *graph, const pen_plan *plan,
                                                  uint32_t replica, pen_arena *arena,
                                                  const uint32_t **out_stage_of_node);
// Of updates: the stages of their parameters' owners. What it says of other nodes means nothing.
PEN_NODISCARD pen_status pen_stage_assign_updates(const pen_graph *graph, const pen_plan *plan,
                                                  pen_arena *arena,
                                                  const uint32_t **out_stage_of_node);

#endif // PEN_PARTITION_PLAN_STAGE_ASSIGN_H
