// Losses that stand in the model itself. `reduction` is 0: none, 1: mean, 2: sum.

#include <string.h>

#include "graph/import/pytorch/pt2_mapping.h"

// The losses of all elements, their mean or their sum.
static pen_status loss_reduce(pen_pt2_draft *draft, pen_value_id losses) {
    const int64_t reduction = pen_pt2_int(draft, "reduction", 1);
    if (reduction == 0) return pen_pt2_give_map(draft, "identity", losses);
    return pen_pt2_give(draft, reduction == 1 ? "reduce_mean" : "reduce_sum", PEN_INPUTS(losses),
                        PEN_WITH(pen_attribute_int("keepdims", 0)));
}

// ---- of classes

static const char *loss_reduction_name(pen_pt2_draft *draft) {
    static const char *const names[] = {"none", "mean", "sum"};
    const int64_t reduction = pen_pt2_int(draft, "reduction", 1);
    return names[reduction >= 0 && reduction < 3 ? reduction : 1];
}

typedef struct class_loss {
    pen_value_id scores;  // [examples, classes, …]
    pen_value_id labels;  // [examples, …]
    pen_value_id weights; // [classes], or none
    bool is_single;       // there is one example, without a dimension of its own
} class_loss;

// Labels of other integers than the kernels know become int64.
static pen_status class_loss_read(pen_pt2_draft *draft, class_loss *work) {
    *work = (class_loss){.is_single = pen_pt2_rank(draft, "self") == 1};
    PEN_TRY(pen_pt2_own_operand(draft, "self", &work->scores));
    PEN_TRY(pen_pt2_operand(draft, "target", PEN_INT64, &work->labels));
    PEN_TRY(pen_pt2_tensor_or_none(draft, "weight", &work->weights));
    if (!work->is_single) return PEN_OK;
    PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "example", work->scores, 0, &work->scores));
    return pen_pt2_with_int(draft, "unsqueeze", "label", work->labels, 0, &work->labels);
}

static pen_status class_loss_emit(pen_pt2_draft *draft, const class_loss *work, const char *op_name,
                                  const char *suffix, pen_value_id *out_value) {
    const pen_value_id inputs[] = {work->scores, work->labels, work->weights};
    PEN_TRY(pen_pt2_emit(
        draft, op_name, suffix, (pen_node_inputs){inputs, pen_value_is(work->weights) ? 3 : 2},
        PEN_WITH(pen_attribute_text("reduction", loss_reduction_name(draft)),
                 pen_attribute_int("ignore_index", pen_pt2_int(draft, "ignore_index", -100))),
        out_value));
    if (!work->is_single || pen_pt2_int(draft, "reduction", 1) != 0) return PEN_OK;
    return pen_pt2_with_int(draft, "squeeze", "single", *out_value, 0, out_value);
}

static pen_status class_loss_give(pen_pt2_draft *draft, const class_loss *work,
                                  const char *op_name) {
    pen_value_id value;
    PEN_TRY(class_loss_emit(draft, work, op_name, NULL, &value));
    return pen_pt2_set(draft, 0, value);
}

static pen_status convert_nll(pen_pt2_draft *draft) {
    class_loss work;
    PEN_TRY(class_loss_read(draft, &work));
    return class_loss_give(draft, &work, "negative_log_likelihood_loss");
}

// A number for each class, along dimension 1 of the scores.
static pen_status class_loss_weigh(pen_pt2_draft *draft, const class_loss *work, uint32_t rank,
                                   pen_value_id value, pen_value_id *out_value) {
    int64_t shape[PEN_RANK_LIMIT];
    pen_value_id weights;
    *out_value = value;
    if (!pen_value_is(work->weights)) return PEN_OK;
    for (uint32_t d = 0; d < rank; d++) {
        shape[d] = d == 1 ? -1 : 1;
    }
    PEN_TRY(pen_pt2_with_ints(draft, "reshape", "class_weights", work->weights,
                              (pen_pt2_list){rank, shape}, &weights));
    return pen_pt2_pair(draft, "mul", "weighed", value, weights, out_value);
}

