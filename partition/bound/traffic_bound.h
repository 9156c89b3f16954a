// A lower bound of the traffic: what pins, memory and the number of devices force to move.
//
// Groups that outputs tie together, over any number of steps, are a part. A part that needs k
// devices (its memory, the devices its groups are pinned to, no device that can run all of them)
// moves at least k - 1 times an output to a device: the cheapest of its outputs, each at most as
// often as it has readers. With C parts, K devices that must be used move at least K - C.
#ifndef PEN_PARTITION_BOUND_TRAFFIC_BOUND_H
#define PEN_PARTITION_BOUND_TRAFFIC_BOUND_H

#include "partition/problem/problem.h"

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_traffic_bound(const pen_problem *problem, pen_arena *arena,
                                           double *out_bound);

// The part of each group ([group_count]): numbers from 0, in the order of the parts' first groups.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_traffic_parts(const pen_problem *problem, pen_arena *arena,
                                           uint32_t *out_part_of_group, uint32_t *out_part_count);

#endif // PEN_PARTITION_BOUND_TRAFFIC_BOUND_H
