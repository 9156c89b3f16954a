// The sizes of convolutions and pools, with auto_pad resolved to pads.
//
// Read by the shape rules, the cost formulas and every device's kernels, so that all agree. One
// geometry describes a convolution and its backward ops alike, and a transposed convolution by the
// convolution whose gradient it is.
#ifndef PEN_GRAPH_OPS_PRODUCT_CONVOLUTION_GEOMETRY_H
#define PEN_GRAPH_OPS_PRODUCT_CONVOLUTION_GEOMETRY_H

#include <stdint.h>

#include "base/status.h"
#include "graph/attribute.h"
#include "graph/graph_types.h"
#include "graph/tensor_type.h"

#define PEN_SPATIAL_LIMIT 3

// Arrays are always [3]: a model of fewer spatial dimensions has the trivial ones (size, kernel,
// stride, dilation 1, pads 0) in front, so its own begin at index PEN_SPATIAL_LIMIT - spatial_rank.
//
// Tap k of output position o reads input position o * stride + k * dilation - pad_begin, if that
// lies within [0, input_size). Rounding (ceil_mode) may make the last window end behind pad_end:
// (output_size - 1) * stride + (kernel_size - 1) * dilation + 1 - input_size - pad_begin is how far
// the windows really reach behind the input. It may also be less than pad_end, even negative.
typedef struct pen_conv_geometry {
    uint32_t spatial_rank;
    int64_t batch;
    int64_t group_count;     // pools: the channels
    int64_t input_channels;  // of all groups
    int64_t output_channels; // of all groups
    int64_t input_size[PEN_SPATIAL_LIMIT];
    int64_t output_size[PEN_SPATIAL_LIMIT];
    int64_t kernel_size[PEN_SPATIAL_LIMIT];
    int64_t stride[PEN_SPATIAL_LIMIT];
    int64_t dilation[PEN_SPATIAL_LIMIT];
    int64_t pad_begin[PEN_SPATIAL_LIMIT];
    int64_t pad_end[PEN_SPATIAL_LIMIT];
} pen_conv_geometry;

// The geometry of a node whose operands are typed. All return INVALID_INPUT when ranks, channels,
// attribute lengths or values are wrong, or no window fits.
//   conv(x, w, …)
PEN_NODISCARD pen_status pen_conv_geometry_of(const pen_graph *graph, const pen_node *node,
                                              pen_conv_geometry *out_geometry);
//   conv_backward_input(dy, w; input_shape, …)
PEN_NODISCARD pen_status pen_conv_backward_input_geometry(const pen_graph *graph,
                                                          const pen_node *node,
                                                          pen_conv_geometry *out_geometry);
//   conv_backward_weight(x, dy; kernel_shape, …)
PEN_NODISCARD pen_status pen_conv_backward_weight_geometry(const pen_graph *graph,
                                                           const pen_node *node,
                                                           pen_conv_geometry *out_geometry);
//   conv_transpose(x, w, …): of the convolution from its y to its x, so `input` is y, `output` is
//   x, and y is what conv_backward_input of x would be, plus the bias.
PEN_NODISCARD pen_status pen_conv_transpose_geometry(const pen_graph *graph, const pen_node *node,
                                                     pen_conv_geometry *out_geometry);
//   max_pool(x), average_pool(x)
PEN_NODISCARD pen_status pen_pool_geometry(const pen_graph *graph, const pen_node *node,
                                           pen_conv_geometry *out_geometry);
//   max_pool_backward(dy, x, y), average_pool_backward(dy; input_shape)
PEN_NODISCARD pen_status pen_pool_backward_geometry(const pen_graph *graph, const pen_node *node,
                                                    pen_conv_geometry *out_geometry);

// The shapes that a geometry stands for.
pen_shape pen_conv_input_shape(const pen_conv_geometry *geometry);
pen_shape pen_conv_output_shape(const pen_conv_geometry *geometry);
pen_shape pen_conv_weight_shape(const pen_conv_geometry *geometry); // (M, C / groups, kernel…)

// Multiplications and additions of a pass of the convolution (forward, or either backward half):
// 2 * batch * output_channels * outputs * (input_channels / groups) * kernel.
uint64_t pen_conv_geometry_flops(const pen_conv_geometry *geometry);

// kernel_shape, strides, dilations and pads (auto_pad resolved) as attributes for a backward node.
// `given` points into the struct itself, which therefore must not be copied; the caller may append
// more attributes.
typedef struct pen_window_attributes {
    int64_t kernel_shape[PEN_SPATIAL_LIMIT];
    int64_t strides[PEN_SPATIAL_LIMIT];
    int64_t dilations[PEN_SPATIAL_LIMIT];
    int64_t pads[2 * PEN_SPATIAL_LIMIT];
    uint32_t count;
    pen_attribute_given given[8];
} pen_window_attributes;
void pen_window_attributes_make(const pen_conv_geometry *geometry,
                                pen_window_attributes *out_attributes);

#endif // PEN_GRAPH_OPS_PRODUCT_CONVOLUTION_GEOMETRY_H
