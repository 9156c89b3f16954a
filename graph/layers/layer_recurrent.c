// Recurrent layers. Keras' gates are i, f, c, o of lstm and z, r, h of gru; ONNX has i, o, f, c.
//
// A bias that Keras has once is the input's half of ONNX' bias; the state's half is a constant, so
// that training moves it as Keras does.

#include <inttypes.h>
#include <string.h>

#include "graph/layers/layer_build.h"
#include "graph/layers/layer_list.h"
#include "graph/ops/recurrent_geometry.h"

typedef struct recurrent_options {
    pen_layer_common common;
    int64_t units;
    pen_layer_activation activation;
    pen_layer_activation recurrent_activation;
    bool use_bias;
    pen_layer_initializer kernel_initializer;
    pen_layer_initializer recurrent_initializer;
    pen_layer_initializer bias_initializer;
    bool unit_forget_bias;
    bool return_sequences;
    bool return_state;
    bool go_backwards;
    bool reset_after;
    double dropout;
    double recurrent_dropout;
} recurrent_options;

#define RECURRENT_FIELDS                                                                           \
    PEN_LAYER_COMMON_FIELDS(recurrent_options),                                                    \
        PEN_LAYER_SIZE(recurrent_options, units, NULL, "size of the state"),                       \
        PEN_LAYER_CHOICE(recurrent_options, activation, pen_layer_activation_names, "tanh",        \
                         "of the state"),                                                          \
        PEN_LAYER_BOOL(recurrent_options, use_bias, "true", "whether it adds a bias"),             \
        PEN_LAYER_INITIALIZER(recurrent_options, kernel_initializer, "glorot_uniform"),            \
        PEN_LAYER_INITIALIZER(recurrent_options, recurrent_initializer, "orthogonal"),             \
        PEN_LAYER_INITIALIZER(recurrent_options, bias_initializer, "zeros"),                       \
        PEN_LAYER_BOOL(recurrent_options, return_sequences, "false",                               \
                       "whether it gives the state of every step, not only the last"),             \
        PEN_LAYER_BOOL(recurrent_options, return_state, "false",                                   \
                       "whether it gives the last states too, as further results"),                \
        PEN_LAYER_BOOL(recurrent_options, go_backwards, "false",                                   \
                       "whether it begins with the last step"),                                    \
        PEN_LAYER_NUMBER(recurrent_options, dropout, "0", "must be 0: there is a layer for it"),   \
        PEN_LAYER_NUMBER(recurrent_options, recurrent_dropout, "0", "must be 0")
#define RECURRENT_GATE_FIELD                                                                       \
    PEN_LAYER_CHOICE(recurrent_options, recurrent_activation, pen_layer_activation_names,          \
                     "sigmoid", "of the gates")

static const pen_option_field lstm_fields[] = {
    RECURRENT_FIELDS,
    RECURRENT_GATE_FIELD,
    PEN_LAYER_BOOL(recurrent_options, unit_forget_bias, "true",
                   "whether the forget gate's bias begins with 1"),
};
PEN_LAYER_TABLE(lstm, recurrent_options, lstm_fields);
static const pen_option_field gru_fields[] = {
    RECURRENT_FIELDS,
    RECURRENT_GATE_FIELD,
    PEN_LAYER_BOOL(recurrent_options, reset_after, "true",
                   "whether the reset gate comes behind the product with the state"),
};
PEN_LAYER_TABLE(gru, recurrent_options, gru_fields);
static const pen_option_field simple_rnn_fields[] = {RECURRENT_FIELDS};
PEN_LAYER_TABLE(simple_rnn, recurrent_options, simple_rnn_fields);

// One net: its layer, its kind, and how many directions it has.
typedef struct recurrent_net {
    const recurrent_options *options;
    pen_recurrent_kind kind;
    uint32_t directions;
    const char *op;
    uint32_t gates;
} recurrent_net;

