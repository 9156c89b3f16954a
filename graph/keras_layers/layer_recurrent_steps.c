// Recurrent nets written out step by step: those with recurrent_dropout, which multiplies the state
// with a mask before it goes into the next step's product. The mask is drawn once for a sequence
// (Gal and Ghahramani, "A Theoretically Grounded Application of Dropout in Recurrent Neural
// Networks", 2016), one for all gates.

#include "graph/keras_layers/layer_builder.h"
#include "graph/keras_layers/layer_recurrent.h"

#define STEPS_LIMIT 1024        // nodes are made for each
#define STEPS_MODEL_LIMIT 65536 // in one model, of all such layers and directions

// One direction.
typedef struct steps_walk {
    const pen_layer_call *call;
    const pen_recurrent_net *net;
    int64_t units;
    pen_value_id inputs;     // (batch, steps, gates * units): products with w, and biases
    pen_value_id kernel;     // of the state, (units, gates * units)
    pen_value_id state_bias; // gru: (gates * units), the state's half; or PEN_VALUE_NONE
    pen_value_id mask;       // (batch, units)
    pen_value_id lengths;    // or PEN_VALUE_NONE
    pen_value_id h;
    pen_value_id c;
} steps_walk;

static pen_status steps_op(const steps_walk *walk, const char *op, pen_value_id a, pen_value_id b,
                           pen_value_id *out_value) {
    return pen_layer_pair(walk->call, op, "step", a, b, out_value);
}

// Gate `index` of (batch, gates * units).
static pen_status steps_gate(const steps_walk *walk, pen_value_id gates, int64_t index,
                             pen_value_id *out_value) {
    const pen_layer_range range = {
        .axis = -1, .start = index * walk->units, .end = (index + 1) * walk->units, .step = 1};
    return pen_layer_slice(walk->call, gates, "gate", range, out_value);
}

static pen_status steps_activate(const steps_walk *walk, pen_layer_activation activation,
                                 pen_value_id *io_value) {
    const pen_shape shape = {2, {PEN_LAYER_BATCH, walk->units}};
    pen_layer_tensor tensor = pen_layer_tensor_make(*io_value, &shape);
    PEN_TRY(pen_layer_activate(walk->call, activation, &tensor, &tensor));
    *io_value = tensor.value;
    return PEN_OK;
}

// The gates of this kind stand as i, o, f, c.
static pen_status steps_lstm(const steps_walk *walk, pen_value_id x, pen_value_id state,
                             pen_value_id *out_h, pen_value_id *out_c) {
    const pen_recurrent_options *options = walk->net->options;
    pen_value_id gates, parts[4], kept, added;
    PEN_TRY(steps_op(walk, "matmul", state, walk->kernel, &gates));
    PEN_TRY(steps_op(walk, "add", x, gates, &gates));
    for (uint32_t i = 0; i < 4; i++) {
        PEN_TRY(steps_gate(walk, gates, i, &parts[i]));
        PEN_TRY(steps_activate(walk, i == 3 ? options->activation : options->recurrent_activation,
                               &parts[i]));
    }
    PEN_TRY(steps_op(walk, "mul", parts[2], walk->c, &kept));
    PEN_TRY(steps_op(walk, "mul", parts[0], parts[3], &added));
    PEN_TRY(steps_op(walk, "add", kept, added, out_c));
    *out_h = *out_c;
    PEN_TRY(steps_activate(walk, options->activation, out_h));
    return steps_op(walk, "mul", parts[1], *out_h, out_h);
}

// What the state gives to the new one: r * (state R_h + b), or (r * state) R_h.
static pen_status steps_gru_candidate(const steps_walk *walk, pen_value_id reset,
                                      pen_value_id state, pen_value_id products,
                                      pen_value_id *out_value) {
    pen_value_id kernel, part;
    if (walk->net->options->reset_after) {
        PEN_TRY(steps_gate(walk, products, 2, &part));
        return steps_op(walk, "mul", reset, part, out_value);
    }
    PEN_TRY(steps_gate(walk, walk->kernel, 2, &kernel));
    PEN_TRY(steps_op(walk, "mul", reset, state, &part));
    return steps_op(walk, "matmul", part, kernel, out_value);
}

