// Sums over dimensions that lie beside each other: kernels/reduction.cu.
#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/reduction/reduction_axes.h"

// The operand as outer x reduced x inner.
typedef struct sum_shape {
    uint64_t outer, reduced, inner;
} sum_shape;

static bool sum_axes(const pen_graph *graph, const pen_node *node, pen_reduction_axes *out_axes) {
    uint32_t count = 0;
    const int64_t *axes = NULL;
    pen_status status = PEN_OK;
    if (pen_cuda_has(node, 1)) status = pen_value_read_ints(graph, node->inputs[1], &count, &axes);
    if (status == PEN_OK) {
        status = pen_reduction_axes_find(node, &pen_value_type(graph, node->inputs[0])->shape,
                                         count, axes, out_axes);
    }
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "the host's kernel says what is wrong");
    return false;
}

// Dimensions of one element are no dimensions: they may be reduced or kept.
static bool sum_shape_of(const pen_graph *graph, const pen_node *node, sum_shape *out_shape) {
    const pen_shape *x = &pen_value_type(graph, node->inputs[0])->shape;
    pen_reduction_axes axes;
    sum_shape shape = {1, 1, 1};
    if (!sum_axes(graph, node, &axes)) return false;
    bool has_begun = false, is_over = false;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (x->dims[d] == 1) continue;
        if (axes.reduced[d] && is_over) return false;
        if (axes.reduced[d]) {
            has_begun = true;
            shape.reduced *= (uint64_t)x->dims[d];
        } else if (has_begun) {
            is_over = true;
            shape.inner *= (uint64_t)x->dims[d];
        } else {
            shape.outer *= (uint64_t)x->dims[d];
        }
    }
    *out_shape = shape;
    return true;
}

static bool sum_supports(const pen_graph *graph, const pen_node *node) {
    sum_shape shape;
    return pen_cuda_is_float(graph, node->inputs[0]) &&
           pen_cuda_is_float(graph, node->outputs[0]) && sum_shape_of(graph, node, &shape);
}

static uint32_t sum_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    sum_shape s;
    if (!sum_shape_of(call->graph, call->node, &s) || s.outer * s.inner == 0) return 0;
    const bool is_row = s.inner == 1 && s.reduced > 1;
    *steps = (pen_cuda_step){
        .kernel = is_row ? PEN_CUDA_KERNEL_sum_rows : PEN_CUDA_KERNEL_sum_columns,
        .grid = {is_row ? pen_cuda_blocks(s.outer) : pen_cuda_blocks_for(s.outer * s.inner), 1, 1},
        .args.sum = {.outer = s.outer,
                     .reduced = s.reduced,
                     .inner = s.inner,
                     .x = call->inputs[0],
                     .y = call->outputs[0]}};
    return 1;
}

static const pen_cuda_entry reduction_entries[] = {
    {.op_name = "reduce_sum", .can_accumulate = true, .supports = sum_supports, .steps = sum_steps},
};

PEN_CUDA_FAMILY_OF(reduction);
