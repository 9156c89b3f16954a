// Softmax cross entropy over classes that are in pieces, and its count of right answers.
//
//   m = max over all classes              of the pieces' largest scores
//   L = m + log Σ exp(score - m)          of the pieces' sums, added in their order
//   loss = Σ w (L - score[label]) / Σ w   of the targets, each with the weight of its label
//
// and with label smoothing e, of C classes with weights w, in place of the term in brackets times w
//
//   (1 - e) w[label] (L - score[label]) + e / C (L Σ w - Σ w score)
//
// as graph/ops/training/loss_op.c has it. Weights are 1 where none are given, and 0 where a target
// is ignored. No value of all classes is ever in one place but the weights of classes.
#include <string.h>

#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/shard/sharder.h"

#define LOSS_AXIS 1 // the classes of scores

typedef struct loss_pieces {
    sharder *s;
    pen_node_id id;
    const pen_node *node;
    const shard_pieces *scores;
    pen_element_type element;
    pen_value_id labels;    // (N, 1, …)
    pen_value_id counts;    // bool, whether the target counts; NONE: all do
    pen_value_id logarithm; // L, (N, 1, …), as the next
    pen_value_id weights;   // of the targets
    pen_value_id losses;
} loss_pieces;

static pen_status loss_apply(loss_pieces *l, const pen_op *op, pen_value_id a, pen_value_id b,
                             pen_value_id *out_value) {
    return pen_shard_apply(l->s, l->id, op, a, b, out_value);
}

static pen_status loss_number(loss_pieces *l, double number, pen_value_id *out_value) {
    return pen_shard_constant(l->s, l->element, number, out_value);
}

// Labels with a dimension for the classes, and which of them count; one that does not is 0.
static pen_status loss_read_labels(loss_pieces *l) {
    sharder *s = l->s;
    pen_shape shape = pen_value_type(s->from, l->node->inputs[0])->shape;
    shape.dims[LOSS_AXIS] = 1;
    PEN_TRY(pen_shard_indices(s, l->id, l->node->inputs[1], &shape, &l->labels));
    l->counts = PEN_VALUE_NONE;
    if (!pen_node_has(l->node, "ignore_index")) return PEN_OK;
    const pen_element_type element = pen_value_type(s->copy.to, l->labels)->element;
    pen_value_id ignored, zero;
    PEN_TRY(
        pen_shard_constant(s, element, (double)pen_node_int(l->node, "ignore_index"), &ignored));
    PEN_TRY(pen_shard_constant(s, element, 0, &zero));
    PEN_TRY(loss_apply(l, PEN_OP(equal), l->labels, ignored, &ignored));
    PEN_TRY(loss_apply(l, PEN_OP(not ), ignored, PEN_VALUE_NONE, &l->counts));
    return pen_shard_where(s, l->id, l->counts, l->labels, zero, &l->labels);
}

// The sum over pieces of what `read` makes of each.
typedef pen_status (*loss_read)(loss_pieces *l, uint32_t piece, pen_value_id *out_value);
static pen_status loss_sum(loss_pieces *l, loss_read read, pen_value_id *out_sum) {
    const uint32_t ways = l->scores->cut.ways;
    pen_value_id *parts;
    PEN_TRY(PEN_NEW(l->s->arena, ways, &parts));
    for (uint32_t p = 0; p < ways; p++) {
        PEN_TRY(read(l, p, &parts[p]));
    }
    const shard_list list = {ways, parts};
    return pen_shard_sum(l->s, l->id, &list, NULL, out_sum);
}

// exp(score - m), summed; m is in `logarithm`.
static pen_status loss_read_exponentials(loss_pieces *l, uint32_t piece, pen_value_id *out_value) {
    PEN_TRY(loss_apply(l, PEN_OP(sub), l->scores->values[piece], l->logarithm, out_value));
    PEN_TRY(loss_apply(l, PEN_OP(exp), *out_value, PEN_VALUE_NONE, out_value));
    return pen_shard_reduce(l->s, l->id, PEN_OP(reduce_sum), *out_value, LOSS_AXIS, out_value);
}

