#include "device/reference/reference_kernel.h"

#include <math.h>
#include <string.h>

static const pen_reference_family *const reference_families[] = {
    &pen_elementwise_reference,  &pen_unary_reference,      &pen_activation_reference,
    &pen_gelu_reference,         &pen_comparison_reference, &pen_reduction_reference,
    &pen_softmax_reference,      &pen_loss_reference,       &pen_matmul_reference,
    &pen_convolution_reference,  &pen_pooling_reference,    &pen_normalization_reference,
    &pen_layer_norm_reference,   &pen_dropout_reference,    &pen_reshape_reference,
    &pen_movement_reference,     &pen_slice_reference,      &pen_indexing_reference,
    &pen_constant_reference,     &pen_optimizer_reference,  &pen_transfer_reference,
    &pen_recurrent_reference,    &pen_attention_reference,  &pen_series_reference,
    &pen_selection_reference,    &pen_einsum_reference,     &pen_resize_reference,
    &pen_quantization_reference, &pen_random_reference,     &pen_spectrum_reference,
    &pen_unpool_reference,
};

const pen_reference_kernel *pen_reference_kernel_find(const char *op_name) {
    for (size_t f = 0; f < sizeof reference_families / sizeof *reference_families; f++) {
        const pen_reference_family *family = reference_families[f];
        for (uint32_t i = 0; i < family->kernel_count; i++) {
            if (strcmp(family->kernels[i].op_name, op_name) == 0) return &family->kernels[i];
        }
    }
    return NULL;
}

int64_t pen_tensor_count(const pen_tensor *tensor) {
    return pen_shape_element_count(&tensor->type.shape);
}

// Runs an accumulating node: into fresh tensors, then added to the old contents.
static pen_status reference_run_adding(const pen_reference_call *call,
                                       const pen_reference_kernel *kernel) {
    const uint32_t count = call->node->output_count;
    pen_tensor *fresh;
    PEN_TRY(PEN_NEW(call->scratch, count, &fresh));
    for (uint32_t i = 0; i < count; i++) {
        fresh[i] = call->outputs[i];
        if (fresh[i].data == NULL) continue;
        char *bytes;
        PEN_TRY(PEN_NEW(call->scratch, pen_tensor_type_bytes(&fresh[i].type), &bytes));
        fresh[i].data = bytes;
    }
    pen_reference_call inner = *call;
    inner.outputs = fresh;
    PEN_TRY(kernel->run(&inner));
    for (uint32_t i = 0; i < count; i++) {
        if (fresh[i].data == NULL) continue;
        for (int64_t k = 0; k < pen_tensor_count(&fresh[i]); k++) {
            pen_tensor_set(&call->outputs[i], k,
                           pen_tensor_get(&call->outputs[i], k) + pen_tensor_get(&fresh[i], k));
        }
    }
    return PEN_OK;
}

pen_status pen_reference_run(const pen_reference_call *call, bool first_microbatch) {
    const pen_reference_kernel *kernel = pen_reference_kernel_find(call->node->op->name);
    if (kernel == NULL) {
        return pen_error(PEN_UNSUPPORTED, "the reference device has no kernel for '%s'",
                         call->node->op->name);
    }
    if (call->node->accumulates && !first_microbatch) return reference_run_adding(call, kernel);
    return kernel->run(call);
}

static double reference_half_to_double(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int mantissa = bits & 1023;
    double number;
    if (exponent == 31) {
        number = mantissa != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        number = ldexp(mantissa, -24);
    } else {
        number = ldexp(mantissa + 1024, exponent - 25);
    }
    return bits & 0x8000 ? -number : number;
}

