// Loops that are an lstm, a gru or a plain recurrent net of Keras, by what their body computes:
//
//   lstm  [i, f, g, o] = x W + h R + b      c' = s(f) c + s(i) t(g)     h' = s(o) t(c')
//   gru   z, r from x W + b and h R + b'    n = t(x W + b + r (h R + b'))   (reset after), or
//                                           n = t(x W + b + (r h) R)        (reset before)
//         h' = z h + (1 - z) n
//   rnn   h' = t(x W + b + h R)
//
// x is the element of a list at the loop's counter, which goes from 0 to the number of elements.
// Whatever else a loop carries must stay as it is, so all other loops stay loops.

#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/import/tensorflow/graphdef_importer.h"
#include "graph/import/tensorflow/graphdef_mapping.h"
#include "graph/import/tensorflow/graphdef_match.h"
#include "graph/import/tensorflow/ops/graphdef_list.h"
#include "graph/ops/product/recurrent_geometry.h"

#define RECURRENT_NO UINT32_MAX

typedef pen_graphdef_place place;

typedef struct recurrent_match {
    const pen_graphdef_rounds *rounds;
    const pen_graphdef_block *block;
    pen_recurrent_kind kind;
    uint32_t h, c, time, limit, list; // arguments; RECURRENT_NO: there is none
    place new_h, new_c;
    place x_weights, h_weights[2]; // of a gru that resets before: of z and r, and of n
    place x_bias, h_bias;          // node UINT32_MAX: none
    const char *gate, *state;      // ONNX' names of functions; "" where there is none
    bool resets_after;
} recurrent_match;

static place match_operand(const recurrent_match *m, place at, uint32_t input) {
    return pen_graphdef_match_operand(m->block, at, input);
}

static bool match_two(const recurrent_match *m, place at, const char *op, place operands[2]) {
    return pen_graphdef_match_two(m->block, at, op, operands);
}

static bool match_add(const recurrent_match *m, place at, place operands[2]) {
    return match_two(m, at, "AddV2", operands) || match_two(m, at, "Add", operands);
}

static bool match_is_kept(const recurrent_match *m, place at) {
    return at.node != UINT32_MAX && m->rounds->round->is_kept[at.node];
}

// ---- parts of a cell

// A function of the table, applied to *at, which becomes what it reads.
static bool match_function(const recurrent_match *m, place *at, const char **name) {
    static const char *const functions[] = {"Sigmoid", "Tanh",     "Relu",
                                            "Elu",     "Softplus", "Softsign"};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (!pen_graphdef_match_op(m->block, *at, functions[i])) continue;
        if ((*name)[0] != '\0' && strcmp(*name, functions[i]) != 0) return false;
        *name = functions[i];
        *at = match_operand(m, *at, 0);
        return true;
    }
    return false;
}

// a b, of which a is a gate (a function of something), which *out_gate is.
static bool match_gated(recurrent_match *m, place at, place *out_gate, place *out_other) {
    place two[2];
    if (!match_two(m, at, "Mul", two)) return false;
    *out_gate = two[0];
    *out_other = two[1];
    return match_function(m, out_gate, &m->gate);
}

// The product of `a` and weights that stay.
static bool match_product(const recurrent_match *m, place at, place *out_a, place *out_weights) {
    place two[2];
    if (!match_two(m, at, "MatMul", two)) return false;
    const pen_graphdef_node *node = &m->block->flat->nodes[at.node];
    *out_a = two[0];
    *out_weights = two[1];
    return pen_graphdef_int(node, "transpose_a", 0) == 0 &&
           pen_graphdef_int(node, "transpose_b", 0) == 0 && match_is_kept(m, two[1]);
}

