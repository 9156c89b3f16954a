// A lower bound of the step time, true for every schedule that keeps what
// partition/objective/step_time.h asks.
//
// With m microbatches it is the largest of
//   load   m · (least largest load of one microbatch, a share 1 / m of updates included): a device
//          does one thing at a time
//   path   the longest path of one microbatch, each node at its cheapest, along those edges that
//          every placement's stages keep (kept_edges.h)
//   group  for each group that has forward nodes: longest path to it + m · its forward and
//          backward + its update, since it is on one device, whose work on it cannot begin before;
//          or, in place of what may come last (halves for weights, updates), the longest path that
//          follows its last forward or backward-input node
//   fill   head of a group: before that none of its nodes begin; tail: what follows any of its
//          forward and backward-input nodes. The k devices that are used have a group each, so no
//          less idle than the k least heads together, and for forward and backward-input work the
//          k least tails too: Σ speed · (step - head - tail) >= m · work, for some k
//   cuts   of that path, with what they must send: few leave a device much work, many make the path
//          long (cut_bound.h)
// What transfers take is in the last alone, as any single one of them may be avoided.
// The familiar (m - 1) · bottleneck + path is no bound: the first of two stages may need 5 + 5, the
// second 1 + 1; two microbatches take 20 (all forwards first), not 10 + 12.
#ifndef PEN_PARTITION_BOUND_STEP_BOUND_H
#define PEN_PARTITION_BOUND_STEP_BOUND_H

#include "partition/problem/problem.h"

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_step_bound(const pen_problem *problem, pen_arena *arena,
                                        double *out_bound);

#endif // PEN_PARTITION_BOUND_STEP_BOUND_H
