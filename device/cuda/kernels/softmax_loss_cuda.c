// Losses over classes, of scores or of logarithms of probabilities, and the count of what was
// right: kernels/loss.cu.
#include <string.h>

#include "device/cuda/cuda_kernel.h"

enum { LOSS_BACKWARD = 1, LOSS_LOGS = 2, LOSS_ACCURACY = 4 };

static bool loss_is(const pen_node *node, uint32_t bit) {
    return (pen_cuda_rule(node) & bit) != 0;
}

// Which operand the labels are. Scores stand before them, weights of classes behind.
static uint32_t loss_labels_at(const pen_node *node) {
    return loss_is(node, LOSS_BACKWARD) && !loss_is(node, LOSS_LOGS) ? 2 : 1;
}

// The gradient of logarithms does not depend on them: there are none, but it is like them.
static bool loss_has_scores(const pen_node *node) {
    return !(loss_is(node, LOSS_BACKWARD) && loss_is(node, LOSS_LOGS));
}

static const pen_shape *loss_scores(const pen_graph *graph, const pen_node *node) {
    const pen_value_id scores =
        loss_has_scores(node) ? node->inputs[loss_labels_at(node) - 1] : node->outputs[0];
    return &pen_value_type(graph, scores)->shape;
}

static bool loss_supports(const pen_graph *graph, const pen_node *node) {
    const uint32_t labels = loss_labels_at(node);
    const uint64_t count = pen_cuda_count(graph, node->inputs[labels]);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!loss_is(node, LOSS_ACCURACY) && !pen_cuda_is_float(graph, node->outputs[i]))
            return false;
    }
    for (uint32_t i = 0; i < node->input_count; i++)
        if (i != labels && !pen_cuda_is_float(graph, node->inputs[i])) return false;
    return pen_value_is(node->outputs[0]) && count > 0 && count < UINT32_MAX &&
           loss_scores(graph, node)->dims[1] <= INT32_MAX;
}

static bool loss_is_each(const pen_node *node) {
    return strcmp(pen_node_text(node, "reduction"), "none") == 0;
}

static bool loss_is_mean(const pen_node *node) {
    return strcmp(pen_node_text(node, "reduction"), "mean") == 0;
}

// Whether the mean is by weights that only the labels tell.
static bool loss_has_total(const pen_node *node) {
    return loss_is_mean(node) &&
           (pen_node_has(node, "ignore_index") || pen_cuda_has(node, loss_labels_at(node) + 1));
}

static float loss_factor(const pen_node *node, uint64_t count) {
    return loss_is_mean(node) && !loss_has_total(node) ? 1.0f / (float)count : 1.0f;
}

// What all have; `is_each` and the rest is set by losses alone, for accuracy_count has no
// reduction.
static struct cuda_loss_args loss_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const uint32_t labels = loss_labels_at(node);
    const pen_shape *scores = loss_scores(call->graph, node);
    const bool has_ignored = pen_node_has(node, "ignore_index");
    return (struct cuda_loss_args){
        .classes = (uint32_t)scores->dims[1],
        .labels_are_wide = pen_value_type(call->graph, node->inputs[labels])->element == PEN_INT64,
        .has_ignored = has_ignored,
        .ignored = has_ignored ? pen_node_int(node, "ignore_index") : 0,
        .are_logs = loss_is(node, LOSS_LOGS),
        .count = pen_cuda_count(call->graph, node->inputs[labels]),
        .stride = (uint64_t)pen_shape_count(scores, 2, scores->rank),
        .scores = loss_has_scores(node) ? call->inputs[labels - 1] : 0,
        .labels = call->inputs[labels],
        .error = call->error};
}

// The total of weights is the first of the workspace.
static struct cuda_loss_args loss_options(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    struct cuda_loss_args args = loss_args(call);
    args.is_each = loss_is_each(node);
    args.weights = pen_cuda_input(call, loss_labels_at(node) + 1);
    args.total = loss_has_total(node) ? call->workspace : 0;
    if (pen_node_has(node, "label_smoothing"))
        args.smoothing = (float)pen_node_float(node, "label_smoothing");
    return args;
}

static pen_cuda_step loss_step(const struct cuda_loss_args *args, pen_cuda_kernel_number kernel) {
    const uint64_t threads = args->count * PEN_CUDA_TEAM(args->classes);
    const uint32_t blocks = kernel == PEN_CUDA_KERNEL_loss_total ? 1 : pen_cuda_blocks_for(threads);
    return (pen_cuda_step){.kernel = kernel, .grid = {blocks, 1, 1}, .args.loss = *args};
}

