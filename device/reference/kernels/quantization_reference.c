// Numbers as small integers.

#include <math.h>

#include "device/reference/reference_kernel.h"
#include "graph/op.h"

// Which element of scale and zero element `k` of x has.
static int64_t quantization_slice(const pen_reference_call *call, int64_t k) {
    const pen_shape *x = &call->inputs[0].type.shape;
    uint32_t axis;
    const pen_status status = pen_shape_axis(x->rank, pen_node_int(call->node, "axis"), &axis);
    if (status != PEN_OK) {
        pen_status_ignore(status, "one number for all needs no axis");
        return 0;
    }
    return k / pen_shape_count(x, axis + 1, x->rank) % x->dims[axis];
}

typedef struct quantization_pair {
    double scale, zero;
} quantization_pair;

static quantization_pair quantization_of(const pen_reference_call *call, int64_t k) {
    const pen_tensor *scale = &call->inputs[1];
    const bool has_zero = pen_reference_input(call, 2) != NULL;
    const int64_t slice = quantization_slice(call, k);
    quantization_pair pair = {.scale =
                                  pen_tensor_get(scale, pen_tensor_count(scale) == 1 ? 0 : slice)};
    if (!has_zero) return pair;
    const pen_tensor *zero = &call->inputs[2];
    pair.zero = pen_tensor_get(zero, pen_tensor_count(zero) == 1 ? 0 : slice);
    return pair;
}

// Kept within int8 or uint8; what is not a number becomes 0.
static void quantization_set(const pen_tensor *y, int64_t k, double number) {
    const bool is_signed = y->type.element == PEN_INT8;
    const double low = is_signed ? INT8_MIN : 0, high = is_signed ? INT8_MAX : UINT8_MAX;
    if (isnan(number)) number = 0;
    pen_tensor_set_int(y, k, (int64_t)fmin(high, fmax(low, number)));
}

static pen_status quantize_linear_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    for (int64_t k = 0; k < pen_tensor_count(x); k++) {
        const quantization_pair pair = quantization_of(call, k);
        // the quotient is one of float32, as where the model was made
        const double quotient = (double)(float)(pen_tensor_get(x, k) / pair.scale);
        quantization_set(y, k, nearbyint(quotient) + pair.zero);
    }
    return PEN_OK;
}

static pen_status dequantize_linear_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    for (int64_t k = 0; k < pen_tensor_count(x); k++) {
        const quantization_pair pair = quantization_of(call, k);
        pen_tensor_set(y, k, (pen_tensor_get(x, k) - pair.zero) * pair.scale);
    }
    return PEN_OK;
}

static pen_status dynamic_quantize_linear_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    double low = 0, high = 0;
    for (int64_t k = 0; k < pen_tensor_count(x); k++) {
        low = fmin(low, pen_tensor_get(x, k));
        high = fmax(high, pen_tensor_get(x, k));
    }
    const double scale = high > low ? (double)((float)(high - low) / 255.0f) : 1;
    const double zero = fmin(255, fmax(0, nearbyint((double)(float)(-low / scale))));
    pen_tensor_set(&call->outputs[1], 0, scale);
    pen_tensor_set_int(&call->outputs[2], 0, (int64_t)zero);
    for (int64_t k = 0; k < pen_tensor_count(x); k++) {
        const double quotient = (double)(float)(pen_tensor_get(x, k) / scale);
        quantization_set(y, k, nearbyint(quotient) + zero);
    }
    return PEN_OK;
}

static const pen_reference_kernel quantization_kernels[] = {
    {"quantize_linear", quantize_linear_run, NULL},
    {"dequantize_linear", dequantize_linear_run, NULL},
    {"dynamic_quantize_linear", dynamic_quantize_linear_run, NULL},
};

PEN_REFERENCE_FAMILY(quantization);
