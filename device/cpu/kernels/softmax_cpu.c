// Softmax and log_softmax along an axis, and their gradients, a line at a time.
#include <math.h>
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/class_line.h"
#include "graph/op.h"

#define SOFTMAX_TEAM_ELEMENTS 8192

typedef struct softmax_state softmax_state;
typedef void (*softmax_line_fn)(const softmax_state *state, const float *a, const float *b,
                                float *y);

// Lines are `count` numbers, `stride` apart; line i of `line_count` begins at
// (i / stride) * count * stride + i % stride.
struct softmax_state {
    softmax_line_fn run;
    int64_t count;
    int64_t stride;
    int64_t line_count;
};

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
    static const struct {
        const char *op_name;
        softmax_line_fn run;
    } lines[] = {
        {"softmax", softmax_line},
        {"log_softmax", softmax_log_line},
        {"softmax_backward", softmax_backward_line},
        {"log_softmax_backward", softmax_log_backward_line},
    };
    const pen_node *node = request->node;
    const pen_shape *shape = &pen_value_type(request->graph, node->outputs[0])->shape;
    const int64_t given = pen_node_int(node, "axis");
    const uint32_t axis = (uint32_t)(given < 0 ? given + shape->rank : given);
    softmax_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (strcmp(lines[i].op_name, node->op->name) == 0) state->run = lines[i].run;
    }
    state->count = shape->dims[axis];
    state->stride = pen_shape_count(shape, axis + 1, shape->rank);
    state->line_count = pen_shape_count(shape, 0, axis) * state->stride;
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static pen_status softmax_run(const pen_cpu_call *call) {
    const softmax_state *state = call->state;
    const float *a = call->inputs[0], *b = call->inputs[1];
    float *y = call->outputs[0];
    if (state->count == 0) return PEN_OK;
#pragma omp parallel for schedule(static) if (state->count * state->line_count >                   \
                                              SOFTMAX_TEAM_ELEMENTS)
    for (int64_t line = 0; line < state->line_count; line++) {
        const int64_t first =
            line / state->stride * state->count * state->stride + line % state->stride;
        state->run(state, a + first, b == NULL ? NULL : b + first, y + first);
    }
    return PEN_OK;
}

// Operand 1 is there for the gradients alone.
static pen_status softmax_run_one(const pen_cpu_call *call) {
    void *const inputs[2] = {call->inputs[0], NULL};
    pen_cpu_call both = *call;
    both.inputs = inputs;
    return softmax_run(&both);
}

#define SOFTMAX_ENTRY(op, run_fn)                                                                  \
    { .op_name = #op, .name = "cpu", .prepare = softmax_prepare, .run = run_fn }

static const pen_cpu_kernel softmax_kernels[] = {
    SOFTMAX_ENTRY(softmax, softmax_run_one),
    SOFTMAX_ENTRY(log_softmax, softmax_run_one),
    SOFTMAX_ENTRY(softmax_backward, softmax_run),
    SOFTMAX_ENTRY(log_softmax_backward, softmax_run),
};

extern const pen_cpu_family PEN_CPU_FAMILY(softmax);
const pen_cpu_family PEN_CPU_FAMILY(softmax) = {softmax_kernels,
                                                sizeof softmax_kernels / sizeof *softmax_kernels};
