// Activation functions. With v for the operand of a backward op and dy for the gradient of the
// output, the choices where there is no derivative are:
//   relu_backward(dy, y)         dy where y > 0, else 0
//   leaky_relu_backward(dy, v)   dy where v > 0, else alpha · dy; v is x or has its sign: y, when
//                                alpha > 0
//   clip_backward(dy, y, …)      dy where min < y < max, else 0 (also at x = min and x = max, so
//                                that the output is enough)
//   hard_sigmoid_backward(dy, y) alpha · dy where 0 < y < 1, else 0

#include <stddef.h>

#include "graph/op_table.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/shared/shape_rule.h"

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
        .op_name = "clip_backward", .suffix = "backward", .inputs = operands, .input_count = 4};
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
        PEN_TRY(pen_gradient_emit_set(context, &(pen_gradient_emission){.op_name = "prelu_backward",
                                                                        .suffix = "backward",
                                                                        .inputs = operands,
                                                                        .input_count = 3}));
    }
    if (!pen_gradient_needed(context, 1)) return PEN_OK;
    pen_value_id gradient;
    PEN_TRY(pen_gradient_apply(context, 1, "prelu_backward_slope", operands[0], operands[1],
                               &gradient));
    return pen_gradient_set_summed(context, 1, gradient);
}

#define ACTIVATION_FLOAT(attribute, value)                                                         \
    { .name = attribute, .kind = PEN_ATTRIBUTE_FLOAT, .has_default = true, .number = value }

static const pen_attribute_schema leaky_relu_attributes[] = {ACTIVATION_FLOAT("alpha", 0.01)};
static const pen_attribute_schema alpha_attributes[] = {ACTIVATION_FLOAT("alpha", 1)};
static const pen_attribute_schema selu_attributes[] = {
    ACTIVATION_FLOAT("alpha", 1.67326319217681884765625),
    ACTIVATION_FLOAT("gamma", 1.05070102214813232421875),
};
static const pen_attribute_schema hard_sigmoid_attributes[] = {
    ACTIVATION_FLOAT("alpha", 0.2),
    ACTIVATION_FLOAT("beta", 0.5),
};
static const pen_attribute_schema shrink_attributes[] = {
    ACTIVATION_FLOAT("lambd", 0.5),
    ACTIVATION_FLOAT("bias", 0),
};

// An op of one operand and, behind it, its backward op.
#define ACTIVATION(op, does, infer_rule, gradient_rule, operand, schema, schema_count)             \
    {.name = #op,                                                                                  \
     .summary = does,                                                                              \
     .input_min = 1,                                                                               \
     .input_max = 1,                                                                               \
     .output_min = 1,                                                                              \
     .output_max = 1,                                                                              \
     .attributes = schema,                                                                         \
     .attribute_count = schema_count,                                                              \
     .in_place_inputs = 1,                                                                         \
     .infer = infer_rule,                                                                          \
     .gradient = gradient_rule,                                                                    \
     .flops = pen_flops_of_output},                                                                \
    {                                                                                              \
        .name = #op "_backward",                                                                   \
        .summary = "gradient of " #op " from that of its output, and its " operand,                \
        .input_min = 2, .input_max = 2, .output_min = 1, .output_max = 1, .attributes = schema,    \
        .attribute_count = schema_count, .in_place_inputs = 3, .infer = pen_infer_alike,           \
        .flops = pen_flops_of_output                                                               \
    }

static const pen_op activation_ops[] = {
    ACTIVATION(relu, "max(x, 0)", pen_infer_signed_map, pen_gradient_from_output, "output", NULL,
               0),
    ACTIVATION(leaky_relu, "x where x >= 0, else alpha x", pen_infer_float_map, leaky_relu_gradient,
               "input or output", leaky_relu_attributes, 1),
    ACTIVATION(sigmoid, "1 / (1 + exp(-x))", pen_infer_float_map, pen_gradient_from_output,
               "output", NULL, 0),
    ACTIVATION(tanh, "hyperbolic tangent", pen_infer_float_map, pen_gradient_from_output, "output",
               NULL, 0),
    ACTIVATION(elu, "x where x >= 0, else alpha (exp(x) - 1)", pen_infer_float_map,
               pen_gradient_from_input, "input", alpha_attributes, 1),
    ACTIVATION(celu, "max(x, 0) + min(0, alpha (exp(x / alpha) - 1))", pen_infer_float_map,
               pen_gradient_from_input, "input", alpha_attributes, 1),
    ACTIVATION(selu, "gamma x where x > 0, else gamma alpha (exp(x) - 1)", pen_infer_float_map,
               pen_gradient_from_input, "input", selu_attributes, 2),
    ACTIVATION(softplus, "log(1 + exp(x))", pen_infer_float_map, pen_gradient_from_input, "input",
               NULL, 0),
    ACTIVATION(mish, "x tanh(log(1 + exp(x)))", pen_infer_float_map, pen_gradient_from_input,
               "input", NULL, 0),
    ACTIVATION(softsign, "x / (1 + |x|)", pen_infer_float_map, pen_gradient_from_input, "input",
               NULL, 0),
    ACTIVATION(hard_sigmoid, "alpha x + beta, clipped to [0, 1]", pen_infer_float_map,
               pen_gradient_from_output, "output", hard_sigmoid_attributes, 2),
    ACTIVATION(hard_swish, "x times x / 6 + 1 / 2 clipped to [0, 1]", pen_infer_float_map,
               pen_gradient_from_input, "input", NULL, 0),
    ACTIVATION(thresholded_relu, "x where x > alpha, else 0", pen_infer_float_map,
               pen_gradient_from_input, "input", alpha_attributes, 1),
    ACTIVATION(shrink, "x - bias above lambd, x + bias below -lambd, else 0", pen_infer_number_map,
               pen_gradient_from_input, "input", shrink_attributes, 2),
    {.name = "clip",
     .summary = "x held between the optional inputs min and max",
     .input_min = 1,
     .input_max = 3,
     .output_min = 1,
     .output_max = 1,
     .in_place_inputs = 1,
     .infer = clip_infer,
     .gradient = clip_gradient,
     .flops = pen_flops_of_output},
    {.name = "clip_backward",
     .summary = "gradient of clip from that of its output, its output, min and max",
     .input_min = 2,
     .input_max = 4,
     .output_min = 1,
     .output_max = 1,
     .in_place_inputs = 3,
     .infer = clip_backward_infer,
     .flops = pen_flops_of_output},
    {.name = "prelu",
     .summary = "x where x >= 0, else slope x",
     .input_min = 2,
     .input_max = 2,
     .output_min = 1,
     .output_max = 1,
     .in_place_inputs = 1,
     .infer = prelu_infer,
     .gradient = prelu_gradient,
     .flops = pen_flops_of_output},
    {.name = "prelu_backward",
     .summary = "gradient of x in prelu from that of its output, x and slope",
     .input_min = 3,
     .input_max = 3,
     .output_min = 1,
     .output_max = 1,
     .in_place_inputs = 3,
     .infer = prelu_backward_infer,
     .flops = pen_flops_of_output},
    {.name = "prelu_backward_slope",
     .summary = "gradient of slope in prelu, not yet summed, from that of its output, and x",
     .input_min = 2,
     .input_max = 2,
     .output_min = 1,
     .output_max = 1,
     .in_place_inputs = 3,
     .infer = prelu_backward_infer,
     .flops = pen_flops_of_output},
};

const pen_op_family pen_activation_family = {"activation", activation_ops,
                                             sizeof activation_ops / sizeof *activation_ops};
