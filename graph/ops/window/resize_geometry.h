// Where each element of a resized tensor comes from: shared by the shape rule and the kernels of
// resize and its gradient.
//
// Axes are independent: along each, an element of the result is a sum of up to four elements of
// the operand, its taps. An axis that keeps its size has one tap of weight 1 each.
//
// Threads: pure functions of their arguments.
#ifndef PEN_GRAPH_OPS_WINDOW_RESIZE_GEOMETRY_H
#define PEN_GRAPH_OPS_WINDOW_RESIZE_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

#define PEN_RESIZE_TAPS 4

typedef struct pen_resize_axis {
    int64_t from, to;          // sizes
    double scale;              // elements of the result for one of the operand
    double width;              // `to` before it was rounded
    double roi_first, roi_end; // of tf_crop_and_resize, as parts of the axis
} pen_resize_axis;

typedef struct pen_resize {
    uint32_t rank;
    pen_resize_axis axes[PEN_RANK_LIMIT];
    const char *mode;       // nearest, linear, cubic
    const char *coordinate; // half_pixel, …
    const char *nearest;    // round_prefer_floor, …
    double cubic_a;
    bool excludes_outside;
    double extrapolation;
} pen_resize;

typedef struct pen_resize_taps {
    uint32_t count;
    bool is_outside; // of the region: the element is the extrapolation value
    int64_t index[PEN_RESIZE_TAPS];
    double weight[PEN_RESIZE_TAPS];
} pen_resize_taps;

// Reads the geometry of `node`, a resize whose operand has shape `shape`, or its backward node.
// Operands 1 to 3 are roi, scales and sizes, as constants.
//   INVALID_INPUT, UNSUPPORTED (an operand depends on data)
PEN_NODISCARD pen_status pen_resize_of(const pen_graph *graph, const pen_node *node,
                                       const pen_shape *shape, pen_resize *out_resize);

// The shape of the result.
pen_shape pen_resize_shape(const pen_resize *resize);

// The taps of element `position` of the result along `axis`.
void pen_resize_find_taps(const pen_resize *resize, uint32_t axis, int64_t position,
                          pen_resize_taps *out_taps);

#endif // PEN_GRAPH_OPS_WINDOW_RESIZE_GEOMETRY_H