static recurrent_net recurrent_net_of(const pen_layer *layer, const void *options) {
    recurrent_net net = {options, PEN_RECURRENT_RNN, 1, "rnn", 1};
    if (layer->options == &pen_layer_lstm_options) {
        net = (recurrent_net){options, PEN_RECURRENT_LSTM, 1, "lstm", 4};
    } else if (layer->options == &pen_layer_gru_options) {
        net = (recurrent_net){options, PEN_RECURRENT_GRU, 1, "gru", 3};
    }
    return net;
}

// ---- weights

static const char *recurrent_weight_name(const recurrent_net *net, uint32_t direction,
                                         const char *const names[3]) {
    return net->directions == 1 ? names[0] : names[1 + direction];
}

// A part [rows, gates * units] of a parameter [directions, gates * units, rows].
static pen_status recurrent_matrix(pen_layer_builder *builder, const pen_layer_call *call,
                                   const recurrent_net *net, uint32_t direction, bool is_state,
                                   pen_value_id *io_value) {
    static const char *const kernel[3] = {"kernel", "forward/kernel", "backward/kernel"};
    static const char *const state[3] = {"recurrent_kernel", "forward/recurrent_kernel",
                                         "backward/recurrent_kernel"};
    const int64_t rows = is_state ? net->options->units : call->inputs[0].shape.dims[2];
    const int64_t columns = net->gates * net->options->units;
    const pen_layer_contents contents = {.initializer = is_state
                                                            ? net->options->recurrent_initializer
                                                            : net->options->kernel_initializer};
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
    return pen_layer_add_weight(builder, call, &weight, &contents, &stored, io_value);
}

// With reset_after, gru has a bias of the input's half and one of the state's.
static bool recurrent_has_two_biases(const recurrent_net *net) {
    return net->kind == PEN_RECURRENT_GRU && net->options->reset_after;
}

static pen_status recurrent_bias_part(pen_layer_builder *builder, const pen_layer_call *call,
                                      const recurrent_net *net, uint32_t direction,
                                      pen_value_id *io_value) {
    static const char *const names[3] = {"bias", "forward/bias", "backward/bias"};
    const recurrent_options *options = net->options;
    const int64_t columns = net->gates * options->units;
    const bool is_two = recurrent_has_two_biases(net);
    const bool has_forget = net->kind == PEN_RECURRENT_LSTM && options->unit_forget_bias;
    const pen_layer_contents contents = {.initializer = has_forget ? PEN_LAYER_UNIT_FORGET
                                                                   : options->bias_initializer};
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
    return pen_layer_add_weight(builder, call, &weight, &contents, &stored, io_value);
}

// The state's half of the bias, all 0, behind what is trained.
static pen_status recurrent_complete_bias(pen_layer_builder *builder, const pen_layer_call *call,
                                          const recurrent_net *net, pen_value_id *io_value) {
    if (recurrent_has_two_biases(net)) return PEN_OK;
    pen_graph *graph = pen_layer_graph(builder);
    const pen_tensor_type type = {PEN_FLOAT32,
                                  {2, {net->directions, net->gates * net->options->units}}};
    const char *name;
    float *zeros = NULL;
    pen_value_id operands[2] = {*io_value};
    PEN_TRY(pen_arena_format(pen_graph_arena(graph), &name, "%s/no_bias", call->name));
    PEN_TRY(pen_layer_check_constant(&type));
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), (size_t)pen_shape_element_count(&type.shape), &zeros));
    PEN_TRY(pen_graph_constant(graph, name, &type, zeros, &operands[1]));
    const pen_attribute_given axis = pen_attribute_int("axis", 1);
    const pen_layer_node node = {.op = "concat",
                                 .suffix = "whole_bias",
                                 .inputs = operands,
                                 .input_count = 2,
                                 .attributes = &axis,
                                 .attribute_count = 1};
    return pen_layer_add_node(builder, call, &node, io_value);
}

