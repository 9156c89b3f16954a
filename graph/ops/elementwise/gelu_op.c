// Activations that are their operand times a gate, x g(x), of which exporters write several nodes
// (graph/passes/fuse/fuse_layers.c makes one of them):
//   gelu, approximate "none"   g = (1 + erf(x / sqrt(2))) / 2, the normal distribution (ONNX 20)
//   gelu, approximate "tanh"   g = (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³))) / 2
//   swish                      g = 1 / (1 + exp(-alpha x)) (ONNX 24; alpha 1 is also called SiLU)
//
// Backward ops take the output's gradient and x. flops an element: 10, backward 20.

#include <string.h>

#include "graph/ops/elementwise/elementwise_rule.h"

static pen_status gelu_check(const pen_infer_context *context) {
    const char *given = pen_node_text(pen_infer_node(context), "approximate");
    if (strcmp(given, "none") == 0 || strcmp(given, "tanh") == 0) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT,
                           "approximate is '%s'; it may be 'none' or 'tanh'", given);
}

static pen_status gelu_infer(pen_infer_context *context) {
    PEN_TRY(gelu_check(context));
    return pen_infer_float_map(context);
}

static pen_status gelu_backward_infer(pen_infer_context *context) {
    PEN_TRY(gelu_check(context));
    return pen_infer_alike(context);
}

static const pen_attribute_schema gelu_attributes[] = {
    PEN_TEXT_OR("approximate", "none"),
};
static const pen_attribute_schema swish_attributes[] = {
    PEN_FLOAT_OR("alpha", 1),
};

#define GELU_OP(op, does, infer_rule, schema)                                                      \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(1, 1), PEN_GIVES(1, 1), PEN_ATTRIBUTES(schema),    \
        .in_place_inputs = 1, .infer = infer_rule, .gradient = pen_gradient_from_input,            \
        .output_flops = 10, .is_elementwise = true                                                 \
    }
#define GELU_BACKWARD(op, infer_rule, schema)                                                      \
    {                                                                                              \
        .name = #op "_backward",                                                                   \
        .summary = "gradient of " #op " from that of its output, and its input", PEN_TAKES(2, 2),  \
        PEN_GIVES(1, 1), PEN_ATTRIBUTES(schema), .in_place_inputs = 3, .infer = infer_rule,        \
        .output_flops = 20                                                                         \
    }

static const pen_op gelu_ops[] = {
    GELU_OP(gelu, "x times the normal distribution of x", gelu_infer, gelu_attributes),
    GELU_BACKWARD(gelu, gelu_backward_infer, gelu_attributes),
    GELU_OP(swish, "x times the sigmoid of alpha x", pen_infer_float_map, swish_attributes),
    GELU_BACKWARD(swish, pen_infer_alike, swish_attributes),
};

PEN_OP_FAMILY(gelu);
