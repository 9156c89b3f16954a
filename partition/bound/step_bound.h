// A lower bound of the step time, true for every schedule that keeps what
// partition/objective/step_time.h asks.
//
// With m microbatches it is the largest of
//   load   m · (least largest load of one microbatch, a share 1 / m of updates included): a device
//          does one thing at a time
//   path   the longest path of one microbatch, each node at its cheapest, along those edges that
//          every placement's stages keep
//   group  for each group g that has forward nodes: longest path to it + m · its forward and
//          backward + its update, since it is on one device, whose work on it cannot begin before
// The familiar (m - 1) · bottleneck + path is no bound: the first of two stages may need 5 + 5, the
// second 1 + 1; two microbatches take 20 (all forwards first), not 10 + 12.
#ifndef PEN_PARTITION_BOUND_STEP_BOUND_H
#define PEN_PARTITION_BOUND_STEP_BOUND_H

#include "partition/problem/problem.h"

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_step_bound(const pen_problem *problem, pen_arena *arena,
                                        double *out_bound);

#endif // PEN_PARTITION_BOUND_STEP_BOUND_H
