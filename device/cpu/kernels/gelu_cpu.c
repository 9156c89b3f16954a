// Gelu and swish, forward and backward: in backward functions a is the gradient of the output, and
// b is x.
#include <math.h>

#include "device/cpu/kernels/map_entry.h"
#include "device/cpu/kernels/vector_math.h"
#include "graph/op.h"

#define GELU_FAR 5.5f               // the distribution is 0 before and 1 beyond, to float32
#define GELU_DENSITY 0.39894228f    // of the normal distribution at 0: 1 / sqrt(2 pi)
#define GELU_TANH_SCALE 1.59576912f // 2 sqrt(2 / pi): (1 + tanh u) / 2 is sigmoid(2 u)
#define GELU_TANH_CUBE 0.044715f

// The normal distribution, within 2e-7. Between -5.5 and 5.5 it is 1/2 and an odd rational
// function, fitted for least error relative to the distance from 1/2; one division costs less than
// the exponential of an erf that is precise where the distribution is small.
static inline float gelu_distribution(float x) {
    const float low = x < -GELU_FAR ? -GELU_FAR : x;
    const float held = low > GELU_FAR ? GELU_FAR : low;
    const float z = held * held;
    float p = 2.293169629e-08f;
    p = p * z + 6.301419251e-06f;
    p = p * z + 1.64559821e-04f;
    p = p * z + 4.651396925e-03f;
    p = p * z + 3.345761162e-02f;
    p = p * z + 3.989422739e-01f;
    float q = 1.199031345e-06f;
    q = q * z + 7.21621658e-05f;
    q = q * z + 1.860567641e-03f;
    q = q * z + 2.841537981e-02f;
    q = q * z + 2.505321977e-01f;
    q = q * z + 1.0f;
    const float near = 0.5f + held * (p / q);
    const float above = x > GELU_FAR ? 1.0f : near;
    return x < -GELU_FAR ? 0.0f : above;
}

static inline float gelu_tanh_gate(float x) {
    return vector_sigmoid(GELU_TANH_SCALE * (x + GELU_TANH_CUBE * x * x * x));
}

static inline float gelu_slope(float x) {
    return gelu_distribution(x) + x * GELU_DENSITY * vector_exp(-0.5f * x * x);
}

// The derivative of x s(x), for s = sigmoid(u) and the derivative of u.
static inline float gelu_gate_slope(float x, float s, float u_slope) {
    return s + x * s * (1.0f - s) * u_slope;
}

static inline float gelu_tanh_slope(float x) {
    const float u_slope = GELU_TANH_SCALE * (1.0f + 3.0f * GELU_TANH_CUBE * x * x);
    const float s = gelu_tanh_gate(x);
    // far out the gate is 0 or 1, and the square may have overflowed
    return fabsf(x) < 20.0f || x != x ? gelu_gate_slope(x, s, u_slope) : s;
}

MAP_DEFINE_1(gelu, a *gelu_distribution(a))
MAP_DEFINE_1(gelu_tanh, a *gelu_tanh_gate(a))
MAP_DEFINE_1(swish, a *vector_sigmoid(p[0] * a))
MAP_DEFINE_2(gelu_backward, a *gelu_slope(b))
MAP_DEFINE_2(gelu_tanh_backward, a *gelu_tanh_slope(b))
MAP_DEFINE_2(swish_backward, a *gelu_gate_slope(b, vector_sigmoid(p[0] * b), p[0]))

static const map_op gelu_exact_ops[] = {
    {.op_name = "gelu", .run = map_gelu, .operand_count = 1},
    {.op_name = "gelu_backward", .run = map_gelu_backward, .operand_count = 2},
    {.op_name = "swish", .run = map_swish, .operand_count = 1, .attribute_names = {"alpha"}},
    {.op_name = "swish_backward",
     .run = map_swish_backward,
     .operand_count = 2,
     .attribute_names = {"alpha"}},
};
static const map_op gelu_tanh_ops[] = {
    {.op_name = "gelu", .run = map_gelu_tanh, .operand_count = 1},
    {.op_name = "gelu_backward", .run = map_gelu_tanh_backward, .operand_count = 2},
};

static const map_op *gelu_find_in(const map_op *ops, size_t count, const char *op_name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ops[i].op_name, op_name) == 0) return &ops[i];
    }
    return NULL;
}

static const map_op *gelu_find(const pen_node *node) {
    if (strncmp(node->op->name, "gelu", 4) == 0 &&
        strcmp(pen_node_text(node, "approximate"), "tanh") == 0) {
        return gelu_find_in(gelu_tanh_ops, sizeof gelu_tanh_ops / sizeof *gelu_tanh_ops,
                            node->op->name);
    }
    return gelu_find_in(gelu_exact_ops, sizeof gelu_exact_ops / sizeof *gelu_exact_ops,
                        node->op->name);
}

static bool map_entry_supports(const pen_cpu_request *request) {
    return map_supports(request, gelu_find(request->node));
}

static pen_status map_entry_prepare(const pen_cpu_request *request, void **out_state,
                                    uint64_t *out_workspace_bytes) {
    return map_prepare(request, gelu_find(request->node), out_state, out_workspace_bytes);
}

static const pen_cpu_kernel gelu_kernels[] = {MAP_ENTRY(gelu, ) MAP_ENTRY(gelu_backward, )
                                                  MAP_ENTRY(swish, ) MAP_ENTRY(swish_backward, )};

extern const pen_cpu_family PEN_CPU_FAMILY(gelu);
const pen_cpu_family PEN_CPU_FAMILY(gelu) = {gelu_kernels,
                                             sizeof gelu_kernels / sizeof *gelu_kernels};
