// Arithmetic and choices, element by element. Operands are cast to the result's element, which is
// what PyTorch promotes them to.

#include <math.h>
#include <string.h>

#include "graph/import/pytorch/ops/pt2_dropout.h"
#include "graph/import/pytorch/pt2_mapping.h"

// `value` times the number `name`, which is 1 unless given.
static pen_status elementwise_scale(pen_pt2_draft *draft, const char *name, pen_value_id value,
                                    pen_value_id *out_value) {
    *out_value = value;
    if (!pen_pt2_is_symbol(draft, name) && pen_pt2_float(draft, name, 1) == 1) return PEN_OK;
    pen_value_id factor;
    PEN_TRY(pen_pt2_scalar(draft, name, pen_pt2_own_element(draft), 1, &factor));
    return pen_pt2_pair(draft, "mul", name, value, factor, out_value);
}

// self + alpha other, self - alpha other. The sum of bools is whether there is one.
static pen_status convert_sum(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    if (pen_pt2_own_element(draft) == PEN_BOOL) return pen_pt2_give_pair(draft, "or", a, b);
    PEN_TRY(elementwise_scale(draft, "alpha", b, &b));
    return pen_pt2_give_pair(draft, pen_pt2_op_name(draft), a, b);
}

static pen_status convert_rsub(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    PEN_TRY(elementwise_scale(draft, "alpha", a, &a));
    return pen_pt2_give_pair(draft, "sub", b, a);
}

static pen_status convert_mul(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    const bool is_logical = pen_pt2_own_element(draft) == PEN_BOOL;
    return pen_pt2_give_pair(draft, is_logical ? "and" : "mul", a, b);
}

// ---- quotients

// Whether the remainder `m` is not 0, and has another sign than the divisor: whether a quotient
// rounded towards 0 is one above the one rounded down.
static pen_status quotient_is_above(pen_pt2_draft *draft, pen_value_id m, pen_value_id divisor,
                                    pen_value_id *out_value) {
    pen_value_id zero, is_zero, differs, signs[2];
    PEN_TRY(pen_pt2_own_number(draft, 0, &zero));
    PEN_TRY(pen_pt2_pair(draft, "less", "remainder_sign", m, zero, &signs[0]));
    PEN_TRY(pen_pt2_pair(draft, "less", "divisor_sign", divisor, zero, &signs[1]));
    PEN_TRY(pen_pt2_pair(draft, "xor", "differs", signs[0], signs[1], &differs));
    PEN_TRY(pen_pt2_pair(draft, "equal", "is_whole", m, zero, &is_zero));
    PEN_TRY(pen_pt2_map(draft, "not", "has_rest", is_zero, &is_zero));
    return pen_pt2_pair(draft, "and", "is_above", differs, is_zero, out_value);
}

// The remainder of a / b with the sign of a, or, of integers, of b where `is_floored`.
static pen_status quotient_rest(pen_pt2_draft *draft, pen_value_id a, pen_value_id b,
                                bool is_floored, pen_value_id *out_value) {
    return pen_pt2_emit(draft, "mod", "rest", PEN_INPUTS(a, b),
                        PEN_WITH(pen_attribute_int("fmod", is_floored ? 0 : 1)), out_value);
}

// By way of the remainder, as PyTorch has it: a / b may be rounded up to a whole number.
static pen_status quotient_floor(pen_pt2_draft *draft, pen_value_id a, pen_value_id b) {
    const bool is_float = pen_element_is_float(pen_pt2_own_element(draft));
    pen_value_id rest, quotient, one, lower, is_above;
    PEN_TRY(quotient_rest(draft, a, b, !is_float, &rest));
    PEN_TRY(pen_pt2_pair(draft, "sub", "multiple", a, rest, &quotient));
    if (!is_float) return pen_pt2_give_pair(draft, "div", quotient, b);
    PEN_TRY(pen_pt2_pair(draft, "div", "quotient", quotient, b, &quotient));
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    PEN_TRY(pen_pt2_pair(draft, "sub", "lower", quotient, one, &lower));
    PEN_TRY(quotient_is_above(draft, rest, b, &is_above));
    PEN_TRY(pen_pt2_where(draft, "chosen", is_above, lower, quotient, &quotient));
    return pen_pt2_give_map(draft, "round", quotient);
}