// Minus the sum over the classes.
static pen_status class_loss_sum(pen_pt2_draft *draft, const char *suffix, pen_value_id value,
                                 pen_value_id *out_value) {
    pen_value_id axes;
    PEN_TRY(pen_pt2_constant_ints(draft, 1, (const int64_t[]){1}, &axes));
    PEN_TRY(pen_pt2_emit(draft, "reduce_sum", suffix, PEN_INPUTS(value, axes),
                         PEN_WITH(pen_attribute_int("keepdims", 0)), &value));
    return pen_pt2_map(draft, "neg", "negative", value, out_value);
}

// What the sum of losses is divided by to be their mean: the weights of the labels that count.
static pen_status smoothing_divisor(pen_pt2_draft *draft, const class_loss *work,
                                    pen_value_id is_ignored, pen_value_id *out_value) {
    pen_value_id zero, one, index, picked;
    PEN_TRY(pen_pt2_own_number(draft, 0, &zero));
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    picked = one;
    if (pen_value_is(work->weights)) {
        PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, 0, &index));
        PEN_TRY(pen_pt2_where(draft, "class", is_ignored, index, work->labels, &index));
        PEN_TRY(pen_pt2_pair(draft, "gather", "label_weights", work->weights, index, &picked));
    }
    PEN_TRY(pen_pt2_where(draft, "counted", is_ignored, zero, picked, &picked));
    return pen_pt2_emit(draft, "reduce_sum", "divisor", PEN_INPUTS(picked),
                        PEN_WITH(pen_attribute_int("keepdims", 0)), out_value);
}

// The part of the loss that all classes have alike: minus the sum of their logarithms.
static pen_status smoothing_part(pen_pt2_draft *draft, const class_loss *work, uint32_t rank,
                                 pen_value_id *out_value) {
    const int64_t reduction = pen_pt2_int(draft, "reduction", 1);
    pen_value_id part, ignored, is_ignored, zero, divisor;
    PEN_TRY(class_loss_weigh(draft, work, rank, work->scores, &part));
    PEN_TRY(class_loss_sum(draft, "all_classes", part, &part));
    PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64,
                                    (double)pen_pt2_int(draft, "ignore_index", -100), &ignored));
    PEN_TRY(pen_pt2_pair(draft, "equal", "is_ignored", work->labels, ignored, &is_ignored));
    PEN_TRY(pen_pt2_own_number(draft, 0, &zero));
    PEN_TRY(pen_pt2_where(draft, "not_ignored", is_ignored, zero, part, &part));
    if (reduction != 0) {
        PEN_TRY(pen_pt2_emit(draft, "reduce_sum", "sum", PEN_INPUTS(part),
                             PEN_WITH(pen_attribute_int("keepdims", 0)), &part));
    } else if (work->is_single) {
        PEN_TRY(pen_pt2_with_int(draft, "squeeze", "smooth_single", part, 0, &part));
    }
    *out_value = part;
    if (reduction != 1) return PEN_OK;
    PEN_TRY(smoothing_divisor(draft, work, is_ignored, &divisor));
    return pen_pt2_pair(draft, "div", "smooth_mean", part, divisor, out_value);
}

// (1 - s) times the loss at the labels, and s / classes times that of all classes.
static pen_status cross_entropy_smooth(pen_pt2_draft *draft, class_loss *work, double smoothing) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    const uint32_t rank = work->is_single ? 2 : shape->rank;
    const int64_t classes = shape->rank == 0 ? 0 : shape->dims[work->is_single ? 0 : 1];
    pen_value_id loss, part;
    if (classes < 1) return pen_pt2_refuse(draft, "the number of its classes is open");
    PEN_TRY(pen_pt2_emit(draft, "log_softmax", "logarithms", PEN_INPUTS(work->scores),
                         PEN_WITH(pen_attribute_int("axis", 1)), &work->scores));
    PEN_TRY(class_loss_emit(draft, work, "negative_log_likelihood_loss", "at_labels", &loss));
    PEN_TRY(smoothing_part(draft, work, rank, &part));
    PEN_TRY(pen_pt2_scale(draft, "label_share", loss, 1 - smoothing, &loss));
    PEN_TRY(pen_pt2_scale(draft, "smooth_share", part, smoothing / (double)classes, &part));
    return pen_pt2_give_pair(draft, "add", loss, part);
}