// z, r, h
static pen_status steps_gru(const steps_walk *walk, pen_value_id x, pen_value_id state,
                            pen_value_id *out_h) {
    const pen_recurrent_options *options = walk->net->options;
    pen_value_id products, gates[2], part, candidate, difference;
    PEN_TRY(steps_op(walk, "matmul", state, walk->kernel, &products));
    if (pen_value_is(walk->state_bias)) {
        PEN_TRY(steps_op(walk, "add", products, walk->state_bias, &products));
    }
    for (uint32_t i = 0; i < 2; i++) {
        PEN_TRY(steps_gate(walk, x, i, &gates[i]));
        PEN_TRY(steps_gate(walk, products, i, &part));
        PEN_TRY(steps_op(walk, "add", gates[i], part, &gates[i]));
        PEN_TRY(steps_activate(walk, options->recurrent_activation, &gates[i]));
    }
    PEN_TRY(steps_gru_candidate(walk, gates[1], state, products, &candidate));
    PEN_TRY(steps_gate(walk, x, 2, &part));
    PEN_TRY(steps_op(walk, "add", part, candidate, &candidate));
    PEN_TRY(steps_activate(walk, options->activation, &candidate));
    PEN_TRY(steps_op(walk, "sub", walk->h, candidate, &difference));
    PEN_TRY(steps_op(walk, "mul", gates[0], difference, &difference));
    return steps_op(walk, "add", candidate, difference, out_h);
}

static pen_status steps_rnn(const steps_walk *walk, pen_value_id x, pen_value_id state,
                            pen_value_id *out_h) {
    PEN_TRY(steps_op(walk, "matmul", state, walk->kernel, out_h));
    PEN_TRY(steps_op(walk, "add", x, *out_h, out_h));
    return steps_activate(walk, walk->net->options->activation, out_h);
}

// The new value where the example is longer than `step`, else the old one.
static pen_status steps_choose(const steps_walk *walk, int64_t step, pen_value_id old,
                               pen_value_id *io_new) {
    const pen_shape column = {2, {PEN_LAYER_BATCH, 1}};
    pen_value_id there;
    if (!pen_value_is(walk->lengths)) return PEN_OK;
    PEN_TRY(pen_layer_number_of(walk->call, "step", PEN_INT32, (double)step, &there));
    PEN_TRY(steps_op(walk, "greater", walk->lengths, there, &there));
    PEN_TRY(pen_layer_reshape(walk->call, there, &column, "there", &there));
    return pen_layer_add(walk->call, "where", "step", PEN_INPUTS(there, *io_new, old),
                         PEN_NO_ATTRIBUTES, io_new);
}

// One step of the cell, as ops of its own; a masked step keeps the state before it.
static pen_status steps_take(steps_walk *walk, int64_t step) {
    const pen_layer_range range = {.axis = 1, .start = step, .end = step + 1, .step = 1};
    const pen_shape flat = {2, {PEN_LAYER_BATCH, walk->net->gates * walk->units}};
    pen_value_id x, state, h = PEN_VALUE_NONE, c = walk->c;
    PEN_TRY(pen_layer_slice(walk->call, walk->inputs, "step", range, &x));
    PEN_TRY(pen_layer_reshape(walk->call, x, &flat, "step", &x));
    PEN_TRY(steps_op(walk, "mul", walk->h, walk->mask, &state));
    switch (walk->net->kind) {
    case PEN_RECURRENT_LSTM:
        PEN_TRY(steps_lstm(walk, x, state, &h, &c));
        PEN_TRY(steps_choose(walk, step, walk->c, &c));
        break;
    case PEN_RECURRENT_GRU:
        PEN_TRY(steps_gru(walk, x, state, &h));
        break;
    case PEN_RECURRENT_RNN:
        PEN_TRY(steps_rnn(walk, x, state, &h));
        break;
    }
    PEN_TRY(steps_choose(walk, step, walk->h, &h));
    walk->h = h;
    walk->c = c;
    return PEN_OK;
}

