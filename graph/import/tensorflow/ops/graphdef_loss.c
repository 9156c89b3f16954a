// Losses of TensorFlow, the largest of a list, truths, and what writes into a tensor.

#include <string.h>

#include "graph/import/tensorflow/graphdef_mapping.h"

static const char *loss_op(const pen_graphdef_draft *draft) {
    return pen_graphdef_draft_mapping(draft)->op_name;
}

static pen_element_type loss_element(const pen_graphdef_draft *draft) {
    return pen_graphdef_type(pen_graphdef_draft_node(draft), "T", PEN_FLOAT32);
}

static pen_status loss_cast(pen_graphdef_draft *draft, const char *suffix, pen_element_type element,
                            pen_graphdef_value *value) {
    const pen_attribute_given to = pen_attribute_text("to", pen_element_name(element));
    const pen_graphdef_value from = *value;
    return pen_graphdef_emit(draft,
                             &(pen_graphdef_emission){.op_name = "cast",
                                                      .suffix = suffix,
                                                      .inputs = &from,
                                                      .input_count = 1,
                                                      .attributes = &to,
                                                      .attribute_count = 1},
                             value);
}

// ---- losses

// The gradients that both operators also give are made by training, not read from the graph.
static pen_status convert_sparse_cross_entropy(pen_graphdef_draft *draft) {
    const pen_attribute_given reduction = pen_attribute_text("reduction", "none");
    pen_graphdef_value operands[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_operand(draft, 1, &operands[1]));
    return pen_graphdef_emit_set(draft,
                                 &(pen_graphdef_emission){.op_name = "softmax_cross_entropy_loss",
                                                          .inputs = operands,
                                                          .input_count = 2,
                                                          .attributes = &reduction,
                                                          .attribute_count = 1});
}

// - sum of labels log softmax(x)
static pen_status convert_cross_entropy(pen_graphdef_draft *draft) {
    static const int64_t last = -1;
    const pen_attribute_given axis = pen_attribute_int("axis", -1);
    const pen_attribute_given keeps = pen_attribute_int("keepdims", 0);
    pen_graphdef_value x, labels, operands[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_operand(draft, 1, &labels));
    PEN_TRY(pen_graphdef_emit(draft,
                              &(pen_graphdef_emission){.op_name = "log_softmax",
                                                       .suffix = "logarithms",
                                                       .inputs = &x,
                                                       .input_count = 1,
                                                       .attributes = &axis,
                                                       .attribute_count = 1},
                              &x));
    PEN_TRY(pen_graphdef_emit_simple(draft, "mul", "weighed", labels, &x, &x));
    PEN_TRY(pen_graphdef_emit_simple(draft, "neg", "losses", x, NULL, &operands[0]));
    PEN_TRY(pen_graphdef_ints_value(draft, "axes", 1, &last, &operands[1]));
    return pen_graphdef_emit_set(draft, &(pen_graphdef_emission){.op_name = "reduce_sum",
                                                                 .inputs = operands,
                                                                 .input_count = 2,
                                                                 .attributes = &keeps,
                                                                 .attribute_count = 1});
}

// The half of the sum of squares.
static pen_status convert_l2_loss(pen_graphdef_draft *draft) {
    const pen_attribute_given keeps = pen_attribute_int("keepdims", 0);
    pen_graphdef_value x, square, operands[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_emit_simple(draft, "mul", "squares", x, &x, &square));
    PEN_TRY(pen_graphdef_emit(draft,
                              &(pen_graphdef_emission){.op_name = "reduce_sum",
                                                       .suffix = "sum",
                                                       .inputs = &square,
                                                       .input_count = 1,
                                                       .attributes = &keeps,
                                                       .attribute_count = 1},
                              &operands[0]));
    PEN_TRY(pen_graphdef_number_value(draft, "half", loss_element(draft), 0.5, &operands[1]));
    return pen_graphdef_emit_set(
        draft, &(pen_graphdef_emission){.op_name = "mul", .inputs = operands, .input_count = 2});
}

// ---- arithmetic with cases