// No gradient flows through the largest score: it cancels out.
static pen_status loss_find_logarithm(loss_pieces *l) {
    sharder *s = l->s;
    const uint32_t ways = l->scores->cut.ways;
    pen_value_id *largest, sum;
    PEN_TRY(PEN_NEW(s->arena, ways, &largest));
    for (uint32_t p = 0; p < ways; p++) {
        PEN_TRY(loss_apply(l, PEN_OP(stop_gradient), l->scores->values[p], PEN_VALUE_NONE,
                           &largest[p]));
        PEN_TRY(pen_shard_reduce(s, l->id, PEN_OP(reduce_max), largest[p], LOSS_AXIS, &largest[p]));
    }
    const shard_node max = {
        .op = PEN_OP(max), .suffix = "max", .inputs = largest, .input_count = ways};
    PEN_TRY(pen_shard_add(s, l->id, &max, &l->logarithm));
    PEN_TRY(loss_sum(l, loss_read_exponentials, &sum));
    PEN_TRY(loss_apply(l, PEN_OP(log), sum, PEN_VALUE_NONE, &sum));
    return loss_apply(l, PEN_OP(add), sum, l->logarithm, &l->logarithm);
}

// The score at the label, 0 where another piece has it.
static pen_status loss_read_label(loss_pieces *l, uint32_t piece, pen_value_id *out_value) {
    sharder *s = l->s;
    shard_owned owned;
    pen_value_id zero;
    PEN_TRY(pen_shard_own(s, l->id, &l->scores->cut, piece, l->labels, &owned));
    const pen_value_id inputs[2] = {l->scores->values[piece], owned.indices};
    const pen_attribute_given axis = pen_attribute_int("axis", LOSS_AXIS);
    const shard_node pick = {.op = PEN_OP(gather_elements),
                             .suffix = "score",
                             .inputs = inputs,
                             .input_count = 2,
                             .attributes = &axis,
                             .attribute_count = 1};
    PEN_TRY(pen_shard_add(s, l->id, &pick, out_value));
    PEN_TRY(loss_number(l, 0, &zero));
    return pen_shard_where(s, l->id, owned.is_here, *out_value, zero, out_value);
}

static bool loss_has_weights(const loss_pieces *l) {
    return l->node->input_count > 2 && pen_value_is(l->node->inputs[2]);
}

// The weights of the targets: of their labels, or 1; 0 where they do not count. NONE: all are 1.
static pen_status loss_weigh_targets(loss_pieces *l) {
    pen_value_id zero, one;
    l->weights = PEN_VALUE_NONE;
    PEN_TRY(loss_number(l, 0, &zero));
    if (loss_has_weights(l)) {
        PEN_TRY(pen_shard_whole(l->s, l->node->inputs[2], &l->weights));
        PEN_TRY(loss_apply(l, PEN_OP(gather), l->weights, l->labels, &l->weights));
    }
    if (!pen_value_is(l->counts)) return PEN_OK;
    PEN_TRY(loss_number(l, 1, &one));
    return pen_shard_where(l->s, l->id, l->counts, pen_value_is(l->weights) ? l->weights : one,
                           zero, &l->weights);
}

// ---- smoothing

static pen_status loss_read_scores(loss_pieces *l, uint32_t piece, pen_value_id *out_value) {
    *out_value = l->scores->values[piece];
    if (loss_has_weights(l)) {
        const pen_shape *scores = &pen_value_type(l->s->from, l->node->inputs[0])->shape;
        const shard_cut cut = {
            .ways = l->scores->cut.ways, .axis = 0, .blocks = 1, .bounds = l->scores->cut.bounds};
        const pen_value_id *weights;
        pen_shape shape = {.rank = scores->rank - LOSS_AXIS};
        for (uint32_t d = 0; d < shape.rank; d++) {
            shape.dims[d] = d == 0 ? pen_shard_extent(&cut, piece) : 1;
        }
        PEN_TRY(pen_shard_cut_value(l->s, l->node->inputs[2], &cut, &weights));
        pen_value_id weight = weights[piece];
        PEN_TRY(pen_shard_reshape(l->s, l->id, &shape, NULL, &weight));
        PEN_TRY(loss_apply(l, PEN_OP(mul), *out_value, weight, out_value));
    }
    return pen_shard_reduce(l->s, l->id, PEN_OP(reduce_sum), *out_value, LOSS_AXIS, out_value);
}

