// Functions of one number, and their derivatives: kernels/function.cu.
#include <string.h>

#include "device/cuda/cuda_kernel.h"

static bool function_is_backward(const pen_node *node) {
    return node->input_count > 1;
}

// The rule says GELU for both of its kinds.
static uint32_t function_what(const pen_node *node) {
    const uint32_t rule = pen_cuda_rule(node);
    const bool is_tanh =
        rule == PEN_CUDA_GELU && strcmp(pen_node_text(node, "approximate"), "tanh") == 0;
    return is_tanh ? PEN_CUDA_GELU_TANH : rule;
}

// The attributes of those functions that have some.
static const struct {
    uint32_t what;
    const char *alpha, *beta; // NULL: none
} function_attributes[] = {
    {PEN_CUDA_SWISH, "alpha", NULL},
    {PEN_CUDA_LEAKY_RELU, "alpha", NULL},
    {PEN_CUDA_HARD_SIGMOID, "alpha", "beta"},
    {PEN_CUDA_ELU, "alpha", NULL},
    {PEN_CUDA_CELU, "alpha", NULL},
    {PEN_CUDA_SELU, "alpha", "gamma"},
    {PEN_CUDA_THRESHOLDED_RELU, "alpha", NULL},
    {PEN_CUDA_SHRINK, "lambd", "bias"},
};

static void function_read(const pen_node *node, struct cuda_function_args *args) {
    for (size_t i = 0; i < sizeof function_attributes / sizeof *function_attributes; i++) {
        if (function_attributes[i].what != args->what) continue;
        args->alpha = (float)pen_node_float(node, function_attributes[i].alpha);
        if (function_attributes[i].beta == NULL) continue;
        args->beta = (float)pen_node_float(node, function_attributes[i].beta);
    }
}

// What the kernel of integers calls those functions that integers have.
static uint32_t function_what_of_whole(const pen_node *node) {
    switch (pen_cuda_rule(node)) {
    case PEN_CUDA_NEG:
        return PEN_CUDA_SUB;
    case PEN_CUDA_RELU:
        return PEN_CUDA_MAX;
    case PEN_CUDA_ABS:
        return PEN_CUDA_SIZE;
    default:
        return PEN_CUDA_SIGN_OF;
    }
}

static bool function_supports_whole(const pen_graph *graph, const pen_node *node) {
    if (pen_cuda_all_float(graph, node)) return true;
    return pen_cuda_is_whole(graph, node->inputs[0]) && !node->accumulates;
}

static uint32_t function_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const uint64_t count = pen_cuda_count(call->graph, node->outputs[0]);
    const bool is_backward = function_is_backward(node);
    if (count == 0) return 0;
    if (!pen_cuda_is_float(call->graph, node->outputs[0]))
        return pen_cuda_function_whole(call, function_what_of_whole(node), steps);
    *steps = (pen_cuda_step){.kernel = is_backward ? PEN_CUDA_KERNEL_function_backward
                                                   : PEN_CUDA_KERNEL_function,
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.function = {.what = function_what(node),
                                               .count = count,
                                               .x = call->inputs[is_backward],
                                               .dy = is_backward ? call->inputs[0] : 0,
                                               .y = call->outputs[0]}};
    function_read(node, &steps->args.function);
    return 1;
}

// Of integers there are no gradients, and something must hold them.
static bool clip_supports(const pen_graph *graph, const pen_node *node) {
    if (pen_cuda_all_float(graph, node)) return true;
    return pen_cuda_rule(node) == 0 && !node->accumulates &&
           pen_cuda_is_whole(graph, node->inputs[0]) &&
           (pen_cuda_has(node, 1) || pen_cuda_has(node, 2));
}

// The rule says how many operands stand before x: dy.
static uint32_t clip_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const uint32_t x = pen_cuda_rule(call->node);
    const uint64_t count = pen_cuda_count(call->graph, call->node->outputs[0]);
    if (count == 0) return 0;
    if (!pen_cuda_is_float(call->graph, call->node->outputs[0]))
        return pen_cuda_clip_whole(call, steps);
    *steps = (pen_cuda_step){.kernel = x > 0 ? PEN_CUDA_KERNEL_clip_backward : PEN_CUDA_KERNEL_clip,
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.clip = {.count = count,
                                           .x = call->inputs[x],
                                           .dy = call->inputs[0],
                                           .low = pen_cuda_input(call, x + 1),
                                           .high = pen_cuda_input(call, x + 2),
                                           .y = call->outputs[0]}};
    return 1;
}