static pen_status convert_clip(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[3], bounded;
    for (uint32_t i = 0; i < 3; i++) {
        PEN_TRY(pen_graphdef_operand(draft, i, &operands[i]));
    }
    PEN_TRY(pen_graphdef_emit_simple(draft, "min", "min", operands[0], &operands[2], &bounded));
    const pen_graphdef_value pair[] = {bounded, operands[1]};
    return pen_graphdef_emit_set(
        draft, &(pen_graphdef_emission){.op_name = "max", .inputs = pair, .input_count = 2});
}

// a / b, and 0 where b is 0.
static pen_status convert_div_no_nan(pen_graphdef_draft *draft) {
    pen_graphdef_value a, b, zero, one, is_zero, parts[3], quotient;
    const pen_element_type element = loss_element(draft);
    PEN_TRY(pen_graphdef_operand(draft, 0, &a));
    PEN_TRY(pen_graphdef_operand(draft, 1, &b));
    PEN_TRY(pen_graphdef_number_value(draft, "zero", element, 0, &zero));
    PEN_TRY(pen_graphdef_number_value(draft, "one", element, 1, &one));
    PEN_TRY(pen_graphdef_emit_simple(draft, "equal", "is_zero", b, &zero, &is_zero));
    parts[0] = is_zero;
    parts[1] = one;
    parts[2] = b;
    PEN_TRY(pen_graphdef_emit(
        draft,
        &(pen_graphdef_emission){
            .op_name = "where", .suffix = "divisor", .inputs = parts, .input_count = 3},
        &b));
    PEN_TRY(pen_graphdef_emit_simple(draft, "div", "quotient", a, &b, &quotient));
    parts[1] = zero;
    parts[2] = quotient;
    return pen_graphdef_emit_set(
        draft, &(pen_graphdef_emission){.op_name = "where", .inputs = parts, .input_count = 3});
}

static pen_status convert_test(pen_graphdef_draft *draft) {
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    return pen_graphdef_emit_set(
        draft, &(pen_graphdef_emission){.op_name = loss_op(draft), .inputs = &x, .input_count = 1});
}

static pen_status convert_is_finite(pen_graphdef_draft *draft) {
    pen_graphdef_value x, tests[2], either;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_emit_simple(draft, "isinf", "isinf", x, NULL, &tests[0]));
    PEN_TRY(pen_graphdef_emit_simple(draft, "isnan", "isnan", x, NULL, &tests[1]));
    PEN_TRY(pen_graphdef_emit_simple(draft, "or", "either", tests[0], &tests[1], &either));
    return pen_graphdef_emit_set(
        draft, &(pen_graphdef_emission){.op_name = "not", .inputs = &either, .input_count = 1});
}

// Whether all, or any, along some axes: the smallest or largest of 0 and 1.
static pen_status convert_all(pen_graphdef_draft *draft) {
    const bool keeps = pen_graphdef_int(pen_graphdef_draft_node(draft), "keep_dims", 0) != 0;
    const pen_attribute_given attribute = pen_attribute_int("keepdims", keeps);
    const pen_attribute_given to = pen_attribute_text("to", "bool");
    const pen_graphdef_ints_known *axes;
    pen_graphdef_value operands[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &axes));
    if (axes->count == 0) {
        pen_graphdef_pass(draft, 0, 0);
        return PEN_OK;
    }
    PEN_TRY(loss_cast(draft, "numbers", PEN_INT32, &operands[0]));
    PEN_TRY(pen_graphdef_ints_value(draft, "axes", axes->count, axes->integers, &operands[1]));
    pen_graphdef_value number;
    PEN_TRY(pen_graphdef_emit(draft,
                              &(pen_graphdef_emission){.op_name = loss_op(draft),
                                                       .suffix = "number",
                                                       .inputs = operands,
                                                       .input_count = 2,
                                                       .attributes = &attribute,
                                                       .attribute_count = 1},
                              &number));
    return pen_graphdef_emit_set(draft, &(pen_graphdef_emission){.op_name = "cast",
                                                                 .inputs = &number,
                                                                 .input_count = 1,
                                                                 .attributes = &to,
                                                                 .attribute_count = 1});
}

// ---- the largest

