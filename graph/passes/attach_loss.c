#include "graph/passes/attach_loss.h"

#include <string.h>

#include "graph/op.h"

const char *pen_loss_kind_name(pen_loss_kind kind) {
    switch (kind) {
    case PEN_LOSS_SOFTMAX_CROSS_ENTROPY:
        return "softmax_cross_entropy";
    case PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD:
        return "negative_log_likelihood";
    case PEN_LOSS_MEAN_SQUARED_ERROR:
        return "mean_squared_error";
    case PEN_LOSS_BINARY_CROSS_ENTROPY:
        return "binary_cross_entropy";
    case PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS:
        return "binary_cross_entropy_with_logits";
    case PEN_LOSS_OUTPUT:
        return "output";
    case PEN_LOSS_KIND_COUNT:
        break;
    }
    return "unknown";
}

static pen_status loss_node(pen_graph *graph, const char *op_name, uint32_t input_count,
                            const pen_value_id *inputs, pen_value_id *out_output) {
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "loss/%s", op_name));
    pen_node_spec spec = pen_node_spec_make(op_name, name);
    spec.inputs = inputs;
    spec.input_count = input_count;
    return pen_graph_add_simple(graph, &spec, out_output);
}

static pen_status loss_add_labels(pen_graph *graph, const pen_tensor_type *type,
                                  pen_value_id *out_labels) {
    const pen_value labels = {.name = "labels", .kind = PEN_VALUE_INPUT, .type = *type};
    return pen_graph_add_own_value(graph, &labels, out_labels);
}

static pen_status loss_reshape(pen_graph *graph, pen_value_id value, const char *name,
                               uint32_t rank, const int64_t *dims, pen_value_id *out_value) {
    pen_value_id operands[2] = {value, PEN_VALUE_NONE};
    PEN_TRY(pen_graph_constant_ints(graph, name, rank, dims, &operands[1]));
    return loss_node(graph, "reshape", 2, operands, out_value);
}

// What a softmax over the classes reads: a model that ends with one, as Keras' do, is trained by
// its logits. Else the output itself.
static pen_value_id loss_find_logits(const pen_graph *graph, pen_value_id output) {
    const pen_value *value = pen_graph_value(graph, output);
    if (!pen_node_is(value->producer)) return output;
    const pen_node *node = pen_graph_node(graph, value->producer);
    if (strcmp(node->op->name, "softmax") != 0) return output;
    const int64_t axis = pen_node_int(node, "axis");
    const bool is_last = axis == -1 || axis == (int64_t)value->type.shape.rank - 1;
    return is_last ? node->inputs[0] : output;
}

// Losses over classes: leading dimensions are flattened into one of targets.
static pen_status loss_attach_classes(pen_graph *graph, const char *op_name, pen_value_id output,
                                      pen_attached_loss *out_loss) {
    const pen_tensor_type type = *pen_value_type(graph, output);
    const uint32_t rank = type.shape.rank;
    if (rank < 2) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT, "output '%s' is %s, expected (examples, …, classes)",
                         pen_value_name(graph, output), pen_tensor_type_format(&type, text));
    }
    const pen_tensor_type label_type = pen_tensor_type_make(PEN_INT64, rank - 1, type.shape.dims);
    PEN_TRY(loss_add_labels(graph, &label_type, &out_loss->labels));
    pen_value_id operands[2] = {output, out_loss->labels};
    if (rank > 2) {
        const int64_t targets = pen_shape_count(&type.shape, 0, rank - 1);
        const int64_t flat[2] = {targets, type.shape.dims[rank - 1]};
        PEN_TRY(loss_reshape(graph, output, "loss/scores_shape", 2, flat, &operands[0]));
        PEN_TRY(
            loss_reshape(graph, out_loss->labels, "loss/labels_shape", 1, &targets, &operands[1]));
    }
    PEN_TRY(loss_node(graph, "accuracy_count", 2, operands, &out_loss->accuracy));
    return loss_node(graph, op_name, 2, operands, &out_loss->loss);
}

static pen_status loss_attach_elements(pen_graph *graph, const char *op_name, pen_value_id output,
                                       pen_attached_loss *out_loss) {
    const pen_tensor_type type = *pen_value_type(graph, output);
    PEN_TRY(loss_add_labels(graph, &type, &out_loss->labels));
    const pen_value_id operands[2] = {output, out_loss->labels};
    return loss_node(graph, op_name, 2, operands, &out_loss->loss);
}

static pen_status loss_attach_output(const pen_graph *graph, pen_value_id output,
                                     pen_attached_loss *out_loss) {
    const pen_tensor_type *type = pen_value_type(graph, output);
    if (pen_shape_element_count(&type->shape) != 1) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INVALID_INPUT,
                         "output '%s' is %s, expected one element to be the loss",
                         pen_value_name(graph, output), pen_tensor_type_format(type, text));
    }
    out_loss->loss = output;
    return PEN_OK;
}

pen_status pen_attach_loss(pen_graph *graph, pen_loss_kind kind, pen_value_id output,
                           pen_attached_loss *out_loss) {
    *out_loss = (pen_attached_loss){PEN_VALUE_NONE, PEN_VALUE_NONE, PEN_VALUE_NONE};
    const pen_tensor_type *type = pen_value_type(graph, output);
    if (!pen_element_is_float(type->element)) {
        return pen_error(PEN_INVALID_INPUT, "output '%s' is %s: no loss can be taken of it",
                         pen_value_name(graph, output), pen_element_name(type->element));
    }
    switch (kind) {
    case PEN_LOSS_SOFTMAX_CROSS_ENTROPY:
        return loss_attach_classes(graph, "softmax_cross_entropy_loss",
                                   loss_find_logits(graph, output), out_loss);
    case PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD:
        return loss_attach_classes(graph, "negative_log_likelihood_loss", output, out_loss);
    case PEN_LOSS_MEAN_SQUARED_ERROR:
    case PEN_LOSS_BINARY_CROSS_ENTROPY:
    case PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS:
        return loss_attach_elements(graph, pen_loss_kind_name(kind), output, out_loss);
    case PEN_LOSS_OUTPUT:
        return loss_attach_output(graph, output, out_loss);
    case PEN_LOSS_KIND_COUNT:
        break;
    }
    return pen_error(PEN_INTERNAL, "loss kind %d", (int)kind);
}
