// Divides stages of replicas, so that their exchange overlaps with their backward passes.
//
// Sums of a stage leave when the last backward task of that stage is done. A device with one stage
// has nothing left to compute then; with several, sums of the later ones travel while earlier ones
// still compute. Each stage is cut into 2, 4 or 8 pieces on its own device, which are alike in work
// and in bytes of parameters together; what gives the shortest step is taken.
#ifndef PEN_PARTITION_REPLICAS_REPLICA_DIVIDE_H
#define PEN_PARTITION_REPLICAS_REPLICA_DIVIDE_H

#include "partition/plan/plan_solution.h"

// Replaces *plan, which has replicas or owners, if a division is faster and fits. Where the
// request's exchange does not overlap, nothing is tried. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_divide(const pen_plan_request *request, pen_arena *arena,
                                            pen_plan **plan);

#endif // PEN_PARTITION_REPLICAS_REPLICA_DIVIDE_H
