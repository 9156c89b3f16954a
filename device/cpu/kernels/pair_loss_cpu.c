// Losses of pairs: the mean of f(x, target). Sums go in order of blocks of fixed size, whatever the
// team.
#include <math.h>

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/loops/map_entry.h"
#include "device/cpu/kernels/loops/vector_math.h"
#include "graph/graph.h"
#include "graph/op.h"

#define PAIR_LOSS_BLOCK 4096

static inline float pair_loss_held_log(float log_x) {
    return log_x < -100.0f ? -100.0f : log_x;
}

static float pair_loss_square(float a, float b, float p) {
    (void)p;
    return (a - b) * (a - b);
}
static float pair_loss_binary(float a, float b, float p) {
    (void)p;
    return -(b * pair_loss_held_log(vector_log(a)) + (1.0f - b) * pair_loss_held_log(log1pf(-a)));
}
static float pair_loss_logits(float a, float b, float p) {
    (void)p;
    return (a > 0.0f ? a : 0.0f) - a * b + vector_log1p(vector_exp(-fabsf(a)));
}
static float pair_loss_distance(float a, float b, float p) {
    (void)p;
    return fabsf(a - b);
}
static float pair_loss_smooth_distance(float a, float b, float p) {
    const float d = fabsf(a - b);
    return d < p ? d * d / (2.0f * p) : d - 0.5f * p;
}
static float pair_loss_divergence(float a, float b, float p) {
    (void)p;
    return (b == 0.0f ? 0.0f : b * vector_log(b)) - b * a;
}

// The loss of one number. `p` is the attribute, 0 without one.
typedef struct pair_loss {
    float (*of)(float x, float target, float p);
    const char *attribute; // NULL: none
} pair_loss;

typedef struct pair_loss_state {
    const pair_loss *loss;
    float parameter;
    int64_t count;
    int64_t block_count;
} pair_loss_state;

static pen_status pair_loss_prepare(const pen_cpu_request *request, void **out_state,
                                    uint64_t *out_workspace_bytes) {
    pair_loss_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->loss = request->rule;
    if (state->loss->attribute != NULL) {
        state->parameter = (float)pen_node_float(request->node, state->loss->attribute);
    }
    state->count =
        pen_shape_element_count(&pen_value_type(request->graph, request->node->inputs[0])->shape);
    state->block_count = (state->count + PAIR_LOSS_BLOCK - 1) / PAIR_LOSS_BLOCK;
    *out_state = state;
    *out_workspace_bytes = (uint64_t)state->block_count * sizeof(double);
    return PEN_OK;
}

// Blocks of fixed size are summed by the team and then added in order.
static pen_status pair_loss_run(const pen_cpu_call *call) {
    const pair_loss_state *state = call->state;
    const float *x = call->inputs[0], *target = call->inputs[1];
    double *sums = call->workspace;
#pragma omp parallel for schedule(static) if (state->block_count > 2)
    for (int64_t block = 0; block < state->block_count; block++) {
        const int64_t first = block * PAIR_LOSS_BLOCK;
        const int64_t last =
            first + PAIR_LOSS_BLOCK < state->count ? first + PAIR_LOSS_BLOCK : state->count;
        double sum = 0;
        for (int64_t k = first; k < last; k++) {
            sum += (double)state->loss->of(x[k], target[k], state->parameter);
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

// Gradients: a is dy, b is x, c the target, p[0] one over the count of elements, p[1] the
// attribute.
#define PAIR_LOSS_BACKWARDS(ROW)                                                                   \
    ROW(mean_squared_error_backward, (a * p[0] * 2.0f * (b - c)), .is_mean = true)                 \
    ROW(binary_cross_entropy_backward,                                                             \
        (a * p[0] * (b - c) / (b * (1.0f - b) < 1e-12f ? 1e-12f : b * (1.0f - b))),                \
        .is_mean = true)                                                                           \
    ROW(binary_cross_entropy_with_logits_backward, (a * p[0] * (vector_sigmoid(b) - c)),           \
        .is_mean = true)                                                                           \
    ROW(l1_backward, (a * p[0] * PAIR_LOSS_SIGN(b - c)), .is_mean = true)                          \
    ROW(smooth_l1_backward,                                                                        \
        (a * p[0] * (fabsf(b - c) < p[1] ? (b - c) / p[1] : PAIR_LOSS_SIGN(b - c))),               \
        .is_mean = true, .attribute_names = {NULL, "beta"})                                        \
    ROW(kl_divergence_backward, (a * p[0] * ((void)b, -c)), .is_mean = true)
#define PAIR_LOSS_SIGN(d) ((float)((d) > 0.0f) - (float)((d) < 0.0f))

PAIR_LOSS_BACKWARDS(MAP_DEFINE_3)

#define PAIR_LOSS_ENTRY(op, ...)                                                                   \
    PEN_CPU_ENTRY(op, "cpu", NULL, pair_loss_prepare, pair_loss_run),                              \
        .rule = PEN_CPU_RULE(pair_loss, __VA_ARGS__)

static const pen_cpu_kernel pair_loss_kernels[] = {
    // clang-format off
    PAIR_LOSS_BACKWARDS(MAP_KERNEL_3)
    // clang-format on
    {PAIR_LOSS_ENTRY("mean_squared_error", pair_loss_square, NULL)},
    {PAIR_LOSS_ENTRY("binary_cross_entropy", pair_loss_binary, NULL)},
    {PAIR_LOSS_ENTRY("binary_cross_entropy_with_logits", pair_loss_logits, NULL)},
    {PAIR_LOSS_ENTRY("l1", pair_loss_distance, NULL)},
    {PAIR_LOSS_ENTRY("smooth_l1", pair_loss_smooth_distance, "beta")},
    {PAIR_LOSS_ENTRY("kl_divergence", pair_loss_divergence, NULL)},
};

PEN_CPU_FAMILY_OF(pair_loss);
