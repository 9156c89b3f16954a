// Recurrent layers.

#include "graph/keras_layers/layer_recurrent.h"

#include <inttypes.h>

#include "graph/keras_layers/layer_list.h"

#define RECURRENT_SHARE(member, says)                                                              \
    PEN_LAYER_FIELD(pen_recurrent_options, member, NUMBER, says, .default_text = "0",              \
                    .minimum = PEN_OPTION_FROM(0), .maximum = PEN_OPTION_BELOW(1))
#define RECURRENT_FIELDS                                                                           \
    PEN_LAYER_SIZE(pen_recurrent_options, units, NULL, "size of the state"),                       \
        PEN_LAYER_CHOICE(pen_recurrent_options, activation, pen_layer_activation_names, "tanh",    \
                         "of the state"),                                                          \
        PEN_LAYER_BOOL(pen_recurrent_options, use_bias, "true", "whether it adds a bias"),         \
        PEN_LAYER_WEIGHT(pen_recurrent_options, kernel, "glorot_uniform"),                         \
        PEN_LAYER_WEIGHT(pen_recurrent_options, recurrent, "orthogonal"),                          \
        PEN_LAYER_WEIGHT(pen_recurrent_options, bias, "zeros"),                                    \
        PEN_LAYER_BOOL(pen_recurrent_options, return_sequences, "false",                           \
                       "whether it gives the state of every step, not only the last"),             \
        PEN_LAYER_BOOL(pen_recurrent_options, return_state, "false",                               \
                       "whether it gives the last states too, as further results"),                \
        PEN_LAYER_BOOL(pen_recurrent_options, go_backwards, "false",                               \
                       "whether it begins with the last step"),                                    \
        PEN_LAYER_BOOL(pen_recurrent_options, zero_output_for_mask, "false",                       \
                       "whether steps that the mask leaves out give zeros, not the step before"),  \
        RECURRENT_SHARE(dropout, "share of the inputs that is dropped, the same in every step"),   \
        RECURRENT_SHARE(recurrent_dropout, "share of the state that is dropped between steps")
#define RECURRENT_GATE_FIELD                                                                       \
    PEN_LAYER_CHOICE(pen_recurrent_options, recurrent_activation, pen_layer_activation_names,      \
                     "sigmoid", "of the gates")

PEN_LAYER_OPTIONS(lstm, pen_recurrent_options, RECURRENT_FIELDS, RECURRENT_GATE_FIELD,
                  PEN_LAYER_BOOL(pen_recurrent_options, unit_forget_bias, "true",
                                 "whether the forget gate's bias begins with 1"));
PEN_LAYER_OPTIONS(gru, pen_recurrent_options, RECURRENT_FIELDS, RECURRENT_GATE_FIELD,
                  PEN_LAYER_BOOL(pen_recurrent_options, reset_after, "true",
                                 "whether the reset gate comes behind the product with the state"));
PEN_LAYER_OPTIONS(simple_rnn, pen_recurrent_options, RECURRENT_FIELDS);

pen_recurrent_net pen_recurrent_net_of(const pen_layer *layer, const void *options) {
    pen_recurrent_net net = {options, PEN_RECURRENT_RNN, 1, "rnn", 1};
    if (layer->options == &pen_layer_lstm_options) {
        net = (pen_recurrent_net){options, PEN_RECURRENT_LSTM, 1, "lstm", 4};
    } else if (layer->options == &pen_layer_gru_options) {
        net = (pen_recurrent_net){options, PEN_RECURRENT_GRU, 1, "gru", 3};
    }
    return net;
}

// ---- nodes

// ONNX' name of an activation; NULL when it is not one of a recurrent net.
static const char *recurrent_function(pen_layer_activation activation) {
#define RECURRENT_NAME(constant, name, make, op, recurrent) recurrent,
    static const char *const names[] = {PEN_LAYER_ACTIVATIONS(RECURRENT_NAME)};
    return names[activation];
}

// ONNX wants a name for each function of a gate or state, in both directions.
static pen_status recurrent_activations(const pen_recurrent_net *net, pen_arena *arena,
                                        const char **out_text) {
    const char *state = recurrent_function(net->options->activation);
    const char *gate = recurrent_function(net->options->recurrent_activation);
    if (state == NULL || gate == NULL) {
        const pen_layer_activation found =
            state == NULL ? net->options->activation : net->options->recurrent_activation;
        return pen_error(PEN_UNSUPPORTED,
                         "its activation is %s; possible: tanh, sigmoid, hard_sigmoid, relu, elu, "
                         "softplus, softsign, linear",
                         pen_layer_activation_names[found]);
    }
    const char *once = "";
    switch (net->kind) {
    case PEN_RECURRENT_LSTM:
        PEN_TRY(pen_arena_format(arena, &once, "%s %s %s", gate, state, state));
        break;
    case PEN_RECURRENT_GRU:
        PEN_TRY(pen_arena_format(arena, &once, "%s %s", gate, state));
        break;
    case PEN_RECURRENT_RNN:
        once = state;
        break;
    }
    *out_text = once;
    return net->directions == 1 ? PEN_OK : pen_arena_format(arena, out_text, "%s %s", once, once);
}

