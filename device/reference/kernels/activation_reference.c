// Activation functions. In derivatives v is x or y, as graph/ops/elementwise/activation_op.c says.

#include <math.h>

#include "device/reference/reference_compare.h"
#include "device/reference/reference_map.h"
#include "device/reference/reference_position.h"

// Clipped to [0, 1]; passes what is not a number on.
static double activation_unit(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}
// Of two forms that are equal, the one that does not overflow.
static double activation_sigmoid(double x) {
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}
static double activation_softplus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static int64_t activation_relu_integer(int64_t x, bool is_signed) {
    (void)is_signed;
    return x > 0 ? x : 0;
}
// With t = tanh(softplus(v)): t + v (1 - t²) sigmoid(v).
static double activation_mish_slope(double v) {
    const double t = tanh(activation_softplus(v));
    return t + v * (1 - t * t) / (1 + exp(-v));
}

#define PLAIN REFERENCE_MAP_PLAIN
#define ALPHA .parameters = {"alpha"}
#define ALPHA_BETA .parameters = {"alpha", "beta"}
#define ALPHA_GAMMA .parameters = {"alpha", "gamma"}
#define LAMBD_BIAS .parameters = {"lambd", "bias"}

// An activation is a row here.
#define ACTIVATIONS(ROW)                                                                           \
    ROW(relu, (x > 0 || isnan(x) ? x : 0), (v > 0 ? dy : 0), .integer = activation_relu_integer)   \
    ROW(leaky_relu, (x >= 0 ? x : p[0] * x), (v > 0 ? dy : p[0] * dy), ALPHA)                      \
    ROW(sigmoid, (activation_sigmoid(x)), (dy * v * (1 - v)), PLAIN)                               \
    ROW(tanh, (tanh(x)), (dy * (1 - v * v)), PLAIN)                                                \
    ROW(elu, (x >= 0 ? x : p[0] * expm1(x)), (v > 0 ? dy : dy * p[0] * exp(v)), ALPHA)             \
    ROW(celu, (x >= 0 ? x : p[0] * expm1(x / p[0])), (v > 0 ? dy : dy * exp(v / p[0])), ALPHA)     \
    ROW(selu, (x > 0 ? p[1] * x : p[1] * p[0] * expm1(x)),                                         \
        (v > 0 ? dy * p[1] : dy * p[1] * p[0] * exp(v)), ALPHA_GAMMA)                              \
    ROW(softplus, (activation_softplus(x)), (dy / (1 + exp(-v))), PLAIN)                           \
    ROW(mish, (x * tanh(activation_softplus(x))), (dy * activation_mish_slope(v)), PLAIN)          \
    ROW(log_sigmoid, (fmin(x, 0) - log1p(exp(-fabs(x)))), (dy / (1 + exp(v))), PLAIN)              \
    ROW(tanh_shrink, (x - tanh(x)), (dy * tanh(v) * tanh(v)), PLAIN)                               \
    ROW(softsign, (x / (1 + fabs(x))), (dy / ((1 + fabs(v)) * (1 + fabs(v)))), PLAIN)              \
    ROW(hard_sigmoid, (activation_unit(p[0] * x + p[1])), (v > 0 && v < 1 ? dy * p[0] : 0),        \
        ALPHA_BETA)                                                                                \
    ROW(hard_swish, (x * activation_unit(x / 6 + 0.5)),                                            \
        (v <= -3  ? 0                                                                              \
         : v >= 3 ? dy                                                                             \
                  : dy * (v / 3 + 0.5)),                                                           \
        PLAIN)                                                                                     \
    ROW(thresholded_relu, (x <= p[0] ? 0 : x), (v > p[0] ? dy : 0), ALPHA)                         \
    ROW(shrink,                                                                                    \
        (x < -p[0]  ? x + p[1]                                                                     \
         : x > p[0] ? x - p[1]                                                                     \
                    : 0),                                                                          \
        (v < -p[0] || v > p[0] ? dy : 0), LAMBD_BIAS)

