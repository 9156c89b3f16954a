// Arithmetic of TensorFlow: maps of one and two tensors, and reductions.

#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_convert.h"
#include "graph/import/tensorflow/graphdef_mapping.h"
#include "graph/import/tensorflow/ops/graphdef_broadcast.h"
#include "graph/import/tensorflow/ops/graphdef_random.h"

// ---- maps of one tensor, in the form it is found in

static pen_status convert_unary(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand_found(draft, 0, &is_first, &x));
    return pen_graphdef_give_map(draft, is_first, draft->mapping->op_name, x);
}

static pen_status convert_leaky_relu(pen_graphdef_draft *draft) {
    const double alpha = pen_graphdef_float(draft->node, "alpha", 0.2);
    bool is_first;
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand_found(draft, 0, &is_first, &x));
    return pen_graphdef_give_form(draft, is_first, "leaky_relu", PEN_GRAPHDEF_INPUTS(x),
                                  PEN_WITH(pen_attribute_float("alpha", alpha)));
}

static pen_status convert_relu6(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value operands[3];
    const pen_element_type element = pen_graphdef_draft_element(draft);
    PEN_TRY(pen_graphdef_operand_found(draft, 0, &is_first, &operands[0]));
    PEN_TRY(pen_graphdef_number_value(draft, "zero", element, 0, &operands[1]));
    PEN_TRY(pen_graphdef_number_value(draft, "six", element, 6, &operands[2]));
    return pen_graphdef_give_form(draft, is_first, "clip", PEN_GRAPHDEF_ALL(operands),
                                  PEN_NO_ATTRIBUTES);
}

static pen_status convert_square(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value x;
    PEN_TRY(pen_graphdef_operand_found(draft, 0, &is_first, &x));
    return pen_graphdef_give_pair(draft, is_first, "mul", x, x);
}

// 1 / sqrt(x)
static pen_status convert_rsqrt(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value x, root;
    PEN_TRY(pen_graphdef_operand_found(draft, 0, &is_first, &x));
    PEN_TRY(pen_graphdef_map(draft, "sqrt", "sqrt", x, &root));
    return pen_graphdef_give_map(draft, is_first, "reciprocal", root);
}

// log(1 + x)
static pen_status convert_log1p(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value x, one, sum;
    PEN_TRY(pen_graphdef_operand_found(draft, 0, &is_first, &x));
    PEN_TRY(pen_graphdef_number_value(draft, "one", pen_graphdef_draft_element(draft), 1, &one));
    PEN_TRY(pen_graphdef_pair(draft, "add", "add", x, one, &sum));
    return pen_graphdef_give_map(draft, is_first, "log", sum);
}

// exp(x) - 1, and 1 - erf(x)
static pen_status arithmetic_less_one(pen_graphdef_draft *draft, const char *op, bool is_negated) {
    bool is_first;
    pen_graphdef_value x, one, map;
    PEN_TRY(pen_graphdef_operand_found(draft, 0, &is_first, &x));
    PEN_TRY(pen_graphdef_number_value(draft, "one", pen_graphdef_draft_element(draft), 1, &one));
    PEN_TRY(pen_graphdef_map(draft, op, op, x, &map));
    return is_negated ? pen_graphdef_give_pair(draft, is_first, "sub", one, map)
                      : pen_graphdef_give_pair(draft, is_first, "sub", map, one);
}

static pen_status convert_expm1(pen_graphdef_draft *draft) {
    return arithmetic_less_one(draft, "exp", false);
}

static pen_status convert_erfc(pen_graphdef_draft *draft) {
    return arithmetic_less_one(draft, "erf", true);
}

static pen_status convert_pass(pen_graphdef_draft *draft) {
    PEN_TRY(pen_graphdef_draft_need(draft, 1));
    PEN_TRY(pen_graphdef_pass(draft, 0, 0));
    // both outputs of a Switch are its data; which of them lives was decided
    if (strcmp(draft->node->op, "Switch") == 0) return pen_graphdef_pass(draft, 1, 0);
    if (strcmp(draft->node->op, "IdentityN") != 0) return PEN_OK;
    for (uint32_t i = 1; i < draft->operand_count; i++) {
        PEN_TRY(pen_graphdef_pass(draft, i, i));
    }
    return PEN_OK;
}

