// Losses, and the count of right answers.
//
// softmax_cross_entropy_loss and negative_log_likelihood_loss are ONNX's: scores are (N, C, …),
// labels (N, …), int32 or int64, weights (C). With reduction `mean` the sum of the losses is
// divided by the sum of the weights of their labels (1 without weights); targets whose label is
// ignore_index count in neither. A label that is neither a class nor ignore_index is an error when
// the kernel meets it. With label_smoothing s, a target takes the share s / C of every class c,
// weighed by its weight, and 1 - s of its label:
//
//   (1 - s) weight[label] (L - score[label]) + s / C Σ weight[c] (L - score[c])
//
// where L is the logarithm of the sum of the exponentials. The divisor of a mean stays the same.
// accuracy_count leaves out targets whose label is its ignore_index.
//
// mean_squared_error, l1, smooth_l1 (|x - t| - beta / 2, but (x - t)² / (2 beta) below beta),
// binary_cross_entropy (of probabilities; its logarithms are held above -100, its gradient's
// divisor p (1 - p) above 1e-12, so 0 and 1 stay finite), binary_cross_entropy_with_logits and
// kl_divergence (t (log t - x), 0 for a target of 0) compare (x, target) of equal shape and give
// the mean over all elements.

#include <string.h>

#include "graph/graph.h"
#include "graph/ops/elementwise/elementwise_rule.h"
#include "graph/ops/shared/shape_rule.h"

#define LOSS_LABELS (PEN_ELEMENT_BIT(PEN_INT32) | PEN_ELEMENT_BIT(PEN_INT64))

// The shape of labels that go with scores: the scores' without dimension 1.
static pen_shape loss_label_shape(const pen_shape *scores) {
    pen_shape shape = {.rank = scores->rank - 1, .dims = {scores->dims[0]}};
    for (uint32_t d = 2; d < scores->rank; d++) {
        shape.dims[d - 1] = scores->dims[d];
    }
    return shape;
}

// Checks labels at input `labels` against scores of shape `scores`.
static pen_status loss_check_labels(const pen_infer_context *context, const pen_shape *scores,
                                    uint32_t labels) {
    if (scores->rank < 2 || scores->dims[1] == 0) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_infer_error(
            context, PEN_INVALID_INPUT,
            "scores are %s, expected (examples, classes, …) with a class at least",
            pen_shape_format(scores, text));
    }
    const pen_shape expected = loss_label_shape(scores);
    PEN_TRY(pen_infer_check_element(context, labels, LOSS_LABELS));
    return pen_infer_check_shape(context, labels, &expected);
}

// Losses without smoothing have no such attribute.
static pen_status loss_check_smoothing(const pen_infer_context *context) {
    const pen_node *node = pen_infer_node(context);
    const double smoothing =
        pen_node_has(node, "label_smoothing") ? pen_node_float(node, "label_smoothing") : 0;
    if (smoothing >= 0 && smoothing <= 1) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT, "label_smoothing is %g; it may be 0 to 1",
                           smoothing);
}

// Checks labels at input `labels` and, behind them, weights of the classes.
static pen_status loss_check_classes(const pen_infer_context *context, const pen_shape *scores,
                                     uint32_t labels) {
    PEN_TRY(loss_check_labels(context, scores, labels));
    const char *reduction = pen_node_text(pen_infer_node(context), "reduction");
    if (strcmp(reduction, "none") != 0 && strcmp(reduction, "sum") != 0 &&
        strcmp(reduction, "mean") != 0) {
        return pen_infer_error(context, PEN_INVALID_INPUT,
                               "reduction is '%s'; it may be none, sum or mean", reduction);
    }
    PEN_TRY(loss_check_smoothing(context));
    if (!pen_infer_has_input(context, labels + 1)) return PEN_OK;
    const pen_shape classes = {.rank = 1, .dims = {scores->dims[1]}};
    PEN_TRY(pen_infer_check_same_element(context, labels + 1, 0));
    return pen_infer_check_shape(context, labels + 1, &classes);
}

