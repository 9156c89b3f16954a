// Element by element: kernels/map.cu.
#include "device/cuda/cuda_kernel.h"

// ---- one operand, and its gradient

static uint32_t map_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const uint64_t count = pen_cuda_count(call->graph, call->node->outputs[0]);
    const pen_cuda_kernel_number kernel = pen_cuda_rule(call->node);
    const bool is_backward = kernel == PEN_CUDA_KERNEL_relu_backward;
    if (count == 0) return 0;
    *steps = (pen_cuda_step){.kernel = kernel,
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.map = {.count = count,
                                          .x = call->inputs[is_backward],
                                          .dy = is_backward ? call->inputs[0] : 0,
                                          .y = call->outputs[0]}};
    return 1;
}

// ---- two operands, of which each may be repeated

// An element of the operand is at i / each % count, where dimensions that are repeated stand only
// before and behind those that are not.
static bool map_repeats(const pen_shape *operand, const pen_shape *whole, uint64_t *out_each,
                        uint64_t *out_count) {
    uint64_t each = 1, count = 1;
    uint32_t d = 0;
    const uint32_t rank = operand->rank;
    for (; d < rank && operand->dims[rank - 1 - d] == 1; d++)
        each *= (uint64_t)whole->dims[whole->rank - 1 - d];
    for (; d < rank && operand->dims[rank - 1 - d] == whole->dims[whole->rank - 1 - d]; d++)
        count *= (uint64_t)operand->dims[rank - 1 - d];
    for (; d < rank; d++)
        if (operand->dims[rank - 1 - d] != 1) return false;
    *out_each = each;
    *out_count = count;
    return each > 0 && count > 0;
}

static bool pair_supports(const pen_graph *graph, const pen_node *node) {
    uint64_t each, count;
    if (!pen_cuda_all_float(graph, node) || node->input_count != 2) return false;
    const pen_shape *whole = &pen_value_type(graph, node->outputs[0])->shape;
    return map_repeats(&pen_value_type(graph, node->inputs[0])->shape, whole, &each, &count) &&
           map_repeats(&pen_value_type(graph, node->inputs[1])->shape, whole, &each, &count);
}

static uint32_t pair_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_shape *whole = &pen_value_type(call->graph, node->outputs[0])->shape;
    struct cuda_pair_args args = {.what = pen_cuda_rule(node),
                                  .count = pen_cuda_count(call->graph, node->outputs[0]),
                                  .a = call->inputs[0],
                                  .b = call->inputs[1],
                                  .y = call->outputs[0]};
    if (args.count == 0) return 0;
    (void)map_repeats(&pen_value_type(call->graph, node->inputs[0])->shape, whole, &args.a_each,
                      &args.a_count);
    (void)map_repeats(&pen_value_type(call->graph, node->inputs[1])->shape, whole, &args.b_each,
                      &args.b_count);
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_pair,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.pair = args};
    return 1;
}

#define MAP_ENTRY(op, supports_op, steps_op, rule_op)                                              \
    {                                                                                              \
        .op_name = (op), .can_accumulate = true, .supports = (supports_op), .steps = (steps_op),   \
        .rule = (rule_op)                                                                          \
    }
static const pen_cuda_entry map_entries[] = {
    MAP_ENTRY("relu", pen_cuda_all_float, map_steps, PEN_CUDA_KERNEL_relu),
    MAP_ENTRY("relu_backward", pen_cuda_all_float, map_steps, PEN_CUDA_KERNEL_relu_backward),
    MAP_ENTRY("add", pair_supports, pair_steps, PEN_CUDA_ADD),
    MAP_ENTRY("sub", pair_supports, pair_steps, PEN_CUDA_SUB),
    MAP_ENTRY("mul", pair_supports, pair_steps, PEN_CUDA_MUL),
    MAP_ENTRY("div", pair_supports, pair_steps, PEN_CUDA_DIV),
};

PEN_CUDA_FAMILY_OF(map);
