// Activations by name, as nodes. All but softmax go element by element, in whatever layout.

#include <math.h>

#include "graph/keras_layers/layer_build.h"

// What an activation makes of *io_value. `op` is that of its row.
typedef pen_status (*activate_fn)(const pen_layer_call *call, const char *op,
                                  const pen_layer_tensor *tensor, pen_value_id *io_value);

static pen_status activate_nothing(const pen_layer_call *call, const char *op,
                                   const pen_layer_tensor *tensor, pen_value_id *io_value) {
    (void)call, (void)op, (void)tensor, (void)io_value;
    return PEN_OK;
}

static pen_status activate_op(const pen_layer_call *call, const char *op,
                              const pen_layer_tensor *tensor, pen_value_id *io_value) {
    (void)tensor;
    return pen_layer_map(call, op, op, *io_value, io_value);
}

// Keras' slope is not the op's.
static pen_status activate_op_with_alpha(const pen_layer_call *call, const char *op,
                                         const pen_layer_tensor *tensor, pen_value_id *io_value) {
    (void)tensor;
    return pen_layer_add(call, op, op, PEN_INPUTS(*io_value),
                         PEN_WITH(pen_attribute_float("alpha", 0.2)), io_value);
}

static pen_status activate_softmax(const pen_layer_call *call, const char *op,
                                   const pen_layer_tensor *tensor, pen_value_id *io_value) {
    if (tensor->shape.rank < 2) {
        return pen_error(PEN_INVALID_INPUT, "%s needs a dimension besides the batch", op);
    }
    return pen_layer_add(call, op, op, PEN_INPUTS(*io_value),
                         PEN_WITH(pen_attribute_int("axis", tensor->is_moved ? 1 : -1)), io_value);
}

// x * sigmoid(x)
static pen_status activate_swish(const pen_layer_call *call, const char *op,
                                 const pen_layer_tensor *tensor, pen_value_id *io_value) {
    pen_value_id gate;
    (void)op, (void)tensor;
    PEN_TRY(pen_layer_map(call, "sigmoid", "sigmoid", *io_value, &gate));
    return pen_layer_pair(call, "mul", "mul", *io_value, gate, io_value);
}

// x * tanh(softplus(x))
static pen_status activate_mish(const pen_layer_call *call, const char *op,
                                const pen_layer_tensor *tensor, pen_value_id *io_value) {
    pen_value_id gate;
    (void)op, (void)tensor;
    PEN_TRY(pen_layer_map(call, "softplus", "softplus", *io_value, &gate));
    PEN_TRY(pen_layer_map(call, "tanh", "tanh", gate, &gate));
    return pen_layer_pair(call, "mul", "mul", *io_value, gate, io_value);
}

// x / 2 * (1 + erf(x / sqrt(2))), spelled as PyTorch exports it
static pen_status activate_gelu(const pen_layer_call *call, const char *op,
                                const pen_layer_tensor *tensor, pen_value_id *io_value) {
    const pen_value_id x = *io_value;
    pen_value_id number, part;
    (void)op, (void)tensor;
    PEN_TRY(pen_layer_number(call, "gelu_root", sqrt(2.0), &number));
    PEN_TRY(pen_layer_pair(call, "div", "gelu_div", x, number, &part));
    PEN_TRY(pen_layer_map(call, "erf", "gelu_erf", part, &part));
    PEN_TRY(pen_layer_number(call, "gelu_one", 1, &number));
    PEN_TRY(pen_layer_pair(call, "add", "gelu_add", part, number, &part));
    PEN_TRY(pen_layer_pair(call, "mul", "gelu_mul", x, part, &part));
    PEN_TRY(pen_layer_number(call, "gelu_half", 0.5, &number));
    return pen_layer_pair(call, "mul", "gelu", part, number, io_value);
}

static pen_status activate_relu6(const pen_layer_call *call, const char *op,
                                 const pen_layer_tensor *tensor, pen_value_id *io_value) {
    pen_value_id least, most;
    (void)op, (void)tensor;
    PEN_TRY(pen_layer_number(call, "relu6_least", 0, &least));
    PEN_TRY(pen_layer_number(call, "relu6_most", 6, &most));
    return pen_layer_add(call, "clip", "relu6", PEN_INPUTS(*io_value, least, most),
                         PEN_NO_ATTRIBUTES, io_value);
}

// Most are one operator; some are spelled in several as exporters spell them, so that the passes
// find them.
pen_status pen_layer_activate(const pen_layer_call *call, pen_layer_activation activation,
                              const pen_layer_tensor *tensor, pen_layer_tensor *out_tensor) {
#define ACTIVATE_ROW(constant, name, make, op, recurrent) {make, op},
    static const struct {
        activate_fn make;
        const char *op;
    } rows[] = {PEN_LAYER_ACTIVATIONS(ACTIVATE_ROW)};
    pen_layer_tensor result = *tensor;
    PEN_TRY(rows[activation].make(call, rows[activation].op, tensor, &result.value));
    *out_tensor = result;
    return PEN_OK;
}
