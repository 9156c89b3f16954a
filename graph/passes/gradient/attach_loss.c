#include "graph/passes/gradient/attach_loss.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

#define LOSS_IGNORED (-100) // a label that is no class

static const pen_known_op loss_ops[PEN_LOSS_KIND_COUNT] = {
    [PEN_LOSS_SOFTMAX_CROSS_ENTROPY] = PEN_KNOWN_softmax_cross_entropy_loss,
    [PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD] = PEN_KNOWN_negative_log_likelihood_loss,
    [PEN_LOSS_MEAN_SQUARED_ERROR] = PEN_KNOWN_mean_squared_error,
    [PEN_LOSS_BINARY_CROSS_ENTROPY] = PEN_KNOWN_binary_cross_entropy,
    [PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS] = PEN_KNOWN_binary_cross_entropy_with_logits,
    [PEN_LOSS_OUTPUT] = PEN_KNOWN_COUNT, // the model computes it
};

const char *const pen_loss_kind_names[] = {
    [PEN_LOSS_SOFTMAX_CROSS_ENTROPY] = "softmax_cross_entropy",
    [PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD] = "negative_log_likelihood",
    [PEN_LOSS_MEAN_SQUARED_ERROR] = "mean_squared_error",
    [PEN_LOSS_BINARY_CROSS_ENTROPY] = "binary_cross_entropy",
    [PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS] = "binary_cross_entropy_with_logits",
    [PEN_LOSS_OUTPUT] = "output",
    NULL,
};

static pen_status loss_node(pen_graph *graph, const pen_op *op, uint32_t input_count,
                            const pen_value_id *inputs, pen_value_id *out_output) {
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "loss/%s", op->name));
    pen_node_spec spec = pen_node_spec_of(op, name);
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
    return loss_node(graph, PEN_OP(reshape), 2, operands, out_value);
}

// What a softmax over the classes reads: a model that ends with one, as Keras' do, is trained by
// its logits. Else the output itself.
static pen_value_id loss_find_logits(const pen_graph *graph, pen_value_id output) {
    const pen_value *value = pen_graph_value(graph, output);
    if (!pen_node_is(value->producer)) return output;
    const pen_node *node = pen_graph_node(graph, value->producer);
    if (node->op != PEN_OP(softmax)) return output;
    const int64_t axis = pen_node_int(node, "axis");
    const bool is_last = axis == -1 || axis == (int64_t)value->type.shape.rank - 1;
    return is_last ? node->inputs[0] : output;
}

// ---- masks

static pen_status loss_pair(pen_graph *graph, const pen_op *op, pen_value_id a, pen_value_id b,
                            pen_value_id *out_value) {
    const pen_value_id operands[2] = {a, b};
    return loss_node(graph, op, 2, operands, out_value);
}

static pen_status loss_where(pen_graph *graph, pen_value_id mask, pen_value_id value, double other,
                             pen_value_id *out_value) {
    pen_value_id operands[3] = {mask, value};
    const pen_element_type element = pen_value_type(graph, value)->element;
    PEN_TRY(pen_graph_constant_number(graph, "loss/masked", element, other, &operands[2]));
    return loss_node(graph, PEN_OP(where), 3, operands, out_value);
}

// The mask under a shape of `rank` dimensions that goes with the output's.
static pen_status loss_shape_mask(pen_graph *graph, pen_value_id output, uint32_t rank,
                                  pen_value_id *io_mask) {
    const pen_tensor_type mask = *pen_value_type(graph, *io_mask);
    const pen_tensor_type type = *pen_value_type(graph, output);
    bool fits = mask.element == PEN_BOOL && mask.shape.rank <= rank;
    int64_t dims[PEN_RANK_LIMIT];
    for (uint32_t d = 0; d < rank && fits; d++) {
        dims[d] = d < mask.shape.rank ? mask.shape.dims[d] : 1;
        fits = d >= mask.shape.rank || dims[d] == type.shape.dims[d];
    }
    if (fits) return loss_reshape(graph, *io_mask, "loss/mask_shape", rank, dims, io_mask);
    char texts[2][PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT, "the mask of output '%s' is %s, which does not go with %s",
                     pen_value_name(graph, output), pen_tensor_type_format(&mask, texts[0]),
                     pen_tensor_type_format(&type, texts[1]));
}

