// Layers over sequences: lstm, gru and rnn, of several layers and directions.
//
// A call lists the parameters of each layer and direction: w_ih (gates * hidden, inputs), w_hh
// (gates * hidden, hidden), and both biases. Our operators want the gates in ONNX' order, and
// those of both directions in one tensor; what is moved for that is small beside the products.

#include <stdio.h>
#include <string.h>

#include "graph/import/pytorch/ops/pt2_dropout.h"
#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

#define RECURRENT_LAYERS_LIMIT 64

typedef struct recurrent_kind {
    const char *op_name;
    uint32_t gates;
    uint32_t order[4]; // gate i of ours is gate order[i] of PyTorch's
    uint32_t states;   // tensors of hx: 2 for lstm
    uint32_t saved;    // outputs behind the states, for the gradient
    const char *activation;
} recurrent_kind;

// PyTorch has i f g o and r z n, ONNX i o f c and z r h.
static const recurrent_kind recurrent_lstm = {"lstm", 4, {0, 3, 1, 2}, 2, 2, NULL};
static const recurrent_kind recurrent_gru = {"gru", 3, {1, 0, 2}, 1, 1, NULL};
static const recurrent_kind recurrent_tanh = {"rnn", 1, {0}, 1, 0, "tanh"};
static const recurrent_kind recurrent_relu = {"rnn", 1, {0}, 1, 0, "relu"};

typedef struct recurrent_call {
    pen_pt2_draft *draft;
    const recurrent_kind *kind;
    const pen_value_id *parameters;
    uint32_t directions, each; // tensors of `parameters` for a layer and direction: 2 or 4
    int64_t hidden;
    bool is_batch_first;
    uint32_t layer;
    pen_value_id states[2]; // (layers * directions, batch, hidden)
} recurrent_call;

#define RECURRENT_NAME 64
// "layer2/weights", in `text`, which is RECURRENT_NAME large.
static const char *recurrent_name(const recurrent_call *call, const char *what, char *text) {
    snprintf(text, RECURRENT_NAME, "layer%u/%.40s", call->layer, what);
    return text;
}

// Tensor `which` of the layer's parameters in one direction, its gates in our order.
static pen_status recurrent_gates(const recurrent_call *call, uint32_t direction, uint32_t which,
                                  const char *what, pen_value_id *out_value) {
    char name[RECURRENT_NAME], parts[RECURRENT_NAME];
    pen_pt2_draft *draft = call->draft;
    const uint32_t at = (call->layer * call->directions + direction) * call->each + which;
    const pen_value_id given = call->parameters[at];
    const uint32_t count = call->kind->gates;
    pen_value_id sizes, gates[4], ordered[4];
    int64_t rows[4];
    *out_value = given;
    if (count == 1) return PEN_OK;
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = call->hidden;
    }
    snprintf(parts, sizeof parts, "%.30s%u_gates", what, direction);
    PEN_TRY(pen_pt2_constant_ints(draft, count, rows, &sizes));
    const pen_pt2_emission split = {"split", recurrent_name(call, parts, name),
                                    PEN_INPUTS(given, sizes),
                                    PEN_WITH(pen_attribute_int("axis", 0)), count};
    PEN_TRY(pen_pt2_emit_many(draft, &split, gates));
    for (uint32_t i = 0; i < count; i++) {
        ordered[i] = gates[call->kind->order[i]];
    }
    snprintf(parts, sizeof parts, "%.30s%u", what, direction);
    return pen_pt2_emit(draft, "concat", recurrent_name(call, parts, name),
                        (pen_node_inputs){ordered, count}, PEN_WITH(pen_attribute_int("axis", 0)),
                        out_value);
}

// Of one direction or two, one behind the other: (directions, …)
static pen_status recurrent_stack(const recurrent_call *call, const char *what,
                                  const pen_value_id *each, pen_value_id *out_value) {
    char name[RECURRENT_NAME], part[RECURRENT_NAME];
    pen_value_id apart[2] = {PEN_VALUE_NONE, PEN_VALUE_NONE};
    for (uint32_t d = 0; d < call->directions; d++) {
        snprintf(part, sizeof part, "%.30s%u_apart", what, d);
        PEN_TRY(pen_pt2_with_int(call->draft, "unsqueeze", recurrent_name(call, part, name),
                                 each[d], 0, &apart[d]));
    }
    *out_value = apart[0];
    if (call->directions == 1) return PEN_OK;
    return pen_pt2_emit(call->draft, "concat", recurrent_name(call, what, name),
                        (pen_node_inputs){apart, 2}, PEN_WITH(pen_attribute_int("axis", 0)),
                        out_value);
}

static pen_status recurrent_weights(const recurrent_call *call, uint32_t which, const char *what,
                                    pen_value_id *out_value) {
    pen_value_id each[2];
    for (uint32_t d = 0; d < call->directions; d++) {
        PEN_TRY(recurrent_gates(call, d, which, what, &each[d]));
    }
    return recurrent_stack(call, what, each, out_value);
}