// The integer next to `value` towards 0.
static pen_status elementwise_truncate(pen_pt2_draft *draft, pen_value_id value) {
    pen_value_id zero, is_negative, above, below;
    PEN_TRY(pen_pt2_own_number(draft, 0, &zero));
    PEN_TRY(pen_pt2_pair(draft, "less", "is_negative", value, zero, &is_negative));
    PEN_TRY(pen_pt2_map(draft, "ceil", "above", value, &above));
    PEN_TRY(pen_pt2_map(draft, "floor", "below", value, &below));
    return pen_pt2_give(draft, "where", PEN_INPUTS(is_negative, above, below), PEN_NO_ATTRIBUTES);
}

static pen_status convert_div(pen_pt2_draft *draft) {
    const char *mode = pen_pt2_text(draft, "rounding_mode", "");
    pen_value_id a, b;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    if (strcmp(mode, "floor") == 0) return quotient_floor(draft, a, b);
    if (strcmp(mode, "trunc") == 0 && pen_element_is_float(pen_pt2_own_element(draft))) {
        PEN_TRY(pen_pt2_pair(draft, "div", "quotient", a, b, &a));
        return elementwise_truncate(draft, a);
    }
    return pen_pt2_give_pair(draft, "div", a, b);
}

static pen_status convert_floor_divide(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    return quotient_floor(draft, a, b);
}

static pen_status convert_fmod(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    return pen_pt2_give(draft, "mod", PEN_INPUTS(a, b), PEN_WITH(pen_attribute_int("fmod", 1)));
}

// Has the sign of the divisor.
static pen_status convert_remainder(pen_pt2_draft *draft) {
    pen_value_id a, b, rest, is_above, moved;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    if (!pen_element_is_float(pen_pt2_own_element(draft))) {
        return pen_pt2_give(draft, "mod", PEN_INPUTS(a, b), PEN_WITH(pen_attribute_int("fmod", 0)));
    }
    PEN_TRY(quotient_rest(draft, a, b, false, &rest));
    PEN_TRY(quotient_is_above(draft, rest, b, &is_above));
    PEN_TRY(pen_pt2_pair(draft, "add", "moved", rest, b, &moved));
    return pen_pt2_give(draft, "where", PEN_INPUTS(is_above, moved, rest), PEN_NO_ATTRIBUTES);
}

// ---- powers, roots and logarithms

static pen_status convert_pow(pen_pt2_draft *draft) {
    pen_value_id base, exponent;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "exponent", &base, &exponent));
    return pen_pt2_give_pair(draft, "pow", base, exponent);
}

static pen_status convert_square(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    return pen_pt2_give_pair(draft, "mul", x, x);
}

static pen_status convert_rsqrt(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_map(draft, "sqrt", "sqrt", x, &x));
    return pen_pt2_give_map(draft, "reciprocal", x);
}

static pen_status convert_exp2(pen_pt2_draft *draft) {
    pen_value_id x, two;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_number(draft, 2, &two));
    return pen_pt2_give_pair(draft, "pow", two, x);
}

// 2 sinh(x / 2) exp(x / 2), which keeps all digits near 0.
static pen_status convert_expm1(pen_pt2_draft *draft) {
    pen_value_id x, half, two, sinh_half;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_number(draft, 0.5, &half));
    PEN_TRY(pen_pt2_own_number(draft, 2, &two));
    PEN_TRY(pen_pt2_pair(draft, "mul", "half", x, half, &half));
    PEN_TRY(pen_pt2_map(draft, "sinh", "sinh", half, &sinh_half));
    PEN_TRY(pen_pt2_map(draft, "exp", "exp", half, &half));
    PEN_TRY(pen_pt2_pair(draft, "mul", "product", sinh_half, half, &half));
    return pen_pt2_give_pair(draft, "mul", half, two);
}