// Targets that are probabilities of all classes. A mean is one over examples and positions.
static pen_status cross_entropy_of_shares(pen_pt2_draft *draft, double smoothing) {
    const pen_shape *shape = &pen_pt2_type(draft, "self")->shape;
    class_loss work = {.is_single = shape->rank == 1};
    const int64_t classes = shape->rank == 0 ? 0 : shape->dims[work.is_single ? 0 : 1];
    pen_value_id target, losses;
    if (classes < 1) return pen_pt2_refuse(draft, "the number of its classes is open");
    PEN_TRY(pen_pt2_own_operands(draft, "self", "target", &work.scores, &target));
    PEN_TRY(pen_pt2_tensor_or_none(draft, "weight", &work.weights));
    if (smoothing != 0) {
        pen_value_id share;
        PEN_TRY(pen_pt2_scale(draft, "target_share", target, 1 - smoothing, &target));
        PEN_TRY(pen_pt2_own_number(draft, smoothing / (double)classes, &share));
        PEN_TRY(pen_pt2_pair(draft, "add", "target_smooth", target, share, &target));
    }
    if (work.is_single) {
        PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "example", work.scores, 0, &work.scores));
        PEN_TRY(pen_pt2_with_int(draft, "unsqueeze", "shares", target, 0, &target));
    }
    PEN_TRY(pen_pt2_emit(draft, "log_softmax", "logarithms", PEN_INPUTS(work.scores),
                         PEN_WITH(pen_attribute_int("axis", 1)), &losses));
    PEN_TRY(pen_pt2_pair(draft, "mul", "products", losses, target, &losses));
    PEN_TRY(class_loss_weigh(draft, &work, work.is_single ? 2 : shape->rank, losses, &losses));
    PEN_TRY(class_loss_sum(draft, "classes", losses, &losses));
    if (work.is_single) PEN_TRY(pen_pt2_with_int(draft, "squeeze", "single", losses, 0, &losses));
    return loss_reduce(draft, losses);
}

static pen_status convert_cross_entropy(pen_pt2_draft *draft) {
    const double smoothing = pen_pt2_float(draft, "label_smoothing", 0);
    class_loss work;
    if (pen_element_is_float(pen_pt2_type(draft, "target")->element)) {
        return cross_entropy_of_shares(draft, smoothing);
    }
    PEN_TRY(class_loss_read(draft, &work));
    if (smoothing != 0) return cross_entropy_smooth(draft, &work, smoothing);
    return class_loss_give(draft, &work, "softmax_cross_entropy_loss");
}

// ---- of differences

static pen_status loss_difference(pen_pt2_draft *draft, pen_value_id *out_value) {
    pen_value_id x, target;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "target", &x, &target));
    return pen_pt2_pair(draft, "sub", "difference", x, target, out_value);
}

static pen_status convert_mse(pen_pt2_draft *draft) {
    pen_value_id d;
    PEN_TRY(loss_difference(draft, &d));
    PEN_TRY(pen_pt2_pair(draft, "mul", "squares", d, d, &d));
    return loss_reduce(draft, d);
}

static pen_status convert_l1(pen_pt2_draft *draft) {
    pen_value_id d;
    PEN_TRY(loss_difference(draft, &d));
    PEN_TRY(pen_pt2_map(draft, "abs", "sizes", d, &d));
    return loss_reduce(draft, d);
}

// square d² where |d| <= limit, else slope (|d| - limit / 2): a parabola that goes over to a line.
// At the limit itself both have the same derivative.
static pen_status loss_parabola(pen_pt2_draft *draft, double limit, double square, double slope) {
    pen_value_id d, size, edge, half, near, far, is_near;
    PEN_TRY(loss_difference(draft, &d));
    PEN_TRY(pen_pt2_map(draft, "abs", "sizes", d, &size));
    PEN_TRY(pen_pt2_own_number(draft, limit, &edge));
    PEN_TRY(pen_pt2_own_number(draft, limit / 2, &half));
    PEN_TRY(pen_pt2_pair(draft, "mul", "squares", d, d, &near));
    PEN_TRY(pen_pt2_scale(draft, "near", near, square, &near));
    PEN_TRY(pen_pt2_pair(draft, "sub", "rest", size, half, &far));
    PEN_TRY(pen_pt2_scale(draft, "far", far, slope, &far));
    PEN_TRY(pen_pt2_pair(draft, "less_or_equal", "is_near", size, edge, &is_near));
    PEN_TRY(pen_pt2_where(draft, "losses", is_near, near, far, &d));
    return loss_reduce(draft, d);
}