// Only what trains, or is computed, has a gradient that could be stopped.
static pen_status convert_stop(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value x;
    if (!pen_element_is_float(pen_graphdef_draft_element(draft))) return convert_pass(draft);
    PEN_TRY(pen_graphdef_operand_found(draft, 0, &is_first, &x));
    const pen_value_kind kind = pen_graph_value(draft->graphs[0], x.in[0])->kind;
    if (kind != PEN_VALUE_COMPUTED && kind != PEN_VALUE_PARAMETER) return convert_pass(draft);
    return pen_graphdef_give_map(draft, is_first, "stop_gradient", x);
}

// ---- maps of two tensors

static pen_status convert_binary(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value operands[2];
    PEN_TRY(pen_graphdef_broadcast(draft, 0, 1, &is_first, operands));
    return pen_graphdef_give_pair(draft, is_first, draft->mapping->op_name, operands[0],
                                  operands[1]);
}

static pen_status convert_mul(pen_graphdef_draft *draft) {
    bool is_dropout;
    PEN_TRY(pen_graphdef_dropout_convert(draft, 1, 0, &is_dropout));
    return is_dropout ? PEN_OK : convert_binary(draft);
}

static pen_status convert_squared_difference(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value operands[2], difference;
    PEN_TRY(pen_graphdef_broadcast(draft, 0, 1, &is_first, operands));
    PEN_TRY(pen_graphdef_pair(draft, "sub", "sub", operands[0], operands[1], &difference));
    return pen_graphdef_give_pair(draft, is_first, "mul", difference, difference);
}

static pen_status convert_not_equal(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value operands[2], equal;
    PEN_TRY(pen_graphdef_broadcast(draft, 0, 1, &is_first, operands));
    PEN_TRY(pen_graphdef_pair(draft, "equal", "equal", operands[0], operands[1], &equal));
    return pen_graphdef_give_map(draft, is_first, "not", equal);
}

// Of integers, whose quotients are rounded towards 0: (a - (a mod b)) / b, which leaves no rest.
static pen_status arithmetic_floor_integers(pen_graphdef_draft *draft, bool is_first,
                                            const pen_graphdef_value operands[2]) {
    pen_graphdef_value rest, whole;
    PEN_TRY(pen_graphdef_pair(draft, "mod", "rest", operands[0], operands[1], &rest));
    PEN_TRY(pen_graphdef_pair(draft, "sub", "sub", operands[0], rest, &whole));
    return pen_graphdef_give_pair(draft, is_first, "div", whole, operands[1]);
}

static pen_status convert_floor_div(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value operands[2], quotient;
    PEN_TRY(pen_graphdef_broadcast(draft, 0, 1, &is_first, operands));
    if (!pen_element_is_float(pen_graphdef_draft_element(draft))) {
        return arithmetic_floor_integers(draft, is_first, operands);
    }
    PEN_TRY(pen_graphdef_pair(draft, "div", "div", operands[0], operands[1], &quotient));
    return pen_graphdef_give_map(draft, is_first, "floor", quotient);
}

// a - floor(a / b) b; of integers `mod`, whose sign is that of b.
static pen_status convert_floor_mod(pen_graphdef_draft *draft) {
    bool is_first;
    pen_graphdef_value operands[2], quotient, floor, product;
    PEN_TRY(pen_graphdef_broadcast(draft, 0, 1, &is_first, operands));
    if (!pen_element_is_float(pen_graphdef_draft_element(draft))) {
        return pen_graphdef_give_pair(draft, is_first, "mod", operands[0], operands[1]);
    }
    PEN_TRY(pen_graphdef_pair(draft, "div", "div", operands[0], operands[1], &quotient));
    PEN_TRY(pen_graphdef_map(draft, "floor", "floor", quotient, &floor));
    PEN_TRY(pen_graphdef_pair(draft, "mul", "mul", floor, operands[1], &product));
    return pen_graphdef_give_pair(draft, is_first, "sub", operands[0], product);
}