// The type of the loss: a scalar, or one number a target.
static pen_tensor_type loss_type(const pen_infer_context *context, uint32_t labels) {
    const bool each = strcmp(pen_node_text(pen_infer_node(context), "reduction"), "none") == 0;
    const pen_shape scalar = {.rank = 0};
    return (pen_tensor_type){pen_infer_input(context, 0)->element,
                             each ? pen_infer_input(context, labels)->shape : scalar};
}

static pen_status classes_infer(pen_infer_context *context) {
    const pen_tensor_type *scores = pen_infer_input(context, 0);
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(loss_check_classes(context, &scores->shape, 1));
    const pen_tensor_type type = loss_type(context, 1);
    PEN_TRY(pen_infer_set(context, 0, &type));
    return pen_infer_set(context, 1, scores);
}

// Checks the gradient of the loss at input 0.
static pen_status loss_check_gradient(const pen_infer_context *context, uint32_t labels) {
    const pen_tensor_type type = loss_type(context, labels);
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_FLOAT));
    return pen_infer_check_shape(context, 0, &type.shape);
}

static pen_status softmax_cross_entropy_backward_infer(pen_infer_context *context) {
    const pen_tensor_type *scores = pen_infer_input(context, 1);
    PEN_TRY(pen_infer_check_same_element(context, 1, 0));
    PEN_TRY(loss_check_classes(context, &scores->shape, 2));
    PEN_TRY(loss_check_gradient(context, 2));
    return pen_infer_set(context, 0, scores);
}

static pen_status negative_log_likelihood_backward_infer(pen_infer_context *context) {
    pen_tensor_type scores;
    PEN_TRY(pen_infer_shape_attribute(context, "shape", &scores));
    PEN_TRY(loss_check_classes(context, &scores.shape, 1));
    PEN_TRY(loss_check_gradient(context, 1));
    return pen_infer_set(context, 0, &scores);
}

static pen_status loss_refuse(const pen_gradient_context *context, uint32_t input,
                              const char *what) {
    if (!pen_gradient_needed(context, input)) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "the %s of a loss cannot be trained", what);
}

// What flows through the loss itself; PEN_VALUE_NONE when nothing does.
static pen_status softmax_cross_entropy_of_loss(pen_gradient_context *context,
                                                pen_value_id *out_gradient) {
    const pen_value_id dy = pen_gradient_of_output(context, 0);
    *out_gradient = PEN_VALUE_NONE;
    if (!pen_value_is(dy)) return PEN_OK;
    const pen_value_id operands[4] = {dy, pen_gradient_input(context, 0),
                                      pen_gradient_input(context, 1),
                                      pen_gradient_input(context, 2)};
    const pen_gradient_emission emission = {
        .inputs = operands, .input_count = 4, .repeats_attributes = true};
    return pen_gradient_emit(context, &emission, out_gradient);
}

// The same for its other output, the logarithms of the probabilities.
static pen_status softmax_cross_entropy_of_log(pen_gradient_context *context,
                                               pen_value_id *out_gradient) {
    const pen_value_id operands[2] = {pen_gradient_of_output(context, 1),
                                      pen_gradient_output(context, 1)};
    *out_gradient = PEN_VALUE_NONE;
    if (!pen_value_is(operands[0])) return PEN_OK;
    const pen_attribute_given axis = pen_attribute_int("axis", 1);
    const pen_gradient_emission emission = {
        .op_name = "log_softmax_backward",
        .suffix = "log_softmax_backward",
        .inputs = operands,
        .input_count = 2,
        .attributes = &axis,
        .attribute_count = 1,
    };
    return pen_gradient_emit(context, &emission, out_gradient);
}

static pen_status softmax_cross_entropy_gradient(pen_gradient_context *context) {
    pen_value_id gradient, of_log;
    PEN_TRY(loss_refuse(context, 2, "weights"));
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    PEN_TRY(softmax_cross_entropy_of_loss(context, &gradient));
    PEN_TRY(softmax_cross_entropy_of_log(context, &of_log));
    if (!pen_value_is(gradient)) {
        gradient = of_log;
    } else if (pen_value_is(of_log)) {
        PEN_TRY(pen_gradient_apply(context, 0, "add", gradient, of_log, &gradient));
    }
    pen_gradient_set(context, 0, gradient);
    return PEN_OK;
}

