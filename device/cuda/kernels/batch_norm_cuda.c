// Batch normalization, alone and with relu and a residual: kernels/batch_norm.cu.
#include "device/cuda/cuda_kernel.h"
#include "graph/op.h"

#define BATCH_MOMENTS 7 // outputs, of which the last two are float64

typedef enum batch_rule {
    BATCH_PLAIN,
    BATCH_RELU,
    BATCH_ADD_RELU,
    BATCH_BACKWARD, // added to one of those above; not looked at
} batch_rule;

static uint32_t batch_kind(const pen_node *node) {
    return pen_cuda_rule(node) % BATCH_BACKWARD;
}

static bool batch_supports(const pen_graph *graph, const pen_node *node) {
    const pen_shape *x = &pen_value_type(graph, node->inputs[0])->shape;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!pen_cuda_is_float(graph, node->inputs[i])) return false;
    for (uint32_t i = 0; i < node->output_count && i < BATCH_MOMENTS - 2; i++)
        if (!pen_cuda_is_float(graph, node->outputs[i])) return false;
    const uint64_t count = (uint64_t)pen_shape_element_count(x);
    return count > 0 && x->dims[1] <= PEN_CUDA_GRID_MOST &&
           count / (uint64_t)x->dims[1] <= INT32_MAX;
}

// Sizes, of which all directions have the same.
static struct cuda_batch_norm_args batch_args(const pen_graph *graph, const pen_node *node) {
    const pen_shape *x = &pen_value_type(graph, node->inputs[0])->shape;
    const uint64_t count = (uint64_t)pen_shape_element_count(x) / (uint64_t)x->dims[1];
    return (struct cuda_batch_norm_args){
        .is_training = pen_node_int(node, "training_mode") != 0,
        .channels = (uint32_t)x->dims[1],
        .size = (uint32_t)pen_shape_count(x, 2, x->rank),
        .count = (uint32_t)count,
        .pieces = (uint32_t)((count + PEN_CUDA_BATCH_PIECE - 1) / PEN_CUDA_BATCH_PIECE),
        .epsilon = (float)pen_node_float(node, "epsilon"),
    };
}

static uint64_t batch_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    const struct cuda_batch_norm_args args = batch_args(graph, node);
    return ((uint64_t)args.channels * args.pieces + args.channels) * sizeof(struct cuda_batch_sums);
}

// By a block for each piece of a channel, or for each channel.
static pen_cuda_step batch_step(const struct cuda_batch_norm_args *args,
                                pen_cuda_kernel_number kernel, bool by_piece) {
    pen_cuda_step step = {.kernel = kernel, .grid = {args->channels, 1, 1}};
    if (by_piece) {
        step.grid[0] = args->pieces;
        step.grid[1] = args->channels;
    }
    step.args.batch_norm = *args;
    return step;
}

static void batch_place_workspace(const pen_cuda_call *call, struct cuda_batch_norm_args *args) {
    args->sums = call->workspace;
    args->totals =
        call->workspace + (uint64_t)args->channels * args->pieces * sizeof(struct cuda_batch_sums);
}

// In training the batch's moments first; frozen ones are there.
static uint32_t batch_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    struct cuda_batch_norm_args args = batch_args(call->graph, node);
    batch_place_workspace(call, &args);
    args.rectifies = batch_kind(node) != BATCH_PLAIN;
    args.is_unbiased = pen_node_int(node, "unbiased") != 0;
    args.momentum = pen_node_float(node, "momentum");
    args.x = call->inputs[0];
    args.scale = call->inputs[1];
    args.bias = call->inputs[2];
    args.mean = call->inputs[3];
    args.variance = call->inputs[4];
    args.residual = pen_cuda_input(call, 5);
    args.y = call->outputs[0];
    args.running_mean = pen_cuda_output(call, 1);
    args.running_variance = pen_cuda_output(call, 2);
    args.saved_mean = pen_cuda_output(call, 3);
    args.saved_inverse = pen_cuda_output(call, 4);
    args.batch_mean = pen_cuda_output(call, 5);
    args.batch_variance = pen_cuda_output(call, 6);
    uint32_t count = 0;
    if (args.is_training) {
        steps[count++] = batch_step(&args, PEN_CUDA_KERNEL_batch_moments, true);
        steps[count++] = batch_step(&args, PEN_CUDA_KERNEL_batch_totals, false);
    }
    steps[count++] = batch_step(&args, PEN_CUDA_KERNEL_batch_norm, true);
    return count;
}

// Operands differ in order, as graph/ops/reduction/normalization_op.c has them.
static void batch_place_backward(const pen_cuda_call *call, struct cuda_batch_norm_args *args) {
    const uint32_t kind = batch_kind(call->node);
    const uint32_t adds = kind == BATCH_ADD_RELU, x = 1 + adds,
                   mean = kind == BATCH_RELU ? 4 : x + 2;
    args->dy = call->inputs[0];
    args->x = call->inputs[x];
    args->scale = call->inputs[x + 1];
    args->mean = call->inputs[mean];
    args->variance = call->inputs[mean + 1];
    args->rectifies = kind == BATCH_RELU;
    if (kind == BATCH_RELU) args->bias = call->inputs[3];
    if (adds) {
        args->rectified = call->inputs[1];
        args->more_dy = pen_cuda_input(call, 6);
        args->dresidual = call->outputs[0];
    }
    args->y = pen_cuda_output(call, adds);
    args->dscale = pen_cuda_output(call, adds + 1);
    args->dbias = pen_cuda_output(call, adds + 2);
    args->dmean = pen_cuda_output(call, adds + 3);
    args->dvariance = pen_cuda_output(call, adds + 4);
}

static uint32_t batch_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_batch_norm_args args = batch_args(call->graph, call->node);
    batch_place_workspace(call, &args);
    batch_place_backward(call, &args);
    steps[0] = batch_step(&args, PEN_CUDA_KERNEL_batch_backward_sums, true);
    steps[1] = batch_step(&args, PEN_CUDA_KERNEL_batch_backward_totals, false);
    steps[2] = batch_step(&args, PEN_CUDA_KERNEL_batch_norm_backward, true);
    return 3;
}

#define BATCH_ENTRY(op, steps_op, rule_op)                                                         \
    {                                                                                              \
        .op_name = (op), .can_accumulate = true, .supports = batch_supports,                       \
        .workspace_bytes = batch_workspace_bytes, .steps = (steps_op), .rule = (rule_op)           \
    }
#define BATCH_ENTRIES(op, rule_op)                                                                 \
    BATCH_ENTRY(op, batch_steps, rule_op),                                                         \
        BATCH_ENTRY(op "_backward", batch_backward_steps, (rule_op) + BATCH_BACKWARD)
static const pen_cuda_entry batch_norm_entries[] = {
    BATCH_ENTRIES("batch_normalization", BATCH_PLAIN),
    BATCH_ENTRIES("batch_normalization_relu", BATCH_RELU),
    BATCH_ENTRIES("batch_normalization_add_relu", BATCH_ADD_RELU),
};

PEN_CUDA_FAMILY_OF(batch_norm);
