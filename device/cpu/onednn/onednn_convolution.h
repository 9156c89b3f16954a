// Which layouts oneDNN's convolutions want. The kernels are the family onednn_convolution.
#ifndef PEN_DEVICE_CPU_ONEDNN_ONEDNN_CONVOLUTION_H
#define PEN_DEVICE_CPU_ONEDNN_ONEDNN_CONVOLUTION_H

#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/passes/assign_layouts.h"

// As pen_layout_rules.choose, for conv, conv_transpose, conv_backward_input and
// conv_backward_weight: whatever oneDNN takes when it has the choice.
PEN_NODISCARD pen_status pen_onednn_convolution_layouts(const pen_graph *graph, pen_node_id node,
                                                        pen_layout *inputs, pen_layout *outputs);

#endif // PEN_DEVICE_CPU_ONEDNN_ONEDNN_CONVOLUTION_H
