// A lower bound of the step time that replicas leave standing: of any number of them, on any of
// the devices, with any share of the microbatches.
//
// With m microbatches it is the larger of
//   work   each microbatch of each node runs on some device. With weights w of the devices, all
//          work weighs at least m · Σ over nodes of the least w · cost, and a step gives it Σ w
//          times as much as it is long. Devices are weighed by how much of the graph they do in a
//          second. Updates are left out: owners are few
//   path   the longest path of one microbatch through forward and backward nodes, each at its
//          cheapest, of those edges that every placement's stages keep: transfers left out
// What bounds a single pipeline (step_bound.h) rests on a node being on one device, which replicas
// break.
#ifndef PEN_PARTITION_BOUND_REPLICA_BOUND_H
#define PEN_PARTITION_BOUND_REPLICA_BOUND_H

#include "partition/problem/problem.h"

// Of a problem for the step time. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replica_bound(const pen_problem *problem, pen_arena *arena,
                                           double *out_bound);

#endif // PEN_PARTITION_BOUND_REPLICA_BOUND_H
