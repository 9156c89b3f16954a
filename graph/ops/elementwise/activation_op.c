// Activation functions. With v for the operand of a backward op and dy for the gradient of the
// output, the choices where there is no derivative are:
//   relu_backward(dy, y)         dy where y > 0, else 0
//   leaky_relu_backward(dy, v)   dy where v > 0, else alpha · dy; v is x or has its sign: y, when
//                                alpha > 0
//   clip_backward(dy, y, …)      dy where min < y < max, else 0 (also at x = min and x = max, so
//                                that the output is enough)
//   hard_sigmoid_backward(dy, y) alpha · dy where 0 < y < 1, else 0

#include <stddef.h>

#include "graph/ops/elementwise/elementwise_rule.h"

static pen_status leaky_relu_gradient(pen_gradient_context *context) {
    if (pen_node_float(pen_gradient_node(context), "alpha") > 0) {
        return pen_gradient_from_output(context);
    }
    return pen_gradient_from_input(context);
}

// A limit of clip has one element. ONNX says a scalar; exporters also write [1].
static pen_status clip_check_limits(const pen_infer_context *context, uint32_t first) {
    for (uint32_t i = first; i < first + 2; i++) {
        if (!pen_infer_has_input(context, i)) continue;
        PEN_TRY(pen_infer_check_same_element(context, i, 0));
        const pen_shape *shape = &pen_infer_input(context, i)->shape;
        if (pen_shape_element_count(shape) == 1) continue;
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "input %u, a limit, is %s; it must have one element", i,
                               pen_shape_format(shape, text));
    }
    return PEN_OK;
}

static pen_status clip_infer(pen_infer_context *context) {
    PEN_TRY(clip_check_limits(context, 1));
    return pen_infer_number_map(context);
}

static pen_status clip_backward_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    PEN_TRY(pen_infer_check_shape(context, 1, &pen_infer_input(context, 0)->shape));
    PEN_TRY(clip_check_limits(context, 2));
    return pen_infer_float_map(context);
}

static pen_status clip_gradient(pen_gradient_context *context) {
    if (pen_gradient_needed(context, 1) || pen_gradient_needed(context, 2)) {
        return pen_error(PEN_UNSUPPORTED, "the limits of a clip cannot be trained");
    }
    const pen_value_id operands[4] = {
        pen_gradient_of_output(context, 0),
        pen_gradient_output(context, 0),
        pen_gradient_input(context, 1),
        pen_gradient_input(context, 2),
    };
    const pen_gradient_emission emission = {
        .op_name = "clip_backward", .inputs = operands, .input_count = 4};
    return pen_gradient_emit_set(context, &emission);
}

static pen_status prelu_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_same_elements(context, 0, PEN_ELEMENTS_FLOAT | PEN_ELEMENTS_WIDE_INTEGER));
    const pen_tensor_type *type = pen_infer_input(context, 0);
    PEN_TRY(pen_infer_broadcasts_to(context, 1, &type->shape));
    return pen_infer_set(context, 0, type);
}

static pen_status prelu_backward_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_same_elements(context, 0, PEN_ELEMENTS_FLOAT));
    const pen_tensor_type *type = pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_shape(context, 1, &type->shape));
    if (pen_infer_has_input(context, 2)) {
        PEN_TRY(pen_infer_broadcasts_to(context, 2, &type->shape));
    }
    return pen_infer_set(context, 0, type);
}

static pen_status prelu_gradient(pen_gradient_context *context) {
    const pen_value_id operands[3] = {
        pen_gradient_of_output(context, 0),
        pen_gradient_input(context, 0),
        pen_gradient_input(context, 1),
    };
    if (pen_gradient_needed(context, 0)) {
        PEN_TRY(pen_gradient_emit_set(
            context, &(pen_gradient_emission){.inputs = operands, .input_count = 3}));
    }
    if (!pen_gradient_needed(context, 1)) return PEN_OK;
    pen_value_id gradient;
    PEN_TRY(pen_gradient_apply(context, 1, "prelu_backward_slope", operands[0], operands[1],
                               &gradient));
    return pen_gradient_set_summed(context, 1, gradient);
}

static const pen_attribute_schema leaky_relu_attributes[] = {PEN_FLOAT_OR("alpha", 0.01)};
static const pen_attribute_schema alpha_attributes[] = {PEN_FLOAT_OR("alpha", 1)};
static const pen_attribute_schema selu_attributes[] = {
    PEN_FLOAT_OR("alpha", 1.67326319217681884765625),
    PEN_FLOAT_OR("gamma", 1.05070102214813232421875),
};
static const pen_attribute_schema hard_sigmoid_attributes[] = {
    PEN_FLOAT_OR("alpha", 0.2),
    PEN_FLOAT_OR("beta", 0.5),
};
static const pen_attribute_schema shrink_attributes[] = {
    PEN_FLOAT_OR("lambd", 0.5),
    PEN_FLOAT_OR("bias", 0),
};

