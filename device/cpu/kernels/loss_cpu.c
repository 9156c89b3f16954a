// Losses over classes, and the count of right answers. Sums go in order of the targets, whatever
// the team.
#include <math.h>
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/loops/class_line.h"
#include "device/cpu/kernels/loops/map_entry.h"
#include "graph/op.h"

#define LOSS_TEAM_ELEMENTS 8192
#define LOSS_PIECE 4096 // classes that are compared before the answer is looked at
#define LOSS_COLUMNS 64 // targets beside each other that are computed at a time

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
    float smoothing; // of labels
    bool is_none;    // reduction
    bool is_mean;
    bool takes_scores;
    bool counts_wide; // accuracy_count gives int64, else float32
    int64_t top;      // among so many of the best
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

// What all of them share: where scores and labels are, and which labels are ignored.
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
    state->has_ignored = pen_node_has(node, "ignore_index");
    if (state->has_ignored) state->ignored = pen_node_int(node, "ignore_index");
    *out_state = state;
    return PEN_OK;
}

static void loss_read_attributes(loss_state *state) {
    const char *reduction = pen_node_text(state->node, "reduction");
    state->is_none = strcmp(reduction, "none") == 0;
    state->is_mean = strcmp(reduction, "mean") == 0;
    if (!pen_node_has(state->node, "label_smoothing")) return;
    state->smoothing = (float)pen_node_float(state->node, "label_smoothing");
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

// Targets [first, first + width) of a row, whose scores of a class lie beside each other: one
// where the classes are the last dimension.
typedef struct loss_block {
    int64_t first;
    int64_t width;
    int64_t score; // position of the first score
} loss_block;

static inline int64_t loss_blocks_of_row(const loss_state *state) {
    return (state->stride + LOSS_COLUMNS - 1) / LOSS_COLUMNS;
}

static inline int64_t loss_block_count(const loss_state *state) {
    return state->count / state->stride * loss_blocks_of_row(state);
}

static inline loss_block loss_block_at(const loss_state *state, int64_t index) {
    const int64_t row = index / loss_blocks_of_row(state);
    const int64_t column = index % loss_blocks_of_row(state) * LOSS_COLUMNS;
    const int64_t rest = state->stride - column;
    return (loss_block){.first = row * state->stride + column,
                        .width = rest < LOSS_COLUMNS ? rest : LOSS_COLUMNS,
                        .score = row * state->class_count * state->stride + column};
}

// sums[j] = the sum of exp(score - largest) of targets beside each other, in pieces as
// class_line_sum.
static void loss_columns_sum(const loss_state *state, const float *scores, int64_t width,
                             const float *largest, double *sums) {
    float piece[LOSS_COLUMNS];
    memset(sums, 0, LOSS_COLUMNS * sizeof *sums);
    for (int64_t first = 0; first < state->class_count; first += CLASS_LINE_PIECE) {
        const int64_t rest = state->class_count - first;
        const int64_t end = first + (rest < CLASS_LINE_PIECE ? rest : CLASS_LINE_PIECE);
        memset(piece, 0, sizeof piece);
        for (int64_t c = first; c < end; c++) {
            const float *line = scores + c * state->stride;
#pragma omp simd
            for (int64_t j = 0; j < width; j++) {
                piece[j] += vector_exp(line[j] - largest[j]);
            }
        }
        for (int64_t j = 0; j < width; j++) {
            sums[j] += (double)piece[j];
        }
    }
}

// log(sum of exp(scores)) of the targets of a block.
static void loss_log_sums(const loss_state *state, const float *scores, int64_t width,
                          float *out_log_sums) {
    float largest[LOSS_COLUMNS];
    double sums[LOSS_COLUMNS];
    if (state->stride == 1) {
        largest[0] = class_line_largest(scores, state->class_count, 1);
        sums[0] = class_line_sum(scores, state->class_count, 1, largest[0]);
    } else {
        for (int64_t j = 0; j < width; j++) {
            largest[j] = -INFINITY;
        }
        for (int64_t c = 0; c < state->class_count; c++) {
            const float *line = scores + c * state->stride;
#pragma omp simd
            for (int64_t j = 0; j < width; j++) {
                largest[j] = line[j] > largest[j] ? line[j] : largest[j];
            }
        }
        loss_columns_sum(state, scores, width, largest, sums);
    }
    for (int64_t j = 0; j < width; j++) {
        out_log_sums[j] = (float)((double)largest[j] + log(sums[j]));
    }
}

static inline float loss_class_weight(const loss_state *state, const pen_cpu_call *call,
                                      int64_t c) {
    return state->has_weights ? ((const float *)call->inputs[state->labels + 1])[c] : 1;
}

// The sum of the losses of all classes, each weighed: what smoothing adds a share of.
static double loss_of_all_classes(const loss_state *state, const pen_cpu_call *call,
                                  const float *scores, float log_sum) {
    double all = 0;
    for (int64_t c = 0; c < state->class_count; c++) {
        all += (double)(loss_class_weight(state, call, c) * (log_sum - scores[c * state->stride]));
    }
    return all;
}

static float loss_of_target(const loss_state *state, const pen_cpu_call *call, int64_t t,
                            const float *scores, float log_sum) {
    const int64_t label = loss_label(state, call, t);
    if (loss_is_ignored(state, label)) return 0;
    const float own = -loss_weight(state, call, label) * (scores[label * state->stride] - log_sum);
    if (state->smoothing == 0) return own;
    const double all = loss_of_all_classes(state, call, scores, log_sum);
    return (1 - state->smoothing) * own +
           (float)((double)state->smoothing / (double)state->class_count * all);
}

static void loss_run_block(const loss_state *state, const pen_cpu_call *call, float *logs,
                           float *losses, loss_block block) {
    const float *scores = (const float *)call->inputs[0] + block.score;
    float log_sums[LOSS_COLUMNS] = {0};
    if (state->takes_scores) loss_log_sums(state, scores, block.width, log_sums);
    for (int64_t c = 0; logs != NULL && c < state->class_count; c++) {
        const int64_t at = c * state->stride;
        for (int64_t j = 0; j < block.width; j++) {
            logs[block.score + at + j] = scores[at + j] - log_sums[j];
        }
    }
    for (int64_t j = 0; j < block.width; j++) {
        losses[block.first + j] =
            loss_of_target(state, call, block.first + j, scores + j, log_sums[j]);
    }
}

// The losses of the targets first, by the team; then their sum, in order.
static pen_status loss_run(const pen_cpu_call *call) {
    const loss_state *state = call->state;
    PEN_TRY(loss_check_labels(state, call));
    float *losses = state->is_none ? call->outputs[0] : call->workspace;
    float *logs = state->node->output_count > 1 ? call->outputs[1] : NULL;
    const int64_t block_count = loss_block_count(state);
#pragma omp parallel for schedule(static) if (state->count * state->class_count >                  \
                                              LOSS_TEAM_ELEMENTS)
    for (int64_t b = 0; b < block_count; b++) {
        loss_run_block(state, call, logs, losses, loss_block_at(state, b));
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

// ---- gradients of the losses over classes

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

// What the gradient of a target is made of: of_sum * probability, less own at the label, less
// smooth * weight of each class.
typedef struct loss_slopes {
    float of_sum[LOSS_COLUMNS];
    float own[LOSS_COLUMNS];
    float smooth[LOSS_COLUMNS];
} loss_slopes;

// dy by the divisor, shared out; all 0 for a target that is ignored.
static void loss_find_slopes(const loss_state *state, const pen_cpu_call *call, loss_block block,
                             double divisor, double all_weights, loss_slopes *out_slopes) {
    const float *dy = call->inputs[0];
    const double smoothing = (double)state->smoothing;
    for (int64_t j = 0; j < block.width; j++) {
        const int64_t t = block.first + j, label = loss_label(state, call, t);
        const bool is_ignored = loss_is_ignored(state, label);
        const double step = is_ignored ? 0 : (double)dy[state->is_none ? t : 0] / divisor;
        const double own = (double)loss_weight(state, call, label) * step * (1 - smoothing);
        const double smooth = step * smoothing / (double)state->class_count;
        out_slopes->own[j] = (float)own;
        out_slopes->smooth[j] = (float)smooth;
        out_slopes->of_sum[j] = (float)(own + smooth * all_weights);
    }
}

// dx = of_sum * probability: of scores, which dx may be; without scores, probabilities are 0.
static void loss_write_probabilities(const loss_state *state, const float *scores,
                                     const loss_slopes *slopes, int64_t width, float *dx) {
    float log_sums[LOSS_COLUMNS];
    const bool is_line = state->stride == 1;
    if (scores != NULL && is_line && slopes->of_sum[0] != 0) {
        loss_write_softmax(state, scores, slopes->of_sum[0], dx);
        return;
    }
    if (scores == NULL || is_line) {
        for (int64_t c = 0; c < state->class_count; c++) {
            memset(dx + c * state->stride, 0, (size_t)width * sizeof *dx);
        }
        return;
    }
    loss_log_sums(state, scores, width, log_sums);
    for (int64_t c = 0; c < state->class_count; c++) {
        const float *line = scores + c * state->stride;
        float *to = dx + c * state->stride;
#pragma omp simd
        for (int64_t j = 0; j < width; j++) {
            const float gradient = slopes->of_sum[j] * vector_exp(line[j] - log_sums[j]);
            to[j] = slopes->of_sum[j] == 0 ? 0 : gradient; // whatever the scores of the ignored
        }
    }
}

static void loss_backward_block(const loss_state *state, const pen_cpu_call *call,
                                const loss_slopes *slopes, loss_block block) {
    const float *scores = state->takes_scores ? (const float *)call->inputs[1] + block.score : NULL;
    float *dx = (float *)call->outputs[0] + block.score;
    loss_write_probabilities(state, scores, slopes, block.width, dx);
    for (int64_t c = 0; state->smoothing > 0 && c < state->class_count; c++) {
        const float weight = loss_class_weight(state, call, c);
        for (int64_t j = 0; j < block.width; j++) {
            dx[c * state->stride + j] -= slopes->smooth[j] * weight;
        }
    }
    for (int64_t j = 0; j < block.width; j++) {
        const int64_t label = loss_label(state, call, block.first + j);
        if (loss_is_ignored(state, label)) continue;
        dx[label * state->stride + j] -= slopes->own[j];
    }
}

// The divisor is the sum of the weights of the targets that count, as in the forward pass.
static pen_status loss_backward_run(const pen_cpu_call *call) {
    const loss_state *state = call->state;
    PEN_TRY(loss_check_labels(state, call));
    double divisor = state->is_mean ? 0 : 1, all_weights = 0;
    for (int64_t t = 0; state->is_mean && t < state->count; t++) {
        divisor += (double)loss_weight(state, call, loss_label(state, call, t));
    }
    for (int64_t c = 0; state->smoothing > 0 && c < state->class_count; c++) {
        all_weights += (double)loss_class_weight(state, call, c);
    }
    const int64_t block_count = loss_block_count(state);
#pragma omp parallel for schedule(static) if (state->count * state->class_count >                  \
                                              LOSS_TEAM_ELEMENTS)
    for (int64_t b = 0; b < block_count; b++) {
        const loss_block block = loss_block_at(state, b);
        loss_slopes slopes;
        loss_find_slopes(state, call, block, divisor, all_weights, &slopes);
        loss_backward_block(state, call, &slopes, block);
    }
    return PEN_OK;
}

// ---- right answers

static pen_status loss_accuracy_prepare(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes) {
    loss_state *state;
    PEN_TRY(loss_make(request, &pen_value_type(request->graph, request->node->inputs[0])->shape,
                      &state));
    state->counts_wide =
        pen_value_type(request->graph, request->node->outputs[0])->element == PEN_INT64;
    state->top = pen_node_has(request->node, "top") ? pen_node_int(request->node, "top") : 1;
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

// Whether a score of classes [first, last) is above `bound`, or, with `or_equal`, equal to it, or
// not a number.
static bool loss_is_beaten(const loss_state *state, const float *scores, int64_t first,
                           int64_t last, float bound, bool or_equal) {
    const int64_t stride = state->stride;
    for (int64_t piece = first; piece < last; piece += LOSS_PIECE) {
        const int64_t end = piece + LOSS_PIECE < last ? piece + LOSS_PIECE : last;
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

// Whether fewer than `top` classes are before the label, as loss_is_best has it for one.
static bool loss_is_among(const loss_state *state, const float *scores, int64_t label) {
    const int64_t stride = state->stride;
    const float own = scores[label * stride];
    int64_t before = 0;
    for (int64_t c = 0; c < label; c++) {
        const float score = scores[c * stride];
        before += own != own ? score != score : !(score < own);
    }
    for (int64_t c = label + 1; c < state->class_count && own == own; c++)
        before += !(scores[c * stride] <= own);
    return before < state->top;
}

// Targets are looked at by threads of their own: a count has no order.
static pen_status loss_accuracy_run(const pen_cpu_call *call) {
    const loss_state *state = call->state;
    PEN_TRY(loss_check_labels(state, call));
    int64_t right = 0;
#pragma omp parallel for schedule(static) reduction(+ : right)                                     \
    if (state->count * state->class_count > LOSS_TEAM_ELEMENTS)
    for (int64_t t = 0; t < state->count; t++) {
        const float *scores = (const float *)call->inputs[0] + loss_first(state, t);
        const int64_t label = loss_label(state, call, t);
        right += !loss_is_ignored(state, label) &&
                 (state->top == 1 ? loss_is_best(state, scores, label)
                                  : loss_is_among(state, scores, label));
    }
    if (state->counts_wide) {
        *(int64_t *)call->outputs[0] = right;
    } else {
        *(float *)call->outputs[0] = (float)right;
    }
    return PEN_OK;
}

static const pen_cpu_kernel loss_kernels[] = {
    {PEN_CPU_ENTRY("softmax_cross_entropy_loss", "cpu", loss_supports, loss_prepare, loss_run)},
    {PEN_CPU_ENTRY("negative_log_likelihood_loss", "cpu", loss_supports, loss_prepare, loss_run)},
    {PEN_CPU_ENTRY("softmax_cross_entropy_loss_backward", "cpu", loss_supports,
                   loss_backward_prepare, loss_backward_run)},
    {PEN_CPU_ENTRY("negative_log_likelihood_loss_backward", "cpu", loss_supports,
                   loss_backward_prepare, loss_backward_run)},
    {PEN_CPU_ENTRY("accuracy_count", "cpu", loss_supports, loss_accuracy_prepare,
                   loss_accuracy_run)},
};

PEN_CPU_FAMILY_OF(loss);
