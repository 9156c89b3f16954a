#include "graph/passes/gradient/loss_nodes.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

pen_status pen_loss_node(pen_graph *graph, const pen_op *op, uint32_t input_count,
                         const pen_value_id *inputs, pen_value_id *out_output) {
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "loss/%s", op->name));
    pen_node_spec spec = pen_node_spec_of(op, name);
    spec.inputs = inputs;
    spec.input_count = input_count;
    return pen_graph_add_simple(graph, &spec, out_output);
}

pen_status pen_loss_reshape(pen_graph *graph, pen_value_id value, const char *name, uint32_t rank,
                            const int64_t *dims, pen_value_id *out_value) {
    pen_value_id operands[2] = {value, PEN_VALUE_NONE};
    PEN_TRY(pen_graph_constant_ints(graph, name, rank, dims, &operands[1]));
    return pen_loss_node(graph, PEN_OP(reshape), 2, operands, out_value);
}

pen_status pen_loss_pair(pen_graph *graph, const pen_op *op, pen_value_id a, pen_value_id b,
                         pen_value_id *out_value) {
    const pen_value_id operands[2] = {a, b};
    return pen_loss_node(graph, op, 2, operands, out_value);
}

// A node of one operand and one attribute.
pen_status pen_loss_map(pen_graph *graph, const pen_op *op, const char *name, pen_value_id value,
                        pen_attribute_given attribute, pen_value_id *out_value) {
    pen_node_spec spec = pen_node_spec_of(op, name);
    spec.inputs = &value;
    spec.input_count = 1;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    return pen_graph_add_simple(graph, &spec, out_value);
}

pen_status pen_loss_cast(pen_graph *graph, pen_value_id value, const char *element,
                         pen_value_id *out_value) {
    return pen_loss_map(graph, PEN_OP(cast), "loss/cast", value, pen_attribute_text("to", element),
                        out_value);
}

// The sum of all elements.
pen_status pen_loss_total(pen_graph *graph, pen_value_id value, pen_value_id *out_sum) {
    return pen_loss_map(graph, PEN_OP(reduce_sum), "loss/count", value,
                        pen_attribute_int("keepdims", 0), out_sum);
}

// share * value
pen_status pen_loss_multiply(pen_graph *graph, const char *name, double share,
                             pen_value_id *io_value) {
    pen_value_id factor;
    const pen_element_type element = pen_value_type(graph, *io_value)->element;
    PEN_TRY(pen_graph_constant_number(graph, name, element, share, &factor));
    return pen_loss_pair(graph, PEN_OP(mul), *io_value, factor, io_value);
}