// What the weights of all classes are together.
static pen_status loss_sum_weights(const loss_pieces *l, double *out_sum) {
    const int64_t classes = pen_value_type(l->s->from, l->node->inputs[0])->shape.dims[LOSS_AXIS];
    const double *weights;
    *out_sum = (double)classes;
    if (!loss_has_weights(l)) return PEN_OK;
    PEN_TRY(pen_value_read_numbers(l->s->from, l->node->inputs[2], &weights));
    *out_sum = 0;
    for (int64_t c = 0; c < classes; c++) {
        *out_sum += weights[c];
    }
    return PEN_OK;
}

// (1 - e) losses + e / C (L Σ w - Σ w score), 0 where a target does not count.
static pen_status loss_smooth(loss_pieces *l, double smoothing) {
    const int64_t classes = pen_value_type(l->s->from, l->node->inputs[0])->shape.dims[LOSS_AXIS];
    pen_value_id scores, factor, even;
    double weight_sum;
    PEN_TRY(loss_sum_weights(l, &weight_sum));
    PEN_TRY(loss_sum(l, loss_read_scores, &scores));
    PEN_TRY(loss_number(l, weight_sum, &factor));
    PEN_TRY(loss_apply(l, PEN_OP(mul), l->logarithm, factor, &even));
    PEN_TRY(loss_apply(l, PEN_OP(sub), even, scores, &even));
    PEN_TRY(loss_number(l, smoothing / (double)classes, &factor));
    PEN_TRY(loss_apply(l, PEN_OP(mul), even, factor, &even));
    if (pen_value_is(l->counts)) {
        PEN_TRY(loss_number(l, 0, &factor));
        PEN_TRY(pen_shard_where(l->s, l->id, l->counts, even, factor, &even));
    }
    PEN_TRY(loss_number(l, 1 - smoothing, &factor));
    PEN_TRY(loss_apply(l, PEN_OP(mul), l->losses, factor, &l->losses));
    return loss_apply(l, PEN_OP(add), l->losses, even, &l->losses);
}

// ---- the loss

// The losses of all targets, added up or divided by the sum of their weights. Of targets of which
// none counts the loss is 0.
static pen_status loss_gather(loss_pieces *l, pen_value_id *out_loss) {
    const pen_attribute_given keep = pen_attribute_int("keepdims", 0);
    const bool is_mean = strcmp(pen_node_text(l->node, "reduction"), "mean") == 0;
    const bool is_weighed = pen_value_is(l->weights);
    shard_node node = {.op = is_mean && !is_weighed ? PEN_OP(reduce_mean) : PEN_OP(reduce_sum),
                       .suffix = "all",
                       .inputs = &l->losses,
                       .input_count = 1,
                       .attributes = &keep,
                       .attribute_count = 1};
    PEN_TRY(pen_shard_add(l->s, l->id, &node, out_loss));
    if (!is_mean || !is_weighed) return PEN_OK;
    pen_value_id sum, least;
    node.suffix = "weight";
    node.inputs = &l->weights;
    PEN_TRY(pen_shard_add(l->s, l->id, &node, &sum));
    PEN_TRY(loss_number(l, 1e-30, &least));
    PEN_TRY(loss_apply(l, PEN_OP(max), sum, least, &sum));
    return loss_apply(l, PEN_OP(div), *out_loss, sum, out_loss);
}

static bool loss_begin(sharder *s, pen_node_id id, const pen_op *op, loss_pieces *out_loss) {
    const pen_node *node = pen_graph_node(s->from, id);
    if (node->op != op) return false;
    const shard_cut *cut = pen_shard_cut_of(s, node->inputs[0]);
    *out_loss = (loss_pieces){.s = s,
                              .id = id,
                              .node = node,
                              .scores = &s->pieces[node->inputs[0].index],
                              .element = pen_value_type(s->from, node->inputs[0])->element};
    return cut->ways > 0 && cut->axis == LOSS_AXIS && cut->blocks == 1;
}