// x W, where x is the list's element at the counter.
static bool match_x_product(recurrent_match *m, place at, place *out_weights) {
    place x, index, list;
    if (!match_product(m, at, &x, out_weights)) return false;
    list = match_operand(m, x, 0);
    index = match_operand(m, x, 1);
    if (!pen_graphdef_match_op(m->block, x, "TensorListGetItem")) return false;
    for (uint32_t a = 0; a < m->block->argument_count; a++) {
        if (pen_graphdef_match_argument(m->block, list, a)) m->list = a;
        if (pen_graphdef_match_argument(m->block, index, a)) m->time = a;
    }
    return m->list != RECURRENT_NO && m->time != RECURRENT_NO && m->rounds->is_kept[m->list];
}

static bool match_h_product(const recurrent_match *m, place at, place *out_weights) {
    place h;
    return match_product(m, at, &h, out_weights) && pen_graphdef_match_argument(m->block, h, m->h);
}

// Takes a bias away, if there is one.
static bool match_bias(const recurrent_match *m, place *at, place *out_bias) {
    place two[2];
    if (!match_two(m, *at, "BiasAdd", two)) return true;
    *at = two[0];
    *out_bias = two[1];
    return match_is_kept(m, two[1]);
}

// Part `output` of `count` of what is split along axis 1.
static bool match_part(const recurrent_match *m, place at, const char *op, uint32_t output,
                       place *out_whole) {
    if (!pen_graphdef_match_op(m->block, at, op) || at.output != output) return false;
    *out_whole = match_operand(m, at, strcmp(op, "Split") == 0 ? 1 : 0);
    return out_whole->node != UINT32_MAX;
}

// Both are parts of the same whole; the first one says which.
static bool match_part_of(const recurrent_match *m, place at, const char *op, uint32_t output,
                          place *whole) {
    place found;
    if (!match_part(m, at, op, output, &found)) return false;
    if (whole->node == UINT32_MAX) *whole = found;
    return pen_graphdef_match_same(found, *whole);
}

// ---- cells

// h' = s(o) t(c'), c' = s(f) c + s(i) t(g), where i, f, g and o are parts 0 to 3 of one sum of
// products.
static bool match_lstm(recurrent_match *m) {
    static const place none = {UINT32_MAX, 0};
    place two[2], gate_o, gate_f, gate_i, g, whole = none, sum[2], other;
    if (!match_gated(m, m->new_h, &gate_o, &other)) return false;
    if (!match_function(m, &other, &m->state) || !match_add(m, other, two)) return false;
    m->new_c = other;
    if (!match_gated(m, two[0], &gate_f, &other)) return false;
    for (uint32_t a = 0; a < m->block->argument_count; a++) {
        if (pen_graphdef_match_argument(m->block, other, a)) m->c = a;
    }
    if (m->c == RECURRENT_NO || !match_gated(m, two[1], &gate_i, &g)) return false;
    if (!match_function(m, &g, &m->state)) return false;
    const bool is_split = match_part_of(m, gate_i, "Split", 0, &whole) &&
                          match_part_of(m, gate_f, "Split", 1, &whole) &&
                          match_part_of(m, g, "Split", 2, &whole) &&
                          match_part_of(m, gate_o, "Split", 3, &whole);
    return is_split && match_bias(m, &whole, &m->x_bias) && match_add(m, whole, sum) &&
           match_x_product(m, sum[0], &m->x_weights) &&
           match_h_product(m, sum[1], &m->h_weights[0]);
}

// s(x part + h part) of parts `output`.
static bool match_gru_gate(recurrent_match *m, place at, uint32_t output, place *x_whole,
                           place *h_whole) {
    place two[2];
    if (!match_function(m, &at, &m->gate) || !match_add(m, at, two)) return false;
    if (!match_part_of(m, two[0], "Split", output, x_whole)) return false;
    return match_part_of(m, two[1], m->resets_after ? "Split" : "SplitV", output, h_whole);
}