// A node of one operand and one attribute.
static pen_status loss_map(pen_graph *graph, const pen_op *op, const char *name, pen_value_id value,
                           pen_attribute_given attribute, pen_value_id *out_value) {
    pen_node_spec spec = pen_node_spec_of(op, name);
    spec.inputs = &value;
    spec.input_count = 1;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    return pen_graph_add_simple(graph, &spec, out_value);
}

static pen_status loss_cast(pen_graph *graph, pen_value_id value, const char *element,
                            pen_value_id *out_value) {
    return loss_map(graph, PEN_OP(cast), "loss/cast", value, pen_attribute_text("to", element),
                    out_value);
}

// The sum of all elements.
static pen_status loss_count(pen_graph *graph, pen_value_id value, pen_value_id *out_sum) {
    return loss_map(graph, PEN_OP(reduce_sum), "loss/count", value,
                    pen_attribute_int("keepdims", 0), out_sum);
}

// How many elements of the mask there are for each that counts, at most all.
static pen_status loss_mask_share(pen_graph *graph, pen_value_id mask, pen_value_id *out_share) {
    const double total = (double)pen_shape_element_count(&pen_value_type(graph, mask)->shape);
    pen_value_id count, least, all;
    PEN_TRY(loss_cast(graph, mask, "float32", &count));
    PEN_TRY(loss_count(graph, count, &count));
    PEN_TRY(pen_graph_constant_number(graph, "loss/mask_least", PEN_FLOAT32, 1, &least));
    PEN_TRY(loss_pair(graph, PEN_OP(max), count, least, &count));
    PEN_TRY(pen_graph_constant_number(graph, "loss/mask_total", PEN_FLOAT32, total, &all));
    return loss_pair(graph, PEN_OP(div), all, count, out_share);
}

// Right answers of those that count, as if all counted.
static pen_status loss_count_masked(pen_graph *graph, pen_value_id output, pen_value_id labels,
                                    pen_value_id mask, pen_value_id *out_accuracy) {
    const pen_attribute_given attributes[] = {pen_attribute_int("axis", -1),
                                              pen_attribute_int("keepdims", 0)};
    pen_value_id share, right;
    pen_node_spec best = pen_node_spec_of(PEN_OP(arg_max), "loss/best");
    best.inputs = &output;
    best.input_count = 1;
    best.attributes = attributes;
    best.attribute_count = 2;
    PEN_TRY(pen_graph_add_simple(graph, &best, &right));
    PEN_TRY(loss_pair(graph, PEN_OP(equal), right, labels, &right));
    PEN_TRY(loss_pair(graph, PEN_OP(and), right, mask, &right));
    PEN_TRY(loss_cast(graph, right, "float32", &right));
    PEN_TRY(loss_count(graph, right, &right));
    PEN_TRY(loss_mask_share(graph, mask, &share));
    PEN_TRY(loss_pair(graph, PEN_OP(mul), right, share, &right));
    PEN_TRY(loss_node(graph, PEN_OP(round), 1, &right, &right));
    return loss_cast(graph, right, "int64", out_accuracy);
}

// ---- kinds

// Losses over classes: leading dimensions are flattened into one of targets. What the mask leaves
// out gets a label that is no class.
static pen_status loss_attach_classes(pen_graph *graph, const pen_op *op, pen_value_id output,
                                      pen_value_id mask, pen_attached_loss *out_loss) {
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
    if (pen_value_is(mask)) {
        PEN_TRY(loss_shape_mask(graph, output, rank - 1, &mask));
        PEN_TRY(loss_where(graph, mask, operands[1], LOSS_IGNORED, &operands[1]));
    }
    if (rank > 2) {
        const int64_t targets = pen_shape_count(&type.shape, 0, rank - 1);
        const int64_t flat[2] = {targets, type.shape.dims[rank - 1]};
        PEN_TRY(loss_reshape(graph, output, "loss/scores_shape", 2, flat, &operands[0]));
        PEN_TRY(loss_reshape(graph, operands[1], "loss/labels_shape", 1, &targets, &operands[1]));
    }
    if (!pen_value_is(mask)) {
        PEN_TRY(loss_node(graph, PEN_OP(accuracy_count), 2, operands, &out_loss->accuracy));
        return loss_node(graph, op, 2, operands, &out_loss->loss);
    }
    PEN_TRY(loss_count_masked(graph, output, out_loss->labels, mask, &out_loss->accuracy));
    const pen_attribute_given ignored = pen_attribute_int("ignore_index", LOSS_IGNORED);
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "loss/%s", op->name));
    pen_node_spec spec = pen_node_spec_of(op, name);
    spec.inputs = operands;
    spec.input_count = 2;
    spec.attributes = &ignored;
    spec.attribute_count = 1;
    return pen_graph_add_simple(graph, &spec, &out_loss->loss);
}

