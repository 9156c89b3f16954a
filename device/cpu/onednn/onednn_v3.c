// oneDNN 3: descriptors are objects, and primitives are described at once.
#include "device/cpu/onednn/onednn_version.h"

#if DNNL_VERSION_MAJOR == 3

// Blocks along channels are chosen by the number of threads, too: all of them, to be sure.
bool pen_onednn_sums_by_threads(const char *implementation) {
    (void)implementation;
    return true;
}

// Everything runs in parts: else what answers requests one by one would have one thread.
bool pen_onednn_divides_images(void) {
    return true;
}

// To be destroyed, on failure as well, when it is not NULL.
static dnnl_status_t v3_describe(const pen_onednn_tensor *tensor, dnnl_memory_desc_t *out_md) {
    *out_md = NULL;
    if (tensor->rank == 0) return dnnl_success;
    if (tensor->tag == dnnl_format_tag_undef) {
        return dnnl_memory_desc_create_with_strides(out_md, tensor->rank, tensor->dims, dnnl_f32,
                                                    tensor->strides);
    }
    return dnnl_memory_desc_create_with_tag(out_md, tensor->rank, tensor->dims, dnnl_f32,
                                            tensor->tag);
}

static void v3_forget(dnnl_memory_desc_t md) {
    if (md != NULL) dnnl_memory_desc_destroy(md);
}

dnnl_status_t pen_onednn_memory_create(const pen_onednn_tensor *tensor, dnnl_engine_t engine,
                                       dnnl_memory_t *out_memory) {
    dnnl_memory_desc_t md;
    dnnl_status_t status = v3_describe(tensor, &md);
    if (status == dnnl_success) {
        status = dnnl_memory_create(out_memory, md, engine, DNNL_MEMORY_NONE);
    }
    v3_forget(md);
    return status;
}

// Behind the last channel, memories keep what is there: unlike oneDNN 2's, this writes no zeros.
dnnl_status_t pen_onednn_memory_point(dnnl_memory_t memory, void *bytes, dnnl_stream_t stream) {
    (void)stream;
    return dnnl_memory_set_data_handle(memory, bytes);
}

dnnl_status_t pen_onednn_append_sum(dnnl_post_ops_t post_ops) {
    return dnnl_post_ops_append_sum(post_ops, 1.0f, 0, dnnl_data_type_undef);
}

// The descriptors of a convolution's tensors.
typedef struct v3_tensors {
    dnnl_memory_desc_t source, weight, bias, result; // bias may be NULL
} v3_tensors;

static dnnl_status_t v3_forward(const pen_onednn_convolution *c, const v3_tensors *t,
                                dnnl_engine_t engine, dnnl_primitive_desc_t *out) {
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, dnnl_forward_training, c->algorithm, t->source, t->weight, t->bias, t->result,
        c->strides, c->dilations, c->pads_begin, c->pads_end, c->attributes);
}

// Backward primitives are made with the forward one as a hint.
static dnnl_status_t v3_backward(const pen_onednn_convolution *c, const v3_tensors *t,
                                 dnnl_engine_t engine, dnnl_primitive_desc_t *out) {
    dnnl_primitive_desc_t forward;
    dnnl_status_t status = v3_forward(c, t, engine, &forward);
    if (status != dnnl_success) return status;
    if (c->pass == PEN_ONEDNN_BACKWARD_INPUT) {
        status = dnnl_convolution_backward_data_primitive_desc_create(
            out, engine, c->algorithm, t->source, t->weight, t->result, c->strides, c->dilations,
            c->pads_begin, c->pads_end, forward, c->attributes);
    } else {
        status = dnnl_convolution_backward_weights_primitive_desc_create(
            out, engine, c->algorithm, t->source, t->weight, NULL, t->result, c->strides,
            c->dilations, c->pads_begin, c->pads_end, forward, c->attributes);
    }
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static dnnl_status_t v3_primitive(const pen_onednn_convolution *c, const v3_tensors *t,
                                  dnnl_engine_t engine, dnnl_primitive_desc_t *out) {
    switch (c->pass) {
    case PEN_ONEDNN_FORWARD:
        return v3_forward(c, t, engine, out);
    case PEN_ONEDNN_TRANSPOSED:
        return dnnl_deconvolution_forward_primitive_desc_create(
            out, engine, dnnl_forward_training, dnnl_deconvolution_direct, t->source, t->weight,
            t->bias, t->result, c->strides, c->dilations, c->pads_begin, c->pads_end,
            c->attributes);
    case PEN_ONEDNN_BACKWARD_INPUT:
    case PEN_ONEDNN_BACKWARD_WEIGHT:
        break;
    }
    return v3_backward(c, t, engine, out);
}

static dnnl_status_t v3_convolution(const pen_onednn_convolution *c, dnnl_engine_t engine,
                                    dnnl_primitive_desc_t *out) {
    v3_tensors t = {NULL, NULL, NULL, NULL};
    dnnl_status_t status = v3_describe(c->source, &t.source);
    if (status == dnnl_success) status = v3_describe(c->weight, &t.weight);
    if (status == dnnl_success) status = v3_describe(c->bias, &t.bias);
    if (status == dnnl_success) status = v3_describe(c->result, &t.result);
    if (status == dnnl_success) status = v3_primitive(c, &t, engine, out);
    v3_forget(t.source);
    v3_forget(t.weight);
    v3_forget(t.bias);
    v3_forget(t.result);
    return status;
}

// oneDNN 3.7.2 computes wrong numbers with AVX-512 where an input of one channel gives rows of one
// element with a stride above 1: of 11 x 4, a window of 3 x 2 with strides 1, 3. A window that does
// not move has no stride, so that it may as well be 1; the end of the input is then where the
// window ends.
dnnl_status_t pen_onednn_convolution_describe(const pen_onednn_convolution *convolution,
                                              dnnl_engine_t engine,
                                              dnnl_primitive_desc_t *out_primitive) {
    pen_onednn_convolution still = *convolution;
    dnnl_dims_t strides, pads_end;
    if (convolution->pass == PEN_ONEDNN_TRANSPOSED) {
        return v3_convolution(convolution, engine, out_primitive);
    }
    for (int i = 0; i < convolution->source->rank - 2; i++) {
        const int axis = convolution->weight->rank - convolution->source->rank + 2 + i;
        const dnnl_dim_t last = convolution->weight->dims[axis] - 1;
        const dnnl_dim_t extent = last * (convolution->dilations[i] + 1) + 1;
        const bool moves = convolution->result->dims[i + 2] > 1;
        strides[i] = moves ? convolution->strides[i] : 1;
        pads_end[i] = moves
                          ? convolution->pads_end[i]
                          : extent - convolution->source->dims[i + 2] - convolution->pads_begin[i];
    }
    still.strides = strides;
    still.pads_end = pads_end;
    return v3_convolution(&still, engine, out_primitive);
}

#endif // DNNL_VERSION_MAJOR == 3
