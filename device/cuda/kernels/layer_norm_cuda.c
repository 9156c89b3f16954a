// Layer and root mean square normalization with a weight for each column: kernels/layer_norm.cu.
// Weights of groups or instances are left to the host.
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/reduction/layer_norm_geometry.h"

static bool layer_norm_supports(const pen_graph *graph, const pen_node *node) {
    pen_layer_norm norm;
    if (!pen_cuda_all_float(graph, node)) return false;
    pen_layer_norm_of(graph, node, &norm);
    const bool has_columns = norm.classes == 1 && norm.run == 1 && norm.segments == norm.columns;
    return has_columns && norm.rows > 0 && norm.columns > 0;
}

// What both directions have.
static struct cuda_layer_norm_args layer_norm_args(const pen_cuda_call *call, uint32_t x) {
    pen_layer_norm norm;
    pen_layer_norm_of(call->graph, call->node, &norm);
    return (struct cuda_layer_norm_args){.is_centred = norm.is_centred,
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
        steps[count].kernel = PEN_CUDA_KERNEL_layer_norm_weights;
        steps[count++].grid[0] = pen_cuda_blocks_for(args.columns);
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
};

PEN_CUDA_FAMILY_OF(layer_norm);
