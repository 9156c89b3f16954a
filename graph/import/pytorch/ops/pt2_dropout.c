#include "graph/import/pytorch/ops/pt2_dropout.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/import/pytorch/pt2_mapping.h"
#include "graph/op.h"
#include "graph/op_known.h"

// What is dropped by chance in training, and passed in evaluations: all of it is made of our
// operator `dropout`, which gives 0 with the probability p and is scaled by 1 / (1 - p) otherwise.

// Both outputs: what is left, and the mask, which the gradient needs.
static pen_status dropout_emit(pen_pt2_draft *draft, const char *suffix, pen_value_id x, double p,
                               pen_value_id out_values[2]) {
    pen_value_id ratio, training;
    PEN_TRY(pen_pt2_constant_number(draft, PEN_FLOAT32, p, &ratio));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_BOOL, 1, &training));
    const pen_pt2_emission emission = {.op_name = "dropout",
                                       .suffix = suffix,
                                       .inputs = PEN_INPUTS(x, ratio, training),
                                       .output_count = 2};
    return pen_pt2_emit_many(draft, &emission, out_values);
}

pen_status pen_pt2_dropout(pen_pt2_draft *draft, const char *suffix, pen_value_id x, double ratio,
                           pen_value_id *out_value) {
    pen_value_id values[2];
    PEN_TRY(dropout_emit(draft, suffix, x, ratio, values));
    *out_value = values[0];
    return PEN_OK;
}

static pen_status dropout_ones(pen_pt2_draft *draft, double number, pen_value_id sizes,
                               pen_value_id *out_value) {
    const char *element = pen_element_name(pen_pt2_own_element(draft));
    return pen_pt2_emit(
        draft, "constant_of_shape", "ones", PEN_INPUTS(sizes),
        PEN_WITH(pen_attribute_float("value", number), pen_attribute_text("element", element)),
        out_value);
}

// What a dropout is asked for. Where nothing is left to chance, that is given: the operand as it
// is, or zeros, which have no gradient. Probabilities outside of [0, 1] are an error.
typedef struct dropout_call {
    pen_value_id x;
    double p;
    bool is_given;
} dropout_call;

static pen_status dropout_read(pen_pt2_draft *draft, dropout_call *out_call) {
    dropout_call call = {.p = pen_pt2_float(draft, "p", 0.5)};
    const bool drops = pen_pt2_bool(draft, "train", true) && call.p != 0;
    if (!(call.p >= 0 && call.p <= 1)) {
        return pen_pt2_refuse(draft, "its probability is %g", call.p);
    }
    PEN_TRY(pen_pt2_own_operand(draft, "input", &call.x));
    call.is_given = !drops || call.p == 1;
    *out_call = call;
    if (!drops) return pen_pt2_set(draft, 0, call.x);
    if (call.p != 1) return PEN_OK;
    pen_value_id zero;
    PEN_TRY(pen_pt2_own_number(draft, 0, &zero));
    return pen_pt2_give_pair(draft, "mul", call.x, zero);
}

static pen_status convert_dropout(pen_pt2_draft *draft) {
    dropout_call call = {.x = PEN_VALUE_NONE};
    pen_value_id values[2];
    PEN_TRY(dropout_read(draft, &call));
    if (call.is_given) return PEN_OK;
    PEN_TRY(dropout_emit(draft, NULL, call.x, call.p, values));
    PEN_TRY(pen_pt2_set(draft, 1, values[1]));
    return pen_pt2_set(draft, 0, values[0]);
}

// The first two sizes of the operand, and 1 for all others: a number for each channel.
static pen_status dropout_channel_sizes(pen_pt2_draft *draft, pen_value_id x,
                                        pen_value_id *out_value) {
    const uint32_t rank = pen_pt2_rank(draft, "input");
    const int64_t ones[PEN_RANK_LIMIT] = {1, 1, 1, 1, 1, 1, 1, 1};
    pen_value_id sizes, rest;
    PEN_TRY(pen_pt2_emit(draft, "shape", "channel_sizes", PEN_INPUTS(x),
                         PEN_WITH(pen_attribute_int("end", 2)), &sizes));
    *out_value = sizes;
    if (rank <= 2) return PEN_OK;
    PEN_TRY(pen_pt2_constant_ints(draft, rank - 2, ones, &rest));
    return pen_pt2_emit(draft, "concat", "sizes", PEN_INPUTS(sizes, rest),
                        PEN_WITH(pen_attribute_int("axis", 0)), out_value);
}

// What is dropped of ones: 0 or 1 / (1 - p); in evaluations 1.
static pen_status dropout_noise(pen_pt2_draft *draft, pen_value_id sizes, double p,
                                pen_value_id *out_value) {
    pen_value_id ones;
    PEN_TRY(dropout_ones(draft, 1, sizes, &ones));
    return pen_pt2_dropout(draft, "noise", ones, p, out_value);
}

static pen_status convert_feature_dropout(pen_pt2_draft *draft) {
    dropout_call call = {.x = PEN_VALUE_NONE};
    pen_value_id sizes, noise;
    PEN_TRY(dropout_read(draft, &call));
    if (call.is_given) return PEN_OK;
    PEN_TRY(dropout_channel_sizes(draft, call.x, &sizes));
    PEN_TRY(dropout_noise(draft, sizes, call.p, &noise));
    return pen_pt2_give_pair(draft, "mul", call.x, noise);
}

