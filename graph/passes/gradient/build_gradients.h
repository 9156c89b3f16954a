// Reverse-mode differentiation on the graph (Griewank and Walther, "Evaluating Derivatives",
// 2nd ed., SIAM 2008, chapter 3): walks nodes backwards and asks each op's gradient rule for
// nodes that turn gradients of outputs into gradients of inputs.
//
// A value gets a gradient only if the loss depends on it and it leads to a wanted value: frozen
// parts stay forward only. The contributions of several readers of a value are added by explicit
// `add` nodes in the order of the readers' ids, so the sum does not depend on a schedule. The
// contributions of several uses of a parameter stay apart (see `uses`): each is accumulated over
// microbatches by itself, and they are added once a step.
#ifndef PEN_GRAPH_PASSES_GRADIENT_BUILD_GRADIENTS_H
#define PEN_GRAPH_PASSES_GRADIENT_BUILD_GRADIENTS_H

#include "base/status.h"
#include "graph/graph_types.h"

typedef struct pen_gradient {
    pen_value_id value;         // a wanted value
    uint32_t use_count;         // 0: the loss does not depend on it
    const pen_value_id *uses;   // [use_count], one gradient per reader, in node order
    const pen_node_id *readers; // [use_count], these nodes
} pen_gradient;

typedef struct pen_gradients {
    uint32_t count;
    pen_gradient *items; // [count], in the order wanted
} pen_gradients;

// Adds to `graph` the nodes that compute the gradients of `wanted` (of floating type), given
// `seed`, the gradient of `loss` (same type as `loss`). Results live in the graph's arena.
//   UNSUPPORTED  lists every op on the way that has no gradient rule, with its nodes
PEN_NODISCARD pen_status pen_build_gradients(pen_graph *graph, pen_value_id loss, pen_value_id seed,
                                             uint32_t wanted_count, const pen_value_id *wanted,
                                             pen_gradients **out_gradients);

#endif // PEN_GRAPH_PASSES_GRADIENT_BUILD_GRADIENTS_H
