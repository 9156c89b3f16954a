// Lower bounds of the objective, from compute costs alone.
#ifndef PEN_PARTITION_BOUNDS_H
#define PEN_PARTITION_BOUNDS_H

#include "partition/problem.h"

// No placement has a smaller value.
//   throughput  the least largest load were groups divisible and data moved for nothing, with two
//               classes of devices exactly, with more from below; each group must still fit
//               somewhere
//   latency     the longest path, each node at its cheapest
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_bound(const pen_problem *problem, pen_arena *arena, double *out_bound);

#endif // PEN_PARTITION_BOUNDS_H
