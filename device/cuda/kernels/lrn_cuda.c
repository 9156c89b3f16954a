// Local response normalization: kernels/lrn.cu.
#include "base/integer.h"
#include "device/cuda/cuda_kernel.h"

typedef enum lrn_rule { LRN_FORWARD, LRN_BACKWARD } lrn_rule;

// The window of an even size has one channel more behind than before. No window is wider than all
// channels.
static uint32_t lrn_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const bool is_backward = pen_cuda_rule(node) == LRN_BACKWARD;
    const pen_shape *shape = &pen_value_type(call->graph, node->outputs[0])->shape;
    const int64_t window = pen_node_int(node, "size"), channels = shape->dims[1];
    const struct cuda_lrn_args args = {.before = (uint32_t)pen_min_i64((window - 1) / 2, channels),
                                       .after = (uint32_t)pen_min_i64(window / 2, channels),
                                       .count = pen_cuda_count(call->graph, node->outputs[0]),
                                       .channels = (uint64_t)channels,
                                       .size = (uint64_t)pen_shape_count(shape, 2, shape->rank),
                                       .x = call->inputs[is_backward],
                                       .dy = is_backward ? call->inputs[0] : 0,
                                       .y = call->outputs[0],
                                       .share =
                                           (float)(pen_node_float(node, "alpha") / (double)window),
                                       .beta = (float)pen_node_float(node, "beta"),
                                       .bias = (float)pen_node_float(node, "bias")};
    if (args.count == 0) return 0;
    *steps =
        (pen_cuda_step){.kernel = is_backward ? PEN_CUDA_KERNEL_lrn_backward : PEN_CUDA_KERNEL_lrn,
                        .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                        .args.lrn = args};
    return 1;
}

static bool lrn_supports(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_all_float(graph, node) &&
           pen_value_type(graph, node->outputs[0])->shape.dims[1] < INT32_MAX;
}

static const pen_cuda_entry lrn_entries[] = {
    PEN_CUDA_ENTRY("lrn", lrn_supports, lrn_steps, LRN_FORWARD),
    PEN_CUDA_ENTRY("lrn_backward", lrn_supports, lrn_steps, LRN_BACKWARD),
};

PEN_CUDA_FAMILY_OF(lrn);