// The input's biases, then the state's: (directions, 2 * gates * hidden). NONE without any.
static pen_status recurrent_biases(const recurrent_call *call, pen_value_id *out_value) {
    char name[RECURRENT_NAME], part[RECURRENT_NAME];
    pen_value_id each[2], halves[2];
    *out_value = PEN_VALUE_NONE;
    if (call->each < 4) return PEN_OK;
    for (uint32_t d = 0; d < call->directions; d++) {
        PEN_TRY(recurrent_gates(call, d, 2, "bias_ih", &halves[0]));
        PEN_TRY(recurrent_gates(call, d, 3, "bias_hh", &halves[1]));
        snprintf(part, sizeof part, "bias%u", d);
        PEN_TRY(pen_pt2_emit(call->draft, "concat", recurrent_name(call, part, name),
                             (pen_node_inputs){halves, 2}, PEN_WITH(pen_attribute_int("axis", 0)),
                             &each[d]));
    }
    return recurrent_stack(call, "bias", each, out_value);
}

// The layer's part of an initial state, (directions, batch, hidden), or with the batch first.
static pen_status recurrent_state(const recurrent_call *call, uint32_t which, const char *what,
                                  pen_value_id *out_value) {
    static const int64_t turned[3] = {1, 0, 2};
    char name[RECURRENT_NAME];
    pen_pt2_draft *draft = call->draft;
    const int64_t first = (int64_t)call->layer * call->directions;
    PEN_TRY(pen_pt2_slice(draft, recurrent_name(call, what, name), call->states[which],
                          (pen_pt2_part){0, first, first + call->directions}, out_value));
    if (!call->is_batch_first) return PEN_OK;
    return pen_pt2_transpose(draft, recurrent_name(call, "turned_state", name), *out_value,
                             (pen_pt2_list){3, turned}, out_value);
}

// The outputs of both directions side by side: (steps, batch, directions * hidden), or with the
// batch first.
static pen_status recurrent_sequence(const recurrent_call *call, pen_value_id y,
                                     pen_value_id *out_value) {
    static const int64_t turned[4] = {0, 2, 1, 3};
    char name[RECURRENT_NAME];
    const int64_t sizes[3] = {0, 0, call->hidden * call->directions}; // 0: as it is
    if (!call->is_batch_first) {
        PEN_TRY(pen_pt2_transpose(call->draft, recurrent_name(call, "side_by_side", name), y,
                                  (pen_pt2_list){4, turned}, &y));
    }
    return pen_pt2_with_ints(call->draft, "reshape", recurrent_name(call, "sequence", name), y,
                             (pen_pt2_list){3, sizes}, out_value);
}

// One layer: *sequence is its input and becomes its output; *last are its last states.
static pen_status recurrent_layer(const recurrent_call *call, pen_value_id *sequence,
                                  pen_value_id last[2]) {
    static const int64_t turned[3] = {1, 0, 2};
    char name[RECURRENT_NAME];
    const recurrent_kind *kind = call->kind;
    pen_value_id inputs[7], outputs[5];
    PEN_TRY(recurrent_weights(call, 0, "weight_ih", &inputs[1]));
    PEN_TRY(recurrent_weights(call, 1, "weight_hh", &inputs[2]));
    PEN_TRY(recurrent_biases(call, &inputs[3]));
    inputs[0] = *sequence;
    inputs[4] = PEN_VALUE_NONE; // lengths of sequences
    for (uint32_t i = 0; i < kind->states; i++) {
        PEN_TRY(recurrent_state(call, i, i == 0 ? "state" : "cell", &inputs[5 + i]));
    }
    pen_attribute_given attributes[4] = {
        pen_attribute_text("direction", call->directions == 2 ? "bidirectional" : "forward"),
        pen_attribute_int("layout", call->is_batch_first),
    };
    uint32_t count = 2;
    if (strcmp(kind->op_name, "gru") == 0) {
        attributes[count++] = pen_attribute_int("linear_before_reset", 1);
    }
    char activations[16];
    snprintf(activations, sizeof activations, call->directions == 2 ? "%s %s" : "%s",
             kind->activation != NULL ? kind->activation : "",
             kind->activation != NULL ? kind->activation : "");
    if (kind->activation != NULL) {
        attributes[count++] = pen_attribute_text("activations", activations);
    }
    const pen_pt2_emission emission = {kind->op_name,
                                       recurrent_name(call, kind->op_name, name),
                                       {inputs, 5 + kind->states},
                                       {attributes, count},
                                       1 + kind->states + kind->saved};
    PEN_TRY(pen_pt2_emit_many(call->draft, &emission, outputs));
    for (uint32_t i = 0; i < kind->states; i++) {
        last[i] = outputs[1 + i];
        if (!call->is_batch_first) continue;
        PEN_TRY(pen_pt2_transpose(call->draft,
                                  recurrent_name(call, i == 0 ? "last_state" : "last_cell", name),
                                  last[i], (pen_pt2_list){3, turned}, &last[i]));
    }
    return recurrent_sequence(call, outputs[0], sequence);
}