// A constant scalar of 1.
static bool match_is_one(const recurrent_match *m, place at) {
    const pen_graphdef_importer *round = m->rounds->round;
    float number;
    if (!match_is_kept(m, at) || !pen_graphdef_match_op(m->block, at, "Const")) return false;
    const pen_value *value =
        pen_graph_value(round->graphs[0], round->results[at.node][at.output]->plain.in[0]);
    if (value->type.element != PEN_FLOAT32 || value->data_bytes != sizeof number) return false;
    memcpy(&number, value->data, sizeof number);
    return number == 1.0f;
}

// n, before its function: of h' = z h + (1 - z) n.
static bool match_gru_frame(recurrent_match *m, place *out_z, place *out_n) {
    place two[2], kept[2], made[2], rest[2];
    if (!match_add(m, m->new_h, two) || !match_two(m, two[0], "Mul", kept) ||
        !match_two(m, two[1], "Mul", made) || !match_two(m, made[0], "Sub", rest)) {
        return false;
    }
    *out_z = kept[0];
    *out_n = made[1];
    return pen_graphdef_match_argument(m->block, kept[1], m->h) &&
           pen_graphdef_match_same(rest[1], kept[0]) && match_is_one(m, rest[0]) &&
           match_function(m, out_n, &m->state);
}

// The reset gate comes behind the product with the state or before it, which are two layouts of
// weights in Keras.
static bool match_gru(recurrent_match *m) {
    static const place none = {UINT32_MAX, 0};
    place z, n, two[2], reset[2], x_whole = none, h_whole = none, r, h_again;
    if (!match_gru_frame(m, &z, &n) || !match_add(m, n, two)) return false;
    if (!match_part_of(m, two[0], "Split", 2, &x_whole)) return false;
    m->resets_after = pen_graphdef_match_op(m->block, two[1], "Mul");
    if (m->resets_after) {
        if (!match_two(m, two[1], "Mul", reset)) return false;
        r = reset[0];
        if (!match_part_of(m, reset[1], "Split", 2, &h_whole)) return false;
    } else {
        place product;
        if (!match_product(m, two[1], &product, &m->h_weights[1])) return false;
        if (!match_two(m, product, "Mul", reset)) return false;
        r = reset[0];
        h_again = reset[1];
        if (!pen_graphdef_match_argument(m->block, h_again, m->h)) return false;
    }
    return match_gru_gate(m, z, 0, &x_whole, &h_whole) &&
           match_gru_gate(m, r, 1, &x_whole, &h_whole) && match_bias(m, &x_whole, &m->x_bias) &&
           match_bias(m, &h_whole, &m->h_bias) && match_x_product(m, x_whole, &m->x_weights) &&
           match_h_product(m, h_whole, &m->h_weights[0]);
}

static bool match_rnn(recurrent_match *m) {
    place at = m->new_h, two[2];
    if (!match_function(m, &at, &m->state) || !match_add(m, at, two)) return false;
    return match_bias(m, &two[0], &m->x_bias) && match_x_product(m, two[0], &m->x_weights) &&
           match_h_product(m, two[1], &m->h_weights[0]);
}

// Tries the three kinds for the argument that may be h; each begins with nothing found.
static bool match_cell(recurrent_match *m, uint32_t h) {
    static bool (*const cells[])(recurrent_match *) = {
        [PEN_RECURRENT_RNN] = match_rnn,
        [PEN_RECURRENT_GRU] = match_gru,
        [PEN_RECURRENT_LSTM] = match_lstm,
    };
    static const place none = {UINT32_MAX, 0};
    for (uint32_t kind = 0; kind < sizeof cells / sizeof cells[0]; kind++) {
        *m = (recurrent_match){.rounds = m->rounds,
                               .block = m->block,
                               .kind = (pen_recurrent_kind)kind,
                               .h = h,
                               .c = RECURRENT_NO,
                               .time = RECURRENT_NO,
                               .limit = RECURRENT_NO,
                               .list = RECURRENT_NO,
                               .x_weights = none,
                               .h_weights = {none, none},
                               .x_bias = none,
                               .h_bias = none,
                               .gate = "",
                               .state = "",
                               .new_h = pen_graphdef_match(m->block, &m->block->outputs[h])};
        if (cells[kind](m)) return true;
    }
    return false;
}

