// Plans of replicas that are given: worked out anew, taken apart, and explained.
//
// A given plan says which devices and lanes each replica has, which nodes each stage has, and who
// updates them; it may have been edited. Figures come from planning each replica by itself and
// putting them together, as for a new plan (replica_plan.h).
//
// Lifetime: in the arena; plans borrow the texts of the request and of the given plan.
// Threads:  one at a time.
#ifndef PEN_PARTITION_REPLICAS_REPLICA_REBUILD_H
#define PEN_PARTITION_REPLICAS_REPLICA_REBUILD_H

#include "partition/plan/plan_solution.h"

// As pen_plan_rebuild, of a plan that has replicas. Errors name the replica.
PEN_NODISCARD pen_status pen_replica_plan_rebuild(const pen_plan_request *request,
                                                  const pen_plan *given, pen_arena *arena,
                                                  pen_plan **out_plan);

// One replica of a plan as a plan of its own, with the request that it is one of. Its stages count
// from 0, and it exchanges nothing. As pen_replica_view_new.
PEN_NODISCARD pen_status pen_replica_plan_part(const pen_plan_request *request,
                                               const pen_plan *given, uint32_t replica,
                                               pen_arena *arena,
                                               const pen_plan_request **out_request,
                                               pen_plan **out_part);

// As pen_plan_add_reasons, of a plan that has replicas: of each by itself.
PEN_NODISCARD pen_status pen_replica_plan_add_reasons(const pen_plan_request *request,
                                                      pen_plan *plan, pen_arena *arena);

#endif // PEN_PARTITION_REPLICAS_REPLICA_REBUILD_H