// ---- a direction's operands

// Row `direction` of a parameter (directions, rows, columns), transposed.
static pen_status steps_matrix(const steps_walk *walk, pen_value_id whole, uint32_t direction,
                               int64_t columns, pen_value_id *out_value) {
    static const int64_t swap[2] = {1, 0};
    const pen_layer_range range = {.axis = 0, .start = direction, .end = direction + 1, .step = 1};
    const pen_shape shape = {2, {walk->net->gates * walk->units, columns}};
    PEN_TRY(pen_layer_slice(walk->call, whole, "direction", range, out_value));
    PEN_TRY(pen_layer_reshape(walk->call, *out_value, &shape, "matrix", out_value));
    return pen_layer_transpose(walk->call, *out_value, &shape, swap, out_value);
}

// A half of the biases of a direction.
static pen_status steps_bias(const steps_walk *walk, pen_value_id whole, uint32_t direction,
                             uint32_t half, pen_value_id *out_value) {
    const int64_t count = walk->net->gates * walk->units;
    const pen_layer_range row = {.axis = 0, .start = direction, .end = direction + 1, .step = 1};
    const pen_layer_range part = {
        .axis = 1, .start = half * count, .end = (half + 1) * count, .step = 1};
    const pen_shape flat = {1, {count}};
    PEN_TRY(pen_layer_slice(walk->call, whole, "direction", row, out_value));
    PEN_TRY(pen_layer_slice(walk->call, *out_value, "half", part, out_value));
    return pen_layer_reshape(walk->call, *out_value, &flat, "half", out_value);
}

// (batch, units): a state given, or zeros.
static pen_status steps_first(const steps_walk *walk, pen_value_id given, pen_value_id ones,
                              pen_value_id *out_value) {
    const pen_shape flat = {2, {PEN_LAYER_BATCH, walk->units}};
    if (pen_value_is(given)) {
        return pen_layer_reshape(walk->call, given, &flat, "first", out_value);
    }
    pen_value_id zero;
    PEN_TRY(pen_layer_number(walk->call, "zero", 0, &zero));
    return steps_op(walk, "mul", ones, zero, out_value);
}

// The inputs' half of all steps is one product; what is left for each step is the state's half.
static pen_status steps_open(steps_walk *walk, const pen_value_id *operands, uint32_t direction) {
    const pen_recurrent_options *options = walk->net->options;
    const int64_t columns = walk->call->inputs[0].shape.dims[2];
    const pen_value_id x = operands[PEN_RECURRENT_X];
    pen_value_id kernel, bias, ones;
    PEN_TRY(steps_matrix(walk, operands[PEN_RECURRENT_W], direction, columns, &kernel));
    PEN_TRY(steps_matrix(walk, operands[PEN_RECURRENT_R], direction, walk->units, &walk->kernel));
    PEN_TRY(steps_op(walk, "matmul", x, kernel, &walk->inputs));
    walk->state_bias = PEN_VALUE_NONE;
    if (options->use_bias) {
        PEN_TRY(steps_bias(walk, operands[PEN_RECURRENT_B], direction, 0, &bias));
        PEN_TRY(steps_op(walk, "add", walk->inputs, bias, &walk->inputs));
    }
    if (options->use_bias && walk->net->kind == PEN_RECURRENT_GRU && options->reset_after) {
        PEN_TRY(steps_bias(walk, operands[PEN_RECURRENT_B], direction, 1, &walk->state_bias));
    }
    PEN_TRY(pen_layer_add_ones(walk->call, x, 1, &walk->units, &ones));
    walk->mask = ones;
    PEN_TRY(pen_layer_add_dropout(walk->call, "recurrent_dropout", options->recurrent_dropout,
                                  &walk->mask));
    PEN_TRY(steps_first(walk, operands[PEN_RECURRENT_INITIAL_H], ones, &walk->h));
    return steps_first(walk, operands[PEN_RECURRENT_INITIAL_C], ones, &walk->c);
}

