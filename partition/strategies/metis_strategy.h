// METIS's partition of a problem, as it comes: the strategy repairs and refines it, benchmarks look
// at it alone.
#ifndef PEN_PARTITION_STRATEGIES_METIS_STRATEGY_H
#define PEN_PARTITION_STRATEGIES_METIS_STRATEGY_H

#include "partition/problem/problem.h"

// One run with METIS's default options, parts sized by the speed and the memory of the devices.
// Fills out_device_of_group [group_count]. METIS raises signals and reseeds rand: call it on the
// planning thread alone.
//   UNSUPPORTED    METIS refuses the graph, or it is too large for METIS's integers
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_metis_partition(const pen_problem *problem, uint64_t seed,
                                             pen_arena *arena, uint32_t *out_device_of_group);

// The version of METIS that was compiled with.
const char *pen_metis_version(void);

#endif // PEN_PARTITION_STRATEGIES_METIS_STRATEGY_H
