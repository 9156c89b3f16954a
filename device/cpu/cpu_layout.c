#include "device/cpu/cpu_layout.h"

#include "graph/graph.h"

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

uint64_t pen_cpu_value_bytes(const pen_graph *graph, pen_value_id id) {
    const pen_value *value = pen_graph_value(graph, id);
    return pen_cpu_layout_element_count(&value->type, value->layout) *
           pen_element_bytes(value->type.element);
}