static pen_status recurrent_weights(pen_layer_builder *builder, const pen_layer_call *call,
                                    const recurrent_net *net, pen_value_id *out_operands) {
    out_operands[PEN_RECURRENT_W] = PEN_VALUE_NONE;
    out_operands[PEN_RECURRENT_R] = PEN_VALUE_NONE;
    out_operands[PEN_RECURRENT_B] = PEN_VALUE_NONE;
    for (uint32_t d = 0; d < net->directions; d++) { // in Keras' order
        PEN_TRY(recurrent_matrix(builder, call, net, d, false, &out_operands[PEN_RECURRENT_W]));
        PEN_TRY(recurrent_matrix(builder, call, net, d, true, &out_operands[PEN_RECURRENT_R]));
        if (!net->options->use_bias) continue;
        PEN_TRY(recurrent_bias_part(builder, call, net, d, &out_operands[PEN_RECURRENT_B]));
    }
    if (!net->options->use_bias) return PEN_OK;
    return recurrent_complete_bias(builder, call, net, &out_operands[PEN_RECURRENT_B]);
}

// ---- nodes

// ONNX' name of an activation; NULL when it is not one of a recurrent net.
static const char *recurrent_function(pen_layer_activation activation) {
    static const char *const names[PEN_LAYER_ACTIVATION_COUNT] = {
        [PEN_LAYER_LINEAR] = "Affine",     [PEN_LAYER_RELU] = "Relu",
        [PEN_LAYER_SIGMOID] = "Sigmoid",   [PEN_LAYER_HARD_SIGMOID] = "HardSigmoid",
        [PEN_LAYER_TANH] = "Tanh",         [PEN_LAYER_ELU] = "Elu",
        [PEN_LAYER_SOFTPLUS] = "Softplus", [PEN_LAYER_SOFTSIGN] = "Softsign",
    };
    return names[activation];
}