// Keeps mean and variance of what selu gives: what is kept becomes a x + a alpha p, what is dropped
// becomes -a alpha + a alpha p, with a = ((alpha² p + 1) (1 - p))^(-1/2). Where the noise is 1,
// nothing is dropped at all: that is an evaluation.
static pen_status alpha_dropout_give(pen_pt2_draft *draft, pen_value_id x, pen_value_id noise,
                                     double p) {
    const double alpha = 1.7580993408473766;
    const double a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
    const double constants[] = {a, a * alpha * p, a * alpha * p - a * alpha, 1, 0};
    pen_value_id numbers[5], kept, is_evaluated, is_dropped;
    for (uint32_t i = 0; i < 5; i++) {
        PEN_TRY(pen_pt2_own_number(draft, constants[i], &numbers[i]));
    }
    PEN_TRY(pen_pt2_pair(draft, "mul", "scaled", x, numbers[0], &kept));
    PEN_TRY(pen_pt2_pair(draft, "add", "kept", kept, numbers[1], &kept));
    PEN_TRY(pen_pt2_pair(draft, "equal", "is_dropped", noise, numbers[4], &is_dropped));
    PEN_TRY(pen_pt2_pair(draft, "equal", "is_evaluated", noise, numbers[3], &is_evaluated));
    PEN_TRY(pen_pt2_where(draft, "trained", is_dropped, numbers[2], kept, &kept));
    return pen_pt2_give(draft, "where", PEN_INPUTS(is_evaluated, x, kept), PEN_NO_ATTRIBUTES);
}

// The row's `op_name` says whether whole channels are dropped.
static pen_status convert_alpha_dropout(pen_pt2_draft *draft) {
    dropout_call call = {.x = PEN_VALUE_NONE};
    pen_value_id sizes, noise;
    PEN_TRY(dropout_read(draft, &call));
    if (call.is_given) return PEN_OK;
    if (pen_pt2_op_name(draft) == NULL) {
        PEN_TRY(pen_pt2_map(draft, "shape", "sizes", call.x, &sizes));
    } else {
        PEN_TRY(dropout_channel_sizes(draft, call.x, &sizes));
    }
    PEN_TRY(dropout_noise(draft, sizes, call.p, &noise));
    return alpha_dropout_give(draft, call.x, noise, call.p);
}

// 1 with the probability p, else 0: p times what a dropout leaves of ones, so that an evaluation
// has the mean, which what is divided by p afterwards wants.
static pen_status bernoulli_give(pen_pt2_draft *draft, double p) {
    pen_value_id sizes, noise;
    PEN_TRY(pen_pt2_sizes_of_result(draft, 0, &sizes));
    if (p == 0 || p == 1) {
        PEN_TRY(dropout_ones(draft, p, sizes, &noise));
        return pen_pt2_set(draft, 0, noise);
    }
    PEN_TRY(dropout_noise(draft, sizes, 1 - p, &noise));
    PEN_TRY(pen_pt2_scale(draft, NULL, noise, p, &noise));
    return pen_pt2_set(draft, 0, noise);
}

static pen_status convert_bernoulli(pen_pt2_draft *draft) {
    const double p = pen_pt2_float(draft, "p", 0.5);
    if (!(p >= 0 && p <= 1)) return pen_pt2_refuse(draft, "its probability is %g", p);
    return bernoulli_give(draft, p);
}

// The operator that makes a value; NULL: none does.
static const pen_node *dropout_maker(const pen_graph *graph, pen_value_id value) {
    const pen_node_id node = pen_graph_value(graph, value)->producer;
    return pen_node_is(node) ? pen_graph_node(graph, node) : NULL;
}

static bool dropout_is_uniform(const pen_graph *graph, pen_value_id value) {
    const pen_node *node = dropout_maker(graph, value);
    return node != NULL && strcmp(node->op->name, "random_uniform_like") == 0 &&
           pen_node_float(node, "low") == 0 && pen_node_float(node, "high") == 1;
}

pen_status pen_pt2_dropout_of_floor(pen_pt2_draft *draft, pen_value_id x, bool *out_is_chance) {
    const pen_graph *graph = pen_pt2_graph(draft);
    const pen_node *sum = dropout_maker(graph, x);
    *out_is_chance = false;
    if (sum == NULL || sum->op != PEN_OP(add)) return PEN_OK;
    for (uint32_t i = 0; i < 2; i++) {
        const pen_value *share = pen_graph_value(graph, sum->inputs[i]);
        double p;
        if (!dropout_is_uniform(graph, sum->inputs[1 - i])) continue;
        if (share->kind != PEN_VALUE_CONSTANT || share->type.shape.rank != 0) continue;
        PEN_TRY(pen_value_read_number(graph, sum->inputs[i], &p));
        if (!(p > 0 && p < 1)) continue;
        *out_is_chance = true;
        return bernoulli_give(draft, p);
    }
    return PEN_OK;
}

#define DROPOUT(aten, name, of)                                                                    \
    {                                                                                              \
        .target = "aten." aten ".default", .op_name = name, .convert = convert_##of,               \
        .trains_by = "train"                                                                       \
    }

static const pen_pt2_mapping dropout_rows[] = {
    DROPOUT("dropout", NULL, dropout),
    DROPOUT("native_dropout", NULL, dropout),
    DROPOUT("feature_dropout", NULL, feature_dropout),
    DROPOUT("alpha_dropout", NULL, alpha_dropout),
    DROPOUT("feature_alpha_dropout", "channels", alpha_dropout),
    PEN_PT2_ROW("bernoulli.p", bernoulli),
    PEN_PT2_ROW("bernoulli_.float", bernoulli),
};

PEN_PT2_FAMILY(pen_pt2_dropouts, dropout_rows);
