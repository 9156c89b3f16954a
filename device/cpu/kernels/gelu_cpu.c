// Gelu and swish, forward and backward: in backward functions a is the gradient of the output, and
// b is x.
#include <math.h>
#include <string.h>

#include "device/cpu/kernels/loops/map_entry.h"
#include "device/cpu/kernels/loops/vector_math.h"
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

static bool gelu_is_tanh(const pen_cpu_request *request) {
    return strcmp(pen_node_text(request->node, "approximate"), "tanh") == 0;
}
static bool gelu_supports(const pen_cpu_request *request) {
    return !gelu_is_tanh(request) && map_supports(request);
}
static bool gelu_tanh_supports(const pen_cpu_request *request) {
    return gelu_is_tanh(request) && map_supports(request);
}

MAP_DEFINE_PAIR(gelu, (a * gelu_distribution(a)), (a * gelu_slope(b)), )
MAP_DEFINE_PAIR(gelu_tanh, (a * gelu_tanh_gate(a)), (a * gelu_tanh_slope(b)), )
MAP_DEFINE_PAIR(swish, (a * vector_sigmoid(p[0] * a)),
                (a * gelu_gate_slope(b, vector_sigmoid(p[0] * b), p[0])), )

static const pen_cpu_kernel gelu_kernels[] = {
    // clang-format off
    MAP_KERNEL(gelu, gelu_supports, map_gelu, 1, MAP_PLAIN)
    MAP_KERNEL(gelu, gelu_tanh_supports, map_gelu_tanh, 1, MAP_PLAIN)
    MAP_KERNEL(gelu_backward, gelu_supports, map_gelu_backward, 2, MAP_PLAIN)
    MAP_KERNEL(gelu_backward, gelu_tanh_supports, map_gelu_tanh_backward, 2, MAP_PLAIN)
    MAP_KERNEL_PAIR(swish, , , .attribute_names = {"alpha"})
    // clang-format on
};

PEN_CPU_FAMILY_OF(gelu);
