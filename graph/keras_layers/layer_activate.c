// Activations by name, as nodes. All but softmax go element by element, in whatever layout.

#include <math.h>

#include "graph/keras_layers/layer_build.h"

static pen_status activate_op(pen_layer_builder *builder, const pen_layer_call *call,
                              const char *op, const pen_attribute_given *attributes,
                              uint32_t attribute_count, pen_value_id *io_value) {
    const pen_layer_node node = {.op = op,
                                 .suffix = op,
                                 .inputs = io_value,
                                 .input_count = 1,
                                 .attributes = attributes,
                                 .attribute_count = attribute_count};
    pen_value_id value;
    PEN_TRY(pen_layer_add_node(builder, call, &node, &value));
    *io_value = value;
    return PEN_OK;
}

// x * op(x)
static pen_status activate_gate(pen_layer_builder *builder, const pen_layer_call *call,
                                const char *const *ops, uint32_t op_count, pen_value_id *io_value) {
    pen_value_id operands[2] = {*io_value, *io_value};
    for (uint32_t i = 0; i < op_count; i++) {
        PEN_TRY(activate_op(builder, call, ops[i], NULL, 0, &operands[1]));
    }
    return pen_layer_pair(builder, call, "mul", "mul", operands, io_value);
}

// x / 2 * (1 + erf(x / sqrt(2))), spelled as PyTorch exports it
static pen_status activate_gelu(pen_layer_builder *builder, const pen_layer_call *call,
                                pen_value_id *io_value) {
    pen_value_id operands[2] = {*io_value};
    PEN_TRY(pen_layer_number(builder, call, "gelu_root", sqrt(2.0), &operands[1]));
    PEN_TRY(pen_layer_pair(builder, call, "div", "gelu_div", operands, &operands[0]));
    PEN_TRY(pen_layer_map(builder, call, "erf", "gelu_erf", operands[0], &operands[0]));
    PEN_TRY(pen_layer_number(builder, call, "gelu_one", 1, &operands[1]));
    PEN_TRY(pen_layer_pair(builder, call, "add", "gelu_add", operands, &operands[1]));
    operands[0] = *io_value;
    PEN_TRY(pen_layer_pair(builder, call, "mul", "gelu_mul", operands, &operands[0]));
    PEN_TRY(pen_layer_number(builder, call, "gelu_half", 0.5, &operands[1]));
    return pen_layer_pair(builder, call, "mul", "gelu", operands, io_value);
}

static pen_status activate_relu6(pen_layer_builder *builder, const pen_layer_call *call,
                                 pen_value_id *io_value) {
    pen_value_id operands[3] = {*io_value};
    PEN_TRY(pen_layer_number(builder, call, "relu6_least", 0, &operands[1]));
    PEN_TRY(pen_layer_number(builder, call, "relu6_most", 6, &operands[2]));
    const pen_layer_node node = {
        .op = "clip", .suffix = "relu6", .inputs = operands, .input_count = 3};
    return pen_layer_add_node(builder, call, &node, io_value);
}

static pen_status activate_softmax(pen_layer_builder *builder, const pen_layer_call *call,
                                   const char *op, const pen_layer_tensor *tensor,
                                   pen_value_id *io_value) {
    const pen_attribute_given axis = pen_attribute_int("axis", tensor->is_moved ? 1 : -1);
    if (tensor->shape.rank < 2) {
        return pen_error(PEN_INVALID_INPUT, "%s needs a dimension besides the batch", op);
    }
    return activate_op(builder, call, op, &axis, 1, io_value);
}

// Those that are one operator with the attributes that Keras means.
static pen_status activate_simple(pen_layer_builder *builder, const pen_layer_call *call,
                                  pen_layer_activation activation, pen_value_id *io_value) {
    const char *op = pen_layer_activation_names[activation];
    const pen_attribute_given alpha = pen_attribute_float("alpha", 0.2);
    if (activation == PEN_LAYER_EXPONENTIAL) op = "exp";
    const bool has_alpha =
        activation == PEN_LAYER_LEAKY_RELU || activation == PEN_LAYER_HARD_SIGMOID;
    return activate_op(builder, call, op, &alpha, has_alpha ? 1 : 0, io_value);
}

pen_status pen_layer_activate(pen_layer_builder *builder, const pen_layer_call *call,
                              pen_layer_activation activation, const pen_layer_tensor *tensor,
                              pen_layer_tensor *out_tensor) {
    static const char *const swish[] = {"sigmoid"};
    static const char *const mish[] = {"softplus", "tanh"};
    pen_layer_tensor result = *tensor;
    pen_value_id *value = &result.value;
    switch (activation) {
    case PEN_LAYER_LINEAR:
    case PEN_LAYER_ACTIVATION_COUNT:
        break;
    case PEN_LAYER_RELU:
    case PEN_LAYER_LEAKY_RELU:
    case PEN_LAYER_ELU:
    case PEN_LAYER_SELU:
    case PEN_LAYER_SIGMOID:
    case PEN_LAYER_HARD_SIGMOID:
    case PEN_LAYER_TANH:
    case PEN_LAYER_SOFTPLUS:
    case PEN_LAYER_SOFTSIGN:
    case PEN_LAYER_EXPONENTIAL:
        PEN_TRY(activate_simple(builder, call, activation, value));
        break;
    case PEN_LAYER_RELU6:
        PEN_TRY(activate_relu6(builder, call, value));
        break;
    case PEN_LAYER_SOFTMAX:
        PEN_TRY(activate_softmax(builder, call, "softmax", tensor, value));
        break;
    case PEN_LAYER_LOG_SOFTMAX:
        PEN_TRY(activate_softmax(builder, call, "log_softmax", tensor, value));
        break;
    case PEN_LAYER_GELU:
        PEN_TRY(activate_gelu(builder, call, value));
        break;
    case PEN_LAYER_SWISH:
    case PEN_LAYER_SILU:
        PEN_TRY(activate_gate(builder, call, swish, 1, value));
        break;
    case PEN_LAYER_MISH:
        PEN_TRY(activate_gate(builder, call, mish, 2, value));
        break;
    }
    *out_tensor = result;
    return PEN_OK;
}