static uint16_t reference_double_to_half(double number) {
    const uint16_t sign = signbit(number) ? 0x8000 : 0;
    if (isnan(number)) return (uint16_t)(sign | 0x7e00);
    const double magnitude = fabs(number);
    if (magnitude >= 65520.0) return (uint16_t)(sign | 0x7c00);
    int exponent;
    frexp(magnitude, &exponent); // magnitude = m * 2^exponent, m in [0.5, 1)
    if (magnitude == 0 || exponent < -13) exponent = -13;
    const double scaled = nearbyint(ldexp(magnitude, 11 - exponent)); // in [0, 2048]
    if (exponent == -13 && scaled < 1024) return (uint16_t)(sign | (uint16_t)scaled);
    // a mantissa rounded up to 2048 carries into the exponent by the addition
    return (uint16_t)(sign | (uint16_t)((exponent + 13) * 1024 + (int)scaled));
}

static uint16_t reference_double_to_bfloat(double number) {
    float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (isnan(number)) return (uint16_t)(bits >> 16 | 0x40);
    // double rounding (to float, then here) is accepted: bfloat16 is storage only
    bits += 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

static double reference_bfloat_to_double(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float single;
    memcpy(&single, &bits, sizeof single);
    return (double)single;
}

double pen_tensor_get(const pen_tensor *tensor, int64_t index) {
    const void *data = tensor->data;
    switch (tensor->type.element) {
    case PEN_FLOAT32:
        return (double)((const float *)data)[index];
    case PEN_FLOAT64:
        return ((const double *)data)[index];
    case PEN_FLOAT16:
        return reference_half_to_double(((const uint16_t *)data)[index]);
    case PEN_BFLOAT16:
        return reference_bfloat_to_double(((const uint16_t *)data)[index]);
    case PEN_UINT64:
        return (double)((const uint64_t *)data)[index];
    case PEN_INT8:
    case PEN_INT16:
    case PEN_INT32:
    case PEN_INT64:
    case PEN_UINT8:
    case PEN_UINT16:
    case PEN_UINT32:
    case PEN_BOOL:
        return (double)pen_tensor_get_int(tensor, index);
    case PEN_ELEMENT_UNKNOWN:
    case PEN_ELEMENT_TYPE_COUNT:
        break;
    }
    PEN_NEVER("a tensor of a known type");
    return 0;
}

void pen_tensor_set(const pen_tensor *tensor, int64_t index, double number) {
    void *data = tensor->data;
    switch (tensor->type.element) {
    case PEN_FLOAT32:
        ((float *)data)[index] = (float)number;
        return;
    case PEN_FLOAT64:
        ((double *)data)[index] = number;
        return;
    case PEN_FLOAT16:
        ((uint16_t *)data)[index] = reference_double_to_half(number);
        return;
    case PEN_BFLOAT16:
        ((uint16_t *)data)[index] = reference_double_to_bfloat(number);
        return;
    case PEN_BOOL:
        ((uint8_t *)data)[index] = number != 0;
        return;
    case PEN_UINT64:
        if (number >= 0x1p63 && number < 0x1p64) {
            ((uint64_t *)data)[index] = (uint64_t)number;
            return;
        }
        break;
    case PEN_INT8:
    case PEN_INT16:
    case PEN_INT32:
    case PEN_INT64:
    case PEN_UINT8:
    case PEN_UINT16:
    case PEN_UINT32:
        break;
    case PEN_ELEMENT_UNKNOWN:
    case PEN_ELEMENT_TYPE_COUNT:
        PEN_NEVER("a tensor of a known type");
        return;
    }
    // beyond int64, C leaves the conversion undefined: saturate
    int64_t integer = 0;
    if (number >= 0x1p63)
        integer = INT64_MAX;
    else if (number < -0x1p63)
        integer = INT64_MIN;
    else if (!isnan(number))
        integer = (int64_t)number;
    pen_tensor_set_int(tensor, index, integer);
}

int64_t pen_tensor_get_int(const pen_tensor *tensor, int64_t index) {
    const void *data = tensor->data;
    switch (tensor->type.element) {
    case PEN_INT8:
        return ((const int8_t *)data)[index];
    case PEN_INT16:
        return ((const int16_t *)data)[index];
    case PEN_INT32:
        return ((const int32_t *)data)[index];
    case PEN_INT64:
        return ((const int64_t *)data)[index];
    case PEN_UINT8:
    case PEN_BOOL:
        return ((const uint8_t *)data)[index];
    case PEN_UINT16:
        return ((const uint16_t *)data)[index];
    case PEN_UINT32:
        return ((const uint32_t *)data)[index];
    case PEN_UINT64:
        return (int64_t)((const uint64_t *)data)[index];
    case PEN_FLOAT32:
    case PEN_FLOAT64:
    case PEN_FLOAT16:
    case PEN_BFLOAT16:
        return (int64_t)pen_tensor_get(tensor, index);
    case PEN_ELEMENT_UNKNOWN:
    case PEN_ELEMENT_TYPE_COUNT:
        break;
    }
    PEN_NEVER("a tensor of a known type");
    return 0;
}

void pen_tensor_set_int(const pen_tensor *tensor, int64_t index, int64_t number) {
    void *data = tensor->data;
    switch (tensor->type.element) {
    case PEN_INT8:
        ((int8_t *)data)[index] = (int8_t)number;
        return;
    case PEN_INT16:
        ((int16_t *)data)[index] = (int16_t)number;
        return;
    case PEN_INT32:
        ((int32_t *)data)[index] = (int32_t)number;
        return;
    case PEN_INT64:
        ((int64_t *)data)[index] = number;
        return;
    case PEN_UINT8:
        ((uint8_t *)data)[index] = (uint8_t)number;
        return;
    case PEN_UINT16:
        ((uint16_t *)data)[index] = (uint16_t)number;
        return;
    case PEN_UINT32:
        ((uint32_t *)data)[index] = (uint32_t)number;
        return;
    case PEN_UINT64:
        ((uint64_t *)data)[index] = (uint64_t)number;
        return;
    case PEN_BOOL:
        ((uint8_t *)data)[index] = number != 0;
        return;
    case PEN_FLOAT32:
    case PEN_FLOAT64:
    case PEN_FLOAT16:
    case PEN_BFLOAT16:
        pen_tensor_set(tensor, index, (double)number);
        return;
    case PEN_ELEMENT_UNKNOWN:
    case PEN_ELEMENT_TYPE_COUNT:
        break;
    }
    PEN_NEVER("a tensor of a known type");
}

void pen_broadcast_start(pen_broadcast_walk *walk, const pen_shape *shape, uint32_t operand_count,
                         const pen_shape *const *operand_shapes) {
    PEN_ASSERT(operand_count <= PEN_BROADCAST_OPERANDS);
    memset(walk, 0, sizeof *walk);
    walk->shape = *shape;
    walk->operand_count = operand_count;
    walk->count = pen_shape_element_count(shape);
    for (uint32_t o = 0; o < operand_count; o++) {
        const pen_shape *operand = operand_shapes[o];
        PEN_ASSERT(operand->rank <= shape->rank);
        int64_t stride = 1;
        for (uint32_t i = 0; i < operand->rank; i++) { // counted from the last dimension
            const int64_t dim = operand->dims[operand->rank - 1 - i];
            walk->strides[o][shape->rank - 1 - i] = dim == 1 ? 0 : stride;
            stride *= dim;
        }
    }
}

void pen_broadcast_next(pen_broadcast_walk *walk) {
    walk->position += 1;
    for (uint32_t d = walk->shape.rank; d-- > 0;) {
        walk->at[d] += 1;
        for (uint32_t o = 0; o < walk->operand_count; o++) {
            walk->index[o] += walk->strides[o][d];
        }
        if (walk->at[d] < walk->shape.dims[d]) return;
        for (uint32_t o = 0; o < walk->operand_count; o++) {
            walk->index[o] -= walk->strides[o][d] * walk->shape.dims[d];
        }
        walk->at[d] = 0;
    }
}
