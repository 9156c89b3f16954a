// Activation functions. In backward functions v is x or y, as graph/ops/elementwise/activation_op.c
// says.

#include <math.h>

#include "device/reference/reference_compare.h"
#include "device/reference/reference_map.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"

// Clipped to [0, 1]; passes what is not a number on.
static double activation_unit(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}
static double activation_relu(double x, const double *p) {
    (void)p;
    return x > 0 || isnan(x) ? x : 0;
}
static double activation_relu_backward(double dy, double v, const double *p) {
    (void)p;
    return v > 0 ? dy : 0;
}
static int64_t activation_relu_integer(int64_t x, bool is_signed) {
    (void)is_signed;
    return x > 0 ? x : 0;
}
static double activation_leaky_relu(double x, const double *p) {
    return x >= 0 ? x : p[0] * x;
}
static double activation_leaky_relu_backward(double dy, double v, const double *p) {
    return v > 0 ? dy : p[0] * dy;
}
static double activation_sigmoid(double x, const double *p) {
    (void)p;
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}
static double activation_sigmoid_backward(double dy, double v, const double *p) {
    (void)p;
    return dy * v * (1 - v);
}
static double activation_tanh(double x, const double *p) {
    (void)p;
    return tanh(x);
}
static double activation_tanh_backward(double dy, double v, const double *p) {
    (void)p;
    return dy * (1 - v * v);
}
static double activation_elu(double x, const double *p) {
    return x >= 0 ? x : p[0] * expm1(x);
}
static double activation_elu_backward(double dy, double v, const double *p) {
    return v > 0 ? dy : dy * p[0] * exp(v);
}
static double activation_celu(double x, const double *p) {
    return x >= 0 ? x : p[0] * expm1(x / p[0]);
}
static double activation_celu_backward(double dy, double v, const double *p) {
    return v > 0 ? dy : dy * exp(v / p[0]);
}
static double activation_selu(double x, const double *p) {
    return x > 0 ? p[1] * x : p[1] * p[0] * expm1(x);
}
static double activation_selu_backward(double dy, double v, const double *p) {
    return v > 0 ? dy * p[1] : dy * p[1] * p[0] * exp(v);
}
static double activation_softplus(double x, const double *p) {
    (void)p;
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double activation_softplus_backward(double dy, double v, const double *p) {
    (void)p;
    return dy / (1 + exp(-v));
}
static double activation_mish(double x, const double *p) {
    return x * tanh(activation_softplus(x, p));
}
// With t = tanh(softplus(v)): t + v (1 - t²) sigmoid(v).
static double activation_mish_backward(double dy, double v, const double *p) {
    const double t = tanh(activation_softplus(v, p));
    return dy * (t + v * (1 - t * t) / (1 + exp(-v)));
}
static double activation_softsign(double x, const double *p) {
    (void)p;
    return x / (1 + fabs(x));
}
static double activation_softsign_backward(double dy, double v, const double *p) {
    (void)p;
    return dy / ((1 + fabs(v)) * (1 + fabs(v)));
}
static double activation_hard_sigmoid(double x, const double *p) {
    return activation_unit(p[0] * x + p[1]);
}
static double activation_hard_sigmoid_backward(double dy, double v, const double *p) {
    return v > 0 && v < 1 ? dy * p[0] : 0;
}
static double activation_hard_swish(double x, const double *p) {
    (void)p;
    return x * activation_unit(x / 6 + 0.5);
}
static double activation_hard_swish_backward(double dy, double v, const double *p) {
    (void)p;
    return v <= -3 ? 0 : v >= 3 ? dy : dy * (v / 3 + 0.5);
}
static double activation_thresholded_relu(double x, const double *p) {
    return x <= p[0] ? 0 : x;
}
static double activation_thresholded_relu_backward(double dy, double v, const double *p) {
    return v > p[0] ? dy : 0;
}
static double activation_shrink(double x, const double *p) {
    return x < -p[0] ? x + p[1] : x > p[0] ? x - p[1] : 0;
}
static double activation_shrink_backward(double dy, double v, const double *p) {
    return v < -p[0] || v > p[0] ? dy : 0;
}

static const reference_map activation_maps[] = {
    {"relu", activation_relu, activation_relu_backward, activation_relu_integer, {NULL}},
    {"leaky_relu", activation_leaky_relu, activation_leaky_relu_backward, NULL, {"alpha"}},
    {"sigmoid", activation_sigmoid, activation_sigmoid_backward, NULL, {NULL}},
    {"tanh", activation_tanh, activation_tanh_backward, NULL, {NULL}},
    {"elu", activation_elu, activation_elu_backward, NULL, {"alpha"}},
    {"celu", activation_celu, activation_celu_backward, NULL, {"alpha"}},
    {"selu", activation_selu, activation_selu_backward, NULL, {"alpha", "gamma"}},
    {"softplus", activation_softplus, activation_softplus_backward, NULL, {NULL}},
    {"mish", activation_mish, activation_mish_backward, NULL, {NULL}},
    {"softsign", activation_softsign, activation_softsign_backward, NULL, {NULL}},
    {"hard_sigmoid",
     activation_hard_sigmoid,
     activation_hard_sigmoid_backward,
     NULL,
     {"alpha", "beta"}},
    {"hard_swish", activation_hard_swish, activation_hard_swish_backward, NULL, {NULL}},
    {"thresholded_relu",
     activation_thresholded_relu,
     activation_thresholded_relu_backward,
     NULL,
     {"alpha"}},
    {"shrink", activation_shrink, activation_shrink_backward, NULL, {"lambd", "bias"}},
};

static pen_status activation_run(const pen_reference_call *call) {
    return reference_map_run(call, activation_maps,
                             sizeof activation_maps / sizeof *activation_maps);
}

// A limit of clip, NULL when left out.
static const pen_tensor *clip_limit(const pen_reference_call *call, uint32_t input) {
    const bool is_there = input < call->node->input_count && call->inputs[input].data != NULL;
    return is_there ? &call->inputs[input] : NULL;
}

static pen_status activation_clip(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const pen_tensor *low = clip_limit(call, 1), *high = clip_limit(call, 2);
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
    const pen_tensor *low = clip_limit(call, 2), *high = clip_limit(call, 3);
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
    {"relu", activation_run},
    {"relu_backward", activation_run},
    {"leaky_relu", activation_run},
    {"leaky_relu_backward", activation_run},
    {"sigmoid", activation_run},
    {"sigmoid_backward", activation_run},
    {"tanh", activation_run},
    {"tanh_backward", activation_run},
    {"elu", activation_run},
    {"elu_backward", activation_run},
    {"celu", activation_run},
    {"celu_backward", activation_run},
    {"selu", activation_run},
    {"selu_backward", activation_run},
    {"softplus", activation_run},
    {"softplus_backward", activation_run},
    {"mish", activation_run},
    {"mish_backward", activation_run},
    {"softsign", activation_run},
    {"softsign_backward", activation_run},
    {"hard_sigmoid", activation_run},
    {"hard_sigmoid_backward", activation_run},
    {"hard_swish", activation_run},
    {"hard_swish_backward", activation_run},
    {"thresholded_relu", activation_run},
    {"thresholded_relu_backward", activation_run},
    {"shrink", activation_run},
    {"shrink_backward", activation_run},
    {"clip", activation_clip},
    {"clip_backward", activation_clip_backward},
    {"prelu", activation_prelu},
    {"prelu_backward", activation_prelu_backward},
    {"prelu_backward_slope", activation_prelu_backward_slope},
};

const pen_reference_family pen_activation_reference = {
    activation_kernels, sizeof activation_kernels / sizeof *activation_kernels};
