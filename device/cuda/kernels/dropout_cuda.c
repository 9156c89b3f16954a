// Dropout: kernels/dropout.cu.
#include "base/random.h"
#include "device/cuda/cuda_kernel.h"

// Ratio and mode are constants, which the shape rule read. Without training nothing is dropped.
static double dropout_ratio(const pen_graph *graph, const pen_node *node) {
    double training = 0, ratio = 0.5;
    if (pen_cuda_has(node, 2)) {
        pen_status_ignore(pen_value_read_number(graph, node->inputs[2], &training),
                          "it was read when the shape was inferred");
    }
    if (training == 0) return 0;
    if (pen_cuda_has(node, 1)) {
        pen_status_ignore(pen_value_read_number(graph, node->inputs[1], &ratio),
                          "it was read when the shape was inferred");
    }
    return ratio;
}

static bool dropout_supports(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_is_float(graph, node->inputs[0]) && pen_value_is(node->outputs[0]);
}

static uint32_t dropout_step(const struct cuda_dropout_args *args, pen_cuda_kernel_number kernel,
                             pen_cuda_step *steps) {
    if (args->count == 0) return 0;
    *steps = (pen_cuda_step){
        .kernel = kernel, .grid = {pen_cuda_blocks_for(args->count), 1, 1}, .args.dropout = *args};
    return 1;
}

static uint32_t dropout_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const double ratio = dropout_ratio(call->graph, call->node);
    const struct cuda_dropout_args args = {.threshold = pen_random_threshold(ratio),
                                           .count =
                                               pen_cuda_count(call->graph, call->node->inputs[0]),
                                           .random = call->random,
                                           .x = call->inputs[0],
                                           .y = call->outputs[0],
                                           .mask_new = pen_cuda_output(call, 1),
                                           .keep = (float)(1 - ratio)};
    return dropout_step(&args, PEN_CUDA_KERNEL_dropout, steps);
}

static struct cuda_random dropout_draw(const pen_node *node, const pen_run_context *run) {
    const uint64_t seed =
        pen_node_has(node, "seed") ? (uint64_t)pen_node_int(node, "seed") : run->seed;
    return (struct cuda_random){
        seed, pen_random_stream(pen_node_stream(node), run->step, run->microbatch)};
}

static uint32_t dropout_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const struct cuda_dropout_args args = {
        .count = pen_cuda_count(call->graph, call->node->inputs[0]),
        .x = call->inputs[0],
        .mask = call->inputs[1],
        .y = call->outputs[0],
        .keep = (float)(1 - pen_node_float(call->node, "ratio"))};
    return dropout_step(&args, PEN_CUDA_KERNEL_dropout_backward, steps);
}

static const pen_cuda_entry dropout_entries[] = {
    {.op_name = "dropout",
     .can_accumulate = true,
     .supports = dropout_supports,
     .steps = dropout_steps,
     .draw = dropout_draw},
    PEN_CUDA_ENTRY("dropout_backward", dropout_supports, dropout_backward_steps, 0),
};

PEN_CUDA_FAMILY_OF(dropout);