// Of a loss for each target, or with its logarithms as an output, nothing is made here: such a node
// reads whole scores.
pen_status pen_shard_cross_entropy(sharder *s, pen_node_id id, bool *out_done) {
    loss_pieces l;
    *out_done = loss_begin(s, id, PEN_OP(softmax_cross_entropy_loss), &l);
    if (*out_done) {
        *out_done =
            strcmp(pen_node_text(l.node, "reduction"), "none") != 0 && l.node->output_count == 1;
    }
    if (!*out_done) return PEN_OK;
    pen_value_id label;
    PEN_TRY(loss_read_labels(&l));
    PEN_TRY(loss_find_logarithm(&l));
    PEN_TRY(loss_sum(&l, loss_read_label, &label));
    PEN_TRY(loss_weigh_targets(&l));
    PEN_TRY(loss_apply(&l, PEN_OP(sub), l.logarithm, label, &l.losses));
    if (pen_value_is(l.weights)) {
        PEN_TRY(loss_apply(&l, PEN_OP(mul), l.losses, l.weights, &l.losses));
    }
    if (pen_node_has(l.node, "label_smoothing")) {
        PEN_TRY(loss_smooth(&l, pen_node_float(l.node, "label_smoothing")));
    }
    return loss_gather(&l, &s->copy.values[l.node->outputs[0].index]);
}

// ---- right answers

// The position among all classes of the largest score of a piece.
static pen_status accuracy_read_piece(loss_pieces *l, uint32_t piece, pen_value_id *out_score,
                                      pen_value_id *out_class) {
    sharder *s = l->s;
    const pen_value_id scores = l->scores->values[piece];
    const pen_attribute_given axis = pen_attribute_int("axis", LOSS_AXIS);
    const shard_node position = {.op = PEN_OP(arg_max),
                                 .suffix = "class",
                                 .inputs = &scores,
                                 .input_count = 1,
                                 .attributes = &axis,
                                 .attribute_count = 1};
    pen_value_id first;
    PEN_TRY(pen_shard_reduce(s, l->id, PEN_OP(reduce_max), scores, LOSS_AXIS, out_score));
    PEN_TRY(pen_shard_add(s, l->id, &position, out_class));
    PEN_TRY(pen_shard_constant(s, PEN_INT64, (double)l->scores->cut.bounds[piece], &first));
    return loss_apply(l, PEN_OP(add), *out_class, first, out_class);
}

// Of equal scores the first class is chosen: a later piece must have a larger one.
static pen_status accuracy_find_class(loss_pieces *l, pen_value_id *out_class) {
    pen_value_id best, score, class;
    PEN_TRY(accuracy_read_piece(l, 0, &best, out_class));
    for (uint32_t p = 1; p < l->scores->cut.ways; p++) {
        pen_value_id wins;
        PEN_TRY(accuracy_read_piece(l, p, &score, &class));
        PEN_TRY(loss_apply(l, PEN_OP(greater), score, best, &wins));
        PEN_TRY(pen_shard_where(l->s, l->id, wins, class, *out_class, out_class));
        PEN_TRY(pen_shard_where(l->s, l->id, wins, score, best, &best));
    }
    return PEN_OK;
}

// The number of targets that count and whose label is the class that is found. Of several classes
// none is found by piece: these counts read the scores as a whole.
pen_status pen_shard_accuracy(sharder *s, pen_node_id id, bool *out_done) {
    loss_pieces l;
    pen_value_id class, right;
    *out_done = !pen_node_has(pen_graph_node(s->from, id), "top") &&
                loss_begin(s, id, PEN_OP(accuracy_count), &l);
    if (!*out_done) return PEN_OK;
    PEN_TRY(loss_read_labels(&l));
    PEN_TRY(accuracy_find_class(&l, &class));
    const pen_attribute_given to = pen_attribute_text("to", "int64");
    shard_node node = {.op = PEN_OP(cast),
                       .suffix = "cast",
                       .inputs = &class,
                       .input_count = 1,
                       .attributes = &to,
                       .attribute_count = 1};
    if (pen_value_type(s->copy.to, l.labels)->element != PEN_INT64) {
        node.inputs = &l.labels;
        PEN_TRY(pen_shard_add(s, id, &node, &l.labels));
    }
    PEN_TRY(loss_apply(&l, PEN_OP(equal), class, l.labels, &right));
    if (pen_value_is(l.counts)) PEN_TRY(loss_apply(&l, PEN_OP(and), right, l.counts, &right));
    node.inputs = &right;
    PEN_TRY(pen_shard_add(s, id, &node, &right));
    const pen_attribute_given keep = pen_attribute_int("keepdims", 0);
    node = (shard_node){.op = PEN_OP(reduce_sum),
                        .suffix = "count",
                        .inputs = &right,
                        .input_count = 1,
                        .attributes = &keep,
                        .attribute_count = 1};
    return pen_shard_add(s, id, &node, &s->copy.values[l.node->outputs[0].index]);
}