static pen_status steps_join(const steps_walk *walk, int64_t axis, uint32_t count,
                             const pen_value_id *parts, pen_value_id *out_value) {
    return pen_layer_concat(walk->call, "joined", (pen_node_inputs){parts, count}, axis, out_value);
}

// All steps of a direction: (batch, steps, 1, units), and (batch, 1, units) of the states.
static pen_status steps_run(steps_walk *walk, bool is_back, pen_value_id *scratch,
                            pen_value_id out_outputs[PEN_RECURRENT_OUTPUT_COUNT]) {
    const int64_t steps = walk->call->inputs[0].shape.dims[1];
    const pen_shape wide = {4, {PEN_LAYER_BATCH, 1, 1, walk->units}};
    const pen_shape state = {3, {PEN_LAYER_BATCH, 1, walk->units}};
    for (int64_t i = 0; i < steps; i++) {
        const int64_t step = is_back ? steps - 1 - i : i;
        PEN_TRY(steps_take(walk, step));
        PEN_TRY(pen_layer_reshape(walk->call, walk->h, &wide, "wide", &scratch[step]));
    }
    PEN_TRY(steps_join(walk, 1, (uint32_t)steps, scratch, &out_outputs[PEN_RECURRENT_Y]));
    PEN_TRY(
        pen_layer_reshape(walk->call, walk->h, &state, "last", &out_outputs[PEN_RECURRENT_LAST_H]));
    return pen_layer_reshape(walk->call, walk->c, &state, "last",
                             &out_outputs[PEN_RECURRENT_LAST_C]);
}

// The recurrent op has no dropout inside, so with recurrent_dropout every step is written out.
pen_status pen_recurrent_add_steps(const pen_layer_call *call, const pen_recurrent_net *net,
                                   const pen_value_id *operands, pen_value_id *out_outputs) {
    static const int64_t axes[PEN_RECURRENT_OUTPUT_COUNT] = {2, 1, 1};
    steps_walk walk = {.call = call,
                       .net = net,
                       .units = net->options->units,
                       .lengths = operands[PEN_RECURRENT_LENGTHS]};
    pen_value_id parts[2][PEN_RECURRENT_OUTPUT_COUNT] = {{{0}}};
    pen_value_id *scratch = NULL;
    const int64_t steps = call->inputs[0].shape.dims[1];
    if (steps > STEPS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "with recurrent_dropout, at most %d steps are possible, and it has %lld",
                         STEPS_LIMIT, (long long)steps);
    }
    call->builder->steps_written += (uint64_t)steps * net->directions;
    if (call->builder->steps_written > STEPS_MODEL_LIMIT) {
        return pen_error(PEN_UNSUPPORTED,
                         "the model's layers with recurrent_dropout have more than %d steps",
                         STEPS_MODEL_LIMIT);
    }
    PEN_TRY(PEN_NEW(pen_layer_arena(call), (size_t)steps, &scratch));
    for (uint32_t d = 0; d < net->directions; d++) {
        const bool is_back = d == 1 || net->options->go_backwards;
        PEN_TRY(steps_open(&walk, operands, d));
        PEN_TRY(steps_run(&walk, is_back, scratch, parts[d]));
    }
    for (uint32_t i = 0; i < PEN_RECURRENT_OUTPUT_COUNT; i++) {
        const pen_value_id both[2] = {parts[0][i], parts[1][i]};
        out_outputs[i] = both[0];
        if (net->directions == 2) PEN_TRY(steps_join(&walk, axes[i], 2, both, &out_outputs[i]));
    }
    return PEN_OK;
}