// The sum of any number of tensors.
static pen_status convert_add_n(pen_graphdef_draft *draft) {
    const uint32_t count = draft->operand_count;
    bool is_first = count > 0;
    pen_graphdef_value *operands;
    PEN_TRY(pen_graphdef_draft_need(draft, 1));
    PEN_TRY(PEN_NEW(draft->arena, count, &operands));
    for (uint32_t i = 0; i < count; i++) {
        is_first = is_first && pen_graphdef_operand_is_first(draft, i);
    }
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_graphdef_operand_form(draft, i, is_first, &operands[i]));
    }
    return pen_graphdef_give_form(draft, is_first, "sum", (pen_graphdef_inputs){operands, count},
                                  PEN_NO_ATTRIBUTES);
}

// Also the last node of a dropout, which is looked for first.
static pen_status convert_select(pen_graphdef_draft *draft) {
    pen_graphdef_value operands[3];
    uint32_t condition_rank, rank;
    bool is_dropout;
    PEN_TRY(pen_graphdef_dropout_convert(draft, 0, 1, &is_dropout));
    if (is_dropout) return PEN_OK;
    PEN_TRY(pen_graphdef_operands(draft, 3, operands));
    // the older Select takes a vector for the first dimension
    const bool is_old = strcmp(draft->node->op, "Select") == 0;
    if (is_old && pen_graphdef_operand_rank(draft, 0, &condition_rank) &&
        pen_graphdef_operand_rank(draft, 1, &rank) && condition_rank == 1 && rank > 1) {
        int64_t axes[PEN_RANK_LIMIT];
        for (uint32_t d = 1; d < rank; d++) {
            axes[d - 1] = d;
        }
        PEN_TRY(pen_graphdef_emit_with_ints(draft, "unsqueeze", "condition", operands[0],
                                            (pen_graphdef_integers){rank - 1, axes}, &operands[0]));
    }
    return pen_graphdef_give(draft, "where", PEN_GRAPHDEF_ALL(operands), PEN_NO_ATTRIBUTES);
}

// ---- reductions

// Axes of a reduction of an image, of the channels-first form. False: what is left would come in
// another order.
static bool reduce_axes_first(const pen_graphdef_ints_known *axes, bool keeps, int64_t *out_axes) {
    static const int64_t places[] = {0, 2, 3, 1};
    bool reduces[4] = {false, false, false, false};
    for (uint32_t i = 0; i < axes->count; i++) {
        const int64_t axis = axes->integers[i] < 0 ? axes->integers[i] + 4 : axes->integers[i];
        if (axis < 0 || axis > 3) return false;
        out_axes[i] = places[axis];
        reduces[axis] = true;
    }
    return keeps || reduces[3] || (reduces[1] && reduces[2]);
}

static pen_status convert_reduce(pen_graphdef_draft *draft) {
    const bool keeps = pen_graphdef_int(draft->node, "keep_dims", 0) != 0;
    const pen_graphdef_ints_known *axes;
    pen_graphdef_value operands[2];
    int64_t first_axes[PEN_GRAPHDEF_INTS_LIMIT];
    PEN_TRY(pen_graphdef_operand_ints(draft, 1, &axes));
    if (axes->count == 0) {
        return pen_graphdef_pass(draft, 0, 0);
    }
    const bool from_first = pen_graphdef_operand_is_first(draft, 0) && axes->count <= 4 &&
                            reduce_axes_first(axes, keeps, first_axes);
    PEN_TRY(pen_graphdef_operand_form(draft, 0, from_first, &operands[0]));
    PEN_TRY(pen_graphdef_ints_value(draft, "axes", axes->count,
                                    from_first ? first_axes : axes->integers, &operands[1]));
    return pen_graphdef_give_form(draft, from_first && keeps, draft->mapping->op_name,
                                  PEN_GRAPHDEF_ALL(operands),
                                  PEN_WITH(pen_attribute_int("keepdims", keeps)));
}

