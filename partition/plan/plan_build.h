// Makes plans of one pipeline: places a graph, or takes a placement from a plan that someone wrote
// or edited, and works out what comes of it. With replicas: partition/replicas/plan_whole.h.
//
// Placing goes in rounds, since what a placement takes depends on itself: how many microbatches are
// in flight on a device follows from its place in the pipeline, and buffers of transfers and
// workspace are no sums over nodes. A round places with what the last one found out; the first
// whose memory is consistent is the plan.
//
// Lifetime: plans live in the arena; they borrow the texts of the request and of the graph.
#ifndef PEN_PARTITION_PLAN_PLAN_BUILD_H
#define PEN_PARTITION_PLAN_PLAN_BUILD_H

#include "partition/plan/plan_solution.h"

// As pen_plan_build.
PEN_NODISCARD pen_status pen_pipeline_build(const pen_plan_request *request, pen_arena *arena,
                                            pen_plan **out_plan);

// As pen_plan_rebuild.
PEN_NODISCARD pen_status pen_pipeline_rebuild(const pen_plan_request *request,
                                              const pen_plan *given, pen_arena *arena,
                                              pen_plan **out_plan);

// As pen_plan_add_reasons.
PEN_NODISCARD pen_status pen_pipeline_add_reasons(const pen_plan_request *request, pen_plan *plan,
                                                  pen_arena *arena);

// Whether a plan has the cluster's devices, by number and name. INVALID_INPUT says what differs.
PEN_NODISCARD pen_status pen_plan_check_devices(const pen_cluster *cluster, const pen_plan *plan);

// Whether a plan is one of this model and cluster: hashes, devices, every listed node once.
//   INVALID_INPUT  says what differs
PEN_NODISCARD pen_status pen_plan_check_model(const pen_planner *planner, const pen_plan *plan,
                                              pen_arena *arena);

// The solution that a plan's stages are. As pen_plan_rebuild, but memory is not judged.
//   UNSUPPORTED    the plan has replicas
PEN_NODISCARD pen_status pen_plan_solve_given(const pen_planner *planner, const pen_plan *plan,
                                              pen_arena *arena, pen_plan_solution *out_solution);

#endif // PEN_PARTITION_PLAN_PLAN_BUILD_H