// Where |x| < 1, 2 atanh(x / (2 + x)), which keeps all digits near 0; elsewhere log(1 + x). Each
// is 0 where the other is meant, so that both add up.
static pen_status convert_log1p(pen_pt2_draft *draft) {
    pen_value_id x, zero, one, two, is_small, small, large, size, quotient;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_number(draft, 0, &zero));
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    PEN_TRY(pen_pt2_own_number(draft, 2, &two));
    PEN_TRY(pen_pt2_map(draft, "abs", "size", x, &size));
    PEN_TRY(pen_pt2_pair(draft, "less", "is_small", size, one, &is_small));
    PEN_TRY(pen_pt2_where(draft, "small", is_small, x, zero, &small));
    PEN_TRY(pen_pt2_where(draft, "large", is_small, zero, x, &large));
    PEN_TRY(pen_pt2_pair(draft, "add", "divisor", small, two, &quotient));
    PEN_TRY(pen_pt2_pair(draft, "div", "quotient", small, quotient, &quotient));
    PEN_TRY(pen_pt2_map(draft, "atanh", "atanh", quotient, &small));
    PEN_TRY(pen_pt2_pair(draft, "mul", "near", small, two, &small));
    PEN_TRY(pen_pt2_pair(draft, "add", "argument", large, one, &large));
    PEN_TRY(pen_pt2_map(draft, "log", "far", large, &large));
    return pen_pt2_give_pair(draft, "add", small, large);
}

static pen_status elementwise_log(pen_pt2_draft *draft, double factor) {
    pen_value_id x, number;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_map(draft, "log", "log", x, &x));
    PEN_TRY(pen_pt2_own_number(draft, factor, &number));
    return pen_pt2_give_pair(draft, "mul", x, number);
}

static pen_status convert_log2(pen_pt2_draft *draft) {
    return elementwise_log(draft, 1.4426950408889634);
}

static pen_status convert_log10(pen_pt2_draft *draft) {
    return elementwise_log(draft, 0.4342944819032518);
}

// max(a, b) + log(1 + exp(-|a - b|))
static pen_status convert_logaddexp(pen_pt2_draft *draft) {
    pen_value_id a, b, larger, rest;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    PEN_TRY(pen_pt2_pair(draft, "max", "larger", a, b, &larger));
    PEN_TRY(pen_pt2_pair(draft, "sub", "difference", a, b, &rest));
    PEN_TRY(pen_pt2_map(draft, "abs", "distance", rest, &rest));
    PEN_TRY(pen_pt2_map(draft, "neg", "negative", rest, &rest));
    PEN_TRY(pen_pt2_map(draft, "softplus", "rest", rest, &rest));
    return pen_pt2_give_pair(draft, "add", larger, rest);
}

static pen_status convert_hypot(pen_pt2_draft *draft) {
    pen_value_id a, b;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    PEN_TRY(pen_pt2_pair(draft, "mul", "square", a, a, &a));
    PEN_TRY(pen_pt2_pair(draft, "mul", "other_square", b, b, &b));
    PEN_TRY(pen_pt2_pair(draft, "add", "squares", a, b, &a));
    return pen_pt2_give_map(draft, "sqrt", a);
}

static pen_status convert_erfc(pen_pt2_draft *draft) {
    pen_value_id x, one;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    PEN_TRY(pen_pt2_map(draft, "erf", "erf", x, &x));
    return pen_pt2_give_pair(draft, "sub", one, x);
}

// ---- rounding: integers are whole already

static pen_status convert_rounded(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    const bool is_float = pen_element_is_float(pen_pt2_own_element(draft));
    return pen_pt2_give_map(draft, is_float ? pen_pt2_op_name(draft) : "identity", x);
}

// Also how models make 0 and 1 of random numbers, to drop whole examples.
static pen_status convert_floor(pen_pt2_draft *draft) {
    pen_value_id x;
    bool is_chance;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_dropout_of_floor(draft, x, &is_chance));
    return is_chance ? PEN_OK : convert_rounded(draft);
}

static pen_status convert_trunc(pen_pt2_draft *draft) {
    pen_value_id x;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    if (!pen_element_is_float(pen_pt2_own_element(draft))) {
        return pen_pt2_give_map(draft, "identity", x);
    }
    return elementwise_truncate(draft, x);
}