static pen_status recurrent_activations(const recurrent_net *net, pen_arena *arena,
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

static pen_status recurrent_check(const recurrent_options *options) {
    if (options->dropout != 0 || options->recurrent_dropout != 0) {
        return pen_error(PEN_UNSUPPORTED, "dropout within a recurrent layer is not possible; a "
                                          "layer 'dropout' before it is");
    }
    return PEN_OK;
}

// Outputs: every step's state, last states, and what the gradient needs.
static pen_status recurrent_node(pen_layer_builder *builder, const pen_layer_call *call,
                                 const recurrent_net *net, const pen_value_id *operands,
                                 pen_value_id *out_outputs) {
    static const uint32_t output_counts[] = {
        [PEN_RECURRENT_RNN] = 2, [PEN_RECURRENT_GRU] = 3, [PEN_RECURRENT_LSTM] = 5};
    pen_graph *graph = pen_layer_graph(builder);
    const char *activations;
    PEN_TRY(recurrent_activations(net, pen_graph_arena(graph), &activations));
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
    const pen_layer_node node = {.op = net->op,
                                 .inputs = operands,
                                 .input_count = operand_count,
                                 .attributes = attributes,
                                 .attribute_count = net->kind == PEN_RECURRENT_GRU ? 5 : 4};
    pen_node_spec spec;
    pen_node_id made;
    PEN_TRY(pen_layer_node_spec(builder, call, &node, &spec));
    spec.output_count = output_counts[net->kind];
    PEN_TRY(pen_graph_add_node(graph, &spec, &made));
    const pen_node *added = pen_graph_node(graph, made);
    for (uint32_t i = 0; i < PEN_RECURRENT_OUTPUT_COUNT; i++) {
        out_outputs[i] = i < added->output_count ? added->outputs[i] : PEN_VALUE_NONE;
    }
    return PEN_OK;
}

// States that are given as further inputs, (batch, units) each.
static pen_status recurrent_initial(pen_layer_builder *builder, const pen_layer_call *call,
                                    const recurrent_net *net, pen_value_id *out_operands) {
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
        PEN_TRY(pen_layer_reshape(builder, call, call->inputs[i].value, &wide, "initial",
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

static pen_status recurrent_operands(pen_layer_builder *builder, const pen_layer_call *call,
                                     const recurrent_net *net, pen_value_id *out_operands) {
    pen_layer_tensor x;
    PEN_TRY(recurrent_check_sequence(&call->inputs[0].shape));
    PEN_TRY(recurrent_check(net->options));
    PEN_TRY(pen_layer_plain(builder, call, &call->inputs[0], &x));
    out_operands[PEN_RECURRENT_X] = x.value;
    PEN_TRY(recurrent_weights(builder, call, net, out_operands));
    return recurrent_initial(builder, call, net, out_operands);
}

// ---- one direction

// Keras gives the states of a net that goes backwards in the order in which it made them.
static pen_status recurrent_sequence(pen_layer_builder *builder, const pen_layer_call *call,
                                     const recurrent_net *net, pen_value_id y,
                                     pen_layer_tensor *out_tensor) {
    const pen_shape shape = {3,
                             {PEN_LAYER_BATCH, call->inputs[0].shape.dims[1], net->options->units}};
    pen_value_id value;
    PEN_TRY(pen_layer_reshape(builder, call, y, &shape, "sequence", &value));
    if (net->options->go_backwards) {
        const pen_layer_range back = {.axis = 1, .start = -1, .end = INT64_MIN, .step = -1};
        PEN_TRY(pen_layer_slice(builder, call, value, "turned", back, &value));
    }
    *out_tensor = pen_layer_tensor_make(value, &shape);
    return PEN_OK;
}

static pen_status recurrent_state(pen_layer_builder *builder, const pen_layer_call *call,
                                  const recurrent_net *net, pen_value_id state,
                                  pen_layer_tensor *out_tensor) {
    const pen_shape shape = {2, {PEN_LAYER_BATCH, net->options->units}};
    pen_value_id value;
    PEN_TRY(pen_layer_reshape(builder, call, state, &shape, "state", &value));
    *out_tensor = pen_layer_tensor_make(value, &shape);
    return PEN_OK;
}

pen_status pen_layer_recurrent_build(pen_layer_builder *builder, const pen_layer_call *call,
                                     pen_layer_result *out_result) {
    const recurrent_net net = recurrent_net_of(call->layer, call->options);
    pen_value_id operands[PEN_RECURRENT_INPUT_COUNT];
    pen_value_id outputs[PEN_RECURRENT_OUTPUT_COUNT];
    pen_layer_tensor tensor;
    PEN_TRY(recurrent_operands(builder, call, &net, operands));
    PEN_TRY(recurrent_node(builder, call, &net, operands, outputs));
    if (net.options->return_sequences) {
        PEN_TRY(recurrent_sequence(builder, call, &net, outputs[PEN_RECURRENT_Y], &tensor));
    } else {
        PEN_TRY(recurrent_state(builder, call, &net, outputs[PEN_RECURRENT_LAST_H], &tensor));
    }
    pen_layer_give(out_result, tensor);
    const uint32_t states = net.kind == PEN_RECURRENT_LSTM ? 2 : 1;
    for (uint32_t i = 0; net.options->return_state && i < states; i++) {
        PEN_TRY(recurrent_state(builder, call, &net, outputs[PEN_RECURRENT_LAST_H + i], &tensor));
        pen_layer_give(out_result, tensor);
    }
    return PEN_OK;
}

// ---- both directions

typedef struct recurrent_choice {
    unsigned chosen;
    recurrent_options options;
} recurrent_choice;

typedef struct bidirectional_options {
    pen_layer_common common;
    recurrent_choice layer;
    unsigned merge_mode;
} bidirectional_options;

#define RECURRENT_ALTERNATIVE(symbol, says)                                                        \
    {                                                                                              \
        .key = #symbol, .kind = PEN_OPTION_MAPPING, .offset = offsetof(recurrent_choice, options), \
        .table = &pen_layer_##symbol##_options, .help = (says)                                     \
    }
static const pen_option_field recurrent_choice_fields[] = {
    RECURRENT_ALTERNATIVE(lstm, "long short-term memory"),
    RECURRENT_ALTERNATIVE(gru, "gated recurrent unit"),
    RECURRENT_ALTERNATIVE(simple_rnn, "the state goes back into itself"),
};
static const pen_option_table recurrent_choice_table = {
    .size = sizeof(recurrent_choice),
    PEN_OPTION_FIELDS(recurrent_choice_fields),
    .chosen_offset = offsetof(recurrent_choice, chosen),
};

enum { BIDIRECTIONAL_CONCAT, BIDIRECTIONAL_SUM, BIDIRECTIONAL_MUL, BIDIRECTIONAL_AVE };
static const char *const bidirectional_modes[] = {"concat", "sum", "mul", "ave", NULL};
static const pen_option_field bidirectional_fields[] = {
    PEN_LAYER_COMMON_FIELDS(bidirectional_options),
    {.key = "layer",
     .kind = PEN_OPTION_ONE_OF,
     .offset = offsetof(bidirectional_options, layer),
     .table = &recurrent_choice_table,
     .is_required = true,
     .help = "the recurrent layer"},
    PEN_LAYER_CHOICE(bidirectional_options, merge_mode, bidirectional_modes, "concat",
                     "how the two directions become one"),
};
PEN_LAYER_TABLE(bidirectional, bidirectional_options, bidirectional_fields);

// Joins dimension `axis`, which is the directions, with the one behind it, or sums over it.
static pen_status bidirectional_merge(pen_layer_builder *builder, const pen_layer_call *call,
                                      pen_value_id value, const pen_shape *merged, int64_t axis,
                                      pen_layer_tensor *out_tensor) {
    static const char *const ops[] = {NULL, "reduce_sum", "reduce_prod", "reduce_mean"};
    const bidirectional_options *options = call->options;
    if (options->merge_mode == BIDIRECTIONAL_CONCAT) {
        PEN_TRY(pen_layer_reshape(builder, call, value, merged, "merged", &value));
    } else {
        pen_value_id operands[2] = {value};
        const pen_attribute_given keep = pen_attribute_int("keepdims", 0);
        PEN_TRY(pen_layer_ints(builder, call, "directions", 1, &axis, &operands[1]));
        const pen_layer_node node = {.op = ops[options->merge_mode],
                                     .suffix = "merged",
                                     .inputs = operands,
                                     .input_count = 2,
                                     .attributes = &keep,
                                     .attribute_count = 1};
        PEN_TRY(pen_layer_add_node(builder, call, &node, &value));
    }
    *out_tensor = pen_layer_tensor_make(value, merged);
    return PEN_OK;
}

pen_status pen_layer_bidirectional_build(pen_layer_builder *builder, const pen_layer_call *call,
                                         pen_layer_result *out_result) {
    static const pen_layer_index layers[] = {PEN_LAYER_AT_lstm, PEN_LAYER_AT_gru,
                                             PEN_LAYER_AT_simple_rnn};
    const bidirectional_options *options = call->options;
    recurrent_net net =
        recurrent_net_of(pen_layer_at(layers[options->layer.chosen]), &options->layer.options);
    pen_value_id operands[PEN_RECURRENT_INPUT_COUNT];
    pen_value_id outputs[PEN_RECURRENT_OUTPUT_COUNT];
    pen_layer_tensor tensor;
    net.directions = 2;
    if (net.options->return_state || net.options->go_backwards) {
        return pen_error(PEN_UNSUPPORTED, "its layer has return_state or go_backwards, which is "
                                          "not possible in two directions");
    }
    PEN_TRY(recurrent_operands(builder, call, &net, operands));
    PEN_TRY(recurrent_node(builder, call, &net, operands, outputs));
    const bool is_concat = options->merge_mode == BIDIRECTIONAL_CONCAT;
    const int64_t units = net.options->units * (is_concat ? 2 : 1);
    const pen_shape last = {2, {PEN_LAYER_BATCH, units}};
    const pen_shape all = {3, {PEN_LAYER_BATCH, call->inputs[0].shape.dims[1], units}};
    if (net.options->return_sequences) {
        PEN_TRY(bidirectional_merge(builder, call, outputs[PEN_RECURRENT_Y], &all, 2, &tensor));
    } else {
        PEN_TRY(
            bidirectional_merge(builder, call, outputs[PEN_RECURRENT_LAST_H], &last, 1, &tensor));
    }
    pen_layer_give(out_result, tensor);
    return PEN_OK;
}