// ---- integers

static bool evaluate_one(const char *op, int64_t a, int64_t b, int64_t *out_result) {
    const bool divides = b != 0 && !(b == -1 && a == INT64_MIN);
    if (strcmp(op, "add") == 0) return pen_i64_add(a, b, out_result);
    if (strcmp(op, "mul") == 0) return pen_i64_mul(a, b, out_result);
    if (strcmp(op, "sub") == 0) return b != INT64_MIN && pen_i64_add(a, -b, out_result);
    if (strcmp(op, "max") == 0) *out_result = pen_max_i64(a, b);
    if (strcmp(op, "min") == 0) *out_result = pen_min_i64(a, b);
    if (strcmp(op, "max") == 0 || strcmp(op, "min") == 0) return true;
    if (!divides) return false;
    const int64_t remainder = a % b;
    const bool is_down = remainder != 0 && (remainder < 0) != (b < 0);
    if (strcmp(op, "div") == 0) *out_result = a / b;
    if (strcmp(op, "floor_div") == 0) *out_result = a / b - (is_down ? 1 : 0);
    if (strcmp(op, "floor_mod") == 0) *out_result = remainder + (is_down ? b : 0);
    return true;
}

// Of two integers one; false: it has none, as a quotient by 0.
typedef bool (*evaluate_fn)(const char *op, int64_t a, int64_t b, int64_t *out_result);

// Each of `a` with each of `b`, or one of them with all of the other.
static void evaluate_pairs(const char *op, evaluate_fn evaluate, const pen_graphdef_ints_known *a,
                           const pen_graphdef_ints_known *b, pen_graphdef_ints_known *out_ints) {
    if (a == NULL || b == NULL) return;
    if (a->count != b->count && a->count != 1 && b->count != 1) return;
    const uint32_t count = a->count == 1 ? b->count : a->count;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t left = a->integers[a->count == 1 ? 0 : i];
        const int64_t right = b->integers[b->count == 1 ? 0 : i];
        if (!evaluate(op, left, right, &out_ints->integers[i])) return;
    }
    out_ints->count = count;
    out_ints->is_scalar = a->is_scalar && b->is_scalar;
    out_ints->is_known = true;
}

static pen_status evaluate_binary(const pen_graphdef_evaluation *known) {
    evaluate_pairs(known->draft->mapping->op_name, evaluate_one, pen_graphdef_known(known, 0),
                   pen_graphdef_known(known, 1), known->out);
    return PEN_OK;
}

static bool evaluate_one_truth(const char *op, int64_t a, int64_t b, int64_t *out_result) {
    bool holds = a != 0 || b != 0; // LogicalOr
    if (strcmp(op, "Less") == 0) holds = a < b;
    if (strcmp(op, "LessEqual") == 0) holds = a <= b;
    if (strcmp(op, "Greater") == 0) holds = a > b;
    if (strcmp(op, "GreaterEqual") == 0) holds = a >= b;
    if (strcmp(op, "Equal") == 0) holds = a == b;
    if (strcmp(op, "NotEqual") == 0) holds = a != b;
    if (strcmp(op, "LogicalAnd") == 0) holds = a != 0 && b != 0;
    if (strcmp(op, "LogicalNot") == 0) holds = a == 0; // `b` is `a`
    *out_result = holds;
    return true;
}

// Comparisons of integers, and what is made of them.
static pen_status evaluate_truth(const pen_graphdef_evaluation *known) {
    const char *op = known->draft->node->op;
    const uint32_t second = strcmp(op, "LogicalNot") == 0 ? 0 : 1;
    evaluate_pairs(op, evaluate_one_truth, pen_graphdef_known(known, 0),
                   pen_graphdef_known(known, second), known->out);
    return PEN_OK;
}

static pen_status evaluate_negative(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *a = pen_graphdef_known(known, 0);
    if (a == NULL) return PEN_OK;
    *known->out = *a;
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->integers[i] == INT64_MIN) known->out->is_known = false;
        if (a->integers[i] != INT64_MIN) known->out->integers[i] = -a->integers[i];
    }
    return PEN_OK;
}