static pen_status convert_smooth_l1(pen_pt2_draft *draft) {
    const double beta = pen_pt2_float(draft, "beta", 1);
    if (beta == 0) return convert_l1(draft);
    return loss_parabola(draft, beta, 0.5 / beta, 1);
}

static pen_status convert_huber(pen_pt2_draft *draft) {
    const double delta = pen_pt2_float(draft, "delta", 1);
    return loss_parabola(draft, delta, 0.5, delta);
}

// ---- of probabilities

// Multiplied by `weight` where that is given.
static pen_status loss_weigh(pen_pt2_draft *draft, pen_value_id losses, pen_value_id *out_value) {
    pen_value_id weight;
    *out_value = losses;
    if (!pen_pt2_has(draft, "weight")) return PEN_OK;
    PEN_TRY(pen_pt2_own_operand(draft, "weight", &weight));
    return pen_pt2_pair(draft, "mul", "weighed", losses, weight, out_value);
}

// The logarithm of a probability, held above -100.
static pen_status bce_logarithm(pen_pt2_draft *draft, pen_value_id p, pen_value_id *out_value) {
    pen_value_id limit, is_below;
    PEN_TRY(pen_pt2_own_number(draft, -100, &limit));
    PEN_TRY(pen_pt2_map(draft, "log", "log", p, &p));
    PEN_TRY(pen_pt2_pair(draft, "less", "is_below", p, limit, &is_below));
    return pen_pt2_where(draft, "log_held", is_below, limit, p, out_value);
}

// Our operator is the mean without weights, and finite at 0 and 1, in its gradient, too.
static pen_status convert_bce(pen_pt2_draft *draft) {
    pen_value_id x, t, one, logs[2], rest;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "target", &x, &t));
    if (pen_pt2_int(draft, "reduction", 1) == 1 && !pen_pt2_has(draft, "weight")) {
        return pen_pt2_give_pair(draft, "binary_cross_entropy", x, t);
    }
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    PEN_TRY(bce_logarithm(draft, x, &logs[0]));
    PEN_TRY(pen_pt2_pair(draft, "sub", "other", one, x, &rest));
    PEN_TRY(bce_logarithm(draft, rest, &logs[1]));
    PEN_TRY(pen_pt2_pair(draft, "sub", "other_target", one, t, &rest));
    PEN_TRY(pen_pt2_pair(draft, "mul", "first", logs[0], t, &logs[0]));
    PEN_TRY(pen_pt2_pair(draft, "mul", "second", logs[1], rest, &logs[1]));
    PEN_TRY(pen_pt2_pair(draft, "add", "sum", logs[0], logs[1], &x));
    PEN_TRY(pen_pt2_map(draft, "neg", "losses", x, &x));
    PEN_TRY(loss_weigh(draft, x, &x));
    return loss_reduce(draft, x);
}

// (1 - t) x + w softplus(-x), w being 1 + (pos_weight - 1) t.
static pen_status convert_bce_with_logits(pen_pt2_draft *draft) {
    pen_value_id x, t, one, first, second, weight;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "target", &x, &t));
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    PEN_TRY(pen_pt2_pair(draft, "sub", "other_target", one, t, &first));
    PEN_TRY(pen_pt2_pair(draft, "mul", "first", first, x, &first));
    PEN_TRY(pen_pt2_map(draft, "neg", "negative", x, &second));
    PEN_TRY(pen_pt2_map(draft, "softplus", "second", second, &second));
    if (pen_pt2_has(draft, "pos_weight")) {
        PEN_TRY(pen_pt2_own_operand(draft, "pos_weight", &weight));
        PEN_TRY(pen_pt2_pair(draft, "sub", "more", weight, one, &weight));
        PEN_TRY(pen_pt2_pair(draft, "mul", "more_of_target", weight, t, &weight));
        PEN_TRY(pen_pt2_pair(draft, "add", "log_weight", weight, one, &weight));
        PEN_TRY(pen_pt2_pair(draft, "mul", "second_weighed", second, weight, &second));
    }
    PEN_TRY(pen_pt2_pair(draft, "add", "losses", first, second, &x));
    PEN_TRY(loss_weigh(draft, x, &x));
    return loss_reduce(draft, x);
}

