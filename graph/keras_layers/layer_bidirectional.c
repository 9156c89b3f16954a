// A recurrent layer in both directions: one node, whose second direction reads from the end.

#include "graph/keras_layers/layer_list.h"
#include "graph/keras_layers/layer_recurrent.h"

typedef struct recurrent_choice {
    unsigned chosen;
    pen_recurrent_options options;
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
    PEN_OPTION_FIELDS(recurrent_choice, recurrent_choice_fields),
    .chosen_offset = offsetof(recurrent_choice, chosen),
};

enum { BIDIRECTIONAL_CONCAT, BIDIRECTIONAL_SUM, BIDIRECTIONAL_MUL, BIDIRECTIONAL_AVE };
static const char *const bidirectional_modes[] = {"concat", "sum", "mul", "ave", NULL};
PEN_LAYER_OPTIONS(bidirectional, bidirectional_options,
                  PEN_LAYER_FIELD(bidirectional_options, layer, ONE_OF, "the recurrent layer",
                                  .table = &recurrent_choice_table, .is_required = true),
                  PEN_LAYER_CHOICE(bidirectional_options, merge_mode, bidirectional_modes, "concat",
                                   "how the two directions become one"));

// One of two: joined along the last dimension, or element by element.
static pen_status bidirectional_merge(const pen_layer_call *call, const pen_layer_tensor parts[2],
                                      pen_layer_tensor *out_tensor) {
    static const char *const ops[] = {"concat", "add", "mul", "mean"};
    const bidirectional_options *options = call->options;
    const bool is_concat = options->merge_mode == BIDIRECTIONAL_CONCAT;
    const pen_value_id operands[2] = {parts[0].value, parts[1].value};
    const pen_attribute_given axis = pen_attribute_int("axis", -1);
    pen_layer_tensor merged = parts[0];
    if (is_concat) merged.shape.dims[merged.shape.rank - 1] *= 2;
    PEN_TRY(pen_layer_add(call, ops[options->merge_mode], "merged",
                          PEN_INPUTS(operands[0], operands[1]),
                          (pen_node_attributes){&axis, is_concat ? 1 : 0}, &merged.value));
    *out_tensor = merged;
    return PEN_OK;
}

// Of a node that gives both directions behind each other, joined they are a view.
static pen_status bidirectional_view(const pen_layer_call *call, const pen_recurrent_net *net,
                                     const pen_recurrent_run *run, pen_layer_tensor *out_tensor) {
    const int64_t units = 2 * net->options->units;
    const bool is_all = net->options->return_sequences;
    const pen_shape last = {2, {PEN_LAYER_BATCH, units}};
    const pen_shape all = {3, {PEN_LAYER_BATCH, call->inputs[0].shape.dims[1], units}};
    pen_value_id value = run->outputs[is_all ? PEN_RECURRENT_Y : PEN_RECURRENT_LAST_H];
    PEN_TRY(pen_layer_reshape(call, value, is_all ? &all : &last, "merged", &value));
    *out_tensor = pen_layer_tensor_make(value, is_all ? &all : &last);
    return PEN_OK;
}

// The last state of a direction.
static pen_status bidirectional_state(const pen_layer_call *call, const pen_recurrent_net *net,
                                      pen_value_id states, uint32_t direction,
                                      pen_layer_tensor *out_tensor) {
    const pen_shape shape = {2, {PEN_LAYER_BATCH, net->options->units}};
    const pen_layer_range range = {.axis = 1, .start = direction, .end = direction + 1, .step = 1};
    pen_value_id value;
    PEN_TRY(pen_layer_slice(call, states, "direction", range, &value));
    PEN_TRY(pen_layer_reshape(call, value, &shape, "state", &value));
    *out_tensor = pen_layer_tensor_make(value, &shape);
    return PEN_OK;
}

// Those of the first direction, then those of the second, as Keras gives them.
static pen_status bidirectional_states(const pen_layer_call *call, const pen_recurrent_net *net,
                                       const pen_recurrent_run *run, pen_layer_result *out_result) {
    const uint32_t states = net->kind == PEN_RECURRENT_LSTM ? 2 : 1;
    for (uint32_t d = 0; d < 2; d++) {
        for (uint32_t i = 0; i < states; i++) {
            pen_layer_tensor state;
            PEN_TRY(
                bidirectional_state(call, net, run->outputs[PEN_RECURRENT_LAST_H + i], d, &state));
            pen_layer_give(out_result, state);
        }
    }
    return PEN_OK;
}

// One recurrent op of two directions. If the results are to be joined end to end and nothing is
// masked, they lie so already.
pen_status pen_layer_bidirectional_build(const pen_layer_call *call, pen_layer_result *out_result) {
    static const pen_layer_index layers[] = {PEN_LAYER_AT_lstm, PEN_LAYER_AT_gru,
                                             PEN_LAYER_AT_simple_rnn};
    const bidirectional_options *options = call->options;
    pen_recurrent_net net =
        pen_recurrent_net_of(pen_layer_at(layers[options->layer.chosen]), &options->layer.options);
    pen_recurrent_run run;
    pen_layer_tensor parts[2], tensor;
    net.directions = 2;
    if (net.options->go_backwards) {
        return pen_error(PEN_UNSUPPORTED,
                         "its layer has go_backwards, which is not possible in two directions");
    }
    PEN_TRY(pen_layer_refuse_inner(&net.options->common));
    PEN_TRY(pen_recurrent_add(call, &net, &run));
    const bool is_view = options->merge_mode == BIDIRECTIONAL_CONCAT &&
                         !(run.is_masked && net.options->return_sequences);
    if (is_view) PEN_TRY(bidirectional_view(call, &net, &run, &tensor));
    for (uint32_t d = 0; d < 2 && !is_view; d++) {
        if (net.options->return_sequences) {
            PEN_TRY(pen_recurrent_steps(call, &net, &run, d, &parts[d]));
        } else {
            PEN_TRY(
                bidirectional_state(call, &net, run.outputs[PEN_RECURRENT_LAST_H], d, &parts[d]));
        }
    }
    if (!is_view) PEN_TRY(bidirectional_merge(call, parts, &tensor));
    if (net.options->return_sequences) {
        tensor.mask_rank = call->inputs[0].mask_rank;
        tensor.mask = call->inputs[0].mask;
    }
    pen_layer_give(out_result, tensor);
    if (!net.options->return_state) return PEN_OK;
    return bidirectional_states(call, &net, &run, out_result);
}
