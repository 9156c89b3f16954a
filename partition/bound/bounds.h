// Lower bounds of the objectives.
#ifndef PEN_PARTITION_BOUND_BOUNDS_H
#define PEN_PARTITION_BOUND_BOUNDS_H

#include "partition/problem/problem.h"

// No placement has a smaller value.
//   throughput  partition/bound/load_bound.h
//   latency     the longest path, each node at its cheapest
//   step time   partition/bound/step_bound.h
//   traffic     partition/bound/traffic_bound.h
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_bound(const pen_problem *problem, pen_arena *arena, double *out_bound);

#endif // PEN_PARTITION_BOUND_BOUNDS_H
