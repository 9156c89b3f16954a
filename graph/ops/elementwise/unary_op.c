// Functions of one number, each applied to every element.
//
// Every differentiable one has a backward op of its own, "<name>_backward": it takes the gradient
// of the output and one more operand, the input, or, where the derivative can be had from it, the
// output (then the input may be overwritten in place).

#include "graph/op_table.h"
#include "graph/ops/elementwise/elementwise_rule.h"

#define UNARY_OP(op, does, infer_rule, gradient_rule)                                              \
    {                                                                                              \
        .name = #op, .summary = does, .input_min = 1, .input_max = 1, .output_min = 1,             \
        .output_max = 1, .in_place_inputs = 1, .infer = infer_rule, .gradient = gradient_rule,     \
        .flops = pen_flops_of_output                                                               \
    }
#define UNARY_BACKWARD(op, operand)                                                                \
    {                                                                                              \
        .name = #op "_backward",                                                                   \
        .summary = "gradient of " #op " from that of its output, and its " operand,                \
        .input_min = 2, .input_max = 2, .output_min = 1, .output_max = 1, .in_place_inputs = 3,    \
        .infer = pen_infer_alike, .flops = pen_flops_of_output                                     \
    }
#define UNARY_FROM_INPUT(op, does, infer_rule)                                                     \
    UNARY_OP(op, does, infer_rule, pen_gradient_from_input), UNARY_BACKWARD(op, "input")
#define UNARY_FROM_OUTPUT(op, does, infer_rule)                                                    \
    UNARY_OP(op, does, infer_rule, pen_gradient_from_output), UNARY_BACKWARD(op, "output")

static pen_status neg_gradient(pen_gradient_context *context) {
    pen_value_id gradient;
    PEN_TRY(pen_gradient_apply(context, 0, "neg", pen_gradient_of_output(context, 0),
                               PEN_VALUE_NONE, &gradient));
    pen_gradient_set(context, 0, gradient);
    return PEN_OK;
}

static const pen_op unary_ops[] = {
    UNARY_OP(neg, "-x", pen_infer_signed_map, neg_gradient),
    UNARY_OP(sign, "-1, 0 or 1", pen_infer_number_map, pen_gradient_is_zero),
    UNARY_OP(floor, "the largest integer not above x", pen_infer_float_map, pen_gradient_is_zero),
    UNARY_OP(ceil, "the smallest integer not below x", pen_infer_float_map, pen_gradient_is_zero),
    UNARY_OP(round, "the nearest integer, halves to even", pen_infer_float_map,
             pen_gradient_is_zero),
    UNARY_FROM_INPUT(abs, "|x|", pen_infer_number_map),
    UNARY_FROM_OUTPUT(reciprocal, "1 / x", pen_infer_float_map),
    UNARY_FROM_OUTPUT(exp, "e to the power of x", pen_infer_float_map),
    UNARY_FROM_INPUT(log, "natural logarithm", pen_infer_float_map),
    UNARY_FROM_OUTPUT(sqrt, "square root", pen_infer_float_map),
    UNARY_FROM_INPUT(erf, "error function", pen_infer_number_map),
    UNARY_FROM_INPUT(sin, "sine", pen_infer_float_map),
    UNARY_FROM_INPUT(cos, "cosine", pen_infer_float_map),
    UNARY_FROM_OUTPUT(tan, "tangent", pen_infer_float_map),
    UNARY_FROM_INPUT(asin, "inverse sine", pen_infer_float_map),
    UNARY_FROM_INPUT(acos, "inverse cosine", pen_infer_float_map),
    UNARY_FROM_INPUT(atan, "inverse tangent", pen_infer_float_map),
    UNARY_FROM_INPUT(sinh, "hyperbolic sine", pen_infer_float_map),
    UNARY_FROM_INPUT(cosh, "hyperbolic cosine", pen_infer_float_map),
    UNARY_FROM_INPUT(asinh, "inverse hyperbolic sine", pen_infer_float_map),
    UNARY_FROM_INPUT(acosh, "inverse hyperbolic cosine", pen_infer_float_map),
    UNARY_FROM_INPUT(atanh, "inverse hyperbolic tangent", pen_infer_float_map),
};

const pen_op_family pen_unary_family = {"unary", unary_ops, sizeof unary_ops / sizeof *unary_ops};