// Outputs: every step's state, last states, and what the gradient needs.
static pen_status recurrent_node(const pen_layer_call *call, const pen_recurrent_net *net,
                                 const pen_value_id *operands, pen_value_id *out_outputs) {
    static const uint32_t output_counts[] = {
        [PEN_RECURRENT_RNN] = 2, [PEN_RECURRENT_GRU] = 3, [PEN_RECURRENT_LSTM] = 5};
    const char *activations;
    PEN_TRY(recurrent_activations(net, pen_layer_arena(call), &activations));
    const char *direction = net->directions == 2         ? "bidirectional"
                            : net->options->go_backwards ? "reverse"
                                                         : "forward";
    const pen_attribute_given attributes[] = {
        pen_attribute_int("hidden_size", net->options->units),
        pen_attribute_int("layout", 1),
        pen_attribute_text("direction", direction),
        pen_attribute_text("activations", activations),
        pen_attribute_int("linear_before_reset", net->options->reset_after ? 1 : 0),
    };
    uint32_t operand_count = PEN_RECURRENT_R + 1;
    for (uint32_t i = 0; i < PEN_RECURRENT_PEEPHOLES; i++) {
        if (pen_value_is(operands[i])) operand_count = i + 1;
    }
    if (operand_count <= PEN_RECURRENT_R) operand_count = PEN_RECURRENT_R + 1;
    const pen_layer_node node = {
        .op = net->op,
        .inputs = {operands, operand_count},
        .attributes = {attributes, net->kind == PEN_RECURRENT_GRU ? 5 : 4},
        .output_count = output_counts[net->kind],
    };
    const pen_value_id *made;
    PEN_TRY(pen_layer_add_node(call, &node, &made));
    for (uint32_t i = 0; i < PEN_RECURRENT_OUTPUT_COUNT; i++) {
        out_outputs[i] = i < node.output_count ? made[i] : PEN_VALUE_NONE;
    }
    return PEN_OK;
}

// States that are given as further inputs, (batch, units) each.
static pen_status recurrent_initial(const pen_layer_call *call, const pen_recurrent_net *net,
                                    pen_value_id *out_operands) {
    const uint32_t states = net->kind == PEN_RECURRENT_LSTM ? 2 : 1;
    out_operands[PEN_RECURRENT_LENGTHS] = PEN_VALUE_NONE;
    out_operands[PEN_RECURRENT_INITIAL_H] = PEN_VALUE_NONE;
    out_operands[PEN_RECURRENT_INITIAL_C] = PEN_VALUE_NONE;
    if (call->input_count != 1 && call->input_count != 1 + states) {
        return pen_error(PEN_INVALID_INPUT, "it reads %u, expected 1, or %u with initial states",
                         call->input_count, 1 + states);
    }
    for (uint32_t i = 1; i < call->input_count; i++) {
        const pen_shape *shape = &call->inputs[i].shape;
        const pen_shape wide = {3, {PEN_LAYER_BATCH, 1, net->options->units}};
        if (shape->rank != 2 || shape->dims[1] != net->options->units) {
            char text[PEN_SHAPE_TEXT_BYTES];
            return pen_error(PEN_INVALID_INPUT, "an initial state is %s, expected [?,%" PRId64 "]",
                             pen_layer_shape_format(shape, text), net->options->units);
        }
        PEN_TRY(pen_layer_reshape(call, call->inputs[i].value, &wide, "initial",
                                  &out_operands[PEN_RECURRENT_INITIAL_H + i - 1]));
    }
    return PEN_OK;
}

static pen_status recurrent_check_sequence(const pen_shape *shape) {
    if (shape->rank == 3) return PEN_OK;
    char text[PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT, "its input is %s, expected (batch, steps, features)",
                     pen_layer_shape_format(shape, text));
}

// Drops elements of the input, the same in every step.
static pen_status recurrent_drop(const pen_layer_call *call, double rate,
                                 pen_layer_tensor *io_tensor) {
    const int64_t sizes[2] = {1, io_tensor->shape.dims[2]};
    pen_value_id product[2] = {io_tensor->value};
    if (rate == 0) return PEN_OK;
    PEN_TRY(pen_layer_add_ones(call, io_tensor->value, 2, sizes, &product[1]));
    PEN_TRY(pen_layer_add_dropout(call, "dropout", rate, &product[1]));
    return pen_layer_pair(call, "mul", "dropped", product[0], product[1], &io_tensor->value);
}

