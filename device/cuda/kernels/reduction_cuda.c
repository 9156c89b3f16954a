// Sums, means and extrema over dimensions that lie beside each other, and their gradients:
// kernels/reduction.cu.
#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/reduction/reduction_axes.h"

typedef enum reduction_rule {
    REDUCTION_SUM,
    REDUCTION_MEAN,
    REDUCTION_MAX,
    REDUCTION_MIN
} reduction_rule;

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
static bool sum_fold(const pen_shape *x, const bool *reduced, sum_shape *out_shape) {
    sum_shape shape = {1, 1, 1};
    bool has_begun = false, is_over = false;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (x->dims[d] == 1) continue;
        if (reduced[d] && is_over) return false;
        if (reduced[d]) {
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

static bool sum_shape_of(const pen_graph *graph, const pen_node *node, sum_shape *out_shape) {
    pen_reduction_axes axes;
    return sum_axes(graph, node, &axes) &&
           sum_fold(&pen_value_type(graph, node->inputs[0])->shape, axes.reduced, out_shape);
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
    const bool is_mean = pen_cuda_rule(call->node) == REDUCTION_MEAN;
    *steps = (pen_cuda_step){
        .kernel = is_row ? PEN_CUDA_KERNEL_sum_rows : PEN_CUDA_KERNEL_sum_columns,
        .grid = {is_row ? pen_cuda_blocks(s.outer) : pen_cuda_blocks_for(s.outer * s.inner), 1, 1},
        .args.sum = {.outer = s.outer,
                     .reduced = s.reduced,
                     .inner = s.inner,
                     .x = call->inputs[0],
                     .y = call->outputs[0],
                     .divisor = is_mean ? (float)s.reduced : 1}};
    return 1;
}

static bool extremum_supports(const pen_graph *graph, const pen_node *node) {
    sum_shape shape;
    return sum_supports(graph, node) && sum_shape_of(graph, node, &shape) && shape.reduced > 0;
}

static uint32_t extremum_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    sum_shape s;
    if (!sum_shape_of(call->graph, call->node, &s) || s.outer * s.inner == 0) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_extremum,
                             .grid = {pen_cuda_blocks(s.outer * s.inner), 1, 1},
                             .args.sum = {.is_least = pen_cuda_rule(call->node) == REDUCTION_MIN,
                                          .outer = s.outer,
                                          .reduced = s.reduced,
                                          .inner = s.inner,
                                          .x = call->inputs[0],
                                          .y = call->outputs[0]}};
    return 1;
}

// ---- gradients: what is reduced is where dy has one element and the result more

static bool spread_shape_of(const pen_graph *graph, const pen_node *node, sum_shape *out_shape) {
    const pen_shape *dy = &pen_value_type(graph, node->inputs[0])->shape;
    const pen_shape *x = &pen_value_type(graph, node->outputs[0])->shape;
    bool reduced[PEN_RANK_LIMIT];
    for (uint32_t d = 0; d < x->rank; d++) {
        const uint32_t missing = x->rank - dy->rank;
        reduced[d] = d < missing || dy->dims[d - missing] == 1;
    }
    return sum_fold(x, reduced, out_shape);
}

static bool spread_supports(const pen_graph *graph, const pen_node *node) {
    sum_shape shape;
    return pen_cuda_all_float(graph, node) && spread_shape_of(graph, node, &shape);
}

// A sum's gradient is repeated; that of an extremum goes to those that are it.
static uint32_t spread_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const bool is_sum = pen_cuda_rule(node) == REDUCTION_SUM;
    sum_shape s;
    if (!spread_shape_of(call->graph, node, &s)) return 0;
    const uint64_t count = s.outer * s.reduced * s.inner;
    if (count == 0) return 0;
    *steps = (pen_cuda_step){
        .kernel = is_sum ? PEN_CUDA_KERNEL_spread : PEN_CUDA_KERNEL_extremum_backward,
        .grid = {is_sum ? pen_cuda_blocks_for(count) : pen_cuda_blocks(s.outer * s.inner), 1, 1},
        .args.sum = {.outer = s.outer,
                     .reduced = s.reduced,
                     .inner = s.inner,
                     .x = is_sum ? 0 : call->inputs[1],
                     .dy = call->inputs[0],
                     .found = is_sum ? 0 : call->inputs[2],
                     .y = call->outputs[0],
                     .factor = is_sum ? (float)pen_node_float(node, "scale") : 1}};
    return 1;
}

static const pen_cuda_entry reduction_entries[] = {
    PEN_CUDA_ENTRY("reduce_sum", sum_supports, sum_steps, REDUCTION_SUM),
    PEN_CUDA_ENTRY("reduce_mean", sum_supports, sum_steps, REDUCTION_MEAN),
    PEN_CUDA_ENTRY("reduce_max", extremum_supports, extremum_steps, REDUCTION_MAX),
    PEN_CUDA_ENTRY("reduce_min", extremum_supports, extremum_steps, REDUCTION_MIN),
    PEN_CUDA_ENTRY("reduce_sum_backward", spread_supports, spread_steps, REDUCTION_SUM),
    PEN_CUDA_ENTRY("reduce_max_backward", spread_supports, spread_steps, REDUCTION_MAX),
    PEN_CUDA_ENTRY("reduce_min_backward", spread_supports, spread_steps, REDUCTION_MIN),
};

PEN_CUDA_FAMILY_OF(reduction);
