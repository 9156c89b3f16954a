// Losses over classes, losses of pairs, and the count of right answers. Sums go in order of the
// targets, or of blocks of fixed size, whatever the team.
#include <math.h>
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/loops/class_line.h"
#include "device/cpu/kernels/loops/map_entry.h"
#include "graph/op.h"

#define LOSS_TEAM_ELEMENTS 8192
#define LOSS_BLOCK 4096

// Target t has its scores at t / stride * class_count * stride + t % stride, `stride` apart.
typedef struct loss_state {
    const pen_node *node;
    int64_t count; // of targets
    int64_t class_count;
    int64_t stride;
    uint32_t labels; // which operand; weights come behind
    bool has_weights;
    bool labels_are_wide; // int64, else int32
    bool has_ignored;
    int64_t ignored;
    bool is_none; // reduction
    bool is_mean;
    bool takes_scores;
    bool counts_wide; // accuracy_count gives int64, else float32
} loss_state;

static uint32_t loss_labels_of(const char *op_name) {
    return strcmp(op_name, "softmax_cross_entropy_loss_backward") == 0 ? 2 : 1;
}

static bool loss_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const uint32_t labels = loss_labels_of(node->op->name);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i != labels && !pen_cpu_is_plain_float(request, node->inputs[i])) return false;
    }
    if (strcmp(node->op->name, "accuracy_count") == 0) {
        const pen_element_type element = pen_value_type(request->graph, node->outputs[0])->element;
        return element == PEN_INT64 || element == PEN_FLOAT32;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_cpu_is_plain_float(request, node->outputs[i])) return false;
    }
    return true;
}

static pen_status loss_make(const pen_cpu_request *request, const pen_shape *scores,
                            loss_state **out_state) {
    const pen_node *node = request->node;
    loss_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->node = node;
    state->class_count = scores->dims[1];
    state->stride = pen_shape_count(scores, 2, scores->rank);
    state->count = scores->dims[0] * state->stride;
    state->labels = loss_labels_of(node->op->name);
    state->labels_are_wide =
        pen_value_type(request->graph, node->inputs[state->labels])->element == PEN_INT64;
    state->has_weights =
        node->input_count > state->labels + 1 && pen_value_is(node->inputs[state->labels + 1]);
    state->takes_scores = strncmp(node->op->name, "softmax", 7) == 0;
    *out_state = state;
    return PEN_OK;
}

static void loss_read_attributes(loss_state *state) {
    const char *reduction = pen_node_text(state->node, "reduction");
    state->is_none = strcmp(reduction, "none") == 0;
    state->is_mean = strcmp(reduction, "mean") == 0;
    state->has_ignored = pen_node_has(state->node, "ignore_index");
    if (state->has_ignored) state->ignored = pen_node_int(state->node, "ignore_index");
}

// Workspace: losses and weights, [count] each.
static pen_status loss_prepare(const pen_cpu_request *request, void **out_state,
                               uint64_t *out_workspace_bytes) {
    loss_state *state;
    PEN_TRY(loss_make(request, &pen_value_type(request->graph, request->node->inputs[0])->shape,
                      &state));
    loss_read_attributes(state);
    *out_state = state;
    *out_workspace_bytes = 2 * (uint64_t)state->count * sizeof(float);
    return PEN_OK;
}

static pen_status loss_backward_prepare(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes) {
    loss_state *state;
    PEN_TRY(loss_make(request, &pen_value_type(request->graph, request->node->outputs[0])->shape,
                      &state));
    loss_read_attributes(state);
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static inline int64_t loss_label(const loss_state *state, const pen_cpu_call *call, int64_t t) {
    const void *labels = call->inputs[state->labels];
    return state->labels_are_wide ? ((const int64_t *)labels)[t] : ((const int32_t *)labels)[t];
}

static inline bool loss_is_ignored(const loss_state *state, int64_t label) {
    return state->has_ignored && label == state->ignored;
}

static inline float loss_weight(const loss_state *state, const pen_cpu_call *call, int64_t label) {
    if (loss_is_ignored(state, label)) return 0;
    return state->has_weights ? ((const float *)call->inputs[state->labels + 1])[label] : 1;
}

static inline int64_t loss_first(const loss_state *state, int64_t t) {
    return t / state->stride * state->class_count * state->stride + t % state->stride;
}

// Labels come from data: all are checked before any is used.
static pen_status loss_check_labels(const loss_state *state, const pen_cpu_call *call) {
    for (int64_t t = 0; t < state->count; t++) {
        const int64_t label = loss_label(state, call, t);
        if ((label >= 0 && label < state->class_count) || loss_is_ignored(state, label)) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "%s '%s': label %lld of target %lld is not one of %lld classes, 0 to %lld",
                         state->node->op->name, state->node->name, (long long)label, (long long)t,
                         (long long)state->class_count, (long long)state->class_count - 1);
    }
    return PEN_OK;
}