// x - trunc(x), the remainder of a division by 1 that has the sign of x.
static pen_status convert_frac(pen_pt2_draft *draft) {
    pen_value_id x, one;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    return pen_pt2_give(draft, "mod", PEN_INPUTS(x, one), PEN_WITH(pen_attribute_int("fmod", 1)));
}

// ---- choices

// Of numbers as limits: nothing that equals one has a gradient. Of tensors: what is equal shares
// it.
static pen_status convert_clamp(pen_pt2_draft *draft) {
    static const char *const names[] = {"min", "max"}, *const choices[] = {"max", "min"};
    const bool is_by_tensors = pen_pt2_is_tensor(draft, "min") || pen_pt2_is_tensor(draft, "max");
    pen_value_id inputs[3] = {PEN_VALUE_NONE, PEN_VALUE_NONE, PEN_VALUE_NONE};
    PEN_TRY(pen_pt2_own_operand(draft, "self", &inputs[0]));
    for (uint32_t i = 0; i < 2; i++) {
        if (!pen_pt2_has(draft, names[i])) continue;
        PEN_TRY(pen_pt2_own_operand(draft, names[i], &inputs[1 + i]));
        if (!is_by_tensors) continue;
        const bool is_last = i == 1 || !pen_pt2_has(draft, "max");
        PEN_TRY(pen_pt2_pair(draft, choices[i], is_last ? NULL : "held", inputs[0], inputs[1 + i],
                             &inputs[0]));
    }
    if (is_by_tensors) return pen_pt2_set(draft, 0, inputs[0]);
    return pen_pt2_give(draft, "clip", PEN_INPUTS_ALL(inputs), PEN_NO_ATTRIBUTES);
}

static pen_status convert_where(pen_pt2_draft *draft) {
    pen_value_id when, a, b;
    PEN_TRY(pen_pt2_operand(draft, "condition", PEN_BOOL, &when));
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    return pen_pt2_give(draft, "where", PEN_INPUTS(when, a, b), PEN_NO_ATTRIBUTES);
}

static pen_status convert_masked_fill(pen_pt2_draft *draft) {
    pen_value_id mask, x, value;
    PEN_TRY(pen_pt2_operand(draft, "mask", PEN_BOOL, &mask));
    PEN_TRY(pen_pt2_own_operands(draft, "self", "value", &x, &value));
    return pen_pt2_give(draft, "where", PEN_INPUTS(mask, value, x), PEN_NO_ATTRIBUTES);
}

// What is no number, or endless, becomes the numbers given, or 0 and the largest ones.
static pen_status convert_nan_to_num(pen_pt2_draft *draft) {
    const double most =
        pen_pt2_own_element(draft) == PEN_FLOAT64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
    static const char *const names[] = {"nan", "posinf", "neginf"};
    const double numbers[] = {0, most, -most};
    pen_value_id x, is_odd;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    if (!pen_element_is_float(pen_pt2_own_element(draft))) {
        return pen_pt2_give_map(draft, "identity", x);
    }
    for (uint32_t i = 0; i < 3; i++) {
        pen_value_id number;
        PEN_TRY(pen_pt2_scalar(draft, names[i], pen_pt2_own_element(draft), numbers[i], &number));
        const pen_node_attributes signs = PEN_WITH(pen_attribute_int("detect_negative", i == 2),
                                                   pen_attribute_int("detect_positive", i == 1));
        PEN_TRY(pen_pt2_emit(draft, i == 0 ? "isnan" : "isinf", names[i], PEN_INPUTS(x),
                             i == 0 ? PEN_NO_ATTRIBUTES : signs, &is_odd));
        PEN_TRY(pen_pt2_where(draft, i == 2 ? NULL : "replaced", is_odd, number, x, &x));
    }
    return pen_pt2_set(draft, 0, x);
}

