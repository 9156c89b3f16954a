// Casts: kernels/cast.cu. Types of 8 and 16 bits but truths are left to the host.
#include "device/cuda/cuda_kernel.h"

static bool cast_supports(const pen_graph *graph, const pen_node *node) {
    uint32_t type;
    return pen_cuda_type(graph, node->inputs[0], &type) &&
           pen_cuda_type(graph, node->outputs[0], &type);
}

static uint32_t cast_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    struct cuda_cast_args args = {.count = pen_cuda_count(call->graph, node->outputs[0]),
                                  .x = call->inputs[0],
                                  .y = call->outputs[0]};
    if (args.count == 0) return 0;
    (void)pen_cuda_type(call->graph, node->inputs[0], &args.from);
    (void)pen_cuda_type(call->graph, node->outputs[0], &args.to);
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_cast,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.cast = args};
    return 1;
}

static const pen_cuda_entry cast_entries[] = {
    {.op_name = "cast", .supports = cast_supports, .steps = cast_steps},
};

PEN_CUDA_FAMILY_OF(cast);
