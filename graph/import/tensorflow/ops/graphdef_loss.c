// Losses of TensorFlow, the largest of a list, truths, and what writes into a tensor.

#include "graph/import/tensorflow/graphdef_mapping.h"

static pen_status loss_cast(pen_graphdef_draft *draft, const char *suffix, pen_element_type element,
                            pen_graphdef_value *value) {
    const pen_graphdef_value from = *value;
    return pen_graphdef_cast(draft, suffix, from, element, value);
}

// ---- losses

// The gradients that both operators also give are made by training, not read from the graph.
static pen_status convert_sparse_cross_entropy(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[2];
    PEN_TRY(pen_graphdef_operands(draft, 2, operands));
    return pen_graphdef_give(draft, "softmax_cross_entropy_loss", PEN_GRAPHDEF_ALL(operands),
                             PEN_WITH(pen_attribute_text("reduction", "none")));
}

// - sum of labels log softmax(x)
static pen_status convert_cross_entropy(pen_graphdef_draft *draft) {
    static const int64_t last = -1;
    pen_graphdef_value x, labels, operands[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_operand(draft, 1, &labels));
    PEN_TRY(pen_graphdef_emit(draft, "log_softmax", "logarithms", PEN_GRAPHDEF_INPUTS(x),
                              PEN_WITH(pen_attribute_int("axis", -1)), &x));
    PEN_TRY(pen_graphdef_pair(draft, "mul", "weighed", labels, x, &x));
    PEN_TRY(pen_graphdef_map(draft, "neg", "losses", x, &operands[0]));
    PEN_TRY(pen_graphdef_ints_value(draft, "axes", 1, &last, &operands[1]));
    return pen_graphdef_give(draft, "reduce_sum", PEN_GRAPHDEF_ALL(operands),
                             PEN_WITH(pen_attribute_int("keepdims", 0)));
}

// The half of the sum of squares.
static pen_status convert_l2_loss(pen_graphdef_draft *draft) {
    pen_graphdef_value x, square, operands[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_pair(draft, "mul", "squares", x, x, &square));
    PEN_TRY(pen_graphdef_emit(draft, "reduce_sum", "sum", PEN_GRAPHDEF_INPUTS(square),
                              PEN_WITH(pen_attribute_int("keepdims", 0)), &operands[0]));
    PEN_TRY(pen_graphdef_number_value(draft, "half", pen_graphdef_draft_element(draft), 0.5,
                                      &operands[1]));
    return pen_graphdef_give_pair(draft, false, "mul", operands[0], operands[1]);
}

// ---- arithmetic with cases

static pen_status convert_clip(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[3], bounded;
    PEN_TRY(pen_graphdef_operands(draft, 3, operands));
    PEN_TRY(pen_graphdef_pair(draft, "min", "min", operands[0], operands[2], &bounded));
    const pen_graphdef_value pair[] = {bounded, operands[1]};
    return pen_graphdef_give_pair(draft, false, "max", pair[0], pair[1]);
}

// a / b, and 0 where b is 0.
static pen_status convert_div_no_nan(pen_graphdef_draft *draft) {
    pen_graphdef_value a, b, zero, one, is_zero, parts[3], quotient;
    const pen_element_type element = pen_graphdef_draft_element(draft);
    PEN_TRY(pen_graphdef_operand(draft, 0, &a));
    PEN_TRY(pen_graphdef_operand(draft, 1, &b));
    PEN_TRY(pen_graphdef_number_value(draft, "zero", element, 0, &zero));
    PEN_TRY(pen_graphdef_number_value(draft, "one", element, 1, &one));
    PEN_TRY(pen_graphdef_pair(draft, "equal", "is_zero", b, zero, &is_zero));
    parts[0] = is_zero;
    parts[1] = one;
    parts[2] = b;
    PEN_TRY(pen_graphdef_emit(draft, "where", "divisor", PEN_GRAPHDEF_ALL(parts), PEN_NO_ATTRIBUTES,
                              &b));
    PEN_TRY(pen_graphdef_pair(draft, "div", "quotient", a, b, &quotient));
    parts[1] = zero;
    parts[2] = quotient;
    return pen_graphdef_give(draft, "where", PEN_GRAPHDEF_ALL(parts), PEN_NO_ATTRIBUTES);
}

static pen_status convert_test(pen_graphdef_draft *draft) {
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    return pen_graphdef_give_map(draft, false, draft->mapping->op_name, x);
}