// self log(other), and 0 where self is 0 and the logarithm no number.
static pen_status convert_xlogy(pen_pt2_draft *draft) {
    pen_value_id a, b, zero, one, is_zero, has_no_log;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "other", &a, &b));
    PEN_TRY(pen_pt2_own_number(draft, 0, &zero));
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    PEN_TRY(pen_pt2_pair(draft, "equal", "is_zero", a, zero, &is_zero));
    PEN_TRY(pen_pt2_pair(draft, "less_or_equal", "has_no_log", b, zero, &has_no_log));
    PEN_TRY(pen_pt2_pair(draft, "and", "is_nothing", is_zero, has_no_log, &is_zero));
    PEN_TRY(pen_pt2_where(draft, "argument", is_zero, one, b, &b));
    PEN_TRY(pen_pt2_map(draft, "log", "log", b, &b));
    return pen_pt2_give_pair(draft, "mul", a, b);
}

// ---- sums of products

// self + value tensor1 tensor2, or self + value tensor1 / tensor2: the row says which.
static pen_status convert_addc(pen_pt2_draft *draft) {
    pen_value_id x, a, b;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_operands(draft, "tensor1", "tensor2", &a, &b));
    PEN_TRY(pen_pt2_pair(draft, pen_pt2_op_name(draft), "term", a, b, &a));
    PEN_TRY(elementwise_scale(draft, "value", a, &a));
    return pen_pt2_give_pair(draft, "add", x, a);
}

static pen_status convert_lerp(pen_pt2_draft *draft) {
    pen_value_id from, to, weight;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "end", &from, &to));
    PEN_TRY(pen_pt2_own_operand(draft, "weight", &weight));
    PEN_TRY(pen_pt2_pair(draft, "sub", "way", to, from, &to));
    PEN_TRY(pen_pt2_pair(draft, "mul", "part", to, weight, &to));
    return pen_pt2_give_pair(draft, "add", from, to);
}

// log(x / (1 - x)), x being held between eps and 1 - eps where eps is given.
static pen_status convert_logit(pen_pt2_draft *draft) {
    pen_value_id x, one, rest;
    PEN_TRY(pen_pt2_own_operand(draft, "self", &x));
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    if (pen_pt2_has(draft, "eps")) {
        const double eps = pen_pt2_float(draft, "eps", 0);
        pen_value_id low, high;
        PEN_TRY(pen_pt2_own_number(draft, eps, &low));
        PEN_TRY(pen_pt2_own_number(draft, 1 - eps, &high));
        PEN_TRY(
            pen_pt2_emit(draft, "clip", "held", PEN_INPUTS(x, low, high), PEN_NO_ATTRIBUTES, &x));
    }
    PEN_TRY(pen_pt2_pair(draft, "sub", "rest", one, x, &rest));
    PEN_TRY(pen_pt2_pair(draft, "div", "odds", x, rest, &x));
    return pen_pt2_give_map(draft, "log", x);
}

#define UNARY(aten, op)                                                                            \
    { .target = "aten." aten ".default", .op_name = op, .convert = pen_pt2_convert_unary }
#define ROUNDED(op)                                                                                \
    { .target = "aten." op ".default", .op_name = op, .convert = convert_rounded }
// Of tensors, and of a tensor and a number.
#define BOTH(aten, of) PEN_PT2_ROW(aten ".Tensor", of), PEN_PT2_ROW(aten ".Scalar", of)
#define BOTH_NAMED(aten, op, of)                                                                   \
    PEN_PT2_NAMED(aten ".Tensor", op, of), PEN_PT2_NAMED(aten ".Scalar", op, of)

