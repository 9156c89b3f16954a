// Softmax and its logarithm along an axis: kernels/softmax.cu.
#include "device/cuda/cuda_kernel.h"
#include "graph/tensor_type.h"

typedef enum softmax_rule { SOFTMAX_PLAIN, SOFTMAX_LOGARITHM } softmax_rule;

static bool softmax_supports(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_all_float(graph, node) && pen_cuda_count(graph, node->outputs[0]) > 0;
}

// The tensor is seen as lines along the axis.
static uint32_t softmax_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_shape *shape = &pen_value_type(call->graph, node->outputs[0])->shape;
    const bool is_backward = node->input_count > 1;
    const uint32_t axis = pen_cuda_axis(node, shape);
    const uint64_t inner = (uint64_t)pen_shape_count(shape, axis + 1, shape->rank);
    const uint64_t lines = (uint64_t)pen_shape_count(shape, 0, axis) * inner;
    *steps = (pen_cuda_step){
        .kernel = is_backward ? PEN_CUDA_KERNEL_softmax_backward : PEN_CUDA_KERNEL_softmax,
        .grid = {pen_cuda_blocks(lines), 1, 1},
        .args.softmax = {.is_logarithm = pen_cuda_rule(node) == SOFTMAX_LOGARITHM,
                         .lines = lines,
                         .count = (uint64_t)shape->dims[axis],
                         .inner = inner,
                         .x = call->inputs[is_backward],
                         .dy = is_backward ? call->inputs[0] : 0,
                         .y = call->outputs[0]}};
    return 1;
}

static const pen_cuda_entry softmax_entries[] = {
    PEN_CUDA_ENTRY("softmax", softmax_supports, softmax_steps, SOFTMAX_PLAIN),
    PEN_CUDA_ENTRY("softmax_backward", softmax_supports, softmax_steps, SOFTMAX_PLAIN),
    PEN_CUDA_ENTRY("log_softmax", softmax_supports, softmax_steps, SOFTMAX_LOGARITHM),
    PEN_CUDA_ENTRY("log_softmax_backward", softmax_supports, softmax_steps, SOFTMAX_LOGARITHM),
};

PEN_CUDA_FAMILY_OF(softmax);
