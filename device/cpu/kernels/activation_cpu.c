// Functions of one number and activations, forward and backward. In backward functions a is the
// gradient of the output, and b the operand that graph/ops/{unary,activation}_op.c name.
#include <math.h>

#include "device/cpu/kernels/map_entry.h"
#include "device/cpu/kernels/vector_math.h"

#define ACTIVATION_SIGN(v) ((float)((v) > 0.0f) - (float)((v) < 0.0f))
#define ACTIVATION_UNIT(v) ((v) < 0.0f ? 0.0f : (v) > 1.0f ? 1.0f : (v))

#define ACTIVATION_UNARY(X)                                                                        \
    X(neg, (-a))                                                                                   \
    X(sign, (a != a ? a : ACTIVATION_SIGN(a)))                                                     \
    X(floor, (floorf(a)))                                                                          \
    X(ceil, (ceilf(a)))                                                                            \
    X(round, (rintf(a)))                                                                           \
    X(abs, (fabsf(a)))                                                                             \
    X(reciprocal, (1.0f / a))                                                                      \
    X(exp, (vector_exp(a)))                                                                        \
    X(log, (vector_log(a)))                                                                        \
    X(sqrt, (sqrtf(a)))                                                                            \
    X(erf, (vector_erf(a)))                                                                        \
    X(sin, (sinf(a)))                                                                              \
    X(cos, (cosf(a)))                                                                              \
    X(tan, (tanf(a)))                                                                              \
    X(relu, (a > 0.0f || a != a ? a : 0.0f))                                                       \
    X(sigmoid, (vector_sigmoid(a)))                                                                \
    X(tanh, (vector_tanh(a)))                                                                      \
    X(softplus, (vector_softplus(a)))                                                              \
    X(softsign, (a / (1.0f + fabsf(a))))                                                           \
    X(hard_swish, (a * ACTIVATION_UNIT(a * (1.0f / 6.0f) + 0.5f)))

#define ACTIVATION_UNARY_BACKWARD(X)                                                               \
    X(abs_backward, (a * ACTIVATION_SIGN(b)))                                                      \
    X(reciprocal_backward, (-a * b * b))                                                           \
    X(exp_backward, (a * b))                                                                       \
    X(log_backward, (a / b))                                                                       \
    X(sqrt_backward, (a / (2.0f * b)))                                                             \
    X(erf_backward, (a * 1.12837916709551257390f * vector_exp(-b * b)))                            \
    X(sin_backward, (a * cosf(b)))                                                                 \
    X(cos_backward, (-a * sinf(b)))                                                                \
    X(tan_backward, (a * (1.0f + b * b)))                                                          \
    X(relu_backward, (b > 0.0f ? a : 0.0f))                                                        \
    X(sigmoid_backward, (a * b * (1.0f - b)))                                                      \
    X(tanh_backward, (a * (1.0f - b * b)))                                                         \
    X(softplus_backward, (a * vector_sigmoid(b)))                                                  \
    X(softsign_backward, (a / ((1.0f + fabsf(b)) * (1.0f + fabsf(b)))))                            \
    X(hard_swish_backward, (b <= -3.0f ? 0.0f : b >= 3.0f ? a : a * (b * (1.0f / 3.0f) + 0.5f)))

// The factor is read in any case, so that the compiler needs no branch.
static inline float activation_scale_if(bool is_scaled, float a, float factor) {
    const float scaled = factor * a;
    return is_scaled ? scaled : a;
}

// p[0], p[1]: the attributes named in the second table.
#define ACTIVATION_WITH_PARAMETERS(X)                                                              \
    X(leaky_relu, activation_scale_if(a < 0.0f, a, p[0]))                                          \
    X(elu, (a >= 0.0f ? a : p[0] * vector_expm1(a)))                                               \
    X(celu, (a >= 0.0f ? a : p[0] * vector_expm1(a / p[0])))                                       \
    X(selu, (a > 0.0f ? p[1] * a : p[1] * p[0] * vector_expm1(a)))                                 \
    X(hard_sigmoid, (ACTIVATION_UNIT(p[0] * a + p[1])))                                            \
    X(thresholded_relu, (a <= p[0] ? 0.0f : a))