static const pen_pt2_mapping elementwise_rows[] = {
    BOTH_NAMED("add", "add", sum),
    BOTH_NAMED("sub", "sub", sum),
    BOTH_NAMED("subtract", "sub", sum),
    BOTH("rsub", rsub),
    BOTH("mul", mul),
    BOTH("multiply", mul),
    BOTH("div", div),
    PEN_PT2_ROW("div.Tensor_mode", div),
    PEN_PT2_ROW("div.Scalar_mode", div),
    BOTH("divide", div),
    PEN_PT2_ROW("divide.Tensor_mode", div),
    PEN_PT2_ROW("divide.Scalar_mode", div),
    BOTH("true_divide", div),
    PEN_PT2_ROW("floor_divide.default", floor_divide),
    PEN_PT2_ROW("floor_divide.Scalar", floor_divide),
    BOTH("fmod", fmod),
    BOTH("remainder", remainder),
    PEN_PT2_ROW("remainder.Scalar_Tensor", remainder),
    PEN_PT2_ROW("pow.Tensor_Tensor", pow),
    PEN_PT2_ROW("pow.Tensor_Scalar", pow),
    PEN_PT2_ROW("pow.Scalar", pow),
    PEN_PT2_ROW("square.default", square),
    PEN_PT2_ROW("rsqrt.default", rsqrt),
    PEN_PT2_ROW("exp2.default", exp2),
    PEN_PT2_ROW("expm1.default", expm1),
    PEN_PT2_ROW("log1p.default", log1p),
    PEN_PT2_ROW("log2.default", log2),
    PEN_PT2_ROW("log10.default", log10),
    PEN_PT2_ROW("logaddexp.default", logaddexp),
    PEN_PT2_ROW("hypot.default", hypot),
    PEN_PT2_ROW("erfc.default", erfc),
    PEN_PT2_ROW("logit.default", logit),
    PEN_PT2_ROW("xlogy.Tensor", xlogy),
    PEN_PT2_ROW("xlogy.Scalar_Other", xlogy),
    PEN_PT2_ROW("xlogy.Scalar_Self", xlogy),
    UNARY("neg", "neg"),
    UNARY("negative", "neg"),
    UNARY("abs", "abs"),
    UNARY("sign", "sign"),
    UNARY("sgn", "sign"),
    UNARY("exp", "exp"),
    UNARY("log", "log"),
    UNARY("sqrt", "sqrt"),
    UNARY("reciprocal", "reciprocal"),
    UNARY("erf", "erf"),
    UNARY("sin", "sin"),
    UNARY("cos", "cos"),
    UNARY("tan", "tan"),
    UNARY("asin", "asin"),
    UNARY("acos", "acos"),
    UNARY("atan", "atan"),
    UNARY("sinh", "sinh"),
    UNARY("cosh", "cosh"),
    UNARY("asinh", "asinh"),
    UNARY("acosh", "acosh"),
    UNARY("atanh", "atanh"),
    PEN_PT2_NAMED("floor.default", "floor", floor),
    ROUNDED("ceil"),
    ROUNDED("round"),
    PEN_PT2_ROW("trunc.default", trunc),
    PEN_PT2_ROW("fix.default", trunc),
    PEN_PT2_ROW("frac.default", frac),
    {.target = "aten.maximum.default", .op_name = "max", .convert = pen_pt2_convert_binary},
    {.target = "aten.minimum.default", .op_name = "min", .convert = pen_pt2_convert_binary},
    {.target = "aten.max.other", .op_name = "max", .convert = pen_pt2_convert_binary},
    {.target = "aten.min.other", .op_name = "min", .convert = pen_pt2_convert_binary},
    PEN_PT2_ROW("clamp.default", clamp),
    PEN_PT2_ROW("clamp.Tensor", clamp),
    PEN_PT2_ROW("clip.default", clamp),
    PEN_PT2_ROW("clip.Tensor", clamp),
    PEN_PT2_ROW("clamp_min.default", clamp),
    PEN_PT2_ROW("clamp_min.Tensor", clamp),
    PEN_PT2_ROW("clamp_max.default", clamp),
    PEN_PT2_ROW("clamp_max.Tensor", clamp),
    PEN_PT2_ROW("where.self", where),
    PEN_PT2_ROW("where.ScalarOther", where),
    PEN_PT2_ROW("where.ScalarSelf", where),
    PEN_PT2_ROW("where.Scalar", where),
    BOTH("masked_fill", masked_fill),
    PEN_PT2_ROW("nan_to_num.default", nan_to_num),
    PEN_PT2_NAMED("addcmul.default", "mul", addc),
    PEN_PT2_NAMED("addcdiv.default", "div", addc),
    BOTH("lerp", lerp),
};

PEN_PT2_FAMILY(pen_pt2_elementwise, elementwise_rows);
