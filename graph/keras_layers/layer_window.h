// Windows that move over tensors, of convolutions and pools: Keras' padding to ONNX' pads.
//
// Lifetime, threads: plain data.
#ifndef PEN_GRAPH_KERAS_LAYERS_LAYER_WINDOW_H
#define PEN_GRAPH_KERAS_LAYERS_LAYER_WINDOW_H

#include "graph/keras_layers/layer_build.h"

typedef struct pen_layer_window {
    uint32_t rank;
    int64_t kernel[PEN_LAYER_SPATIAL_LIMIT];
    int64_t strides[PEN_LAYER_SPATIAL_LIMIT];
    int64_t dilations[PEN_LAYER_SPATIAL_LIMIT];
    pen_layer_padding padding;
} pen_layer_window;

// kernel_shape, strides, dilations and pads as attributes, which point into the struct itself: it
// must not be copied. There is room for one more.
typedef struct pen_layer_window_attributes {
    int64_t kernel[PEN_LAYER_SPATIAL_LIMIT];
    int64_t strides[PEN_LAYER_SPATIAL_LIMIT];
    int64_t dilations[PEN_LAYER_SPATIAL_LIMIT];
    int64_t pads[2 * PEN_LAYER_SPATIAL_LIMIT];
    int64_t output[PEN_LAYER_SPATIAL_LIMIT]; // sizes of the result
    uint32_t count;
    pen_attribute_given given[5];
} pen_layer_window_attributes;

// Over a tensor of these sizes. Of padding that cannot be even, `same` has more at the end.
//   INVALID_INPUT  no window fits
PEN_NODISCARD pen_status pen_layer_window_resolve(const pen_layer_window *window,
                                                  const int64_t *sizes,
                                                  pen_layer_window_attributes *out_attributes);

#endif // PEN_GRAPH_KERAS_LAYERS_LAYER_WINDOW_H