// ---- the loop around it

static bool match_constant_is(const recurrent_match *m, place at, int64_t integer) {
    if (!match_is_kept(m, at)) return false;
    const pen_graphdef_result *result = m->rounds->round->results[at.node][at.output];
    return pen_graphdef_ints_agree(result) && result->ints[0]->count == 1 &&
           result->ints[0]->integers[0] == integer;
}

// argument + 1
static bool match_counter(const recurrent_match *m, uint32_t argument) {
    place two[2];
    const place at = pen_graphdef_match(m->block, &m->block->outputs[argument]);
    return match_add(m, at, two) && pen_graphdef_match_argument(m->block, two[0], argument) &&
           match_constant_is(m, two[1], 1);
}

// The list with h' set, at the counter or at 0.
static bool match_output(const recurrent_match *m, uint32_t argument, bool *out_is_all) {
    const place at = pen_graphdef_match(m->block, &m->block->outputs[argument]);
    const place index = match_operand(m, at, 1);
    if (!pen_graphdef_match_op(m->block, at, "TensorListSetItem")) return false;
    if (m->rounds->initial[argument]->list == NULL) return false;
    if (!pen_graphdef_match_argument(m->block, match_operand(m, at, 0), argument)) return false;
    if (!pen_graphdef_match_same(match_operand(m, at, 2), m->new_h)) return false;
    *out_is_all = pen_graphdef_match_argument(m->block, index, m->time);
    return *out_is_all || match_constant_is(m, index, 0);
}

// The condition: counter < limit, which is the number of elements.
static bool match_limit(const recurrent_match *m) {
    const pen_graphdef_block *condition = &m->rounds->control->parts[PEN_GRAPHDEF_CONDITION];
    const place at = pen_graphdef_match(condition, &condition->outputs[0]);
    const pen_graphdef_list *list = m->rounds->initial[m->list]->list;
    const pen_graphdef_result *start = m->rounds->initial[m->time], *limit = NULL;
    place two[2];
    if (!pen_graphdef_match_two(condition, at, "Less", two)) return false;
    if (!pen_graphdef_match_argument(condition, two[0], m->time)) return false;
    for (uint32_t a = 0; a < condition->argument_count; a++) {
        const bool is_it = pen_graphdef_match_argument(condition, two[1], a);
        if (is_it && m->rounds->is_kept[a]) limit = m->rounds->initial[a];
    }
    if (limit == NULL || list == NULL || list->item != NULL || !pen_value_is(list->whole.in[0])) {
        return false;
    }
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        const pen_graphdef_ints_known *from = start->ints[trial], *to = limit->ints[trial];
        if (from == NULL || from->count != 1 || from->integers[0] != 0) return false;
        if (to == NULL || to->count != 1 || to->integers[0] != list->counts[trial]) return false;
        if (list->counts[trial] < 1) return false;
    }
    return true;
}

// Everything else that the loop carries is a counter, a list of results, or stays.
static bool match_rest(const recurrent_match *m) {
    const pen_graphdef_block *block = m->block;
    for (uint32_t a = 0; a < block->argument_count; a++) {
        bool is_all;
        if (m->rounds->is_kept[a] || a == m->h || a == m->c) continue;
        if (!match_counter(m, a) && !match_output(m, a, &is_all)) return false;
    }
    if (m->c == RECURRENT_NO) return match_counter(m, m->time);
    const place new_c = pen_graphdef_match(block, &block->outputs[m->c]);
    return match_counter(m, m->time) && pen_graphdef_match_same(new_c, m->new_c);
}

