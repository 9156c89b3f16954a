#include "tests/support/recurrent_case.h"

#include <math.h>

#include "graph/ops/product/recurrent_geometry.h"
#include "tests/support/random_case.h"

static const char *const ops[] = {"rnn", "gru", "lstm"};
static const char *const backward_ops[] = {"rnn_backward", "gru_backward", "lstm_backward"};

// What a case of random sizes is made of.
typedef struct net {
    pen_recurrent_kind kind;
    int gates, steps, batch, inputs, hidden, directions, layout, slots;
    bool linear;        // gru: linear_before_reset
    bool is_unusual;    // functions, clipping, coupled gates
    bool has_peepholes; // lstm
    bool is_plain;      // no lengths, either
} net;

static net net_of(random_case *random, uint64_t seed, recurrent_case_options options) {
    const bool is_plain = options == RECURRENT_CASE_PLAIN;
    const bool is_large = random_chance(random, 10);
    net n = {.kind = (pen_recurrent_kind)(seed % 3)};
    n.gates = n.kind == PEN_RECURRENT_LSTM ? 4 : n.kind == PEN_RECURRENT_GRU ? 3 : 1;
    n.linear = random_chance(random, 50) || is_plain;
    n.slots = n.kind == PEN_RECURRENT_RNN ? 0 : n.kind == PEN_RECURRENT_GRU && !n.linear ? 3 : 4;
    n.steps = (int)random_between(random, 1, 6);
    n.batch = (int)random_between(random, 1, is_large ? 33 : 14);
    n.inputs = (int)random_between(random, 1, is_large ? 90 : 20);
    n.hidden = (int)random_between(random, 1, is_large ? 300 : 70);
    n.directions = random_chance(random, 40) ? 2 : 1;
    n.layout = random_chance(random, 40) ? 1 : 0;
    n.has_peepholes = random_chance(random, 40) && !is_plain;
    n.is_unusual = n.has_peepholes && options == RECURRENT_CASE_ANY;
    n.is_plain = is_plain;
    return n;
}

// Functions for each direction, and what else an lstm may have.
static void net_unusual(random_case *random, const net *n, op_case *c) {
    static const char *const functions[][3][2] = {
        {{"Softsign", "Softsign Relu"},
         {"HardSigmoid Tanh", "HardSigmoid Tanh Sigmoid Softsign"},
         {"HardSigmoid Tanh Relu", "HardSigmoid Tanh Relu Sigmoid Softsign Tanh"}},
        {{"Elu", "LeakyRelu Tanh"},
         {"Sigmoid Elu", "Sigmoid Elu Sigmoid Tanh"},
         {"Sigmoid Softplus Elu", "Sigmoid Tanh Tanh Sigmoid Softplus Elu"}},
    };
    const int way = random_chance(random, 50);
    if (random_chance(random, 60)) {
        c->attributes[c->attribute_count++] =
            pen_attribute_text("activations", functions[way][n->kind][n->directions - 1]);
    }
    if (random_chance(random, 40)) {
        c->attributes[c->attribute_count++] = pen_attribute_float("clip", 0.6);
    }
    if (n->kind == PEN_RECURRENT_LSTM && random_chance(random, 40)) {
        c->attributes[c->attribute_count++] = pen_attribute_int("input_forget", 1);
    }
}

static void net_attributes(random_case *random, const net *n, op_case *c) {
    const char *direction = n->directions == 2          ? "bidirectional"
                            : random_chance(random, 40) ? "reverse"
                                                        : "forward";
    c->attributes[0] = pen_attribute_text("direction", direction);
    c->attributes[1] = pen_attribute_int("layout", n->layout);
    c->attribute_count = 2;
    if (n->kind == PEN_RECURRENT_GRU) {
        c->attributes[c->attribute_count++] = pen_attribute_int("linear_before_reset", n->linear);
    }
    if (n->is_unusual) {
        net_unusual(random, n, c);
    } else if (n->kind == PEN_RECURRENT_RNN && random_chance(random, 50)) {
        c->attributes[c->attribute_count++] =
            pen_attribute_text("activations", n->directions == 2 ? "Relu Relu" : "Relu");
    }
}

static pen_tensor_type net_state(const net *n) {
    return n->layout == 0 ? op_type(PEN_FLOAT32, 3, n->directions, n->batch, n->hidden)
                          : op_type(PEN_FLOAT32, 3, n->batch, n->directions, n->hidden);
}

static pen_tensor_type net_y(const net *n) {
    return n->layout == 0 ? op_type(PEN_FLOAT32, 4, n->steps, n->directions, n->batch, n->hidden)
                          : op_type(PEN_FLOAT32, 4, n->batch, n->steps, n->directions, n->hidden);
}

