#include "graph/ops/reduction/reduction_axes.h"

#include "graph/graph.h"
#include "graph/op.h"

// No axes mean all, unless the node says that they mean none.
pen_status pen_reduction_axes_find(const pen_node *node, const pen_shape *shape,
                                   uint32_t axis_count, const int64_t *axes,
                                   pen_reduction_axes *out_axes) {
    *out_axes = (pen_reduction_axes){.kept = *shape, .count = 1};
    const bool all = axis_count == 0 && pen_node_int(node, "noop_with_empty_axes") == 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        out_axes->reduced[d] = all;
    }
    for (uint32_t i = 0; i < axis_count; i++) {
        uint32_t axis;
        PEN_TRY(pen_shape_axis(shape->rank, axes[i], &axis));
        if (out_axes->reduced[axis]) {
            return pen_error(PEN_INVALID_INPUT, "axis %lld is given twice", (long long)axes[i]);
        }
        out_axes->reduced[axis] = true;
    }
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (!out_axes->reduced[d]) continue;
        out_axes->count *= shape->dims[d];
        out_axes->kept.dims[d] = 1;
    }
    return PEN_OK;
}

pen_shape pen_reduction_shape(const pen_reduction_axes *axes, bool keepdims) {
    if (keepdims) return axes->kept;
    pen_shape shape = {.rank = 0};
    for (uint32_t d = 0; d < axes->kept.rank; d++) {
        if (!axes->reduced[d]) shape.dims[shape.rank++] = axes->kept.dims[d];
    }
    return shape;
}
