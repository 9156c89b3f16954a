// Functions of one number, each applied to every element.

#include <stddef.h>

#include "graph/ops/elementwise/elementwise_rule.h"

#define UNARY_OP(op, does, infer_rule, gradient_rule, facts)                                       \
    PEN_MAP_OP(op, does, infer_rule, gradient_rule, facts, NULL, 0)
#define UNARY(op, does, from, facts)                                                               \
    UNARY_OP(op, does, pen_infer_float_map, pen_gradient_from_##from, facts),                      \
        PEN_MAP_BACKWARD(op, #from, facts, NULL, 0)
#define UNARY_OF_NUMBERS(op, does, from, facts)                                                    \
    UNARY_OP(op, does, pen_infer_number_map, pen_gradient_from_##from, facts),                     \
        PEN_MAP_BACKWARD(op, #from, facts, NULL, 0)

static pen_status neg_gradient(pen_gradient_context *context) {
    pen_value_id gradient;
    PEN_TRY(pen_gradient_apply(context, 0, "neg", pen_gradient_of_output(context, 0),
                               PEN_VALUE_NONE, &gradient));
    pen_gradient_set(context, 0, gradient);
    return PEN_OK;
}

static const pen_op unary_ops[] = {
    UNARY_OP(neg, "-x", pen_infer_signed_map, neg_gradient, PEN_MAP_ZEROS),
    UNARY_OP(sign, "-1, 0 or 1", pen_infer_number_map, pen_gradient_is_zero, PEN_MAP_PLAIN),
    UNARY_OP(floor, "the largest integer not above x", pen_infer_float_map, pen_gradient_is_zero,
             PEN_MAP_PLAIN),
    UNARY_OP(ceil, "the smallest integer not below x", pen_infer_float_map, pen_gradient_is_zero,
             PEN_MAP_PLAIN),
    UNARY_OP(round, "the nearest integer, halves to even", pen_infer_float_map,
             pen_gradient_is_zero, PEN_MAP_PLAIN),
    UNARY_OF_NUMBERS(abs, "|x|", input, PEN_MAP_ZEROS),
    UNARY(reciprocal, "1 / x", output, PEN_MAP_PLAIN),
    UNARY(exp, "e to the power of x", output, PEN_MAP_PLAIN),
    UNARY(log, "natural logarithm", input, PEN_MAP_POSITIVE),
    UNARY(sqrt, "square root", output, PEN_MAP_ZEROS | PEN_MAP_POSITIVE),
    UNARY_OF_NUMBERS(erf, "error function", input, PEN_MAP_ZEROS),
    UNARY(sin, "sine", input, PEN_MAP_PLAIN),
    UNARY(cos, "cosine", input, PEN_MAP_PLAIN),
    UNARY(tan, "tangent", output, PEN_MAP_PLAIN),
    UNARY(asin, "inverse sine", input, PEN_MAP_PLAIN),
    UNARY(acos, "inverse cosine", input, PEN_MAP_PLAIN),
    UNARY(atan, "inverse tangent", input, PEN_MAP_PLAIN),
    UNARY(sinh, "hyperbolic sine", input, PEN_MAP_PLAIN),
    UNARY(cosh, "hyperbolic cosine", input, PEN_MAP_PLAIN),
    UNARY(asinh, "inverse hyperbolic sine", input, PEN_MAP_PLAIN),
    UNARY(acosh, "inverse hyperbolic cosine", input, PEN_MAP_POSITIVE),
    UNARY(atanh, "inverse hyperbolic tangent", input, PEN_MAP_POSITIVE),
};

PEN_OP_FAMILY(unary);
