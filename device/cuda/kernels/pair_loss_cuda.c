// Means of losses of pairs, and their gradients: kernels/pair_loss.cu.
#include "base/integer.h"
#include "device/cuda/cuda_kernel.h"

static bool pair_loss_is_backward(const pen_node *node) {
    return node->input_count > 2;
}

static uint64_t pair_loss_pieces(const pen_graph *graph, const pen_node *node) {
    const uint64_t count = pen_cuda_count(graph, node->inputs[0]);
    return count / PEN_CUDA_PAIR_PIECE + (count % PEN_CUDA_PAIR_PIECE > 0);
}

static uint64_t pair_loss_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    return pair_loss_pieces(graph, node) * sizeof(float);
}

static struct cuda_pair_loss_args pair_loss_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const uint32_t x = pair_loss_is_backward(node);
    const uint64_t count = pen_cuda_count(call->graph, node->inputs[x]);
    const uint32_t what = pen_cuda_rule(node);
    return (struct cuda_pair_loss_args){
        .what = what,
        .count = count,
        .x = call->inputs[x],
        .target = call->inputs[x + 1],
        .beta = what == PEN_CUDA_SMOOTH_L1 ? (float)pen_node_float(node, "beta") : 0,
        .factor = 1.0f / (float)count};
}

static uint32_t pair_loss_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const uint64_t pieces = pair_loss_pieces(call->graph, call->node);
    struct cuda_pair_loss_args args = pair_loss_args(call);
    args.sums = call->workspace;
    steps[0] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_pair_loss,
                               .grid = {pen_cuda_blocks(pen_max_u64(pieces, 1)), 1, 1},
                               .args.pair_loss = args};
    steps[1] = (pen_cuda_step){
        .kernel = PEN_CUDA_KERNEL_total,
        .grid = {1, 1, 1},
        .args.total = {
            .count = pieces, .x = call->workspace, .y = call->outputs[0], .factor = args.factor}};
    return 2;
}

static uint32_t pair_loss_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_pair_loss_args args = pair_loss_args(call);
    args.dy = call->inputs[0];
    args.y = call->outputs[0];
    if (args.count == 0) return 0;
    steps[0] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_pair_loss_backward,
                               .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                               .args.pair_loss = args};
    return 1;
}

#define PAIR_LOSS_ENTRIES(op, what)                                                                \
    {.op_name = op,                                                                                \
     .can_accumulate = true,                                                                       \
     .supports = pen_cuda_all_float,                                                               \
     .workspace_bytes = pair_loss_workspace_bytes,                                                 \
     .steps = pair_loss_steps,                                                                     \
     .rule = what},                                                                                \
        PEN_CUDA_ENTRY(op "_backward", pen_cuda_all_float, pair_loss_backward_steps, what)
static const pen_cuda_entry pair_loss_entries[] = {
    PAIR_LOSS_ENTRIES("mean_squared_error", PEN_CUDA_SQUARE),
    PAIR_LOSS_ENTRIES("l1", PEN_CUDA_L1),
    PAIR_LOSS_ENTRIES("smooth_l1", PEN_CUDA_SMOOTH_L1),
    PAIR_LOSS_ENTRIES("binary_cross_entropy", PEN_CUDA_BINARY),
    PAIR_LOSS_ENTRIES("binary_cross_entropy_with_logits", PEN_CUDA_BINARY_LOGITS),
    PAIR_LOSS_ENTRIES("kl_divergence", PEN_CUDA_DIVERGENCE),
};

PEN_CUDA_FAMILY_OF(pair_loss);