static bool recurrent_find(recurrent_match *m) {
    if (m->block->output_count != m->block->argument_count) return false;
    for (uint32_t a = 0; a < m->block->argument_count; a++) {
        if (m->rounds->is_kept[a] || !match_cell(m, a)) continue;
        if (match_rest(m) && match_limit(m)) return true;
    }
    return false;
}

// ---- the node

typedef struct recurrent_node {
    const recurrent_match *m;
    pen_graphdef_draft *draft;
    pen_graphdef_value operands[PEN_RECURRENT_PEEPHOLES];
    int64_t hidden;
} recurrent_node;

static pen_status node_value(const recurrent_node *node, place at, pen_graphdef_value *out_value) {
    return pen_graphdef_result_value(
        node->draft, node->m->rounds->round->results[at.node][at.output], out_value);
}

static pen_status node_state(const recurrent_node *node, uint32_t argument,
                             pen_graphdef_value *out_value) {
    pen_graphdef_value state;
    PEN_TRY(pen_graphdef_operand(node->draft, argument, &state));
    return pen_graphdef_emit_with_int(node->draft, "unsqueeze", "initial", state, 0, out_value);
}

static pen_status node_concat(const recurrent_node *node, const char *suffix,
                              const pen_graphdef_value *parts, uint32_t count, int64_t axis,
                              pen_graphdef_value *out_value) {
    return pen_graphdef_concat(node->draft, suffix, (pen_graphdef_inputs){parts, count}, axis,
                               out_value);
}

// Gates of an lstm, in our order (i, o, f, g), of Keras' (i, f, g, o) along the last axis.
static pen_status node_order(const recurrent_node *node, const char *suffix,
                             pen_graphdef_value *value) {
    pen_graphdef_value gates[4];
    if (node->m->kind != PEN_RECURRENT_LSTM) return PEN_OK;
    PEN_TRY(pen_graphdef_emit_node(
        node->draft,
        &(pen_graphdef_emission){.op_name = "split",
                                 .suffix = suffix,
                                 .inputs = PEN_GRAPHDEF_INPUTS(value[0]),
                                 .attributes = PEN_WITH(pen_attribute_int("axis", -1)),
                                 .output_count = 4},
        gates));
    const pen_graphdef_value ordered[] = {gates[0], gates[3], gates[1], gates[2]};
    return node_concat(node, suffix, ordered, 4, -1, value);
}

// (in, gates) to (1, gates, in)
static pen_status node_weights(const recurrent_node *node, const char *suffix,
                               pen_graphdef_value weights, pen_graphdef_value *out_value) {
    static const int64_t swapped[] = {1, 0};
    PEN_TRY(node_order(node, suffix, &weights));
    PEN_TRY(pen_graphdef_emit_transpose(node->draft, suffix, weights, 2, swapped, &weights));
    return pen_graphdef_emit_with_int(node->draft, "unsqueeze", suffix, weights, 0, out_value);
}

static pen_status node_all_weights(recurrent_node *node) {
    const recurrent_match *m = node->m;
    pen_graphdef_value x, h[2];
    const pen_tensor_type *type;
    PEN_TRY(node_value(node, m->x_weights, &x));
    PEN_TRY(node_value(node, m->h_weights[0], &h[0]));
    if (m->h_weights[1].node != UINT32_MAX) { // of z and r, and of n
        PEN_TRY(node_value(node, m->h_weights[1], &h[1]));
        PEN_TRY(node_concat(node, "recurrent_weights", h, 2, 1, &h[0]));
    }
    type = pen_graphdef_value_type(node->draft, &h[0], 0);
    if (type == NULL || type->shape.rank != 2) {
        return pen_error(PEN_UNSUPPORTED, "the shape of its recurrent weights is not known");
    }
    node->hidden = type->shape.dims[0];
    PEN_TRY(node_weights(node, "weights", x, &node->operands[PEN_RECURRENT_W]));
    return node_weights(node, "recurrent_weights", h[0], &node->operands[PEN_RECURRENT_R]);
}

