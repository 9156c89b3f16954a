// Which dimensions a reduction reduces: shared by its shape rule, its gradient and its kernels.
#ifndef PEN_GRAPH_OPS_REDUCTION_REDUCTION_AXES_H
#define PEN_GRAPH_OPS_REDUCTION_REDUCTION_AXES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

typedef struct pen_reduction_axes {
    pen_shape kept;               // the input's shape with 1 for every reduced dimension
    bool reduced[PEN_RANK_LIMIT]; // [rank of the input]
    int64_t count;                // elements of the input that make one of the output
} pen_reduction_axes;

// The axes of `node`, a reduce_ op whose operand has shape `shape`. `axes` are the elements of its
// second operand, [axis_count]; without any, all dimensions are reduced, or, by its attribute
// noop_with_empty_axes, none.
//   INVALID_INPUT  an axis is out of range, or given twice
PEN_NODISCARD pen_status pen_reduction_axes_find(const pen_node *node, const pen_shape *shape,
                                                 uint32_t axis_count, const int64_t *axes,
                                                 pen_reduction_axes *out_axes);

// The shape of the output: `kept`, without the reduced dimensions unless `keepdims`.
pen_shape pen_reduction_shape(const pen_reduction_axes *axes, bool keepdims);

#endif // PEN_GRAPH_OPS_REDUCTION_REDUCTION_AXES_H