// Of a list, all of it.
static pen_status evaluate_reduce(const pen_graphdef_evaluation *known) {
    const pen_graphdef_ints_known *a = pen_graphdef_known(known, 0);
    const pen_graphdef_ints_known *axes = pen_graphdef_known(known, 1);
    const char *op = known->draft->mapping->op_name;
    if (a == NULL || axes == NULL || a->is_scalar || axes->count != 1) return PEN_OK;
    const bool is_product = strcmp(op, "reduce_prod") == 0, is_sum = strcmp(op, "reduce_sum") == 0;
    if (!is_product && !is_sum && a->count == 0) return PEN_OK;
    if (strcmp(op, "reduce_mean") == 0) return PEN_OK;
    const char *step = is_product                      ? "mul"
                       : is_sum                        ? "add"
                       : strcmp(op, "reduce_max") == 0 ? "max"
                                                       : "min";
    int64_t result = is_product ? 1 : is_sum ? 0 : a->integers[0];
    for (uint32_t i = 0; i < a->count; i++) {
        if (!evaluate_one(step, result, a->integers[i], &result)) return PEN_OK;
    }
    known->out->is_scalar = pen_graphdef_int(known->draft->node, "keep_dims", 0) == 0;
    known->out->count = 1;
    known->out->integers[0] = result;
    known->out->is_known = true;
    return PEN_OK;
}

#define TRUTH(name, ours, conversion)                                                              \
    {                                                                                              \
        .op = (name), .op_name = (ours), .convert = (conversion), .evaluate = evaluate_truth,      \
        .is_truth = true                                                                           \
    }

