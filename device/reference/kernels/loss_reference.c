#include <math.h>
#include <string.h>

#include "device/reference/reference_compare.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"

// Scores (N, C, …) and labels (N, …), seen as N times D targets, D being the product of what
// follows the classes. Score c of target t is at first(t) + c · stride.
typedef struct loss_targets {
    const pen_reference_call *call;
    const pen_tensor *labels;
    const pen_tensor *weights; // NULL: all 1
    int64_t class_count;
    int64_t stride; // D
    int64_t count;  // of targets
    bool has_ignored;
    int64_t ignored;  // label
    double smoothing; // of labels
} loss_targets;

// What is known of one target.
typedef struct loss_target {
    int64_t first; // position of its first score
    int64_t label;
    double weight; // 0 when ignored
    bool is_ignored;
} loss_target;

// `labels` is the operand that has them; weights, if they may be there, come behind it.
static loss_targets loss_targets_make(const pen_reference_call *call, const pen_shape *scores,
                                      uint32_t labels) {
    const bool has_weights =
        call->node->input_count > labels + 1 && call->inputs[labels + 1].data != NULL;
    const bool has_ignored = pen_node_has(call->node, "ignore_index");
    return (loss_targets){
        .call = call,
        .labels = &call->inputs[labels],
        .weights = has_weights ? &call->inputs[labels + 1] : NULL,
        .class_count = scores->dims[1],
        .stride = pen_shape_count(scores, 2, scores->rank),
        .count = pen_tensor_count(&call->inputs[labels]),
        .has_ignored = has_ignored,
        .ignored = has_ignored ? pen_node_int(call->node, "ignore_index") : 0,
        .smoothing = pen_node_has(call->node, "label_smoothing")
                         ? pen_node_float(call->node, "label_smoothing")
                         : 0,
    };
}

// A target that is ignored may hold any number; any other that is no class is an error of the data.
static pen_status loss_target_at(const loss_targets *targets, int64_t index,
                                 loss_target *out_target) {
    const int64_t label = pen_tensor_get_int(targets->labels, index);
    const int64_t row = index / targets->stride, column = index % targets->stride;
    *out_target = (loss_target){
        .first = row * targets->class_count * targets->stride + column,
        .label = label,
        .is_ignored = targets->has_ignored && label == targets->ignored,
    };
    if (out_target->is_ignored) return PEN_OK;
    if (label < 0 || label >= targets->class_count) {
        const pen_node *node = targets->call->node;
        return pen_error(PEN_INVALID_INPUT,
                         "%s '%s': label %lld of target %lld is not one of %lld classes, 0 to %lld",
                         node->op->name, node->name, (long long)label, (long long)index,
                         (long long)targets->class_count, (long long)targets->class_count - 1);
    }
    out_target->weight = targets->weights == NULL ? 1 : pen_tensor_get(targets->weights, label);
    return PEN_OK;
}

// log(sum of exp(scores)) of one target.
static double loss_log_sum(const loss_targets *targets, const pen_tensor *scores,
                           const loss_target *target) {
    int64_t best = target->first;
    for (int64_t c = 1; c < targets->class_count; c++) {
        const int64_t at = target->first + c * targets->stride;
        if (reference_wins(true, scores, at, scores, best)) best = at;
    }
    const double largest = pen_tensor_get(scores, best);
    double sum = 0;
    for (int64_t c = 0; c < targets->class_count; c++) {
        sum += exp(pen_tensor_get(scores, target->first + c * targets->stride) - largest);
    }
    // cppcheck-suppress invalidFunctionArg ; there is a class at least
    return largest + log(sum);
}

static double loss_class_weight(const loss_targets *targets, int64_t c) {
    return targets->weights == NULL ? 1 : pen_tensor_get(targets->weights, c);
}

// The loss of a target that counts: what its label has, and what smoothing gives every class.
static double loss_of_target(const loss_targets *targets, const pen_tensor *scores,
                             const loss_target *target, double log_sum) {
    const int64_t at = target->first + target->label * targets->stride;
    const double own = target->weight * (log_sum - pen_tensor_get(scores, at));
    if (targets->smoothing == 0) return own;
    double all = 0;
    for (int64_t c = 0; c < targets->class_count; c++) {
        const double score = pen_tensor_get(scores, target->first + c * targets->stride);
        all += loss_class_weight(targets, c) * (log_sum - score);
    }
    return (1 - targets->smoothing) * own + targets->smoothing / (double)targets->class_count * all;
}

static bool loss_reduction_is(const pen_reference_call *call, const char *reduction) {
    return strcmp(pen_node_text(call->node, "reduction"), reduction) == 0;
}