// t (log t - x), or exp(t) (t - x) where targets are logarithms. 0 log 0 is 0.
static pen_status convert_kl_div(pen_pt2_draft *draft) {
    pen_value_id x, t, zero, one, is_zero, log;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "target", &x, &t));
    if (pen_pt2_bool(draft, "log_target", false)) {
        PEN_TRY(pen_pt2_pair(draft, "sub", "difference", t, x, &x));
        PEN_TRY(pen_pt2_map(draft, "exp", "share", t, &t));
        PEN_TRY(pen_pt2_pair(draft, "mul", "losses", t, x, &x));
        return loss_reduce(draft, x);
    }
    PEN_TRY(pen_pt2_own_number(draft, 0, &zero));
    PEN_TRY(pen_pt2_own_number(draft, 1, &one));
    PEN_TRY(pen_pt2_pair(draft, "equal", "is_zero", t, zero, &is_zero));
    PEN_TRY(pen_pt2_where(draft, "share", is_zero, one, t, &log));
    PEN_TRY(pen_pt2_map(draft, "log", "log", log, &log));
    PEN_TRY(pen_pt2_pair(draft, "sub", "difference", log, x, &x));
    PEN_TRY(pen_pt2_pair(draft, "mul", "losses", t, x, &x));
    return loss_reduce(draft, x);
}

// exp(x) - t x, or x - t log(x + eps) where x is no logarithm; `full` adds Stirling's formula for
// log t! where t is above 1.
static pen_status convert_poisson(pen_pt2_draft *draft) {
    pen_value_id x, t, a, b;
    if (pen_pt2_bool(draft, "full", false)) {
        return pen_pt2_refuse(draft, "it has the term of Stirling's formula (full)");
    }
    PEN_TRY(pen_pt2_own_operands(draft, "input", "target", &x, &t));
    if (pen_pt2_bool(draft, "log_input", true)) {
        PEN_TRY(pen_pt2_map(draft, "exp", "rate", x, &a));
        PEN_TRY(pen_pt2_pair(draft, "mul", "product", t, x, &b));
    } else {
        a = x;
        PEN_TRY(pen_pt2_own_number(draft, pen_pt2_float(draft, "eps", 1e-8), &b));
        PEN_TRY(pen_pt2_pair(draft, "add", "moved", x, b, &b));
        PEN_TRY(pen_pt2_map(draft, "log", "log", b, &b));
        PEN_TRY(pen_pt2_pair(draft, "mul", "product", t, b, &b));
    }
    PEN_TRY(pen_pt2_pair(draft, "sub", "losses", a, b, &x));
    return loss_reduce(draft, x);
}

// ---- of margins

// log(1 + exp(-t x))
static pen_status convert_soft_margin(pen_pt2_draft *draft) {
    pen_value_id x, t;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "target", &x, &t));
    PEN_TRY(pen_pt2_pair(draft, "mul", "product", x, t, &x));
    PEN_TRY(pen_pt2_map(draft, "neg", "negative", x, &x));
    PEN_TRY(pen_pt2_map(draft, "softplus", "losses", x, &x));
    return loss_reduce(draft, x);
}

// max(0, -t (x1 - x2) + margin)
static pen_status convert_margin_ranking(pen_pt2_draft *draft) {
    pen_value_id a, b, t, margin;
    PEN_TRY(pen_pt2_own_operands(draft, "input1", "input2", &a, &b));
    PEN_TRY(pen_pt2_own_operand(draft, "target", &t));
    PEN_TRY(pen_pt2_own_number(draft, pen_pt2_float(draft, "margin", 0), &margin));
    PEN_TRY(pen_pt2_pair(draft, "sub", "difference", b, a, &a));
    PEN_TRY(pen_pt2_pair(draft, "mul", "product", t, a, &a));
    PEN_TRY(pen_pt2_pair(draft, "add", "moved", a, margin, &a));
    PEN_TRY(pen_pt2_map(draft, "relu", "held", a, &a));
    return loss_reduce(draft, a);
}

