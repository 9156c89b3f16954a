// oneDNN 2: descriptors are values, and an operation is described before its primitive is.
#include "device/cpu/onednn/onednn_version.h"

#include <string.h>

#if DNNL_VERSION_MAJOR == 2

// Those by matrix products divide them along the sum, too.
bool pen_onednn_sums_by_threads(const char *implementation) {
    return strstr(implementation, "gemm") != NULL;
}

// Only matrix products run in parts.
bool pen_onednn_divides_images(void) {
    return false;
}

static dnnl_status_t v2_describe(const pen_onednn_tensor *tensor, dnnl_memory_desc_t *out_md) {
    if (tensor->tag == dnnl_format_tag_undef) {
        return dnnl_memory_desc_init_by_strides(out_md, tensor->rank, tensor->dims, dnnl_f32,
                                                tensor->strides);
    }
    return dnnl_memory_desc_init_by_tag(out_md, tensor->rank, tensor->dims, dnnl_f32, tensor->tag);
}

dnnl_status_t pen_onednn_memory_create(const pen_onednn_tensor *tensor, dnnl_engine_t engine,
                                       dnnl_memory_t *out_memory) {
    dnnl_memory_desc_t md;
    const dnnl_status_t status = v2_describe(tensor, &md);
    if (status != dnnl_success) return status;
    return dnnl_memory_create(out_memory, &md, engine, DNNL_MEMORY_NONE);
}

dnnl_status_t pen_onednn_memory_point(dnnl_memory_t memory, void *bytes, dnnl_stream_t stream) {
    return dnnl_memory_set_data_handle_v2(memory, bytes, stream);
}

dnnl_status_t pen_onednn_append_sum(dnnl_post_ops_t post_ops) {
    return dnnl_post_ops_append_sum(post_ops, 1.0f);
}

// The descriptors of a convolution's tensors.
typedef struct v2_tensors {
    dnnl_memory_desc_t source, weight, bias, result;
    const dnnl_memory_desc_t *bias_if_any;
} v2_tensors;

static dnnl_status_t v2_describe_all(const pen_onednn_convolution *c, v2_tensors *t) {
    dnnl_status_t status = v2_describe(c->source, &t->source);
    if (status == dnnl_success) status = v2_describe(c->weight, &t->weight);
    if (status == dnnl_success) status = v2_describe(c->result, &t->result);
    t->bias_if_any = NULL;
    if (status != dnnl_success || c->bias->rank == 0) return status;
    t->bias_if_any = &t->bias;
    return v2_describe(c->bias, &t->bias);
}

static dnnl_status_t v2_forward(const pen_onednn_convolution *c, const v2_tensors *t,
                                dnnl_engine_t engine, dnnl_primitive_desc_t *out) {
    dnnl_convolution_desc_t conv;
    const dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &conv, dnnl_forward_training, c->algorithm, &t->source, &t->weight, t->bias_if_any,
        &t->result, c->strides, c->dilations, c->pads_begin, c->pads_end);
    if (status != dnnl_success) return status;
    return dnnl_primitive_desc_create(out, &conv, c->attributes, engine, NULL);
}

static dnnl_status_t v2_transposed(const pen_onednn_convolution *c, const v2_tensors *t,
                                   dnnl_engine_t engine, dnnl_primitive_desc_t *out) {
    dnnl_deconvolution_desc_t deconv;
    const dnnl_status_t status = dnnl_dilated_deconvolution_forward_desc_init(
        &deconv, dnnl_forward_training, dnnl_deconvolution_direct, &t->source, &t->weight,
        t->bias_if_any, &t->result, c->strides, c->dilations, c->pads_begin, c->pads_end);
    if (status != dnnl_success) return status;
    return dnnl_primitive_desc_create(out, &deconv, c->attributes, engine, NULL);
}

// Backward primitives are made with the forward one as a hint.
static dnnl_status_t v2_backward(const pen_onednn_convolution *c, const v2_tensors *t,
                                 dnnl_engine_t engine, dnnl_primitive_desc_t *out) {
    dnnl_convolution_desc_t conv;
    dnnl_status_t status = c->pass == PEN_ONEDNN_BACKWARD_INPUT
                               ? dnnl_dilated_convolution_backward_data_desc_init(
                                     &conv, c->algorithm, &t->source, &t->weight, &t->result,
                                     c->strides, c->dilations, c->pads_begin, c->pads_end)
                               : dnnl_dilated_convolution_backward_weights_desc_init(
                                     &conv, c->algorithm, &t->source, &t->weight, NULL, &t->result,
                                     c->strides, c->dilations, c->pads_begin, c->pads_end);
    dnnl_primitive_desc_t forward;
    if (status == dnnl_success) status = v2_forward(c, t, engine, &forward);
    if (status != dnnl_success) return status;
    status = dnnl_primitive_desc_create(out, &conv, c->attributes, engine, forward);
    dnnl_primitive_desc_destroy(forward);
    return status;
}

dnnl_status_t pen_onednn_convolution_describe(const pen_onednn_convolution *c, dnnl_engine_t engine,
                                              dnnl_primitive_desc_t *out_primitive) {
    v2_tensors tensors;
    const dnnl_status_t status = v2_describe_all(c, &tensors);
    if (status != dnnl_success) return status;
    switch (c->pass) {
    case PEN_ONEDNN_FORWARD:
        return v2_forward(c, &tensors, engine, out_primitive);
    case PEN_ONEDNN_TRANSPOSED:
        return v2_transposed(c, &tensors, engine, out_primitive);
    case PEN_ONEDNN_BACKWARD_INPUT:
    case PEN_ONEDNN_BACKWARD_WEIGHT:
        break;
    }
    return v2_backward(c, &tensors, engine, out_primitive);
}

#endif // DNNL_VERSION_MAJOR == 2
