#include "device/cpu/cpu_layout.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/reduction/reduction_axes.h"

uint32_t pen_cpu_layout_block(pen_layout layout) {
    if (layout == PEN_CPU_LAYOUT_BLOCKED_8) return 8;
    if (layout == PEN_CPU_LAYOUT_BLOCKED_16) return 16;
    return 1;
}

uint64_t pen_cpu_layout_element_count(const pen_tensor_type *type, pen_layout layout) {
    const int64_t block = pen_cpu_layout_block(layout);
    uint64_t count = (uint64_t)pen_shape_element_count(&type->shape);
    if (block == 1 || count == 0) return count;
    const int64_t channels = type->shape.dims[1];
    count /= (uint64_t)channels;
    return count * (uint64_t)((channels + block - 1) / block * block);
}

bool pen_cpu_is_of_channels(const pen_shape *shape, const pen_shape *whole) {
    if (shape->rank != whole->rank || shape->rank < 3) return false;
    return shape->dims[0] == whole->dims[0] && shape->dims[1] == whole->dims[1] &&
           pen_shape_count(shape, 2, shape->rank) == 1;
}

// The shapes alone do not say it: of [8, 96, 1, 28], axis 3 alone does as well as 2 and 3.
bool pen_cpu_reduces_positions(const pen_graph *graph, const pen_node *node) {
    const pen_shape *whole = &pen_value_type(graph, node->inputs[0])->shape;
    uint32_t count = 0;
    const int64_t *axes = NULL;
    if (node->input_count < 2 || !pen_value_is(node->inputs[1])) return false;
    if (!pen_cpu_is_of_channels(&pen_value_type(graph, node->outputs[0])->shape, whole)) {
        return false;
    }
    pen_reduction_axes found;
    pen_status status = pen_value_read_ints(graph, node->inputs[1], &count, &axes);
    if (status == PEN_OK) status = pen_reduction_axes_find(node, whole, count, axes, &found);
    if (status != PEN_OK) {
        pen_status_ignore(status, "axes that are not known");
        return false;
    }
    for (uint32_t d = 0; d < whole->rank; d++) {
        if (found.reduced[d] != (d >= 2)) return false;
    }
    return true;
}

uint64_t pen_cpu_value_bytes(const pen_graph *graph, pen_value_id id) {
    const pen_value *value = pen_graph_value(graph, id);
    return pen_cpu_layout_element_count(&value->type, value->layout) *
           pen_element_bytes(value->type.element);
}
