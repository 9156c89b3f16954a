// The shapes of an unpooling: shared by its shape rule and its kernels.
//
// Threads: pure functions of their arguments.
#ifndef PEN_GRAPH_OPS_WINDOW_UNPOOL_SHAPE_H
#define PEN_GRAPH_OPS_WINDOW_UNPOOL_SHAPE_H

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

typedef struct pen_unpool_shape {
    pen_shape pooled; // of the tensor whose elements the indices count
    pen_shape output; // at least as large
} pen_unpool_shape;

// For `node`, a max_unpool whose operand has shape `x`, or its backward node. INVALID_INPUT
PEN_NODISCARD pen_status pen_unpool_shape_of(const pen_graph *graph, const pen_node *node,
                                             const pen_shape *x, pen_unpool_shape *out_shape);

#endif // PEN_GRAPH_OPS_WINDOW_UNPOOL_SHAPE_H
