// From gradients to new parameters: accumulation over microbatches, clipping, the optimizer.
//
// Each use of a parameter accumulates by itself in microbatch order, and its lanes are added as a
// tree; the uses are then added in
// node order. Clipping by the global norm adds the parts in order of parameter name. Both sums are
// therefore the same whatever the placement or schedule.
#ifndef PEN_GRAPH_PASSES_GRADIENT_BUILD_UPDATES_H
#define PEN_GRAPH_PASSES_GRADIENT_BUILD_UPDATES_H

#include <stdbool.h>

#include "graph/graph_types.h"
#include "graph/ops/training/optimizer.h"
#include "graph/passes/gradient/build_gradients.h"
#include "graph/passes/gradient/update_types.h"

// Adds update nodes for every parameter in `gradients` that has a gradient. With `accumulate`,
// gradients add up over the microbatches of a step, which the update nodes then read: over those of
// each lane, where there are several, and then over lanes (graph/lanes.h). Asynchronous lanes are
// not added: build_versions.h.
//
// The gradient of an embedding is a list of the rows that were picked, where these are fewer than
// half of the table's and the indices are fed: its rows are kept, one microbatch behind the other,
// and summed by who reads them. `step` says how many; NULL: no lists are kept.
//
// Scaled gradients are multiplied by `unscale` once they are summed, before clipping and updates.
// Updates then wait for the norms of all of them, with or without `clip_norm`, and apply nothing
// where one is not finite: `applied` says so, the same number on every device.
PEN_NODISCARD pen_status pen_build_updates(pen_graph *graph, const pen_gradients *gradients,
                                           const pen_optimizer *optimizer, bool accumulate,
                                           const pen_step_shape *step, pen_updates *out_updates);

#endif // PEN_GRAPH_PASSES_GRADIENT_BUILD_UPDATES_H
