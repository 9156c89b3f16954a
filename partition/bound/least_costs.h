// What nodes cost at their cheapest: a part of bounds that follow paths.
#ifndef PEN_PARTITION_BOUND_LEAST_COSTS_H
#define PEN_PARTITION_BOUND_LEAST_COSTS_H

#include "partition/problem/problem.h"

// The least that each node costs on any device that its group may be on ([node_count]).
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_bound_least_costs(const pen_problem *problem, pen_arena *arena,
                                               double *out_least);

#endif // PEN_PARTITION_BOUND_LEAST_COSTS_H