// x, w and r.
static void net_operands(const net *n, op_case *c) {
    const int d = n->directions, rows = n->gates * n->hidden;
    c->inputs[0].type = n->layout == 0 ? op_type(PEN_FLOAT32, 3, n->steps, n->batch, n->inputs)
                                       : op_type(PEN_FLOAT32, 3, n->batch, n->steps, n->inputs);
    c->inputs[1].type = op_type(PEN_FLOAT32, 3, d, rows, n->inputs);
    c->inputs[2].type = op_type(PEN_FLOAT32, 3, d, rows, n->hidden);
    for (int i = 1; i < 3; i++) {
        c->inputs[i].high = 1 / sqrt(n->hidden); // gradients neither grow nor vanish
        c->inputs[i].low = -c->inputs[i].high;
    }
}

static void net_input(random_case *random, op_case *c, uint32_t input, pen_tensor_type type) {
    c->inputs[input] = (op_case_input){.type = type, .is_absent = random_chance(random, 30)};
}

static void net_lengths(random_case *random, const net *n, op_case *c, uint32_t input) {
    const pen_element_type element = random_chance(random, 20) ? PEN_INT64 : PEN_INT32;
    net_input(random, c, input, op_type(element, 1, n->batch));
    c->inputs[input].high = n->steps + 1;
    if (n->is_plain) c->inputs[input].is_absent = true;
}

// Operands that may be left out are, in some cases.
op_case recurrent_case_forward(uint64_t seed, recurrent_case_options options) {
    random_case random = {seed, 0};
    const net n = net_of(&random, seed, options);
    op_case c = {.op = ops[n.kind], .input_count = n.kind == PEN_RECURRENT_LSTM ? 7 : 6};
    net_attributes(&random, &n, &c);
    net_operands(&n, &c);
    net_input(&random, &c, 3, op_type(PEN_FLOAT32, 2, n.directions, 2 * n.gates * n.hidden));
    net_lengths(&random, &n, &c, 4);
    net_input(&random, &c, 5, net_state(&n));
    if (n.kind == PEN_RECURRENT_LSTM) net_input(&random, &c, 6, net_state(&n));
    if (n.kind == PEN_RECURRENT_LSTM && n.has_peepholes) {
        net_input(&random, &c, 7, op_type(PEN_FLOAT32, 2, n.directions, 3 * n.hidden));
        c.input_count = 8;
    }
    static const uint32_t most[] = {2, 3, 5};
    c.output_count = random_chance(&random, 30) ? 1 : most[n.kind];
    return c;
}

// Gates, cells and gradients are any numbers: they need not be what a forward node made.
op_case recurrent_case_backward(uint64_t seed, recurrent_case_options options) {
    random_case random = {seed, 0};
    const net n = net_of(&random, seed, options);
    op_case c = {.op = backward_ops[n.kind], .input_count = 12};
    net_attributes(&random, &n, &c);
    net_operands(&n, &c);
    c.inputs[3].type = net_y(&n);
    c.inputs[4] = (op_case_input){
        .type = op_type(PEN_FLOAT32, 4, n.directions, n.steps, n.batch, n.slots * n.hidden),
        .is_absent = n.kind == PEN_RECURRENT_RNN};
    c.inputs[5] =
        (op_case_input){.type = op_type(PEN_FLOAT32, 4, n.directions, n.steps, n.batch, n.hidden),
                        .is_absent = n.kind != PEN_RECURRENT_LSTM};
    net_input(&random, &c, 6, net_y(&n));
    net_input(&random, &c, 7, net_state(&n));
    net_input(&random, &c, 8, net_state(&n));
    net_lengths(&random, &n, &c, 9);
    net_input(&random, &c, 10, net_state(&n));
    net_input(&random, &c, 11, net_state(&n));
    if (n.kind != PEN_RECURRENT_LSTM) c.inputs[8].is_absent = c.inputs[11].is_absent = true;
    c.output_count = (uint32_t)random_between(&random, 1, PEN_RECURRENT_DINITIAL_H + 1);
    if (n.kind == PEN_RECURRENT_LSTM && c.output_count > PEN_RECURRENT_DINITIAL_H) {
        c.output_count++;
    }
    if (n.kind == PEN_RECURRENT_LSTM && n.has_peepholes && random_chance(&random, 70)) {
        c.inputs[12].type = op_type(PEN_FLOAT32, 2, n.directions, 3 * n.hidden);
        c.input_count = 13;
        if (random_chance(&random, 70)) c.output_count = PEN_RECURRENT_DPEEPHOLES + 1;
    }
    return c;
}
