// Layer, root mean square, instance and group normalization: kernels/layer_norm.cu.
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/reduction/layer_norm_geometry.h"

static bool layer_norm_supports(const pen_graph *graph, const pen_node *node) {
    pen_layer_norm norm;
    if (!pen_cuda_all_float(graph, node)) return false;
    pen_layer_norm_of(graph, node, &norm);
    return norm.rows > 0 && norm.columns > 0 && norm.weight_count > 0;
}

// What both directions have.
static struct cuda_layer_norm_args layer_norm_args(const pen_cuda_call *call, uint32_t x) {
    pen_layer_norm norm;
    pen_layer_norm_of(call->graph, call->node, &norm);
    const bool is_plain = norm.classes == 1 && norm.run == 1 && norm.segments == norm.columns;
    return (struct cuda_layer_norm_args){.is_centred = norm.is_centred,
                                         .is_plain = is_plain,
                                         .classes = (uint64_t)norm.classes,
                                         .segments = (uint64_t)norm.segments,
                                         .run = (uint64_t)norm.run,
                                         .rows = (uint64_t)norm.rows,
                                         .columns = (uint64_t)norm.columns,
                                         .x = call->inputs[x],
                                         .scale = pen_cuda_input(call, x + 1),
                                         .y = call->outputs[0],
                                         .epsilon = (float)pen_node_float(call->node, "epsilon")};
}

static uint32_t layer_norm_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_layer_norm_args args = layer_norm_args(call, 0);
    args.bias = pen_cuda_input(call, 2);
    args.mean = pen_cuda_output(call, 1);
    args.inverse = pen_cuda_output(call, 2);
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_layer_norm,
                             .grid = {pen_cuda_blocks(args.rows), 1, 1},
                             .args.layer_norm = args};
    return 1;
}

static uint64_t layer_norm_backward_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    pen_layer_norm norm;
    pen_layer_norm_of(graph, node, &norm);
    return (uint64_t)norm.rows * sizeof(struct cuda_moments);
}

// Moments of the rows first, then gradients of the weights, where they are wanted, and of x.
static uint32_t layer_norm_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_layer_norm_args args = layer_norm_args(call, 1);
    args.dy = call->inputs[0];
    args.dscale = pen_cuda_output(call, 1);
    args.dbias = pen_cuda_output(call, 2);
    args.moments = call->workspace;
    const pen_cuda_step rows = {.kernel = PEN_CUDA_KERNEL_layer_norm_moments,
                                .grid = {pen_cuda_blocks(args.rows), 1, 1},
                                .args.layer_norm = args};
    uint32_t count = 0;
    steps[count++] = rows;
    if (args.dscale != 0 || args.dbias != 0) {
        steps[count] = rows;
        steps[count].kernel = args.is_plain ? PEN_CUDA_KERNEL_layer_norm_weights
                                            : PEN_CUDA_KERNEL_layer_norm_shared_weights;
        steps[count++].grid[0] = args.is_plain ? pen_cuda_blocks_for(args.columns)
                                               : pen_cuda_blocks(args.classes * args.segments);
    }
    steps[count] = rows;
    steps[count++].kernel = PEN_CUDA_KERNEL_layer_norm_backward;
    return count;
}

#define LAYER_NORM_ENTRIES(op)                                                                     \
    {.op_name = op,                                                                                \
     .can_accumulate = true,                                                                       \
     .supports = layer_norm_supports,                                                              \
     .steps = layer_norm_steps},                                                                   \
    {                                                                                              \
        .op_name = op "_backward", .can_accumulate = true, .supports = layer_norm_supports,        \
        .workspace_bytes = layer_norm_backward_workspace_bytes, .steps = layer_norm_backward_steps \
    }
static const pen_cuda_entry layer_norm_entries[] = {
    LAYER_NORM_ENTRIES("layer_normalization"),
    LAYER_NORM_ENTRIES("rms_normalization"),
    LAYER_NORM_ENTRIES("instance_normalization"),
    LAYER_NORM_ENTRIES("group_normalization"),
};

PEN_CUDA_FAMILY_OF(layer_norm);