// What the mask leaves out becomes a target that is met: its loss is 0.
static pen_status loss_attach_elements(pen_graph *graph, pen_loss_kind kind, pen_value_id output,
                                       pen_value_id mask, pen_attached_loss *out_loss) {
    const pen_op *op = pen_op_known(loss_ops[kind]);
    const pen_tensor_type type = *pen_value_type(graph, output);
    PEN_TRY(loss_add_labels(graph, &type, &out_loss->labels));
    pen_value_id operands[2] = {output, out_loss->labels};
    if (!pen_value_is(mask)) return loss_node(graph, op, 2, operands, &out_loss->loss);
    const double met = kind == PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS ? -1e4 : 0;
    pen_value_id share, loss;
    PEN_TRY(loss_shape_mask(graph, output, type.shape.rank, &mask));
    PEN_TRY(loss_where(graph, mask, operands[0], met, &operands[0]));
    PEN_TRY(loss_where(graph, mask, operands[1], 0, &operands[1]));
    PEN_TRY(loss_node(graph, op, 2, operands, &loss));
    PEN_TRY(loss_mask_share(graph, mask, &share));
    return loss_pair(graph, PEN_OP(mul), loss, share, &out_loss->loss);
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

pen_status pen_attach_penalty(pen_graph *graph, pen_value_id penalty, pen_value_id *io_loss) {
    if (pen_value_type(graph, *io_loss)->element != PEN_FLOAT32) {
        return pen_error(PEN_UNSUPPORTED, "the loss is %s: regularizers need float32",
                         pen_element_name(pen_value_type(graph, *io_loss)->element));
    }
    return loss_pair(graph, PEN_OP(add), *io_loss, penalty, io_loss);
}

// A softmax before its loss is left out of the loss: the logits are surer numbers.
pen_status pen_attach_loss(pen_graph *graph, pen_loss_kind kind, pen_value_id output,
                           pen_value_id mask, pen_attached_loss *out_loss) {
    *out_loss = (pen_attached_loss){PEN_VALUE_NONE, PEN_VALUE_NONE, PEN_VALUE_NONE};
    const pen_tensor_type *type = pen_value_type(graph, output);
    if (!pen_element_is_float(type->element)) {
        return pen_error(PEN_INVALID_INPUT, "output '%s' is %s: no loss can be taken of it",
                         pen_value_name(graph, output), pen_element_name(type->element));
    }
    switch (kind) {
    case PEN_LOSS_SOFTMAX_CROSS_ENTROPY:
        return loss_attach_classes(graph, pen_op_known(loss_ops[kind]),
                                   loss_find_logits(graph, output), mask, out_loss);
    case PEN_LOSS_NEGATIVE_LOG_LIKELIHOOD:
        return loss_attach_classes(graph, pen_op_known(loss_ops[kind]), output, mask, out_loss);
    case PEN_LOSS_MEAN_SQUARED_ERROR:
    case PEN_LOSS_BINARY_CROSS_ENTROPY:
    case PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS:
        return loss_attach_elements(graph, kind, output, mask, out_loss);
    case PEN_LOSS_OUTPUT:
        return loss_attach_output(graph, output, out_loss);
    case PEN_LOSS_KIND_COUNT:
        break;
    }
    return pen_error(PEN_INTERNAL, "loss kind %d", (int)kind);
}