#define ACTIVATION_WITH_PARAMETERS_BACKWARD(X)                                                     \
    X(leaky_relu_backward, activation_scale_if(!(b > 0.0f), a, p[0]))                              \
    X(elu_backward, (b > 0.0f ? a : a * p[0] * vector_exp(b)))                                     \
    X(celu_backward, (b > 0.0f ? a : a * vector_exp(b / p[0])))                                    \
    X(selu_backward, (b > 0.0f ? a * p[1] : a * p[1] * p[0] * vector_exp(b)))                      \
    X(hard_sigmoid_backward, (b > 0.0f && b < 1.0f ? a * p[0] : 0.0f))                             \
    X(thresholded_relu_backward, (b > p[0] ? a : 0.0f))

ACTIVATION_UNARY(MAP_DEFINE_1)
ACTIVATION_UNARY_BACKWARD(MAP_DEFINE_2)
ACTIVATION_WITH_PARAMETERS(MAP_DEFINE_1)
ACTIVATION_WITH_PARAMETERS_BACKWARD(MAP_DEFINE_2)
MAP_DEFINE_3(clip, (a < b ? b : a) > c ? c : (a < b ? b : a))
// dy where min < y < max: 0 also at the limits
static void map_clip_backward(int64_t count, const void *const *x, void *out, const float *p){
    MAP_LOOP_(float,
              MAP_LOAD_(float, dy, 0) MAP_LOAD_(float, v, 1) MAP_LOAD_(float, low, 2)
                  MAP_LOAD_(float, high, 3),
              v <= low || v >= high ? 0.0f : dy)} MAP_DEFINE_2(prelu, a < 0.0f ? a * b : a)

#define ACTIVATION_OP(op, count, ...)                                                              \
    {                                                                                              \
        .op_name = #op, .run = map_##op, .operand_count = count, .attribute_names = {              \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

    static const map_op activation_ops[] = {
        ACTIVATION_UNARY(MAP_OP_1) ACTIVATION_UNARY_BACKWARD(MAP_OP_2)
            ACTIVATION_OP(leaky_relu, 1, "alpha"),
        ACTIVATION_OP(leaky_relu_backward, 2, "alpha"),
        ACTIVATION_OP(elu, 1, "alpha"),
        ACTIVATION_OP(elu_backward, 2, "alpha"),
        ACTIVATION_OP(celu, 1, "alpha"),
        ACTIVATION_OP(celu_backward, 2, "alpha"),
        ACTIVATION_OP(selu, 1, "alpha", "gamma"),
        ACTIVATION_OP(selu_backward, 2, "alpha", "gamma"),
        ACTIVATION_OP(hard_sigmoid, 1, "alpha", "beta"),
        ACTIVATION_OP(hard_sigmoid_backward, 2, "alpha", "beta"),
        ACTIVATION_OP(thresholded_relu, 1, "alpha"),
        ACTIVATION_OP(thresholded_relu_backward, 2, "alpha"),
        MAP_OP_2(prelu, ){
            .op_name = "clip",
            .run = map_clip,
            .operand_count = 3,
            .absent = {0, -INFINITY, INFINITY},
        },
        {
            .op_name = "clip_backward",
            .run = map_clip_backward,
            .operand_count = 4,
            .absent = {0, 0, -INFINITY, INFINITY},
        },
};

MAP_ENTRY_FUNCTIONS(activation_ops)

static const pen_cpu_kernel activation_kernels[] = {
    ACTIVATION_UNARY(MAP_ENTRY) ACTIVATION_UNARY_BACKWARD(MAP_ENTRY)
        ACTIVATION_WITH_PARAMETERS(MAP_ENTRY) ACTIVATION_WITH_PARAMETERS_BACKWARD(MAP_ENTRY)
            MAP_ENTRY(prelu, ) MAP_ENTRY(clip, ) MAP_ENTRY(clip_backward, )};

extern const pen_cpu_family PEN_CPU_FAMILY(activation);
const pen_cpu_family PEN_CPU_FAMILY(activation) = {
    activation_kernels, sizeof activation_kernels / sizeof *activation_kernels};