// log(sum of exp(scores)) of a target.
static float loss_log_sum(const loss_state *state, const float *scores) {
    const float largest = class_line_largest(scores, state->class_count, state->stride);
    const double sum = class_line_sum(scores, state->class_count, state->stride, largest);
    return (float)((double)largest + log(sum));
}

static float loss_of_target(const loss_state *state, const pen_cpu_call *call, float *logs,
                            int64_t t) {
    const float *scores = (const float *)call->inputs[0] + loss_first(state, t);
    const float log_sum = state->takes_scores ? loss_log_sum(state, scores) : 0;
    const int64_t label = loss_label(state, call, t);
    for (int64_t c = 0; logs != NULL && c < state->class_count; c++) {
        logs[loss_first(state, t) + c * state->stride] = scores[c * state->stride] - log_sum;
    }
    if (loss_is_ignored(state, label)) return 0;
    return -loss_weight(state, call, label) * (scores[label * state->stride] - log_sum);
}

static pen_status loss_run(const pen_cpu_call *call) {
    const loss_state *state = call->state;
    PEN_TRY(loss_check_labels(state, call));
    float *losses = state->is_none ? call->outputs[0] : call->workspace;
    float *logs = state->node->output_count > 1 ? call->outputs[1] : NULL;
#pragma omp parallel for schedule(static) if (state->count * state->class_count >                  \
                                              LOSS_TEAM_ELEMENTS)
    for (int64_t t = 0; t < state->count; t++) {
        losses[t] = loss_of_target(state, call, logs, t);
    }
    if (state->is_none) return PEN_OK;
    double sum = 0, weight = 0;
    for (int64_t t = 0; t < state->count; t++) {
        sum += (double)losses[t];
        weight += (double)loss_weight(state, call, loss_label(state, call, t));
    }
    *(float *)call->outputs[0] = (float)(state->is_mean ? sum / weight : sum);
    return PEN_OK;
}

// dx = factor * softmax of scores that lie behind each other; dx may be the scores.
static void loss_write_softmax(const loss_state *state, const float *scores, float factor,
                               float *dx) {
    const float largest = class_line_largest(scores, state->class_count, 1);
    double total = 0;
    for (int64_t first = 0; first < state->class_count; first += CLASS_LINE_PIECE) {
        const int64_t rest = state->class_count - first;
        const int64_t size = rest < CLASS_LINE_PIECE ? rest : CLASS_LINE_PIECE;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = first; i < first + size; i++) {
            const float e = vector_exp(scores[i] - largest);
            dx[i] = e;
            sum += e;
        }
        total += (double)sum;
    }
    const float share = (float)((double)factor / total);
#pragma omp simd
    for (int64_t i = 0; i < state->class_count; i++) {
        dx[i] *= share;
    }
}

// dx = factor * (probability - 1 at the label); without scores, probabilities are 0.
static void loss_write_gradient(const loss_state *state, const float *scores, int64_t label,
                                float factor, float *dx) {
    const int64_t stride = state->stride, end = state->class_count * stride;
    if (factor == 0) {
        for (int64_t i = 0; i < end; i += stride) {
            dx[i] = 0;
        }
        return;
    }
    if (scores == NULL) {
        for (int64_t i = 0; i < end; i += stride) {
            dx[i] = 0;
        }
    } else if (stride == 1) {
        loss_write_softmax(state, scores, factor, dx);
    } else {
        const float log_sum = loss_log_sum(state, scores);
        for (int64_t i = 0; i < end; i += stride) {
            dx[i] = factor * vector_exp(scores[i] - log_sum);
        }
    }
    dx[label * stride] -= factor;
}