// The total of weights, and the losses of targets, where their sum is wanted.
static uint64_t loss_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    const bool is_sum = !loss_is(node, LOSS_BACKWARD) && !loss_is_each(node);
    const uint64_t count = is_sum ? pen_cuda_count(graph, node->inputs[loss_labels_at(node)]) : 0;
    return (loss_has_total(node) ? sizeof(double) : 0) + count * sizeof(float);
}

// The weights of all targets, if they are needed, then the loss of each, and then their sum or
// mean.
static uint32_t loss_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_loss_args args = loss_options(call);
    uint32_t count = 0;
    args.losses = args.is_each     ? call->outputs[0]
                  : args.total > 0 ? call->workspace + sizeof(double)
                                   : call->workspace;
    args.logarithms = pen_cuda_output(call, 1);
    if (args.total > 0) steps[count++] = loss_step(&args, PEN_CUDA_KERNEL_loss_total);
    steps[count++] = loss_step(&args, PEN_CUDA_KERNEL_loss);
    if (args.is_each) return count;
    steps[count] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_total,
                                   .grid = {1, 1, 1},
                                   .args.total = {.count = args.count,
                                                  .x = args.losses,
                                                  .divisor = args.total,
                                                  .y = call->outputs[0],
                                                  .factor = loss_factor(call->node, args.count)}};
    return count + 1;
}

static uint32_t loss_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_loss_args args = loss_options(call);
    uint32_t count = 0;
    args.dy = call->inputs[0];
    args.gradient = call->outputs[0];
    args.factor = loss_factor(call->node, args.count);
    if (args.total > 0) steps[count++] = loss_step(&args, PEN_CUDA_KERNEL_loss_total);
    steps[count++] = loss_step(&args, PEN_CUDA_KERNEL_loss_backward);
    return count;
}

// A number for each target.
static uint64_t accuracy_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_count(graph, node->inputs[1]) * sizeof(float);
}

static uint32_t accuracy_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_loss_args args = loss_args(call);
    args.top = pen_node_has(call->node, "top") ? (uint32_t)pen_node_int(call->node, "top") : 1;
    args.losses = call->workspace;
    args.right = call->outputs[0];
    steps[0] = loss_step(&args, PEN_CUDA_KERNEL_accuracy);
    steps[1] = (pen_cuda_step){
        .kernel = PEN_CUDA_KERNEL_accuracy_count, .grid = {1, 1, 1}, .args.loss = args};
    return 2;
}

static pen_status loss_blame(const pen_graph *graph, const pen_node *node, uint32_t word) {
    const int64_t classes = loss_scores(graph, node)->dims[1];
    const uint64_t target = pen_cuda_count(graph, node->inputs[loss_labels_at(node)]) - word;
    return pen_error(PEN_INVALID_INPUT,
                     "%s '%s': the label of target %llu is not one of %lld classes, 0 to %lld",
                     node->op->name, node->name, (unsigned long long)target, (long long)classes,
                     (long long)classes - 1);
}

#define LOSS_ENTRIES(op, what)                                                                     \
    {.op_name = op,                                                                                \
     .can_accumulate = true,                                                                       \
     .supports = loss_supports,                                                                    \
     .workspace_bytes = loss_workspace_bytes,                                                      \
     .steps = loss_steps,                                                                          \
     .blame = loss_blame,                                                                          \
     .rule = what},                                                                                \
    {                                                                                              \
        .op_name = op "_backward", .can_accumulate = true, .supports = loss_supports,              \
        .workspace_bytes = loss_workspace_bytes, .steps = loss_backward_steps,                     \
        .blame = loss_blame, .rule = (what) | LOSS_BACKWARD                                        \
    }
static const pen_cuda_entry loss_entries[] = {
    LOSS_ENTRIES("softmax_cross_entropy_loss", 0),
    LOSS_ENTRIES("negative_log_likelihood_loss", LOSS_LOGS),
    {.op_name = "accuracy_count",
     .supports = loss_supports,
     .workspace_bytes = accuracy_workspace_bytes,
     .steps = accuracy_steps,
     .blame = loss_blame,
     .rule = LOSS_ACCURACY},
};

PEN_CUDA_FAMILY_OF(loss);
