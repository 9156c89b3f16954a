#include "graph/ops/window/unpool_shape.h"

#include "graph/graph.h"
#include "graph/op.h"

#define UNPOOL_SIZE_LIMIT (1 << 24) // of a kernel, stride or pad

static bool unpool_fits(uint32_t count, const int64_t *numbers, int64_t least) {
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] < least || numbers[i] > UNPOOL_SIZE_LIMIT) return false;
    }
    return true;
}

// The inverse of a pooling's shape; the size may also be given, where pooling dropped a rest.
pen_status pen_unpool_shape_of(const pen_graph *graph, const pen_node *node, const pen_shape *x,
                               pen_unpool_shape *out_shape) {
    uint32_t kernel_count, stride_count, pad_count, dim_count = 0;
    const int64_t *kernel = pen_node_ints(node, "kernel_shape", &kernel_count);
    const int64_t *strides = pen_node_ints(node, "strides", &stride_count);
    const int64_t *pads = pen_node_ints(node, "pads", &pad_count);
    const int64_t *dims = NULL;
    pen_unpool_shape shape = {.pooled = *x};
    const uint32_t planes = x->rank >= 2 ? x->rank - 2 : 0;
    const bool counts_fit = x->rank >= 3 && kernel_count == planes &&
                            (strides == NULL || stride_count == planes) &&
                            (pads == NULL || pad_count == 2 * planes);
    if (!counts_fit || !unpool_fits(kernel_count, kernel, 1) ||
        !unpool_fits(stride_count, strides, 1) || !unpool_fits(pad_count, pads, 0)) {
        return pen_error(PEN_INVALID_INPUT,
                         "an input of %u dimensions with a kernel of %u, %u strides and %u pads; "
                         "one, one and two for each dimension behind the second are needed",
                         x->rank, kernel_count, stride_count, pad_count);
    }
    for (uint32_t d = 0; d < planes; d++) {
        const int64_t around = pads == NULL ? 0 : pads[d] + pads[planes + d];
        const int64_t stride = strides == NULL ? 1 : strides[d];
        int64_t *size = &shape.pooled.dims[2 + d];
        if (*size < 1 || *size > UNPOOL_SIZE_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "dimension %u has %lld elements", d + 2,
                             (long long)*size);
        }
        *size = (*size - 1) * stride + kernel[d] - around;
        if (*size < 1) return pen_error(PEN_INVALID_INPUT, "the pads leave nothing");
    }
    shape.output = shape.pooled;
    if (node->input_count > 2 && pen_value_is(node->inputs[2])) {
        PEN_TRY(pen_value_read_ints(graph, node->inputs[2], &dim_count, &dims));
        bool fits = dim_count == x->rank;
        for (uint32_t d = 0; fits && d < dim_count; d++) {
            fits = dims[d] >= shape.pooled.dims[d];
            shape.output.dims[d] = dims[d];
        }
        if (!fits) {
            char text[PEN_SHAPE_TEXT_BYTES];
            return pen_error(PEN_INVALID_INPUT, "output_shape must be at least %s",
                             pen_shape_format(&shape.pooled, text));
        }
    }
    const pen_tensor_type checked = {PEN_FLOAT64, shape.pooled};
    PEN_TRY(pen_tensor_type_check(&checked));
    *out_shape = shape;
    return PEN_OK;
}
