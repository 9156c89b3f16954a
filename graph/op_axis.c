#include "graph/axis_link.h"

#include "graph/graph.h"
#include "graph/op.h"

static const pen_shape *link_shape(const pen_graph *graph, pen_value_id value) {
    return &pen_value_type(graph, value)->shape;
}

// The first output that is there; a node has one.
static const pen_shape *link_output(const pen_graph *graph, const pen_node *node) {
    uint32_t i = 0;
    while (!pen_value_is(node->outputs[i]))
        i++;
    return link_shape(graph, node->outputs[i]);
}

uint32_t pen_axis_given(const pen_node *node, uint32_t rank) {
    const int64_t axis = pen_node_int(node, "axis");
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

pen_axis_link pen_axis_broadcast(const pen_shape *of, uint32_t rank, uint32_t axis) {
    if (axis + of->rank < rank) return pen_axis_all(); // repeated in front
    const uint32_t own = axis + of->rank - rank;
    return of->dims[own] == 1 ? pen_axis_all() : pen_axis_same(own);
}

pen_axis_link pen_axis_elementwise(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                   uint32_t input) {
    return pen_axis_broadcast(link_shape(graph, node->inputs[input]),
                              link_output(graph, node)->rank, axis);
}

// Elements keep their order: a dimension is that of the input with as many elements before it.
static pen_axis_link link_view(const pen_shape *to, const pen_shape *from, uint32_t axis) {
    const int64_t before = pen_shape_count(to, 0, axis);
    for (uint32_t d = 0; d < from->rank; d++) {
        if (from->dims[d] == to->dims[axis] && pen_shape_count(from, 0, d) == before) {
            return pen_axis_same(d);
        }
    }
    return pen_axis_unknown();
}

pen_axis_link pen_node_axis_link(const pen_graph *graph, const pen_node *node, uint32_t axis,
                                 uint32_t input) {
    const pen_op *op = node->op;
    if (input < 64 && (op->constant_inputs >> input & 1) != 0) return pen_axis_all();
    if (op->is_random) return pen_axis_unknown(); // numbers go by the place in the whole
    if (op->axis_rule != NULL) return op->axis_rule(graph, node, axis, input);
    if (op->is_elementwise) return pen_axis_elementwise(graph, node, axis, input);
    if (!op->is_view) return pen_axis_unknown();
    return link_view(link_output(graph, node), link_shape(graph, node->inputs[input]), axis);
}
