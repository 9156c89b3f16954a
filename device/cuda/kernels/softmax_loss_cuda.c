// The softmax's cross entropy, and the count of what was right: kernels/loss.cu. Of losses,
// weights, ignored labels and smoothing are left to the host.
#include <string.h>

#include "device/cuda/cuda_kernel.h"

typedef enum loss_rule { LOSS_FORWARD, LOSS_BACKWARD, LOSS_ACCURACY } loss_rule;

// Which operand the labels are; scores stand before them.
static uint32_t loss_labels_at(const pen_node *node) {
    return pen_cuda_rule(node) == LOSS_BACKWARD ? 2 : 1;
}

static bool loss_supports(const pen_graph *graph, const pen_node *node) {
    const uint32_t labels = loss_labels_at(node);
    if (pen_cuda_has(node, labels + 1) || pen_node_has(node, "ignore_index")) return false;
    if (pen_node_has(node, "label_smoothing") && pen_node_float(node, "label_smoothing") != 0) {
        return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        if (!pen_cuda_is_float(graph, node->outputs[i])) return false;
    const uint64_t count = pen_cuda_count(graph, node->inputs[labels]);
    return pen_cuda_is_float(graph, node->inputs[0]) &&
           pen_cuda_is_float(graph, node->inputs[labels - 1]) && count > 0 && count < UINT32_MAX &&
           pen_value_is(node->outputs[0]) &&
           pen_value_type(graph, node->inputs[labels - 1])->shape.dims[1] <= INT32_MAX;
}

static bool accuracy_supports(const pen_graph *graph, const pen_node *node) {
    const uint64_t count = pen_cuda_count(graph, node->inputs[1]);
    return pen_cuda_is_float(graph, node->inputs[0]) && count > 0 && count < UINT32_MAX &&
           pen_value_type(graph, node->inputs[0])->shape.dims[1] <= INT32_MAX;
}

static bool loss_is_each(const pen_node *node) {
    return strcmp(pen_node_text(node, "reduction"), "none") == 0;
}

static float loss_factor(const pen_node *node, uint64_t count) {
    return strcmp(pen_node_text(node, "reduction"), "mean") == 0 ? 1.0f / (float)count : 1.0f;
}

// `is_each` is set by losses; accuracy_count has no reduction.
static struct cuda_loss_args loss_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const uint32_t labels = loss_labels_at(node);
    const pen_shape *scores = &pen_value_type(call->graph, node->inputs[labels - 1])->shape;
    return (struct cuda_loss_args){
        .classes = (uint32_t)scores->dims[1],
        .labels_are_wide = pen_value_type(call->graph, node->inputs[labels])->element == PEN_INT64,
        .count = pen_cuda_count(call->graph, node->inputs[labels]),
        .stride = (uint64_t)pen_shape_count(scores, 2, scores->rank),
        .scores = call->inputs[labels - 1],
        .labels = call->inputs[labels],
        .error = call->error};
}

// The losses of targets, where their sum is wanted.
static uint64_t loss_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    if (loss_is_each(node)) return 0;
    return pen_cuda_count(graph, node->inputs[loss_labels_at(node)]) * sizeof(float);
}

static uint32_t loss_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_loss_args args = loss_args(call);
    args.is_each = loss_is_each(call->node);
    args.losses = args.is_each ? call->outputs[0] : call->workspace;
    args.logarithms = pen_cuda_output(call, 1);
    steps[0] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_loss,
                               .grid = {pen_cuda_blocks(args.count), 1, 1},
                               .args.loss = args};
    if (args.is_each) return 1;
    steps[1] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_total,
                               .grid = {1, 1, 1},
                               .args.total = {.count = args.count,
                                              .x = call->workspace,
                                              .y = call->outputs[0],
                                              .factor = loss_factor(call->node, args.count)}};
    return 2;
}

static uint32_t loss_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_loss_args args = loss_args(call);
    args.is_each = loss_is_each(call->node);
    args.dy = call->inputs[0];
    args.gradient = call->outputs[0];
    args.factor = loss_factor(call->node, args.count);
    steps[0] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_loss_backward,
                               .grid = {pen_cuda_blocks(args.count), 1, 1},
                               .args.loss = args};
    return 1;
}

// A number for each target.
static uint64_t accuracy_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_count(graph, node->inputs[1]) * sizeof(float);
}

static uint32_t accuracy_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_loss_args args = loss_args(call);
    args.has_ignored = pen_node_has(call->node, "ignore_index");
    if (args.has_ignored) args.ignored = pen_node_int(call->node, "ignore_index");
    args.top = pen_node_has(call->node, "top") ? (uint32_t)pen_node_int(call->node, "top") : 1;
    args.losses = call->workspace;
    args.right = call->outputs[0];
    steps[0] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_accuracy,
                               .grid = {pen_cuda_blocks(args.count), 1, 1},
                               .args.loss = args};
    steps[1] = (pen_cuda_step){
        .kernel = PEN_CUDA_KERNEL_accuracy_count, .grid = {1, 1, 1}, .args.loss = args};
    return 2;
}

static pen_status loss_blame(const pen_graph *graph, const pen_node *node, uint32_t word) {
    const uint32_t labels = loss_labels_at(node);
    const int64_t classes = pen_value_type(graph, node->inputs[labels - 1])->shape.dims[1];
    const uint64_t target = pen_cuda_count(graph, node->inputs[labels]) - word;
    return pen_error(PEN_INVALID_INPUT,
                     "%s '%s': the label of target %llu is not one of %lld classes, 0 to %lld",
                     node->op->name, node->name, (unsigned long long)target, (long long)classes,
                     (long long)classes - 1);
}

static const pen_cuda_entry loss_entries[] = {
    {.op_name = "softmax_cross_entropy_loss",
     .can_accumulate = true,
     .supports = loss_supports,
     .workspace_bytes = loss_workspace_bytes,
     .steps = loss_steps,
     .blame = loss_blame,
     .rule = LOSS_FORWARD},
    {.op_name = "softmax_cross_entropy_loss_backward",
     .can_accumulate = true,
     .supports = loss_supports,
     .steps = loss_backward_steps,
     .blame = loss_blame,
     .rule = LOSS_BACKWARD},
    {.op_name = "accuracy_count",
     .supports = accuracy_supports,
     .workspace_bytes = accuracy_workspace_bytes,
     .steps = accuracy_steps,
     .blame = loss_blame,
     .rule = LOSS_ACCURACY},
};

PEN_CUDA_FAMILY_OF(loss);