static pen_status convert_top_k(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = pen_graphdef_draft_node(draft);
    const pen_attribute_given sorted =
        pen_attribute_int("sorted", pen_graphdef_int(node, "sorted", 1));
    pen_graphdef_value operands[2], made[2];
    int64_t k;
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_operand_int(draft, 1, &k));
    PEN_TRY(pen_graphdef_ints_value(draft, "k", 1, &k, &operands[1]));
    PEN_TRY(pen_graphdef_emit(draft,
                              &(pen_graphdef_emission){.op_name = "top_k",
                                                       .inputs = operands,
                                                       .input_count = 2,
                                                       .attributes = &sorted,
                                                       .attribute_count = 1,
                                                       .output_count = 2},
                              made));
    PEN_TRY(
        loss_cast(draft, "indices", pen_graphdef_type(node, "index_type", PEN_INT32), &made[1]));
    pen_graphdef_set(draft, 0, made[0]);
    pen_graphdef_set(draft, 1, made[1]);
    return PEN_OK;
}

// ---- writing

static pen_status loss_scatter(pen_graphdef_draft *draft, pen_graphdef_value data, uint32_t indices,
                               uint32_t updates) {
    const pen_attribute_given reduction = pen_attribute_text("reduction", loss_op(draft));
    pen_graphdef_value operands[3] = {data};
    PEN_TRY(pen_graphdef_operand(draft, indices, &operands[1]));
    PEN_TRY(pen_graphdef_operand(draft, updates, &operands[2]));
    PEN_TRY(loss_cast(draft, "indices", PEN_INT64, &operands[1]));
    return pen_graphdef_emit_set(draft, &(pen_graphdef_emission){.op_name = "scatter_nd",
                                                                 .inputs = operands,
                                                                 .input_count = 3,
                                                                 .attributes = &reduction,
                                                                 .attribute_count = 1});
}

static pen_status convert_scatter_nd(pen_graphdef_draft *draft) {
    const pen_attribute_given attributes[] = {
        pen_attribute_float("value", 0),
        pen_attribute_text("element", pen_element_name(loss_element(draft)))};
    pen_graphdef_value shape, zeros;
    PEN_TRY(pen_graphdef_draft_need(draft, 3));
    PEN_TRY(pen_graphdef_operand_int64s(draft, 2, &shape));
    PEN_TRY(pen_graphdef_emit(draft,
                              &(pen_graphdef_emission){.op_name = "constant_of_shape",
                                                       .suffix = "zeros",
                                                       .inputs = &shape,
                                                       .input_count = 1,
                                                       .attributes = attributes,
                                                       .attribute_count = 2},
                              &zeros));
    return loss_scatter(draft, zeros, 0, 1);
}

static pen_status convert_tensor_scatter(pen_graphdef_draft *draft) {
    pen_graphdef_value data;
    PEN_TRY(pen_graphdef_operand(draft, 0, &data));
    return loss_scatter(draft, data, 1, 2);
}

static const pen_graphdef_mapping loss_mappings[] = {
    {.op = "All", .op_name = "reduce_min", .convert = convert_all},
    {.op = "Any", .op_name = "reduce_max", .convert = convert_all},
    {.op = "ClipByValue", .convert = convert_clip},
    {.op = "DivNoNan", .convert = convert_div_no_nan},
    {.op = "IsFinite", .convert = convert_is_finite},
    {.op = "IsInf", .op_name = "isinf", .convert = convert_test},
    {.op = "IsNan", .op_name = "isnan", .convert = convert_test},
    {.op = "L2Loss", .convert = convert_l2_loss},
    {.op = "ScatterNd", .op_name = "add", .convert = convert_scatter_nd},
    {.op = "SoftmaxCrossEntropyWithLogits", .convert = convert_cross_entropy},
    {.op = "SparseSoftmaxCrossEntropyWithLogits", .convert = convert_sparse_cross_entropy},
    {.op = "TensorScatterAdd", .op_name = "add", .convert = convert_tensor_scatter},
    {.op = "TensorScatterUpdate", .op_name = "none", .convert = convert_tensor_scatter},
    {.op = "TopKV2", .convert = convert_top_k},
};

const pen_graphdef_family pen_graphdef_losses = {
    .mappings = loss_mappings,
    .count = sizeof loss_mappings / sizeof loss_mappings[0],
};
