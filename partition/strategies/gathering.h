// Fewer devices for a step that is hardly longer.
//
// A search spreads work over as many devices as there are, since a step that is shorter by a
// thousandth is shorter. Each device more is one more that can be late or fail. So all that is on a
// device moves to another, as long as the step stays within a limit: those with little work first,
// to those that they exchange most with.
#ifndef PEN_PARTITION_STRATEGIES_GATHERING_H
#define PEN_PARTITION_STRATEGIES_GATHERING_H

#include "partition/problem/problem.h"

// `device_of_node` [node_count] is a right placement of a step-time problem, and stays right. Steps
// stay within (1 + share) of the one that it begins with. OUT_OF_MEMORY, and the step-time
// function's errors.
PEN_NODISCARD pen_status pen_gathering_run(const pen_problem *problem, double share,
                                           pen_arena *arena, uint32_t *device_of_node);

#endif // PEN_PARTITION_STRATEGIES_GATHERING_H