// The divisor is the sum of the weights of the targets that count, as in the forward pass.
static pen_status loss_backward_run(const pen_cpu_call *call) {
    const loss_state *state = call->state;
    PEN_TRY(loss_check_labels(state, call));
    const float *dy = call->inputs[0];
    const float *scores = state->takes_scores ? call->inputs[1] : NULL;
    float *dx = call->outputs[0];
    double divisor = state->is_mean ? 0 : 1;
    for (int64_t t = 0; state->is_mean && t < state->count; t++) {
        divisor += (double)loss_weight(state, call, loss_label(state, call, t));
    }
#pragma omp parallel for schedule(static) if (state->count * state->class_count >                  \
                                              LOSS_TEAM_ELEMENTS)
    for (int64_t t = 0; t < state->count; t++) {
        const int64_t label = loss_label(state, call, t), first = loss_first(state, t);
        const float weight = loss_weight(state, call, label);
        const bool is_ignored = loss_is_ignored(state, label);
        const float factor = (float)((double)weight * (double)dy[state->is_none ? t : 0] / divisor);
        loss_write_gradient(state, scores == NULL ? NULL : scores + first, is_ignored ? 0 : label,
                            is_ignored ? 0 : factor, dx + first);
    }
    return PEN_OK;
}

static pen_status loss_accuracy_prepare(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes) {
    loss_state *state;
    PEN_TRY(loss_make(request, &pen_value_type(request->graph, request->node->inputs[0])->shape,
                      &state));
    state->counts_wide =
        pen_value_type(request->graph, request->node->outputs[0])->element == PEN_INT64;
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

// Whether a score of classes [first, last) is above `bound`, or, with `or_equal`, equal to it, or
// not a number.
static bool loss_is_beaten(const loss_state *state, const float *scores, int64_t first,
                           int64_t last, float bound, bool or_equal) {
    const int64_t stride = state->stride;
    for (int64_t piece = first; piece < last; piece += LOSS_BLOCK) {
        const int64_t end = piece + LOSS_BLOCK < last ? piece + LOSS_BLOCK : last;
        int beaten = 0;
        if (stride == 1 && or_equal) {
#pragma omp simd reduction(| : beaten)
            for (int64_t c = piece; c < end; c++) {
                beaten |= !(scores[c] < bound);
            }
        } else if (stride == 1) {
#pragma omp simd reduction(| : beaten)
            for (int64_t c = piece; c < end; c++) {
                beaten |= !(scores[c] <= bound);
            }
        } else {
            for (int64_t c = piece; c < end; c++) {
                const float score = scores[c * stride];
                beaten |= or_equal ? !(score < bound) : !(score <= bound);
            }
        }
        if (beaten != 0) return true;
    }
    return false;
}

// Whether `label` is the first class of the largest score, where what is not a number wins.
static bool loss_is_best(const loss_state *state, const float *scores, int64_t label) {
    const float own = scores[label * state->stride];
    if (own != own) {
        for (int64_t c = 0; c < label; c++) {
            const float score = scores[c * state->stride];
            if (score != score) return false;
        }
        return true;
    }
    return !loss_is_beaten(state, scores, 0, label, own, true) &&
           !loss_is_beaten(state, scores, label + 1, state->class_count, own, false);
}

static pen_status loss_accuracy_run(const pen_cpu_call *call) {
    const loss_state *state = call->state;
    PEN_TRY(loss_check_labels(state, call));
    int64_t right = 0;
#pragma omp parallel for schedule(static) reduction(+ : right)                                     \
    if (state->count * state->class_count > LOSS_TEAM_ELEMENTS)
    for (int64_t t = 0; t < state->count; t++) {
        const float *scores = (const float *)call->inputs[0] + loss_first(state, t);
        right += loss_is_best(state, scores, loss_label(state, call, t));
    }
    if (state->counts_wide) {
        *(int64_t *)call->outputs[0] = right;
    } else {
        *(float *)call->outputs[0] = (float)right;
    }
    return PEN_OK;
}

// ---- losses of pairs: the mean of f(x, target)

static inline float loss_held_log(float log_x) {
    return log_x < -100.0f ? -100.0f : log_x;
}

static float loss_square(float a, float b) {
    return (a - b) * (a - b);
}
static float loss_binary(float a, float b) {
    return -(b * loss_held_log(vector_log(a)) + (1.0f - b) * loss_held_log(log1pf(-a)));
}
static float loss_logits(float a, float b) {
    return (a > 0.0f ? a : 0.0f) - a * b + vector_log1p(vector_exp(-fabsf(a)));
}

// The loss of one number.
typedef struct loss_pair {
    float (*of)(float x, float target);
} loss_pair;

typedef struct loss_pair_state {
    const loss_pair *loss;
    int64_t count;
    int64_t block_count;
} loss_pair_state;

static pen_status loss_pair_prepare(const pen_cpu_request *request, void **out_state,
                                    uint64_t *out_workspace_bytes) {
    loss_pair_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->loss = request->rule;
    state->count =
        pen_shape_element_count(&pen_value_type(request->graph, request->node->inputs[0])->shape);
    state->block_count = (state->count + LOSS_BLOCK - 1) / LOSS_BLOCK;
    *out_state = state;
    *out_workspace_bytes = (uint64_t)state->block_count * sizeof(double);
    return PEN_OK;
}

// Blocks of fixed size are summed by the team and then added in order.
static pen_status loss_pair_run(const pen_cpu_call *call) {
    const loss_pair_state *state = call->state;
    const float *x = call->inputs[0], *target = call->inputs[1];
    double *sums = call->workspace;
#pragma omp parallel for schedule(static) if (state->block_count > 2)
    for (int64_t block = 0; block < state->block_count; block++) {
        const int64_t first = block * LOSS_BLOCK;
        const int64_t last = first + LOSS_BLOCK < state->count ? first + LOSS_BLOCK : state->count;
        double sum = 0;
        for (int64_t k = first; k < last; k++) {
            sum += (double)state->loss->of(x[k], target[k]);
        }
        sums[block] = sum;
    }
    double total = 0;
    for (int64_t block = 0; block < state->block_count; block++) {
        total += sums[block];
    }
    *(float *)call->outputs[0] = (float)(total / (double)state->count);
    return PEN_OK;
}

// Gradients: a is dy, b is x, c the target, p[0] one over the count of elements.
#define LOSS_PAIR_BACKWARDS(ROW)                                                                   \
    ROW(mean_squared_error_backward, (a * p[0] * 2.0f * (b - c)), .is_mean = true)                 \
    ROW(binary_cross_entropy_backward,                                                             \
        (a * p[0] * (b - c) / (b * (1.0f - b) < 1e-12f ? 1e-12f : b * (1.0f - b))),                \
        .is_mean = true)                                                                           \
    ROW(binary_cross_entropy_with_logits_backward, (a * p[0] * (vector_sigmoid(b) - c)),           \
        .is_mean = true)

LOSS_PAIR_BACKWARDS(MAP_DEFINE_3)

#define LOSS_PAIR_ENTRY(op, loss)                                                                  \
    PEN_CPU_ENTRY(op, "cpu", NULL, loss_pair_prepare, loss_pair_run),                              \
        .rule = PEN_CPU_RULE(loss_pair, loss)

static const pen_cpu_kernel loss_kernels[] = {
    // clang-format off
    LOSS_PAIR_BACKWARDS(MAP_KERNEL_3)
    // clang-format on
    {PEN_CPU_ENTRY("softmax_cross_entropy_loss", "cpu", loss_supports, loss_prepare, loss_run)},
    {PEN_CPU_ENTRY("negative_log_likelihood_loss", "cpu", loss_supports, loss_prepare, loss_run)},
    {PEN_CPU_ENTRY("softmax_cross_entropy_loss_backward", "cpu", loss_supports,
                   loss_backward_prepare, loss_backward_run)},
    {PEN_CPU_ENTRY("negative_log_likelihood_loss_backward", "cpu", loss_supports,
                   loss_backward_prepare, loss_backward_run)},
    {PEN_CPU_ENTRY("accuracy_count", "cpu", loss_supports, loss_accuracy_prepare,
                   loss_accuracy_run)},
    {LOSS_PAIR_ENTRY("mean_squared_error", loss_square)},
    {LOSS_PAIR_ENTRY("binary_cross_entropy", loss_binary)},
    {LOSS_PAIR_ENTRY("binary_cross_entropy_with_logits", loss_logits)},
};

PEN_CPU_FAMILY_OF(loss);