// All layers, with dropout between them in training.
static pen_status recurrent_layers(recurrent_call *call, uint32_t layer_count,
                                   pen_value_id *sequence, pen_value_id (*last)[2]) {
    char name[RECURRENT_NAME];
    const double dropped =
        pen_pt2_bool(call->draft, "train", false) ? pen_pt2_float(call->draft, "dropout", 0) : 0;
    for (call->layer = 0; call->layer < layer_count; call->layer++) {
        PEN_TRY(recurrent_layer(call, sequence, last[call->layer]));
        if (dropped == 0 || call->layer + 1 == layer_count) continue;
        PEN_TRY(pen_pt2_dropout(call->draft, recurrent_name(call, "dropout", name), *sequence,
                                dropped, sequence));
    }
    return PEN_OK;
}

// The call's layers, directions and sizes. What is not as nn.LSTM and its like make it is refused.
static pen_status recurrent_read(recurrent_call *call, uint32_t *out_layer_count) {
    pen_pt2_draft *draft = call->draft;
    const int64_t layer_count = pen_pt2_int(draft, "num_layers", 1);
    uint32_t count, state_count = 1;
    const pen_value_id *states;
    PEN_TRY(pen_pt2_tensors(draft, "params", &count, &call->parameters));
    call->directions = pen_pt2_bool(draft, "bidirectional", false) ? 2 : 1;
    call->each = pen_pt2_bool(draft, "has_biases", true) ? 4 : 2;
    call->is_batch_first = pen_pt2_bool(draft, "batch_first", false);
    if (layer_count < 1 || layer_count > RECURRENT_LAYERS_LIMIT ||
        count != (uint32_t)layer_count * call->directions * call->each) {
        return pen_pt2_refuse(draft, "%lld layers of %u parameters (a projection?)",
                              (long long)layer_count, count);
    }
    if (pen_pt2_rank(draft, "input") != 3) {
        return pen_pt2_refuse(draft, "sequences without a batch");
    }
    const pen_tensor_type *weight = pen_pt2_type_at(draft, "params", 1);
    call->hidden = weight->shape.rank == 2 ? weight->shape.dims[1] : 0;
    if (call->kind->states == 1) {
        PEN_TRY(pen_pt2_tensor(draft, "hx", &call->states[0]));
    } else {
        PEN_TRY(pen_pt2_tensors(draft, "hx", &state_count, &states));
        if (state_count != 2) return pen_pt2_refuse(draft, "%u initial states", state_count);
        call->states[0] = states[0];
        call->states[1] = states[1];
    }
    *out_layer_count = (uint32_t)layer_count;
    return PEN_OK;
}

// Layers one behind the other; the last states of all are put together in the end.
static pen_status recurrent_convert(pen_pt2_draft *draft, const recurrent_kind *kind) {
    recurrent_call call = {.draft = draft, .kind = kind};
    uint32_t layer_count = 0;
    pen_value_id sequence, all, of_state[RECURRENT_LAYERS_LIMIT] = {PEN_VALUE_NONE};
    pen_value_id last[RECURRENT_LAYERS_LIMIT][2] = {{PEN_VALUE_NONE}};
    PEN_TRY(recurrent_read(&call, &layer_count));
    PEN_TRY(pen_pt2_tensor(draft, "input", &sequence));
    PEN_TRY(recurrent_layers(&call, layer_count, &sequence, last));
    PEN_TRY(pen_pt2_set(draft, 0, sequence));
    for (uint32_t i = 0; i < kind->states; i++) {
        for (uint32_t l = 0; l < layer_count; l++) {
            of_state[l] = last[l][i];
        }
        all = of_state[0];
        if (layer_count > 1) {
            PEN_TRY(pen_pt2_emit(draft, "concat", i == 0 ? "last_states" : "last_cells",
                                 (pen_node_inputs){of_state, layer_count},
                                 PEN_WITH(pen_attribute_int("axis", 0)), &all));
        }
        PEN_TRY(pen_pt2_set(draft, 1 + i, all));
    }
    return PEN_OK;
}

static pen_status convert_lstm(pen_pt2_draft *draft) {
    return recurrent_convert(draft, &recurrent_lstm);
}
static pen_status convert_gru(pen_pt2_draft *draft) {
    return recurrent_convert(draft, &recurrent_gru);
}
static pen_status convert_rnn_tanh(pen_pt2_draft *draft) {
    return recurrent_convert(draft, &recurrent_tanh);
}
static pen_status convert_rnn_relu(pen_pt2_draft *draft) {
    return recurrent_convert(draft, &recurrent_relu);
}

static const pen_pt2_mapping recurrent_rows[] = {
    PEN_PT2_ROW("gru.input", gru),
    PEN_PT2_ROW("lstm.input", lstm),
    PEN_PT2_ROW("rnn_relu.input", rnn_relu),
    PEN_PT2_ROW("rnn_tanh.input", rnn_tanh),
};
PEN_PT2_FAMILY(pen_pt2_recurrents, recurrent_rows);
