// Which gradients of convolutions of one channel each have kernels of our own, in blocked layouts
// (device/cpu/kernels/depthwise_cpu.c). oneDNN is as fast forward, and faster with windows of 3.
#ifndef PEN_DEVICE_CPU_DEPTHWISE_H
#define PEN_DEVICE_CPU_DEPTHWISE_H

#include <stdbool.h>

#include "graph/graph_types.h"
#include "graph/ops/product/convolution_geometry.h"

#define PEN_DEPTHWISE_ROWS 8   // of a window, at most
#define PEN_DEPTHWISE_STRIDE 2 // in either dimension, at most
// The dimensions of a picture in a geometry.
#define PEN_DEPTHWISE_Y (PEN_SPATIAL_LIMIT - 2)
#define PEN_DEPTHWISE_X (PEN_SPATIAL_LIMIT - 1)

// Whether `node`, of any op, is a conv_backward_input or conv_backward_weight of float32 pictures
// whose groups have one input and one output channel, with windows of 5 or 7 columns that are not
// dilated. Sets *out_geometry then. How the values lie does not count.
bool pen_depthwise_is(const pen_graph *graph, const pen_node *node,
                      pen_conv_geometry *out_geometry);

#endif // PEN_DEVICE_CPU_DEPTHWISE_H
