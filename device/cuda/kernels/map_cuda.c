// Element by element of two operands, of which each may be repeated: kernels/map.cu.
#include "device/cuda/cuda_kernel.h"

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

static const pen_cuda_entry map_entries[] = {
    PEN_CUDA_ENTRY("add", pair_supports, pair_steps, PEN_CUDA_ADD),
    PEN_CUDA_ENTRY("sub", pair_supports, pair_steps, PEN_CUDA_SUB),
    PEN_CUDA_ENTRY("mul", pair_supports, pair_steps, PEN_CUDA_MUL),
    PEN_CUDA_ENTRY("div", pair_supports, pair_steps, PEN_CUDA_DIV),
};

PEN_CUDA_FAMILY_OF(map);