// Both losses over classes: the rule says whether they take scores, or logarithms of probabilities
// as they are.
static pen_status loss_run_classes(const pen_reference_call *call) {
    const bool takes_scores = *(const bool *)call->rule;
    const pen_tensor *scores = &call->inputs[0], *loss = &call->outputs[0];
    const pen_tensor *logs = pen_reference_output(call, 1);
    const loss_targets targets = loss_targets_make(call, &scores->type.shape, 1);
    const bool each = loss_reduction_is(call, "none");
    double sum = 0, weight = 0;
    for (int64_t t = 0; t < targets.count; t++) {
        loss_target target;
        PEN_TRY(loss_target_at(&targets, t, &target));
        const double log_sum = takes_scores ? loss_log_sum(&targets, scores, &target) : 0;
        for (int64_t c = 0; logs != NULL && c < targets.class_count; c++) {
            const int64_t at = target.first + c * targets.stride;
            pen_tensor_set(logs, at, pen_tensor_get(scores, at) - log_sum);
        }
        const double of_target =
            target.is_ignored ? 0 : loss_of_target(&targets, scores, &target, log_sum);
        if (each) pen_tensor_set(loss, t, of_target);
        sum += of_target;
        weight += target.weight;
    }
    if (!each) pen_tensor_set(loss, 0, loss_reduction_is(call, "mean") ? sum / weight : sum);
    return PEN_OK;
}

// The sum of the weights of all targets.
static pen_status loss_total_weight(const loss_targets *targets, double *out_weight) {
    *out_weight = 0;
    for (int64_t t = 0; t < targets->count; t++) {
        loss_target target;
        PEN_TRY(loss_target_at(targets, t, &target));
        *out_weight += target.weight;
    }
    return PEN_OK;
}

// Writes factor · the derivative for one target; `scores` NULL: all probabilities are 0.
static void loss_write_gradient(const loss_targets *targets, const pen_tensor *scores,
                                const loss_target *target, double factor) {
    const double log_sum = scores == NULL ? 0 : loss_log_sum(targets, scores, target);
    const double share = targets->smoothing / (double)targets->class_count;
    const double own = (1 - targets->smoothing) * target->weight;
    double of_sum = own; // derivative of the loss by log_sum
    for (int64_t c = 0; share > 0 && c < targets->class_count; c++) {
        of_sum += share * loss_class_weight(targets, c);
    }
    for (int64_t c = 0; c < targets->class_count; c++) {
        const int64_t at = target->first + c * targets->stride;
        const double probability = scores == NULL ? 0 : exp(pen_tensor_get(scores, at) - log_sum);
        double slope = of_sum * probability - (c == target->label ? own : 0);
        if (share > 0) slope -= share * loss_class_weight(targets, c);
        pen_tensor_set(&targets->call->outputs[0], at, target->is_ignored ? 0 : factor * slope);
    }
}

static pen_status loss_run_classes_backward(const pen_reference_call *call) {
    const bool takes_scores = *(const bool *)call->rule;
    const pen_tensor *scores = takes_scores ? &call->inputs[1] : NULL;
    const pen_tensor *dy = &call->inputs[0];
    const loss_targets targets =
        loss_targets_make(call, &call->outputs[0].type.shape, takes_scores ? 2 : 1);
    const bool each = loss_reduction_is(call, "none");
    double divisor = 1;
    if (loss_reduction_is(call, "mean")) PEN_TRY(loss_total_weight(&targets, &divisor));
    for (int64_t t = 0; t < targets.count; t++) {
        loss_target target;
        PEN_TRY(loss_target_at(&targets, t, &target));
        const double factor = pen_tensor_get(dy, each ? t : 0) / divisor;
        loss_write_gradient(&targets, scores, &target, factor);
    }
    return PEN_OK;
}

// The loss of one number, or its derivative. `p` is the attribute, 0 without one.
typedef struct loss_pair {
    double (*of)(double x, double target, double p);
    const char *attribute; // NULL: none
} loss_pair;

static double loss_pair_parameter(const pen_reference_call *call) {
    const loss_pair *loss = call->rule;
    return loss->attribute == NULL ? 0 : pen_node_float(call->node, loss->attribute);
}

// The mean over all pairs.
static pen_status loss_pair_run(const pen_reference_call *call) {
    const loss_pair *loss = call->rule;
    const pen_tensor *x = &call->inputs[0], *target = &call->inputs[1];
    const int64_t count = pen_tensor_count(x);
    const double p = loss_pair_parameter(call);
    double sum = 0;
    for (int64_t k = 0; k < count; k++) {
        sum += loss->of(pen_tensor_get(x, k), pen_tensor_get(target, k), p);
    }
    pen_tensor_set(&call->outputs[0], 0, sum / (double)count);
    return PEN_OK;
}

static pen_status loss_pair_backward(const pen_reference_call *call) {
    const loss_pair *slope = call->rule;
    const pen_tensor *x = &call->inputs[1], *target = &call->inputs[2];
    const int64_t count = pen_tensor_count(x);
    const double dy = pen_tensor_get(&call->inputs[0], 0) / (double)count;
    const double p = loss_pair_parameter(call);
    for (int64_t k = 0; k < count; k++) {
        pen_tensor_set(&call->outputs[0], k,
                       dy * slope->of(pen_tensor_get(x, k), pen_tensor_get(target, k), p));
    }
    return PEN_OK;
}

