// Makes plans, of one pipeline or of several replicas: as the request says, or as a plan that is
// given has them.
//
// Lifetime: plans live in the arena; they borrow the texts of the request and of the graph.
#ifndef PEN_PARTITION_REPLICAS_PLAN_WHOLE_H
#define PEN_PARTITION_REPLICAS_PLAN_WHOLE_H

#include "partition/plan/plan_solution.h"

//   NOT_FOUND      no such strategy; a constraint that matches nothing
//   INVALID_INPUT  constraints that contradict each other
//   DOES_NOT_FIT   says how much memory is missing where, by kind, and the nodes in the way
//   UNSUPPORTED    the strategy cannot do this problem
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_build(const pen_plan_request *request, pen_arena *arena,
                                        pen_plan **out_plan);

// The plan with the stages of `given`, all figures worked out anew, value and bound too. The
// request's placement says which constraints must hold, and the objective.
//   INVALID_INPUT  as pen_plan_check_model; a pin, colocation or other wish that is not kept
//   DOES_NOT_FIT   as above
PEN_NODISCARD pen_status pen_plan_rebuild(const pen_plan_request *request, const pen_plan *given,
                                          pen_arena *arena, pen_plan **out_plan);

// Says of each node of a plan why it is where it is (partition/plan/plan_reasons.h), for those who
// print or write it: moves are tried for it, which takes its time. The request is the one that the
// plan was built with, under the plan's schedule. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_add_reasons(const pen_plan_request *request, pen_plan *plan,
                                              pen_arena *arena);

#endif // PEN_PARTITION_REPLICAS_PLAN_WHOLE_H