#define FUNCTION_ENTRY(op, what) PEN_CUDA_ENTRY(op, pen_cuda_all_float, function_steps, what)
#define FUNCTION_ENTRIES(op, what) FUNCTION_ENTRY(op, what), FUNCTION_ENTRY(op "_backward", what)
static const pen_cuda_entry function_entries[] = {
    PEN_CUDA_ENTRY("neg", function_supports_whole, function_steps, PEN_CUDA_NEG),
    PEN_CUDA_ENTRY("relu", function_supports_whole, function_steps, PEN_CUDA_RELU),
    PEN_CUDA_ENTRY("abs", function_supports_whole, function_steps, PEN_CUDA_ABS),
    PEN_CUDA_ENTRY("sign", function_supports_whole, function_steps, PEN_CUDA_SIGN),
    FUNCTION_ENTRY("relu_backward", PEN_CUDA_RELU),
    FUNCTION_ENTRY("abs_backward", PEN_CUDA_ABS),
    FUNCTION_ENTRIES("reciprocal", PEN_CUDA_RECIPROCAL),
    FUNCTION_ENTRIES("sqrt", PEN_CUDA_SQRT),
    FUNCTION_ENTRIES("exp", PEN_CUDA_EXP),
    FUNCTION_ENTRIES("erf", PEN_CUDA_ERF),
    FUNCTION_ENTRIES("tanh", PEN_CUDA_TANH),
    FUNCTION_ENTRIES("sigmoid", PEN_CUDA_SIGMOID),
    FUNCTION_ENTRIES("gelu", PEN_CUDA_GELU),
    FUNCTION_ENTRIES("swish", PEN_CUDA_SWISH),
    FUNCTION_ENTRIES("leaky_relu", PEN_CUDA_LEAKY_RELU),
    FUNCTION_ENTRIES("hard_sigmoid", PEN_CUDA_HARD_SIGMOID),
    FUNCTION_ENTRIES("hard_swish", PEN_CUDA_HARD_SWISH),
    FUNCTION_ENTRIES("log", PEN_CUDA_LOG),
    FUNCTION_ENTRIES("sin", PEN_CUDA_SIN),
    FUNCTION_ENTRIES("cos", PEN_CUDA_COS),
    FUNCTION_ENTRY("floor", PEN_CUDA_FLOOR),
    FUNCTION_ENTRY("ceil", PEN_CUDA_CEIL),
    FUNCTION_ENTRY("round", PEN_CUDA_ROUND),
    FUNCTION_ENTRIES("elu", PEN_CUDA_ELU),
    FUNCTION_ENTRIES("celu", PEN_CUDA_CELU),
    FUNCTION_ENTRIES("selu", PEN_CUDA_SELU),
    FUNCTION_ENTRIES("softplus", PEN_CUDA_SOFTPLUS),
    FUNCTION_ENTRIES("mish", PEN_CUDA_MISH),
    FUNCTION_ENTRIES("log_sigmoid", PEN_CUDA_LOG_SIGMOID),
    FUNCTION_ENTRIES("tanh_shrink", PEN_CUDA_TANH_SHRINK),
    FUNCTION_ENTRIES("softsign", PEN_CUDA_SOFTSIGN),
    FUNCTION_ENTRIES("thresholded_relu", PEN_CUDA_THRESHOLDED_RELU),
    FUNCTION_ENTRIES("shrink", PEN_CUDA_SHRINK),
    FUNCTION_ENTRIES("tan", PEN_CUDA_TAN),
    FUNCTION_ENTRIES("asin", PEN_CUDA_ASIN),
    FUNCTION_ENTRIES("acos", PEN_CUDA_ACOS),
    FUNCTION_ENTRIES("atan", PEN_CUDA_ATAN),
    FUNCTION_ENTRIES("sinh", PEN_CUDA_SINH),
    FUNCTION_ENTRIES("cosh", PEN_CUDA_COSH),
    FUNCTION_ENTRIES("asinh", PEN_CUDA_ASINH),
    FUNCTION_ENTRIES("acosh", PEN_CUDA_ACOSH),
    FUNCTION_ENTRIES("atanh", PEN_CUDA_ATANH),
    PEN_CUDA_ENTRY("clip", clip_supports, clip_steps, 0),
    PEN_CUDA_ENTRY("clip_backward", pen_cuda_all_float, clip_steps, 1),
};

PEN_CUDA_FAMILY_OF(function);
