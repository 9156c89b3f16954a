#include "device/cpu/depthwise.h"

#include "graph/graph.h"
#include "graph/op_known.h"

static bool depthwise_suits(const pen_conv_geometry *g) {
    const int64_t width = g->kernel_size[PEN_DEPTHWISE_X];
    if (g->spatial_rank != 2 || (width != 5 && width != 7)) return false;
    if (g->kernel_size[PEN_DEPTHWISE_Y] > PEN_DEPTHWISE_ROWS || g->batch == 0) return false;
    for (int d = PEN_DEPTHWISE_Y; d <= PEN_DEPTHWISE_X; d++) {
        if (g->dilation[d] != 1 || g->stride[d] > PEN_DEPTHWISE_STRIDE) return false;
    }
    return g->group_count == g->input_channels && g->group_count == g->output_channels;
}

bool pen_depthwise_is(const pen_graph *graph, const pen_node *node,
                      pen_conv_geometry *out_geometry) {
    const bool is_weight = node->op == PEN_OP(conv_backward_weight);
    if (!is_weight && node->op != PEN_OP(conv_backward_input)) return false;
    if (pen_value_type(graph, node->outputs[0])->element != PEN_FLOAT32) return false;
    const pen_status status = is_weight
                                  ? pen_conv_backward_weight_geometry(graph, node, out_geometry)
                                  : pen_conv_backward_input_geometry(graph, node, out_geometry);
    if (status != PEN_OK) {
        pen_status_ignore(status, "other kernels report it");
        return false;
    }
    return depthwise_suits(out_geometry);
}
