// Softmax and log_softmax along an axis, and their gradients, a line at a time.
#include <math.h>

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/loops/class_line.h"
#include "graph/graph.h"
#include "graph/op.h"

#define SOFTMAX_TEAM_ELEMENTS 8192

// Lines are `count` numbers, `stride` apart; line i of `line_count` begins at
// (i / stride) * count * stride + i % stride.
typedef struct softmax_state {
    const struct softmax_rule *rule;
    int64_t count;
    int64_t stride;
    int64_t line_count;
} softmax_state;

typedef struct softmax_rule {
    void (*run)(const softmax_state *state, const float *a, const float *b, float *y);
    bool takes_two; // else operand 1 is there for the gradients alone
} softmax_rule;

// y[i] = result for the line, vectorised where it is contiguous.
#define SOFTMAX_WRITE(state, result)                                                               \
    do {                                                                                           \
        if ((state)->stride == 1) {                                                                \
            _Pragma("omp simd") for (int64_t i = 0; i < (state)->count; i++) {                     \
                y[i] = result;                                                                     \
            }                                                                                      \
        } else {                                                                                   \
            const int64_t stride = (state)->stride, end = (state)->count * stride;                 \
            for (int64_t i = 0; i < end; i += stride) {                                            \
                y[i] = result;                                                                     \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void softmax_line(const softmax_state *state, const float *x, const float *b, float *y) {
    (void)b;
    const float largest = class_line_largest(x, state->count, state->stride);
    const float share = (float)(1 / class_line_sum(x, state->count, state->stride, largest));
    SOFTMAX_WRITE(state, vector_exp(x[i] - largest) * share);
}

static void softmax_log_line(const softmax_state *state, const float *x, const float *b, float *y) {
    (void)b;
    const float largest = class_line_largest(x, state->count, state->stride);
    const float log_sum = (float)log(class_line_sum(x, state->count, state->stride, largest));
    SOFTMAX_WRITE(state, (x[i] - largest) - log_sum);
}

// The sum of a times b (b NULL: of a) along the line.
static double softmax_dot(const softmax_state *state, const float *a, const float *b) {
    double total = 0;
    for (int64_t first = 0; first < state->count; first += CLASS_LINE_PIECE) {
        const int64_t rest = state->count - first;
        const int64_t size = rest < CLASS_LINE_PIECE ? rest : CLASS_LINE_PIECE;
        const int64_t start = first * state->stride;
        float sum = 0;
        if (state->stride == 1 && b != NULL) {
#pragma omp simd reduction(+ : sum)
            for (int64_t i = 0; i < size; i++) {
                sum += a[start + i] * b[start + i];
            }
        } else {
            for (int64_t i = 0; i < size; i++) {
                const int64_t at = start + i * state->stride;
                sum += b == NULL ? a[at] : a[at] * b[at];
            }
        }
        total += (double)sum;
    }
    return total;
}

static void softmax_backward_line(const softmax_state *state, const float *dy, const float *s,
                                  float *y) {
    const float sum = (float)softmax_dot(state, dy, s);
    SOFTMAX_WRITE(state, s[i] * (dy[i] - sum));
}

static void softmax_log_backward_line(const softmax_state *state, const float *dy, const float *s,
                                      float *y) {
    const float sum = (float)softmax_dot(state, dy, NULL);
    SOFTMAX_WRITE(state, dy[i] - vector_exp(s[i]) * sum);
}

static pen_status softmax_prepare(const pen_cpu_request *request, void **out_state,
                                  uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    const pen_shape *shape = &pen_value_type(request->graph, node->outputs[0])->shape;
    const int64_t given = pen_node_int(node, "axis");
    const uint32_t axis = (uint32_t)(given < 0 ? given + shape->rank : given);
    softmax_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->rule = request->rule;
    state->count = shape->dims[axis];
    state->stride = pen_shape_count(shape, axis + 1, shape->rank);
    state->line_count = pen_shape_count(shape, 0, axis) * state->stride;
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static pen_status softmax_run(const pen_cpu_call *call) {
    const softmax_state *state = call->state;
    const float *a = call->inputs[0], *b = state->rule->takes_two ? call->inputs[1] : NULL;
    float *y = call->outputs[0];
    if (state->count == 0) return PEN_OK;
#pragma omp parallel for schedule(static) if (state->count * state->line_count >                   \
                                              SOFTMAX_TEAM_ELEMENTS)
    for (int64_t line = 0; line < state->line_count; line++) {
        const int64_t first =
            line / state->stride * state->count * state->stride + line % state->stride;
        state->rule->run(state, a + first, b == NULL ? NULL : b + first, y + first);
    }
    return PEN_OK;
}

#define SOFTMAX_ENTRY(op, ...)                                                                     \
    PEN_CPU_ENTRY(op, "cpu", NULL, softmax_prepare, softmax_run),                                  \
        .rule = PEN_CPU_RULE(softmax_rule, __VA_ARGS__)

static const pen_cpu_kernel softmax_kernels[] = {
    {SOFTMAX_ENTRY("softmax", softmax_line, false)},
    {SOFTMAX_ENTRY("log_softmax", softmax_log_line, false)},
    {SOFTMAX_ENTRY("softmax_backward", softmax_backward_line, true)},
    {SOFTMAX_ENTRY("log_softmax_backward", softmax_log_backward_line, true)},
};

PEN_CPU_FAMILY_OF(softmax);