static pen_status convert_is_finite(pen_graphdef_draft *draft) {
    pen_graphdef_value x, tests[2], either;
    PEN_TRY(pen_graphdef_operand(draft, 0, &x));
    PEN_TRY(pen_graphdef_map(draft, "isinf", "isinf", x, &tests[0]));
    PEN_TRY(pen_graphdef_map(draft, "isnan", "isnan", x, &tests[1]));
    PEN_TRY(pen_graphdef_pair(draft, "or", "either", tests[0], tests[1], &either));
    return pen_graphdef_give_map(draft, false, "not", either);
}

// Whether all, or any, along some axes: the smallest or largest of 0 and 1.
static pen_status convert_all(pen_graphdef_draft *draft) {
    const bool keeps = pen_graphdef_int(draft->node, "keep_dims", 0) != 0;
    const pen_graphdef_ints_known *axes;
    pen_graphdef_value operands[2];
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &axes));
    if (axes->count == 0) {
        return pen_graphdef_pass(draft, 0, 0);
    }
    PEN_TRY(loss_cast(draft, "numbers", PEN_INT32, &operands[0]));
    PEN_TRY(pen_graphdef_ints_value(draft, "axes", axes->count, axes->integers, &operands[1]));
    pen_graphdef_value number;
    PEN_TRY(pen_graphdef_emit(draft, draft->mapping->op_name, "number", PEN_GRAPHDEF_ALL(operands),
                              PEN_WITH(pen_attribute_int("keepdims", keeps)), &number));
    return pen_graphdef_give(draft, "cast", PEN_GRAPHDEF_INPUTS(number),
                             PEN_WITH(pen_attribute_text("to", "bool")));
}

// ---- the largest

// Our indices are int64, TensorFlow's of the type it says.
static pen_status convert_top_k(pen_graphdef_draft *draft) {
    const pen_graphdef_node *node = draft->node;
    pen_graphdef_value operands[2], made[2];
    int64_t k;
    PEN_TRY(pen_graphdef_operand(draft, 0, &operands[0]));
    PEN_TRY(pen_graphdef_operand_int(draft, 1, &k));
    PEN_TRY(pen_graphdef_ints_value(draft, "k", 1, &k, &operands[1]));
    PEN_TRY(pen_graphdef_emit_node(
        draft,
        &(pen_graphdef_emission){.op_name = "top_k",
                                 .inputs = PEN_GRAPHDEF_ALL(operands),
                                 .attributes = PEN_WITH(pen_attribute_int(
                                     "sorted", pen_graphdef_int(node, "sorted", 1))),
                                 .output_count = 2},
        made));
    PEN_TRY(
        loss_cast(draft, "indices", pen_graphdef_type(node, "index_type", PEN_INT32), &made[1]));
    pen_graphdef_set(draft, 0, made[0]);
    return pen_graphdef_set(draft, 1, made[1]);
}

// ---- writing

static pen_status loss_scatter(pen_graphdef_draft *draft, pen_graphdef_value data, uint32_t indices,
                               uint32_t updates) {
    pen_graphdef_value operands[3] = {data};
    PEN_TRY(pen_graphdef_operand(draft, indices, &operands[1]));
    PEN_TRY(pen_graphdef_operand(draft, updates, &operands[2]));
    PEN_TRY(loss_cast(draft, "indices", PEN_INT64, &operands[1]));
    return pen_graphdef_give(draft, "scatter_nd",
                             PEN_GRAPHDEF_INPUTS(operands[0], operands[1], operands[2]),
                             PEN_WITH(pen_attribute_text("reduction", draft->mapping->op_name)));
}

static pen_status convert_scatter_nd(pen_graphdef_draft *draft) {
    pen_graphdef_value shape, zeros;
    PEN_TRY(pen_graphdef_draft_need(draft, 3));
    PEN_TRY(pen_graphdef_operand_int64s(draft, 2, &shape));
    PEN_TRY(pen_graphdef_emit(
        draft, "constant_of_shape", "zeros", PEN_GRAPHDEF_INPUTS(shape),
        PEN_WITH(
            pen_attribute_float("value", 0),
            pen_attribute_text("element", pen_element_name(pen_graphdef_draft_element(draft)))),
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

PEN_GRAPHDEF_FAMILY(pen_graphdef_losses, loss_mappings);
