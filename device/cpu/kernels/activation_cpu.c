// Functions of one number and activations, forward and backward. In derivatives b is the operand
// that graph/ops/elementwise/{unary,activation}_op.c name.
#include <math.h>

#include "device/cpu/kernels/loops/map_entry.h"
#include "device/cpu/kernels/loops/vector_math.h"

static inline float activation_sign(float v) {
    return (float)(v > 0.0f) - (float)(v < 0.0f);
}
// Clipped to [0, 1]. A macro: as a function, it makes the loops around it longer.
#define ACTIVATION_UNIT(v) ((v) < 0.0f ? 0.0f : (v) > 1.0f ? 1.0f : (v))

// The factor is read in any case, so that the compiler needs no branch.
static inline float activation_scale_if(bool is_scaled, float a, float factor) {
    const float scaled = factor * a;
    return is_scaled ? scaled : a;
}
// With t = tanh(softplus(v)): t + v (1 - t²) sigmoid(v).
static inline float activation_mish_slope(float v) {
    const float t = vector_tanh(vector_softplus(v));
    return t + v * (1.0f - t * t) * vector_sigmoid(v);
}

#define ALPHA .attribute_names = {"alpha"}
#define ALPHA_BETA .attribute_names = {"alpha", "beta"}
#define ALPHA_GAMMA .attribute_names = {"alpha", "gamma"}

// Of these the derivative is 0, or another op.
#define ACTIVATION_FLAT(ROW)                                                                       \
    ROW(neg, (-a), MAP_PLAIN)                                                                      \
    ROW(sign, (a != a ? a : activation_sign(a)), MAP_PLAIN)                                        \
    ROW(floor, (floorf(a)), MAP_PLAIN)                                                             \
    ROW(ceil, (ceilf(a)), MAP_PLAIN)                                                               \
    ROW(round, (rintf(a)), MAP_PLAIN)

// A function of one number, or an activation, is a row here.
#define ACTIVATIONS(ROW)                                                                           \
    ROW(abs, (fabsf(a)), (a * activation_sign(b)), MAP_PLAIN)                                      \
    ROW(reciprocal, (1.0f / a), (-a * b * b), MAP_PLAIN)                                           \
    ROW(exp, (vector_exp(a)), (a * b), MAP_PLAIN)                                                  \
    ROW(log, (vector_log(a)), (a / b), MAP_PLAIN)                                                  \
    ROW(sqrt, (sqrtf(a)), (a / (2.0f * b)), MAP_PLAIN)                                             \
    ROW(erf, (vector_erf(a)), (a * 1.12837916709551257390f * vector_exp(-b * b)), MAP_PLAIN)       \
    ROW(sin, (sinf(a)), (a * cosf(b)), MAP_PLAIN)                                                  \
    ROW(cos, (cosf(a)), (-a * sinf(b)), MAP_PLAIN)                                                 \
    ROW(tan, (tanf(a)), (a * (1.0f + b * b)), MAP_PLAIN)                                           \
    ROW(relu, (a > 0.0f || a != a ? a : 0.0f), (b > 0.0f ? a : 0.0f), MAP_PLAIN)                   \
    ROW(sigmoid, (vector_sigmoid(a)), (a * b * (1.0f - b)), MAP_PLAIN)                             \
    ROW(tanh, (vector_tanh(a)), (a * (1.0f - b * b)), MAP_PLAIN)                                   \
    ROW(softplus, (vector_softplus(a)), (a * vector_sigmoid(b)), MAP_PLAIN)                        \
    ROW(mish, (a * vector_tanh(vector_softplus(a))), (a * activation_mish_slope(b)), MAP_PLAIN)    \
    ROW(log_sigmoid, (-vector_softplus(-a)), (a * vector_sigmoid(-b)), MAP_PLAIN)                  \
    ROW(tanh_shrink, (a - vector_tanh(a)), (a * vector_tanh(b) * vector_tanh(b)), MAP_PLAIN)       \
    ROW(softsign, (a / (1.0f + fabsf(a))), (a / ((1.0f + fabsf(b)) * (1.0f + fabsf(b)))),          \
        MAP_PLAIN)                                                                                 \
    ROW(hard_swish, (a * ACTIVATION_UNIT(a * (1.0f / 6.0f) + 0.5f)),                               \
        (b <= -3.0f  ? 0.0f                                                                        \
         : b >= 3.0f ? a                                                                           \
                     : a * (b * (1.0f / 3.0f) + 0.5f)),                                            \
        MAP_PLAIN)                                                                                 \
    ROW(leaky_relu, (activation_scale_if(a < 0.0f, a, p[0])),                                      \
        (activation_scale_if(!(b > 0.0f), a, p[0])), ALPHA)                                        \
    ROW(elu, (a >= 0.0f ? a : p[0] * vector_expm1(a)), (b > 0.0f ? a : a * p[0] * vector_exp(b)),  \
        ALPHA)                                                                                     \
    ROW(celu, (a >= 0.0f ? a : p[0] * vector_expm1(a / p[0])),                                     \
        (b > 0.0f ? a : a * vector_exp(b / p[0])), ALPHA)                                          \
    ROW(selu, (a > 0.0f ? p[1] * a : p[1] * p[0] * vector_expm1(a)),                               \
        (b > 0.0f ? a * p[1] : a * p[1] * p[0] * vector_exp(b)), ALPHA_GAMMA)                      \
    ROW(hard_sigmoid, (ACTIVATION_UNIT(p[0] * a + p[1])),                                          \
        (b > 0.0f && b < 1.0f ? a * p[0] : 0.0f), ALPHA_BETA)                                      \
    ROW(thresholded_relu, (a <= p[0] ? 0.0f : a), (b > p[0] ? a : 0.0f), ALPHA)

ACTIVATION_FLAT(MAP_DEFINE_1)
ACTIVATIONS(MAP_DEFINE_PAIR)
MAP_DEFINE_2(prelu, (a < 0.0f ? a * b : a), )
MAP_DEFINE_3(clip, ((a < b ? b : a) > c ? c : (a < b ? b : a)), )

// dy where min < y < max: 0 also at the limits
MAP_FUNCTION(clip_backward) {
    const float *dy = x[0], *v = x[1], *low = x[2], *high = x[3];
    float *dx = out;
    (void)p;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        const float passed = dy[i], at = v[i], from = low[i], to = high[i]; // without a branch
        dx[i] = at <= from || at >= to ? 0.0f : passed;
    }
}

static const pen_cpu_kernel activation_kernels[] = {
    // clang-format off
    ACTIVATION_FLAT(MAP_KERNEL_1)
    ACTIVATIONS(MAP_KERNEL_PAIR)
    MAP_KERNEL_2(prelu, , MAP_PLAIN)
    MAP_KERNEL_3(clip, , .absent = {0, -INFINITY, INFINITY})
    MAP_KERNEL(clip_backward, map_supports, map_clip_backward, 4,
               .absent = {0, 0, -INFINITY, INFINITY})
    // clang-format on
};

PEN_CPU_FAMILY_OF(activation);
