// Weights of recurrent layers. Keras' gates are i, f, c, o of lstm and z, r, h of gru; ONNX has
// i, o, f, c.
//
// A bias that Keras has once is the input's half of ONNX' bias; the state's half is a constant, so
// that training moves it as Keras does.

#include <string.h>

#include "graph/keras_layers/layer_recurrent.h"

static const char *recurrent_weight_name(const pen_recurrent_net *net, uint32_t direction,
                                         const char *const names[3]) {
    return net->directions == 1 ? names[0] : names[direction == 0 ? 1 : 2];
}

// A part [rows, gates * units] of a parameter [directions, gates * units, rows].
static pen_status recurrent_matrix(const pen_layer_call *call, const pen_recurrent_net *net,
                                   uint32_t direction, bool is_state, pen_value_id *io_value) {
    static const char *const kernel[3] = {"kernel", "forward/kernel", "backward/kernel"};
    static const char *const state[3] = {"recurrent_kernel", "forward/recurrent_kernel",
                                         "backward/recurrent_kernel"};
    const int64_t rows = is_state ? net->options->units : call->inputs[0].shape.dims[2];
    const int64_t columns = net->gates * net->options->units;
    const pen_layer_contents contents = {.options = is_state ? net->options->recurrent
                                                             : net->options->kernel};
    const pen_shape stored = {3, {net->directions, columns, rows}};
    PEN_TRY(pen_tensor_type_check(&(pen_tensor_type){PEN_FLOAT32, stored}));
    pen_layer_weight weight = {.name =
                                   recurrent_weight_name(net, direction, is_state ? state : kernel),
                               .shape = {2, {rows, columns}},
                               .offset = direction * columns * rows,
                               .strides = {1, rows},
                               .block_axis = 1,
                               .block_count = 1};
    if (net->kind == PEN_RECURRENT_LSTM) {
        weight.block_count = 4;
        memcpy(weight.block_order, (const uint32_t[4]){0, 2, 3, 1}, sizeof weight.block_order);
    }
    return pen_layer_add_weight(call, &weight, &contents, &stored, io_value);
}

// With reset_after, gru has a bias of the input's half and one of the state's.
static bool recurrent_has_two_biases(const pen_recurrent_net *net) {
    return net->kind == PEN_RECURRENT_GRU && net->options->reset_after;
}

// Keras has a bias for each direction, the op one value for both; an LSTM's gates come in another
// order there.
static pen_status recurrent_bias_part(const pen_layer_call *call, const pen_recurrent_net *net,
                                      uint32_t direction, pen_value_id *io_value) {
    static const char *const names[3] = {"bias", "forward/bias", "backward/bias"};
    const pen_recurrent_options *options = net->options;
    const int64_t columns = net->gates * options->units;
    const bool is_two = recurrent_has_two_biases(net);
    const bool has_forget = net->kind == PEN_RECURRENT_LSTM && options->unit_forget_bias;
    const pen_layer_contents contents = {.options = options->bias, .is_forget = has_forget};
    const pen_shape stored = {2, {net->directions, is_two ? 2 * columns : columns}};
    pen_layer_weight weight = {.name = recurrent_weight_name(net, direction, names),
                               .offset = direction * stored.dims[1],
                               .block_count = 1};
    weight.shape = is_two ? (pen_shape){2, {2, columns}} : (pen_shape){1, {columns}};
    weight.strides[0] = is_two ? columns : 1;
    weight.strides[1] = 1;
    if (net->kind == PEN_RECURRENT_LSTM) {
        weight.block_count = 4;
        memcpy(weight.block_order, (const uint32_t[4]){0, 2, 3, 1}, sizeof weight.block_order);
    }
    return pen_layer_add_weight(call, &weight, &contents, &stored, io_value);
}

// The state's half of the bias, all 0, behind what is trained.
static pen_status recurrent_complete_bias(const pen_layer_call *call, const pen_recurrent_net *net,
                                          pen_value_id *io_value) {
    if (recurrent_has_two_biases(net)) return PEN_OK;
    const pen_shape shape = {2, {net->directions, net->gates * net->options->units}};
    float *zeros;
    pen_value_id half;
    PEN_TRY(pen_layer_floats(call, "no_bias", &shape, &zeros, &half));
    return pen_layer_concat(call, "whole_bias", PEN_INPUTS(*io_value, half), 1, io_value);
}

pen_status pen_recurrent_weights(const pen_layer_call *call, const pen_recurrent_net *net,
                                 pen_value_id *out_operands) {
    out_operands[PEN_RECURRENT_W] = PEN_VALUE_NONE;
    out_operands[PEN_RECURRENT_R] = PEN_VALUE_NONE;
    out_operands[PEN_RECURRENT_B] = PEN_VALUE_NONE;
    for (uint32_t d = 0; d < net->directions; d++) { // in Keras' order
        PEN_TRY(recurrent_matrix(call, net, d, false, &out_operands[PEN_RECURRENT_W]));
        PEN_TRY(recurrent_matrix(call, net, d, true, &out_operands[PEN_RECURRENT_R]));
        if (!net->options->use_bias) continue;
        PEN_TRY(recurrent_bias_part(call, net, d, &out_operands[PEN_RECURRENT_B]));
    }
    if (!net->options->use_bias) return PEN_OK;
    return recurrent_complete_bias(call, net, &out_operands[PEN_RECURRENT_B]);
}