static pen_status negative_log_likelihood_gradient(pen_gradient_context *context) {
    PEN_TRY(loss_refuse(context, 2, "weights"));
    if (!pen_gradient_needed(context, 0)) return PEN_OK;
    const pen_value_id operands[3] = {pen_gradient_of_output(context, 0),
                                      pen_gradient_input(context, 1),
                                      pen_gradient_input(context, 2)};
    pen_graph *graph = pen_gradient_graph(context);
    const pen_shape shape = pen_value_type(graph, pen_gradient_input(context, 0))->shape;
    const pen_attribute_given attribute = pen_attribute_ints("shape", shape.rank, shape.dims);
    const pen_gradient_emission emission = {
        .inputs = operands,
        .input_count = 3,
        .repeats_attributes = true,
        .attributes = &attribute,
        .attribute_count = 1,
    };
    return pen_gradient_emit_set(context, &emission);
}

// (x, target) of equal shape from input `first` up.
static pen_status loss_check_pair(const pen_infer_context *context, uint32_t first) {
    const pen_shape *shape = &pen_infer_input(context, first)->shape;
    PEN_TRY(pen_infer_same_elements(context, 0, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_shape(context, first + 1, shape));
    if (pen_shape_element_count(shape) > 0) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT, "the mean of no elements");
}

static pen_status pair_infer(pen_infer_context *context) {
    PEN_TRY(loss_check_pair(context, 0));
    const pen_tensor_type type = {.element = pen_infer_input(context, 0)->element};
    return pen_infer_set(context, 0, &type);
}

static pen_status pair_backward_infer(pen_infer_context *context) {
    const pen_shape scalar = {.rank = 0};
    PEN_TRY(loss_check_pair(context, 1));
    PEN_TRY(pen_infer_check_shape(context, 0, &scalar));
    return pen_infer_set(context, 0, pen_infer_input(context, 1));
}

// A backward op (dy, x, target) as the gradient of `for_input`, which is its x.
static pen_status pair_emit(pen_gradient_context *context, uint32_t for_input) {
    const pen_value_id operands[3] = {pen_gradient_of_output(context, 0),
                                      pen_gradient_input(context, for_input),
                                      pen_gradient_input(context, 1 - for_input)};
    const pen_gradient_emission emission = {
        .for_input = for_input, .inputs = operands, .input_count = 3, .repeats_attributes = true};
    return pen_gradient_emit_set(context, &emission);
}

// What depends on |x - t| alone is symmetric.
static pen_status distance_gradient(pen_gradient_context *context) {
    for (uint32_t i = 0; i < 2; i++) {
        if (!pen_gradient_needed(context, i)) continue;
        PEN_TRY(pair_emit(context, i));
    }
    return PEN_OK;
}

static pen_status pair_gradient(pen_gradient_context *context) {
    PEN_TRY(loss_refuse(context, 1, "target"));
    return pair_emit(context, 0);
}

static pen_status smooth_l1_check(const pen_infer_context *context) {
    const double beta = pen_node_float(pen_infer_node(context), "beta");
    if (beta >= 0) return PEN_OK;
    return pen_infer_error(context, PEN_INVALID_INPUT, "beta is %g; it may not be negative", beta);
}

static pen_status smooth_l1_infer(pen_infer_context *context) {
    PEN_TRY(smooth_l1_check(context));
    return pair_infer(context);
}

static pen_status smooth_l1_backward_infer(pen_infer_context *context) {
    PEN_TRY(smooth_l1_check(context));
    return pair_backward_infer(context);
}

static pen_status accuracy_infer(pen_infer_context *context) {
    PEN_TRY(pen_infer_check_element(context, 0, PEN_ELEMENTS_NUMBER));
    PEN_TRY(loss_check_labels(context, &pen_infer_input(context, 0)->shape, 1));
    const pen_tensor_type type = {.element = PEN_INT64};
    return pen_infer_set(context, 0, &type);
}