// An op of one operand and, behind it, its backward op: without attributes, and with.
#define ACTIVATION_ROWS(op, does, infer_rule, gradient_rule, operand, facts, schema, count)        \
    PEN_MAP_OP(op, does, infer_rule, gradient_rule, facts, schema, count),                         \
        PEN_MAP_BACKWARD(op, operand, facts, schema, count)
#define ACTIVATION(op, does, from, facts)                                                          \
    ACTIVATION_ROWS(op, does, pen_infer_float_map, pen_gradient_from_##from, #from, facts, NULL, 0)
#define ACTIVATION_WITH(schema, op, does, from, facts)                                             \
    ACTIVATION_ROWS(op, does, pen_infer_float_map, pen_gradient_from_##from, #from, facts, schema, \
                    sizeof(schema) / sizeof *(schema))

static const pen_op activation_ops[] = {
    ACTIVATION_ROWS(relu, "max(x, 0)", pen_infer_signed_map, pen_gradient_from_output, "output",
                    PEN_MAP_ZEROS_BOTH | PEN_MAP_RECTIFIES, NULL, 0),
    ACTIVATION_ROWS(leaky_relu, "x where x >= 0, else alpha x", pen_infer_float_map,
                    leaky_relu_gradient, "input or output", PEN_MAP_ZEROS_BOTH,
                    leaky_relu_attributes, 1),
    ACTIVATION(sigmoid, "1 / (1 + exp(-x))", output, PEN_MAP_ZEROS_BACK),
    ACTIVATION(tanh, "hyperbolic tangent", output, PEN_MAP_ZEROS_BOTH),
    ACTIVATION_WITH(alpha_attributes, elu, "x where x >= 0, else alpha (exp(x) - 1)", input,
                    PEN_MAP_ZEROS_BOTH),
    ACTIVATION_WITH(alpha_attributes, celu, "max(x, 0) + min(0, alpha (exp(x / alpha) - 1))", input,
                    PEN_MAP_ZEROS_BOTH),
    ACTIVATION_WITH(selu_attributes, selu, "gamma x where x > 0, else gamma alpha (exp(x) - 1)",
                    input, PEN_MAP_ZEROS_BOTH),
    ACTIVATION(softplus, "log(1 + exp(x))", input, PEN_MAP_ZEROS_BACK),
    ACTIVATION(mish, "x tanh(log(1 + exp(x)))", input, PEN_MAP_ZEROS_BOTH),
    ACTIVATION(log_sigmoid, "log(1 / (1 + exp(-x)))", input, PEN_MAP_ZEROS_BACK),
    ACTIVATION(tanh_shrink, "x - tanh(x)", input, PEN_MAP_ZEROS_BOTH),
    ACTIVATION(softsign, "x / (1 + |x|)", input, PEN_MAP_ZEROS_BOTH),
    ACTIVATION_WITH(hard_sigmoid_attributes, hard_sigmoid, "alpha x + beta, clipped to [0, 1]",
                    output, PEN_MAP_ZEROS_BACK),
    ACTIVATION(hard_swish, "x times x / 6 + 1 / 2 clipped to [0, 1]", input, PEN_MAP_ZEROS_BOTH),
    ACTIVATION_WITH(alpha_attributes, thresholded_relu, "x where x > alpha, else 0", input,
                    PEN_MAP_ZEROS | PEN_MAP_RECTIFIES),
    ACTIVATION_ROWS(shrink, "x - bias above lambd, x + bias below -lambd, else 0",
                    pen_infer_number_map, pen_gradient_from_input, "input", PEN_MAP_PLAIN,
                    shrink_attributes, 2),
    {"clip", "x held between the optional inputs min and max", PEN_TAKES(1, 3), PEN_GIVES(1, 1),
     .in_place_inputs = 1, .infer = clip_infer, .gradient = clip_gradient, .output_flops = 1,
     .is_elementwise = true},
    {"clip_backward", "gradient of clip from that of its output, its output, min and max",
     PEN_TAKES(2, 4), PEN_GIVES(1, 1), .in_place_inputs = 3, .infer = clip_backward_infer,
     .output_flops = 1, .keeps_zeros = true},
    {"prelu", "x where x >= 0, else slope x", PEN_TAKES(2, 2), PEN_GIVES(1, 1),
     .in_place_inputs = 1, .infer = prelu_infer, .gradient = prelu_gradient, .output_flops = 1,
     .is_elementwise = true},
    {"prelu_backward", "gradient of x in prelu from that of its output, x and slope",
     PEN_TAKES(3, 3), PEN_GIVES(1, 1), .in_place_inputs = 3, .infer = prelu_backward_infer,
     .output_flops = 1},
    {"prelu_backward_slope",
     "gradient of slope in prelu, not yet summed, from that of its output, and x", PEN_TAKES(2, 2),
     PEN_GIVES(1, 1), .in_place_inputs = 3, .infer = prelu_backward_infer, .output_flops = 1},
};

PEN_OP_FAMILY(activation);
