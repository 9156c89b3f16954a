// The contract of the two files that know oneDNN's version, and what its versions 2 and 3 say in
// different words. onednn_v2.c and onednn_v3.c each define all of it, and compile to nothing with
// the other one's headers; no other file asks for the version.
// What has no difference is called by its own name: primitives, memories, attributes, sgemm.
//
// Tensors are described by values of ours, since descriptors are values in oneDNN 2, and objects to
// be destroyed in oneDNN 3. Those are made inside these functions, while primitives are prepared; a
// run only points memories at their bytes.
#ifndef PEN_DEVICE_CPU_ONEDNN_ONEDNN_VERSION_H
#define PEN_DEVICE_CPU_ONEDNN_ONEDNN_VERSION_H

#include <dnnl.h>
#include <stdbool.h>

// A descriptor that a memory or a primitive owns.
#if DNNL_VERSION_MAJOR == 2
typedef const dnnl_memory_desc_t *pen_onednn_md;
#else
typedef const_dnnl_memory_desc_t pen_onednn_md;
#endif

// A float32 tensor as it lies.
typedef struct pen_onednn_tensor {
    int rank; // 0: there is none
    dnnl_dims_t dims;
    dnnl_format_tag_t tag; // dnnl_format_tag_undef: by strides; dnnl_format_tag_any: oneDNN chooses
    dnnl_dims_t strides;   // in elements
} pen_onednn_tensor;

typedef enum pen_onednn_pass {
    PEN_ONEDNN_FORWARD,
    PEN_ONEDNN_BACKWARD_INPUT,
    PEN_ONEDNN_BACKWARD_WEIGHT,
    PEN_ONEDNN_TRANSPOSED, // a deconvolution, forward; always direct
} pen_onednn_pass;

// Everything is borrowed for the call. The names are those of the forward pass: backward ones make
// the gradient of `source` or `weight` from that of `result`.
typedef struct pen_onednn_convolution {
    pen_onednn_pass pass;
    dnnl_alg_kind_t algorithm;
    const pen_onednn_tensor *source;
    const pen_onednn_tensor *weight;
    const pen_onednn_tensor *bias; // of rank 0: none
    const pen_onednn_tensor *result;
    const dnnl_dim_t *strides; // [rank of source - 2], as the next three
    const dnnl_dim_t *dilations;
    const dnnl_dim_t *pads_begin;
    const dnnl_dim_t *pads_end;
    const_dnnl_primitive_attr_t attributes;
} pen_onednn_convolution;

// Whether an implementation, as dnnl_query_impl_info_str names it, groups the sums of a convolution
// by the number of threads. (Gradients of weights run in parts whatever this says.)
bool pen_onednn_sums_by_threads(const char *implementation);

// Whether the forward pass of one image, where it runs in parts, is divided by channels of the
// result; else it is one part.
bool pen_onednn_divides_images(void);

// A memory without bytes, for the caller to destroy.
dnnl_status_t pen_onednn_memory_create(const pen_onednn_tensor *tensor, dnnl_engine_t engine,
                                       dnnl_memory_t *out_memory);

// Where the memory's bytes are from now on.
dnnl_status_t pen_onednn_memory_point(dnnl_memory_t memory, void *bytes, dnnl_stream_t stream);

// What is computed is added to what is there.
dnnl_status_t pen_onednn_append_sum(dnnl_post_ops_t post_ops);

// dnnl_unimplemented: this version, or this processor, does not have it.
dnnl_status_t pen_onednn_convolution_describe(const pen_onednn_convolution *convolution,
                                              dnnl_engine_t engine,
                                              dnnl_primitive_desc_t *out_primitive);

#endif // PEN_DEVICE_CPU_ONEDNN_ONEDNN_VERSION_H
