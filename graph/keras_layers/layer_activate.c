// Activations by name, as nodes. All but softmax go element by element, in whatever layout.

#include <math.h>

#include "graph/keras_layers/layer_build.h"

// x * op(x)
static pen_status activate_gate(const pen_layer_call *call, const char *const *ops,
                                uint32_t op_count, pen_value_id *io_value) {
    pen_value_id gate = *io_value;
    for (uint32_t i = 0; i < op_count; i++) {
        PEN_TRY(pen_layer_map(call, ops[i], ops[i], gate, &gate));
    }
    return pen_layer_pair(call, "mul", "mul", *io_value, gate, io_value);
}

// x / 2 * (1 + erf(x / sqrt(2))), spelled as PyTorch exports it
static pen_status activate_gelu(const pen_layer_call *call, pen_value_id *io_value) {
    const pen_value_id x = *io_value;
    pen_value_id number, part;
    PEN_TRY(pen_layer_number(call, "gelu_root", sqrt(2.0), &number));
    PEN_TRY(pen_layer_pair(call, "div", "gelu_div", x, number, &part));
    PEN_TRY(pen_layer_map(call, "erf", "gelu_erf", part, &part));
    PEN_TRY(pen_layer_number(call, "gelu_one", 1, &number));
    PEN_TRY(pen_layer_pair(call, "add", "gelu_add", part, number, &part));
    PEN_TRY(pen_layer_pair(call, "mul", "gelu_mul", x, part, &part));
    PEN_TRY(pen_layer_number(call, "gelu_half", 0.5, &number));
    return pen_layer_pair(call, "mul", "gelu", part, number, io_value);
}

static pen_status activate_relu6(const pen_layer_call *call, pen_value_id *io_value) {
    pen_value_id least, most;
    PEN_TRY(pen_layer_number(call, "relu6_least", 0, &least));
    PEN_TRY(pen_layer_number(call, "relu6_most", 6, &most));
    return pen_layer_add(call, "clip", "relu6", PEN_INPUTS(*io_value, least, most),
                         PEN_NO_ATTRIBUTES, io_value);
}

static pen_status activate_softmax(const pen_layer_call *call, const char *op,
                                   const pen_layer_tensor *tensor, pen_value_id *io_value) {
    if (tensor->shape.rank < 2) {
        return pen_error(PEN_INVALID_INPUT, "%s needs a dimension besides the batch", op);
    }
    return pen_layer_add(call, op, op, PEN_INPUTS(*io_value),
                         PEN_WITH(pen_attribute_int("axis", tensor->is_moved ? 1 : -1)), io_value);
}

// Those that are one operator with the attributes that Keras means.
static pen_status activate_simple(const pen_layer_call *call, pen_layer_activation activation,
                                  pen_value_id *io_value) {
    const char *op = pen_layer_activation_names[activation];
    pen_node_attributes attributes = PEN_WITH(pen_attribute_float("alpha", 0.2));
    if (activation == PEN_LAYER_EXPONENTIAL) op = "exp";
    const bool has_alpha =
        activation == PEN_LAYER_LEAKY_RELU || activation == PEN_LAYER_HARD_SIGMOID;
    if (!has_alpha) attributes.count = 0;
    return pen_layer_add(call, op, op, PEN_INPUTS(*io_value), attributes, io_value);
}

pen_status pen_layer_activate(const pen_layer_call *call, pen_layer_activation activation,
                              const pen_layer_tensor *tensor, pen_layer_tensor *out_tensor) {
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
        PEN_TRY(activate_simple(call, activation, value));
        break;
    case PEN_LAYER_RELU6:
        PEN_TRY(activate_relu6(call, value));
        break;
    case PEN_LAYER_SOFTMAX:
        PEN_TRY(activate_softmax(call, "softmax", tensor, value));
        break;
    case PEN_LAYER_LOG_SOFTMAX:
        PEN_TRY(activate_softmax(call, "log_softmax", tensor, value));
        break;
    case PEN_LAYER_GELU:
        PEN_TRY(activate_gelu(call, value));
        break;
    case PEN_LAYER_SWISH:
    case PEN_LAYER_SILU:
        PEN_TRY(activate_gate(call, swish, 1, value));
        break;
    case PEN_LAYER_MISH:
        PEN_TRY(activate_gate(call, mish, 2, value));
        break;
    }
    *out_tensor = result;
    return PEN_OK;
}