// One vector of the input's half and the state's; what is not there is zero.
static pen_status node_bias(recurrent_node *node) {
    const recurrent_match *m = node->m;
    const int64_t gates = m->kind == PEN_RECURRENT_LSTM ? 4 : m->kind == PEN_RECURRENT_GRU ? 3 : 1;
    const bool has_x = m->x_bias.node != UINT32_MAX, has_h = m->h_bias.node != UINT32_MAX;
    const int64_t pads[] = {has_x ? 0 : gates * node->hidden, has_h ? 0 : gates * node->hidden};
    pen_graphdef_value halves[2], all;
    if (!has_x && !has_h) return PEN_OK;
    if (has_x) PEN_TRY(node_value(node, m->x_bias, &halves[0]));
    if (has_h) PEN_TRY(node_value(node, m->h_bias, &halves[1]));
    if (has_x) PEN_TRY(node_order(node, "bias", &halves[0]));
    all = has_x ? halves[0] : halves[1];
    if (has_x && has_h) {
        PEN_TRY(node_concat(node, "biases", halves, 2, 0, &all));
    } else {
        pen_graphdef_value operands[2] = {all};
        PEN_TRY(pen_graphdef_ints_value(node->draft, "pads", 2, pads, &operands[1]));
        PEN_TRY(pen_graphdef_emit(node->draft, "pad", "biases",
                                  PEN_GRAPHDEF_INPUTS(operands[0], operands[1]),
                                  PEN_WITH(pen_attribute_text("mode", "constant")), &all));
    }
    return pen_graphdef_emit_with_int(node->draft, "unsqueeze", "biases", all, 0,
                                      &node->operands[PEN_RECURRENT_B]);
}

// One of our recurrent operators. Activations have ONNX' names, one or several a gate, as its
// kind wants.
static pen_status node_emit(recurrent_node *node, pen_graphdef_value *out_values) {
    static const char *const names[] = {"rnn", "gru", "lstm"};
    static const uint32_t output_counts[] = {2, 3, 5};
    const recurrent_match *m = node->m;
    const char *activations;
    const char *format = m->kind == PEN_RECURRENT_RNN   ? "%s%s"
                         : m->kind == PEN_RECURRENT_GRU ? "%s %s"
                                                        : "%s %s %s";
    PEN_TRY(
        pen_arena_format(node->draft->arena, &activations, format, m->gate, m->state, m->state));
    const pen_attribute_given attributes[] = {
        pen_attribute_int("hidden_size", node->hidden),
        pen_attribute_text("activations", activations),
        pen_attribute_int("linear_before_reset", m->resets_after ? 1 : 0),
    };
    const bool is_lstm = m->kind == PEN_RECURRENT_LSTM;
    return pen_graphdef_emit_node(
        node->draft,
        &(pen_graphdef_emission){
            .op_name = names[m->kind],
            .inputs = (pen_graphdef_inputs){node->operands, is_lstm ? PEN_RECURRENT_INITIAL_C + 1
                                                                    : PEN_RECURRENT_INITIAL_C},
            .attributes = (pen_node_attributes){attributes, m->kind == PEN_RECURRENT_GRU ? 3 : 2},
            .output_count = output_counts[m->kind]},
        out_values);
}

// ---- what the loop gives

static pen_status node_squeeze(const recurrent_node *node, const char *suffix, int64_t axis,
                               pen_graphdef_value *value) {
    return pen_graphdef_emit_with_int(node->draft, "squeeze", suffix, *value, axis, value);
}