static const pen_graphdef_mapping arithmetic_mappings[] = {
    {.op = "Abs", .op_name = "abs", .convert = convert_unary},
    {.op = "Acos", .op_name = "acos", .convert = convert_unary},
    {.op = "Acosh", .op_name = "acosh", .convert = convert_unary},
    {.op = "Add", .op_name = "add", .convert = convert_binary, .evaluate = evaluate_binary},
    {.op = "AddN", .op_name = "sum", .convert = convert_add_n},
    {.op = "AddV2", .op_name = "add", .convert = convert_binary, .evaluate = evaluate_binary},
    {.op = "Asin", .op_name = "asin", .convert = convert_unary},
    {.op = "Asinh", .op_name = "asinh", .convert = convert_unary},
    {.op = "Atan", .op_name = "atan", .convert = convert_unary},
    {.op = "Atanh", .op_name = "atanh", .convert = convert_unary},
    {.op = "Ceil", .op_name = "ceil", .convert = convert_unary},
    {.op = "CheckNumerics", .convert = convert_pass},
    {.op = "Cos", .op_name = "cos", .convert = convert_unary},
    {.op = "Cosh", .op_name = "cosh", .convert = convert_unary},
    {.op = "Div", .op_name = "div", .convert = convert_binary, .evaluate = evaluate_binary},
    {.op = "Elu", .op_name = "elu", .convert = convert_unary},
    {.op = "EnsureShape", .convert = convert_pass},
    TRUTH("Equal", "equal", convert_binary),
    {.op = "Erf", .op_name = "erf", .convert = convert_unary},
    {.op = "Erfc", .convert = convert_erfc},
    {.op = "Exp", .op_name = "exp", .convert = convert_unary},
    {.op = "Expm1", .convert = convert_expm1},
    {.op = "Floor", .op_name = "floor", .convert = convert_unary},
    {.op = "FloorDiv",
     .op_name = "floor_div",
     .convert = convert_floor_div,
     .evaluate = evaluate_binary},
    {.op = "FloorMod",
     .op_name = "floor_mod",
     .convert = convert_floor_mod,
     .evaluate = evaluate_binary},
    TRUTH("Greater", "greater", convert_binary),
    TRUTH("GreaterEqual", "greater_or_equal", convert_binary),
    {.op = "Identity", .convert = convert_pass},
    {.op = "IdentityN", .convert = convert_pass},
    {.op = "Inv", .op_name = "reciprocal", .convert = convert_unary},
    {.op = "LeakyRelu", .op_name = "leaky_relu", .convert = convert_leaky_relu},
    TRUTH("Less", "less", convert_binary),
    TRUTH("LessEqual", "less_or_equal", convert_binary),
    {.op = "Log", .op_name = "log", .convert = convert_unary},
    {.op = "Log1p", .convert = convert_log1p},
    TRUTH("LogicalAnd", "and", convert_binary),
    TRUTH("LogicalNot", "not", convert_unary),
    TRUTH("LogicalOr", "or", convert_binary),
    {.op = "Max", .op_name = "reduce_max", .convert = convert_reduce, .evaluate = evaluate_reduce},
    {.op = "Maximum", .op_name = "max", .convert = convert_binary, .evaluate = evaluate_binary},
    {.op = "Mean", .op_name = "reduce_mean", .convert = convert_reduce},
    {.op = "Merge", .convert = convert_pass},
    {.op = "Min", .op_name = "reduce_min", .convert = convert_reduce, .evaluate = evaluate_reduce},
    {.op = "Minimum", .op_name = "min", .convert = convert_binary, .evaluate = evaluate_binary},
    {.op = "Mul", .op_name = "mul", .convert = convert_mul, .evaluate = evaluate_binary},
    {.op = "Neg", .op_name = "neg", .convert = convert_unary, .evaluate = evaluate_negative},
    TRUTH("NotEqual", NULL, convert_not_equal),
    {.op = "PlaceholderWithDefault", .convert = convert_pass},
    {.op = "Pow", .op_name = "pow", .convert = convert_binary},
    {.op = "PreventGradient", .convert = convert_stop},
    {.op = "Prod",
     .op_name = "reduce_prod",
     .convert = convert_reduce,
     .evaluate = evaluate_reduce},
    {.op = "ReadVariableOp", .convert = convert_pass},
    {.op = "RealDiv", .op_name = "div", .convert = convert_binary},
    {.op = "Reciprocal", .op_name = "reciprocal", .convert = convert_unary},
    {.op = "Relu", .op_name = "relu", .convert = convert_unary},
    {.op = "Relu6", .convert = convert_relu6},
    {.op = "Rint", .op_name = "round", .convert = convert_unary},
    {.op = "Round", .op_name = "round", .convert = convert_unary},
    {.op = "Rsqrt", .convert = convert_rsqrt},
    {.op = "Select", .convert = convert_select},
    {.op = "SelectV2", .convert = convert_select},
    {.op = "Selu", .op_name = "selu", .convert = convert_unary},
    {.op = "Sigmoid", .op_name = "sigmoid", .convert = convert_unary},
    {.op = "Sign", .op_name = "sign", .convert = convert_unary},
    {.op = "Sin", .op_name = "sin", .convert = convert_unary},
    {.op = "Sinh", .op_name = "sinh", .convert = convert_unary},
    {.op = "Snapshot", .convert = convert_pass},
    {.op = "Softplus", .op_name = "softplus", .convert = convert_unary},
    {.op = "Softsign", .op_name = "softsign", .convert = convert_unary},
    {.op = "Sqrt", .op_name = "sqrt", .convert = convert_unary},
    {.op = "Square", .convert = convert_square},
    {.op = "SquaredDifference", .convert = convert_squared_difference},
    {.op = "StopGradient", .convert = convert_stop},
    {.op = "Sub", .op_name = "sub", .convert = convert_binary, .evaluate = evaluate_binary},
    {.op = "Sum", .op_name = "reduce_sum", .convert = convert_reduce, .evaluate = evaluate_reduce},
    {.op = "Switch", .convert = convert_pass},
    {.op = "Tan", .op_name = "tan", .convert = convert_unary},
    {.op = "Tanh", .op_name = "tanh", .convert = convert_unary},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_arithmetic, arithmetic_mappings);
