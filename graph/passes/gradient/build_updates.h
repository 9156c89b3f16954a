// From gradients to new parameters: accumulation over microbatches, clipping, the optimizer.
//
// Each use of a parameter accumulates by itself in microbatch order; the uses are then added in
// node order. Clipping by the global norm adds the parts in order of parameter name. Both sums are
// therefore the same whatever the placement or schedule.
#ifndef PEN_GRAPH_PASSES_GRADIENT_BUILD_UPDATES_H
#define PEN_GRAPH_PASSES_GRADIENT_BUILD_UPDATES_H

#include <stdbool.h>

#include "graph/graph_types.h"
#include "graph/ops/training/optimizer.h"
#include "graph/passes/gradient/build_gradients.h"

typedef struct pen_updates {
    pen_value_id learning_rate; // scalar, float32: fed once a step
    pen_value_id step;          // scalar, float32, counted from 1; NONE where no update reads it
    uint32_t updated_count;     // parameters
} pen_updates;

// What the microbatches of a step are, from which follows how many rows of an embedding they pick.
typedef struct pen_step_shape {
    uint32_t microbatches;  // of a step, at most
    uint64_t examples;      // of a microbatch of this graph: the first dimension of its inputs
    uint64_t most_examples; // of any microbatch
    bool is_whole;          // the graph is not cut
} pen_step_shape;

// Adds update nodes for every parameter in `gradients` that has a gradient. With `accumulate`,
// gradients add up over the microbatches of a step, which the update nodes then read.
//
// The gradient of an embedding is a list of the rows that were picked, where these are fewer than
// half of the table's and the indices are fed: its rows are kept, one microbatch behind the other,
// and summed by who reads them. `step` says how many; NULL: no lists are kept.
PEN_NODISCARD pen_status pen_build_updates(pen_graph *graph, const pen_gradients *gradients,
                                           const pen_optimizer *optimizer, bool accumulate,
                                           const pen_step_shape *step, pen_updates *out_updates);

#endif // PEN_GRAPH_PASSES_GRADIENT_BUILD_UPDATES_H