static double square_loss(double x, double target, double p) {
    (void)p;
    return (x - target) * (x - target);
}
static double square_slope(double x, double target, double p) {
    (void)p;
    return 2 * (x - target);
}
// A logarithm held above -100.
static double held_log(double log_x) {
    return log_x < -100 ? -100 : log_x;
}
static double binary_loss(double x, double target, double p) {
    (void)p;
    return -(target * held_log(log(x)) + (1 - target) * held_log(log1p(-x)));
}
static double binary_slope(double x, double target, double p) {
    (void)p;
    const double divisor = x * (1 - x);
    return (x - target) / (divisor < 1e-12 ? 1e-12 : divisor);
}
static double logits_loss(double x, double target, double p) {
    (void)p;
    return (x > 0 ? x : 0) - x * target + log1p(exp(-fabs(x)));
}
static double logits_slope(double x, double target, double p) {
    (void)p;
    return 1 / (1 + exp(-x)) - target;
}
static double l1_loss(double x, double target, double p) {
    (void)p;
    return fabs(x - target);
}
static double l1_slope(double x, double target, double p) {
    (void)p;
    return (double)((x > target) - (x < target));
}
static double smooth_l1_loss(double x, double target, double p) {
    const double d = fabs(x - target);
    return d < p ? d * d / (2 * p) : d - p / 2;
}
static double smooth_l1_slope(double x, double target, double p) {
    return fabs(x - target) < p ? (x - target) / p : l1_slope(x, target, p);
}
static double divergence_loss(double x, double target, double p) {
    (void)p;
    return (target == 0 ? 0 : target * log(target)) - target * x;
}
static double divergence_slope(double x, double target, double p) {
    (void)x;
    (void)p;
    return -target;
}

// How many classes are before a target's label: those with larger scores, and of equal scores those
// that come first.
static int64_t loss_count_before(const loss_targets *targets, const pen_tensor *scores,
                                 const loss_target *target) {
    const int64_t own = target->first + target->label * targets->stride;
    int64_t count = 0;
    for (int64_t c = 0; c < targets->class_count; c++) {
        const int64_t at = target->first + c * targets->stride;
        if (c == target->label) continue;
        count += c < target->label ? !reference_wins(true, scores, own, scores, at)
                                   : reference_wins(true, scores, at, scores, own);
    }
    return count;
}

// Of equal scores the first class is chosen.
static pen_status loss_accuracy_count(const pen_reference_call *call) {
    const pen_tensor *scores = &call->inputs[0];
    const int64_t top = pen_node_has(call->node, "top") ? pen_node_int(call->node, "top") : 1;
    const loss_targets targets = loss_targets_make(call, &scores->type.shape, 1);
    int64_t right = 0;
    for (int64_t t = 0; t < targets.count; t++) {
        loss_target target;
        PEN_TRY(loss_target_at(&targets, t, &target));
        if (target.is_ignored) continue;
        right += loss_count_before(&targets, scores, &target) < top;
    }
    pen_tensor_set_int(&call->outputs[0], 0, right);
    return PEN_OK;
}

#define LOSS_PAIR(...) loss_pair_run, PEN_REFERENCE_RULE(loss_pair, __VA_ARGS__)
#define LOSS_PAIR_BACKWARD(...) loss_pair_backward, PEN_REFERENCE_RULE(loss_pair, __VA_ARGS__)
#define LOSS_CLASSES(run, takes_scores) run, PEN_REFERENCE_RULE(bool, takes_scores)

static const pen_reference_kernel loss_kernels[] = {
    {"softmax_cross_entropy_loss", LOSS_CLASSES(loss_run_classes, true)},
    {"softmax_cross_entropy_loss_backward", LOSS_CLASSES(loss_run_classes_backward, true)},
    {"negative_log_likelihood_loss", LOSS_CLASSES(loss_run_classes, false)},
    {"negative_log_likelihood_loss_backward", LOSS_CLASSES(loss_run_classes_backward, false)},
    {"mean_squared_error", LOSS_PAIR(square_loss, NULL)},
    {"mean_squared_error_backward", LOSS_PAIR_BACKWARD(square_slope, NULL)},
    {"binary_cross_entropy", LOSS_PAIR(binary_loss, NULL)},
    {"binary_cross_entropy_backward", LOSS_PAIR_BACKWARD(binary_slope, NULL)},
    {"binary_cross_entropy_with_logits", LOSS_PAIR(logits_loss, NULL)},
    {"binary_cross_entropy_with_logits_backward", LOSS_PAIR_BACKWARD(logits_slope, NULL)},
    {"l1", LOSS_PAIR(l1_loss, NULL)},
    {"l1_backward", LOSS_PAIR_BACKWARD(l1_slope, NULL)},
    {"smooth_l1", LOSS_PAIR(smooth_l1_loss, "beta")},
    {"smooth_l1_backward", LOSS_PAIR_BACKWARD(smooth_l1_slope, "beta")},
    {"kl_divergence", LOSS_PAIR(divergence_loss, NULL)},
    {"kl_divergence_backward", LOSS_PAIR_BACKWARD(divergence_slope, NULL)},
    {"accuracy_count", loss_accuracy_count, NULL},
};

PEN_REFERENCE_FAMILY(loss);