ACTIVATIONS(REFERENCE_MAP_FUNCTIONS)

static pen_status activation_clip(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const pen_tensor *low = pen_reference_input(call, 1), *high = pen_reference_input(call, 2);
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        const pen_tensor *chosen = x;
        int64_t index = k;
        if (low != NULL && reference_compare(x, k, low, 0) == REFERENCE_LESS) {
            chosen = low;
            index = 0;
        }
        if (high != NULL && reference_compare(chosen, index, high, 0) == REFERENCE_GREATER) {
            chosen = high;
            index = 0;
        }
        reference_copy_element(y, k, chosen, index);
    }
    return PEN_OK;
}

static pen_status activation_clip_backward(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *y = &call->inputs[1], *dx = &call->outputs[0];
    const pen_tensor *low = pen_reference_input(call, 2), *high = pen_reference_input(call, 3);
    for (int64_t k = 0; k < pen_tensor_count(dx); k++) {
        const double at = pen_tensor_get(y, k);
        const bool is_held = (low != NULL && at <= pen_tensor_get(low, 0)) ||
                             (high != NULL && at >= pen_tensor_get(high, 0));
        pen_tensor_set(dx, k, is_held ? 0 : pen_tensor_get(dy, k));
    }
    return PEN_OK;
}

// Sets a tensor from (a, b, slope) at each position; slope broadcasts to them.
static void prelu_walk(const pen_tensor *a, const pen_tensor *b, const pen_tensor *slope,
                       const pen_tensor *out) {
    const pen_shape *shapes[1] = {&slope->type.shape};
    pen_broadcast_walk walk;
    for (pen_broadcast_start(&walk, &out->type.shape, 1, shapes); pen_broadcast_more(&walk);
         pen_broadcast_next(&walk)) {
        const int64_t k = walk.position, s = walk.index[0];
        const pen_element_type element = a->type.element;
        if (pen_element_is_integer(element)) {
            const int64_t x = pen_tensor_get_int(a, k);
            const bool is_negative = pen_element_is_signed(element) && x < 0;
            const uint64_t factor = is_negative ? (uint64_t)pen_tensor_get_int(slope, s) : 1;
            pen_tensor_set_int(out, k, (int64_t)((uint64_t)x * factor));
        } else {
            const double x = pen_tensor_get(a, k);
            const bool is_negative = pen_tensor_get(b, k) < 0;
            pen_tensor_set(out, k, is_negative ? x * pen_tensor_get(slope, s) : x);
        }
    }
}

static pen_status activation_prelu(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0];
    prelu_walk(x, x, &call->inputs[1], &call->outputs[0]);
    return PEN_OK;
}

static pen_status activation_prelu_backward(const pen_reference_call *call) {
    prelu_walk(&call->inputs[0], &call->inputs[1], &call->inputs[2], &call->outputs[0]);
    return PEN_OK;
}

static pen_status activation_prelu_backward_slope(const pen_reference_call *call) {
    for (int64_t k = 0; k < pen_tensor_count(&call->outputs[0]); k++) {
        const double dy = pen_tensor_get(&call->inputs[0], k);
        const double x = pen_tensor_get(&call->inputs[1], k);
        pen_tensor_set(&call->outputs[0], k, x < 0 ? dy * x : 0);
    }
    return PEN_OK;
}

static const pen_reference_kernel activation_kernels[] = {
    // clang-format off
    ACTIVATIONS(REFERENCE_MAP_KERNELS)
    // clang-format on
    {"clip", activation_clip, NULL},
    {"clip_backward", activation_clip_backward, NULL},
    {"prelu", activation_prelu, NULL},
    {"prelu_backward", activation_prelu_backward, NULL},
    {"prelu_backward_slope", activation_prelu_backward_slope, NULL},
};

PEN_REFERENCE_FAMILY(activation);