// x where t is 1, max(0, margin - x) where it is -1, and both where it is neither.
static pen_status convert_hinge_embedding(pen_pt2_draft *draft) {
    pen_value_id x, t, margin, zero, ones[2], is_one[2], held;
    PEN_TRY(pen_pt2_own_operands(draft, "self", "target", &x, &t));
    PEN_TRY(pen_pt2_own_number(draft, pen_pt2_float(draft, "margin", 1), &margin));
    PEN_TRY(pen_pt2_own_number(draft, 0, &zero));
    for (uint32_t i = 0; i < 2; i++) {
        PEN_TRY(pen_pt2_own_number(draft, i == 0 ? 1 : -1, &ones[i]));
        PEN_TRY(pen_pt2_pair(draft, "equal", "is_one", t, ones[i], &is_one[i]));
    }
    PEN_TRY(pen_pt2_pair(draft, "sub", "missing", margin, x, &held));
    PEN_TRY(pen_pt2_map(draft, "relu", "held", held, &held));
    PEN_TRY(pen_pt2_where(draft, "apart", is_one[0], zero, held, &held));
    PEN_TRY(pen_pt2_where(draft, "together", is_one[1], zero, x, &x));
    PEN_TRY(pen_pt2_pair(draft, "add", "losses", held, x, &x));
    return loss_reduce(draft, x);
}

// ‖a - b + eps‖ over the last dimension.
static pen_status triplet_distance(pen_pt2_draft *draft, pen_value_id a, pen_value_id b,
                                   pen_value_id *out_value) {
    pen_value_id eps, axes, d;
    PEN_TRY(pen_pt2_own_number(draft, pen_pt2_float(draft, "eps", 1e-6), &eps));
    PEN_TRY(pen_pt2_constant_ints(draft, 1, (const int64_t[]){-1}, &axes));
    PEN_TRY(pen_pt2_pair(draft, "sub", "difference", a, b, &d));
    PEN_TRY(pen_pt2_pair(draft, "add", "moved", d, eps, &d));
    return pen_pt2_emit(draft, "reduce_l2", "distance", PEN_INPUTS(d, axes),
                        PEN_WITH(pen_attribute_int("keepdims", 0)), out_value);
}

// max(0, margin + how far the anchor is from the positive, less how far from the negative); with
// `swap`, less how far that is from the positive where it is less.
static pen_status convert_triplet_margin(pen_pt2_draft *draft) {
    pen_value_id anchor, positive, negative, margin, near, far, other;
    if (pen_pt2_float(draft, "p", 2) != 2) return pen_pt2_refuse(draft, "its p is not 2");
    PEN_TRY(pen_pt2_own_operands(draft, "anchor", "positive", &anchor, &positive));
    PEN_TRY(pen_pt2_own_operand(draft, "negative", &negative));
    PEN_TRY(pen_pt2_own_number(draft, pen_pt2_float(draft, "margin", 1), &margin));
    PEN_TRY(triplet_distance(draft, anchor, positive, &near));
    PEN_TRY(triplet_distance(draft, anchor, negative, &far));
    if (pen_pt2_bool(draft, "swap", false)) {
        PEN_TRY(triplet_distance(draft, positive, negative, &other));
        PEN_TRY(pen_pt2_pair(draft, "min", "nearer", far, other, &far));
    }
    PEN_TRY(pen_pt2_pair(draft, "add", "near", near, margin, &near));
    PEN_TRY(pen_pt2_pair(draft, "sub", "missing", near, far, &near));
    PEN_TRY(pen_pt2_map(draft, "relu", "held", near, &near));
    return loss_reduce(draft, near);
}

static const pen_pt2_mapping loss_rows[] = {
    PEN_PT2_ROW("cross_entropy_loss.default", cross_entropy),
    PEN_PT2_ROW("nll_loss.default", nll),
    PEN_PT2_ROW("nll_loss2d.default", nll),
    PEN_PT2_ROW("nll_loss_nd.default", nll),
    PEN_PT2_ROW("mse_loss.default", mse),
    PEN_PT2_ROW("l1_loss.default", l1),
    PEN_PT2_ROW("smooth_l1_loss.default", smooth_l1),
    PEN_PT2_ROW("huber_loss.default", huber),
    PEN_PT2_ROW("binary_cross_entropy.default", bce),
    PEN_PT2_ROW("binary_cross_entropy_with_logits.default", bce_with_logits),
    PEN_PT2_ROW("kl_div.default", kl_div),
    PEN_PT2_ROW("poisson_nll_loss.default", poisson),
    PEN_PT2_ROW("soft_margin_loss.default", soft_margin),
    PEN_PT2_ROW("margin_ranking_loss.default", margin_ranking),
    PEN_PT2_ROW("hinge_embedding_loss.default", hinge_embedding),
    PEN_PT2_ROW("triplet_margin_loss.default", triplet_margin),
};

PEN_PT2_FAMILY(pen_pt2_losses, loss_rows);