// A counter's last value: the number of rounds above its first one, where that is known.
static pen_status node_counter(const recurrent_node *node, uint32_t argument) {
    pen_graphdef_result *result = node->draft->results[argument];
    const pen_graphdef_result *start = node->m->rounds->initial[argument];
    const pen_graphdef_list *list = node->m->rounds->initial[node->m->list]->list;
    result->is_made = true;
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        pen_graphdef_ints_known *ints;
        if (start->ints[trial] == NULL) return PEN_OK;
        PEN_TRY(PEN_NEW(node->draft->arena, 1, &ints));
        *ints = *start->ints[trial];
        const bool fits = pen_i64_add(ints->integers[0], list->counts[trial], &ints->integers[0]);
        if (fits) result->ints[trial] = ints;
    }
    return PEN_OK;
}

// What the loop gave, argument by argument: what stayed, the last states, lists of all or of the
// last one, and counters.
static pen_status node_results(const recurrent_node *node, pen_graphdef_value *made) {
    const recurrent_match *m = node->m;
    pen_graphdef_draft *draft = node->draft;
    PEN_TRY(node_squeeze(node, "steps", 1, &made[PEN_RECURRENT_Y]));
    PEN_TRY(node_squeeze(node, "last", 0, &made[PEN_RECURRENT_LAST_H]));
    if (m->kind == PEN_RECURRENT_LSTM) {
        PEN_TRY(node_squeeze(node, "last_cell", 0, &made[PEN_RECURRENT_LAST_C]));
    }
    for (uint32_t a = 0; a < m->block->argument_count && a < draft->result_count; a++) {
        bool is_all = false;
        pen_graphdef_list *list;
        if (m->rounds->is_kept[a]) {
            draft->results[a] = m->rounds->initial[a];
        } else if (a == m->h) {
            pen_graphdef_set(draft, a, made[PEN_RECURRENT_LAST_H]);
        } else if (a == m->c) {
            pen_graphdef_set(draft, a, made[PEN_RECURRENT_LAST_C]);
        } else if (match_output(m, a, &is_all)) {
            pen_graphdef_result *last;
            PEN_TRY(PEN_NEW(draft->arena, 1, &last));
            *last = (pen_graphdef_result){.is_made = true,
                                          .name = draft->node->name,
                                          .plain = made[PEN_RECURRENT_LAST_H],
                                          .first = PEN_GRAPHDEF_VALUE_NONE};
            PEN_TRY(
                is_all ? pen_graphdef_list_of(draft, made[PEN_RECURRENT_Y], &list)
                       : pen_graphdef_list_set(draft, m->rounds->initial[a]->list, 0, last, &list));
            pen_graphdef_set_list(draft, a, list);
        } else {
            PEN_TRY(node_counter(node, a));
        }
    }
    return PEN_OK;
}

static pen_status recurrent_build(const recurrent_match *m, pen_graphdef_draft *draft) {
    recurrent_node node = {.m = m, .draft = draft};
    pen_graphdef_value made[5];
    for (uint32_t i = 0; i < PEN_RECURRENT_PEEPHOLES; i++) {
        node.operands[i] = PEN_GRAPHDEF_VALUE_NONE;
    }
    node.operands[PEN_RECURRENT_X] = m->rounds->initial[m->list]->list->whole;
    PEN_TRY(node_all_weights(&node));
    PEN_TRY(node_bias(&node));
    PEN_TRY(node_state(&node, m->h, &node.operands[PEN_RECURRENT_INITIAL_H]));
    if (m->kind == PEN_RECURRENT_LSTM) {
        PEN_TRY(node_state(&node, m->c, &node.operands[PEN_RECURRENT_INITIAL_C]));
    }
    PEN_TRY(node_emit(&node, made));
    return node_results(&node, made);
}

pen_status pen_graphdef_recurrent_convert(const pen_graphdef_rounds *rounds,
                                          pen_graphdef_draft *draft, bool *out_is_one) {
    recurrent_match m = {.rounds = rounds, .block = &rounds->control->parts[PEN_GRAPHDEF_ROUND]};
    *out_is_one = recurrent_find(&m);
    return *out_is_one ? recurrent_build(&m, draft) : PEN_OK;
}