// A subtraction, an exponential and an addition a score.
static const pen_attribute_schema classes_attributes[] = {
    PEN_MAY("ignore_index", INT),
    PEN_TEXT_OR("reduction", "mean"),
};
static const pen_attribute_schema smoothed_attributes[] = {
    PEN_MAY("ignore_index", INT),
    PEN_TEXT_OR("reduction", "mean"),
    PEN_MAY("label_smoothing", FLOAT),
};
static const pen_attribute_schema shaped_attributes[] = {
    PEN_MAY("ignore_index", INT),
    PEN_TEXT_OR("reduction", "mean"),
    PEN_MUST("shape", INTS),
};
static const pen_attribute_schema smooth_l1_attributes[] = {PEN_FLOAT_OR("beta", 1)};
static const pen_attribute_schema accuracy_attributes[] = {
    PEN_MAY("ignore_index", INT),
    PEN_MAY("top", INT), // the label's score is among so many of the best; 1 where left out
};

// An op and, behind it, its backward op. Of probabilities, or not.
#define LOSS_PAIR(op, does, gradient_rule, of_probabilities)                                       \
    LOSS_OP(op, does, gradient_rule, of_probabilities), LOSS_BACKWARD(op, of_probabilities)
#define LOSS_OP(op, does, gradient_rule, of_probabilities)                                         \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(2, 2), PEN_GIVES(1, 1), .infer = pair_infer,       \
        .gradient = gradient_rule, .input_flops = 3, .wants_positive = of_probabilities            \
    }
#define LOSS_BACKWARD(op, of_probabilities)                                                        \
    {                                                                                              \
        .name = #op "_backward", .summary = "gradient of x in " #op " from (dy, x, target)",       \
        PEN_TAKES(3, 3), PEN_GIVES(1, 1), .in_place_inputs = 6, .infer = pair_backward_infer,      \
        .output_flops = 3, .wants_positive = of_probabilities                                      \
    }

static const pen_op loss_ops[] = {
    {"softmax_cross_entropy_loss", "negative logarithm of the softmax of the scores at the labels",
     PEN_TAKES(2, 3), PEN_GIVES(1, 2), PEN_ATTRIBUTES(smoothed_attributes), .infer = classes_infer,
     .gradient = softmax_cross_entropy_gradient, .input_flops = 3},
    {"softmax_cross_entropy_loss_backward",
     "gradient of the scores from (dy, scores, labels, weights)", PEN_TAKES(3, 4), PEN_GIVES(1, 1),
     PEN_ATTRIBUTES(smoothed_attributes), .in_place_inputs = 2,
     .infer = softmax_cross_entropy_backward_infer, .output_flops = 5},
    {"negative_log_likelihood_loss", "negative logarithms of probabilities at the labels",
     PEN_TAKES(2, 3), PEN_GIVES(1, 1), PEN_ATTRIBUTES(classes_attributes), .infer = classes_infer,
     .gradient = negative_log_likelihood_gradient},
    {"negative_log_likelihood_loss_backward",
     "gradient of the logarithms, of `shape`, from (dy, labels, weights)", PEN_TAKES(2, 3),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(shaped_attributes),
     .infer = negative_log_likelihood_backward_infer},
    LOSS_PAIR(mean_squared_error, "mean of (x - target)^2", distance_gradient, false),
    LOSS_PAIR(binary_cross_entropy,
              "mean of -(target log(x) + (1 - target) log(1 - x)), x in [0, 1]", pair_gradient,
              true),
    LOSS_PAIR(binary_cross_entropy_with_logits, "binary_cross_entropy of sigmoid(x)", pair_gradient,
              false),
    LOSS_PAIR(l1, "mean of |x - target|", distance_gradient, false),
    {"smooth_l1", "mean of |x - target|, but for a square below beta", PEN_TAKES(2, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(smooth_l1_attributes), .infer = smooth_l1_infer,
     .gradient = distance_gradient, .input_flops = 4},
    {"smooth_l1_backward", "gradient of x in smooth_l1 from (dy, x, target)", PEN_TAKES(3, 3),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(smooth_l1_attributes), .in_place_inputs = 6,
     .infer = smooth_l1_backward_infer, .output_flops = 3},
    LOSS_PAIR(kl_divergence, "mean of target (log(target) - x), x logarithms", pair_gradient, true),
    {"accuracy_count", "how many targets have the largest score at their label", PEN_TAKES(2, 2),
     PEN_GIVES(1, 1), PEN_ATTRIBUTES(accuracy_attributes), .infer = accuracy_infer},
};

PEN_OP_FAMILY(loss);