// With a mask, the steps that count are moved to the front and the net gets their number; with
// recurrent_dropout it is written out step by step.
pen_status pen_recurrent_add(const pen_layer_call *call, const pen_recurrent_net *net,
                             pen_recurrent_run *out_run) {
    pen_layer_tensor x;
    pen_value_id operands[PEN_RECURRENT_INPUT_COUNT];
    *out_run = (pen_recurrent_run){.is_masked = call->inputs[0].mask_rank > 0};
    PEN_TRY(recurrent_check_sequence(&call->inputs[0].shape));
    PEN_TRY(pen_layer_plain(call, &call->inputs[0], &x));
    PEN_TRY(pen_recurrent_weights(call, net, operands));
    PEN_TRY(recurrent_initial(call, net, operands));
    PEN_TRY(recurrent_drop(call, net->options->dropout, &x));
    if (out_run->is_masked) {
        PEN_TRY(pen_layer_sequence_open(call, &x, &out_run->sequence));
        PEN_TRY(pen_layer_sequence_pack(call, &out_run->sequence, &x, &x.value));
        PEN_TRY(
            pen_layer_sequence_lengths(call, &out_run->sequence, &operands[PEN_RECURRENT_LENGTHS]));
    }
    operands[PEN_RECURRENT_X] = x.value;
    operands[PEN_RECURRENT_PEEPHOLES] = PEN_VALUE_NONE;
    if (net->options->recurrent_dropout > 0) {
        return pen_recurrent_add_steps(call, net, operands, out_run->outputs);
    }
    return recurrent_node(call, net, operands, out_run->outputs);
}

// What a mask left out goes back to its place: zeros, or the state of the step before, as Keras
// has it.
pen_status pen_recurrent_steps(const pen_layer_call *call, const pen_recurrent_net *net,
                               const pen_recurrent_run *run, uint32_t direction,
                               pen_layer_tensor *out_tensor) {
    const int64_t steps = call->inputs[0].shape.dims[1];
    const pen_shape shape = {3, {PEN_LAYER_BATCH, steps, net->options->units}};
    const pen_layer_range range = {.axis = 2, .start = direction, .end = direction + 1, .step = 1};
    pen_value_id value = run->outputs[PEN_RECURRENT_Y];
    if (net->directions > 1) {
        PEN_TRY(pen_layer_slice(call, value, "direction", range, &value));
    }
    PEN_TRY(pen_layer_reshape(call, value, &shape, "sequence", &value));
    *out_tensor = pen_layer_tensor_make(value, &shape);
    if (!run->is_masked) return PEN_OK;
    // in two directions, Keras always gives zeros
    const bool is_zeros = net->options->zero_output_for_mask || net->directions > 1;
    const pen_layer_filler filler = is_zeros                     ? PEN_LAYER_FILL_ZEROS
                                    : net->options->go_backwards ? PEN_LAYER_FILL_BEHIND
                                                                 : PEN_LAYER_FILL_BEFORE;
    const pen_layer_tensor packed = *out_tensor;
    return pen_layer_sequence_unpack(call, &run->sequence, &packed, filler, &out_tensor->value);
}

// ---- one direction

// Keras gives the states of a net that goes backwards in the order in which it made them; its mask
// stays as it was.
static pen_status recurrent_sequence(const pen_layer_call *call, const pen_recurrent_net *net,
                                     const pen_recurrent_run *run, pen_layer_tensor *out_tensor) {
    PEN_TRY(pen_recurrent_steps(call, net, run, 0, out_tensor));
    if (net->options->go_backwards) {
        const pen_layer_range back = {.axis = 1, .start = -1, .end = INT64_MIN, .step = -1};
        PEN_TRY(pen_layer_slice(call, out_tensor->value, "turned", back, &out_tensor->value));
    }
    out_tensor->mask_rank = call->inputs[0].mask_rank;
    out_tensor->mask = call->inputs[0].mask;
    return PEN_OK;
}

static pen_status recurrent_state(const pen_layer_call *call, const pen_recurrent_net *net,
                                  pen_value_id state, pen_layer_tensor *out_tensor) {
    const pen_shape shape = {2, {PEN_LAYER_BATCH, net->options->units}};
    pen_value_id value;
    PEN_TRY(pen_layer_reshape(call, state, &shape, "state", &value));
    *out_tensor = pen_layer_tensor_make(value, &shape);
    return PEN_OK;
}

pen_status pen_layer_recurrent_build(const pen_layer_call *call, pen_layer_result *out_result) {
    const pen_recurrent_net net = pen_recurrent_net_of(call->layer, call->options);
    pen_recurrent_run run;
    pen_layer_tensor tensor;
    PEN_TRY(pen_recurrent_add(call, &net, &run));
    if (net.options->return_sequences) {
        PEN_TRY(recurrent_sequence(call, &net, &run, &tensor));
    } else {
        PEN_TRY(recurrent_state(call, &net, run.outputs[PEN_RECURRENT_LAST_H], &tensor));
    }
    PEN_TRY(pen_layer_give(out_result, tensor));
    const uint32_t states = net.kind == PEN_RECURRENT_LSTM ? 2 : 1;
    for (uint32_t i = 0; net.options->return_state && i < states; i++) {
        PEN_TRY(recurrent_state(call, &net, run.outputs[PEN_RECURRENT_LAST_H + i], &tensor));
        PEN_TRY(pen_layer_give(out_result, tensor));
    }
    return PEN_OK;
}
