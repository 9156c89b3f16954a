// Sums, means, norms, products and extrema over dimensions, and their gradients:
// kernels/reduction.cu. What is summed over dimensions that do not lie beside each other takes a
// launch for each group of them.
#include "base/integer.h"
#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/reduction/reduction_axes.h"

typedef enum reduction_rule {
    REDUCTION_SUM,
    REDUCTION_MEAN,
    REDUCTION_MAX,
    REDUCTION_MIN,
    REDUCTION_PRODUCT,
    REDUCTION_L1,
    REDUCTION_L2,
    REDUCTION_SQUARES,
    REDUCTION_LOG,
    REDUCTION_LOG_EXP
} reduction_rule;

// What the kernels call it.
static uint32_t reduction_what(uint32_t rule) {
    switch (rule) {
    case REDUCTION_L1:
        return PEN_CUDA_SUM_SIZES;
    case REDUCTION_L2:
        return PEN_CUDA_SUM_ROOT;
    case REDUCTION_SQUARES:
        return PEN_CUDA_SUM_SQUARES;
    case REDUCTION_LOG:
        return PEN_CUDA_SUM_LOG;
    case REDUCTION_LOG_EXP:
        return PEN_CUDA_SUM_LOG_EXP;
    default:
        return PEN_CUDA_SUM;
    }
}

// The operand as outer x reduced x inner.
typedef struct sum_shape {
    uint64_t outer, reduced, inner;
} sum_shape;

// Of a kernel whose threads share lines.
static uint32_t reduction_line_blocks(const sum_shape *s) {
    return pen_cuda_blocks_for(s->outer * s->inner * PEN_CUDA_TEAM(s->reduced));
}

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

// One of a sum's launches: over the dimensions of a group, of what launches before it left.
typedef struct sum_group {
    sum_shape shape;
    uint64_t count; // elements of its result
} sum_group;

// Groups of neighbours that are reduced, the last first, so that what is left becomes small soon.
static uint32_t sum_groups(const pen_shape *x, const bool *reduced,
                           sum_group out_groups[PEN_RANK_LIMIT]) {
    pen_shape left = *x;
    uint32_t count = 0;
    for (uint32_t d = x->rank; d-- > 0;) {
        bool group[PEN_RANK_LIMIT] = {false};
        uint32_t first = d;
        if (!reduced[d] || x->dims[d] == 1) continue;
        while (first > 0 && (reduced[first - 1] || x->dims[first - 1] == 1))
            first--;
        for (uint32_t e = first; e <= d; e++)
            group[e] = true;
        (void)sum_fold(&left, group, &out_groups[count].shape);
        for (uint32_t e = first; e <= d; e++)
            left.dims[e] = 1;
        out_groups[count].count = (uint64_t)pen_shape_element_count(&left);
        count++;
        d = first;
    }
    if (count == 0) {
        const bool none[PEN_RANK_LIMIT] = {false};
        (void)sum_fold(&left, none, &out_groups[count].shape);
        out_groups[count++].count = (uint64_t)pen_shape_element_count(&left);
    }
    return count;
}

static uint32_t sum_find(const pen_graph *graph, const pen_node *node,
                         sum_group out_groups[PEN_RANK_LIMIT]) {
    pen_reduction_axes axes;
    if (!sum_axes(graph, node, &axes)) return 0;
    return sum_groups(&pen_value_type(graph, node->inputs[0])->shape, axes.reduced, out_groups);
}

// ---- of integers

// Of no elements there is a sum and a product, but no extremum.
static bool reduction_has_elements(uint32_t rule, const sum_shape *shape) {
    return shape->reduced > 0 || rule == REDUCTION_SUM || rule == REDUCTION_PRODUCT;
}

static bool whole_supports(const pen_graph *graph, const pen_node *node) {
    sum_shape shape;
    return pen_cuda_is_whole(graph, node->inputs[0]) && !node->accumulates &&
           sum_shape_of(graph, node, &shape) && reduction_has_elements(pen_cuda_rule(node), &shape);
}

static uint32_t whole_what(uint32_t rule) {
    switch (rule) {
    case REDUCTION_SUM:
        return PEN_CUDA_WHOLE_SUM;
    case REDUCTION_PRODUCT:
        return PEN_CUDA_WHOLE_PRODUCT;
    case REDUCTION_MAX:
        return PEN_CUDA_WHOLE_MAX;
    default:
        return PEN_CUDA_WHOLE_MIN;
    }
}

static uint32_t whole_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    sum_shape s;
    if (!sum_shape_of(call->graph, call->node, &s) || s.outer * s.inner == 0) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_reduce_whole,
                             .grid = {reduction_line_blocks(&s), 1, 1},
                             .args.whole = {.what = whole_what(pen_cuda_rule(call->node)),
                                            .outer = s.outer,
                                            .reduced = s.reduced,
                                            .inner = s.inner,
                                            .x = call->inputs[0],
                                            .y = call->outputs[0]}};
    (void)pen_cuda_type(call->graph, call->node->inputs[0], &steps->args.whole.type);
    return 1;
}

// ---- of numbers

static bool sum_supports(const pen_graph *graph, const pen_node *node) {
    sum_group groups[PEN_RANK_LIMIT];
    if (pen_cuda_rule(node) == REDUCTION_SUM && whole_supports(graph, node)) return true;
    if (!pen_cuda_is_float(graph, node->inputs[0]) || !pen_cuda_is_float(graph, node->outputs[0]))
        return false;
    const uint32_t count = sum_find(graph, node, groups), rule = pen_cuda_rule(node);
    return count == 1 || (count > 1 && (rule == REDUCTION_SUM || rule == REDUCTION_MEAN));
}

// What the first of several launches leaves is the largest.
static uint64_t sum_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    sum_group groups[PEN_RANK_LIMIT];
    const uint32_t count = sum_find(graph, node, groups);
    return count < 2 ? 0 : 2 * pen_align_up(groups[0].count * sizeof(float), 64);
}

// Results go to and fro between the halves of the workspace.
static uint32_t sum_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    sum_group groups[PEN_RANK_LIMIT];
    const uint32_t count = sum_find(call->graph, call->node, groups);
    const uint32_t rule = pen_cuda_rule(call->node);
    const uint64_t half = sum_workspace_bytes(call->graph, call->node) / 2;
    pen_cuda_address from = call->inputs[0];
    if (!pen_cuda_is_float(call->graph, call->node->inputs[0])) return whole_steps(call, steps);
    if (pen_cuda_count(call->graph, call->node->outputs[0]) == 0) return 0;
    for (uint32_t g = 0; g < count; g++) {
        const sum_shape s = groups[g].shape;
        const bool is_row = s.inner == 1 && s.reduced > 1, is_last = g + 1 == count;
        const pen_cuda_address to = is_last ? call->outputs[0] : call->workspace + g % 2 * half;
        steps[g] = (pen_cuda_step){
            .kernel = is_row ? PEN_CUDA_KERNEL_sum_rows : PEN_CUDA_KERNEL_sum_columns,
            .grid = {is_row ? reduction_line_blocks(&s) : pen_cuda_blocks_for(s.outer * s.inner), 1,
                     1},
            .only_sets = !is_last,
            .args.sum = {.what = reduction_what(rule),
                         .outer = s.outer,
                         .reduced = s.reduced,
                         .inner = s.inner,
                         .x = from,
                         .y = to,
                         .divisor = rule == REDUCTION_MEAN ? (float)s.reduced : 1}};
        from = to;
    }
    return count;
}

static bool extremum_supports(const pen_graph *graph, const pen_node *node) {
    sum_shape shape;
    if (!pen_cuda_is_float(graph, node->inputs[0])) return whole_supports(graph, node);
    return pen_cuda_is_float(graph, node->outputs[0]) && sum_shape_of(graph, node, &shape) &&
           reduction_has_elements(pen_cuda_rule(node), &shape);
}

// Of a product, too, whose kernel has its lines likewise.
static uint32_t extremum_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const uint32_t rule = pen_cuda_rule(call->node);
    sum_shape s;
    if (!pen_cuda_is_float(call->graph, call->node->inputs[0])) return whole_steps(call, steps);
    if (!sum_shape_of(call->graph, call->node, &s) || s.outer * s.inner == 0) return 0;
    *steps = (pen_cuda_step){.kernel = rule == REDUCTION_PRODUCT ? PEN_CUDA_KERNEL_multiply
                                                                 : PEN_CUDA_KERNEL_extremum,
                             .grid = {reduction_line_blocks(&s), 1, 1},
                             .args.sum = {.is_least = rule == REDUCTION_MIN,
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

// A sum's gradient may be repeated along any dimensions.
static bool spread_supports(const pen_graph *graph, const pen_node *node) {
    sum_shape shape;
    return pen_cuda_all_float(graph, node) &&
           (pen_cuda_rule(node) == REDUCTION_SUM || spread_shape_of(graph, node, &shape));
}

// A sum's gradient is repeated; that of an extremum goes to those that are it.
static uint32_t spread_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const bool is_sum = pen_cuda_rule(node) == REDUCTION_SUM;
    const float factor = is_sum ? (float)pen_node_float(node, "scale") : 1;
    sum_shape s;
    if (!spread_shape_of(call->graph, node, &s)) return pen_cuda_spread(call, factor, steps);
    const uint64_t count = s.outer * s.reduced * s.inner;
    if (count == 0) return 0;
    *steps = (pen_cuda_step){
        .kernel = is_sum ? PEN_CUDA_KERNEL_spread : PEN_CUDA_KERNEL_extremum_backward,
        .grid = {is_sum ? pen_cuda_blocks_for(count) : reduction_line_blocks(&s), 1, 1},
        .args.sum = {.outer = s.outer,
                     .reduced = s.reduced,
                     .inner = s.inner,
                     .x = is_sum ? 0 : call->inputs[1],
                     .dy = call->inputs[0],
                     .found = is_sum ? 0 : call->inputs[2],
                     .y = call->outputs[0],
                     .factor = factor}};
    return 1;
}

// A product's goes to each by the others.
static uint32_t multiply_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    sum_shape s;
    if (!spread_shape_of(call->graph, call->node, &s)) return 0;
    if (s.outer * s.reduced * s.inner == 0) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_multiply_backward,
                             .grid = {reduction_line_blocks(&s), 1, 1},
                             .args.sum = {.outer = s.outer,
                                          .reduced = s.reduced,
                                          .inner = s.inner,
                                          .x = call->inputs[1],
                                          .dy = call->inputs[0],
                                          .y = call->outputs[0]}};
    return 1;
}

// Of sums whose slope is not 1.
static uint32_t slope_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    sum_shape s;
    if (!spread_shape_of(call->graph, call->node, &s)) return 0;
    const uint64_t count = s.outer * s.reduced * s.inner;
    if (count == 0) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_spread_slope,
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.sum = {.what = reduction_what(pen_cuda_rule(call->node)),
                                          .outer = s.outer,
                                          .reduced = s.reduced,
                                          .inner = s.inner,
                                          .x = call->inputs[1],
                                          .dy = call->inputs[0],
                                          .found = pen_cuda_input(call, 2),
                                          .y = call->outputs[0]}};
    return 1;
}

#define SUM_ENTRY(op, what)                                                                        \
    {                                                                                              \
        .op_name = op, .can_accumulate = true, .supports = sum_supports,                           \
        .workspace_bytes = sum_workspace_bytes, .steps = sum_steps, .rule = what                   \
    }
#define SLOPE_ENTRY(op, what) PEN_CUDA_ENTRY(op "_backward", spread_supports, slope_steps, what)
static const pen_cuda_entry reduction_entries[] = {
    SUM_ENTRY("reduce_sum", REDUCTION_SUM),
    SUM_ENTRY("reduce_mean", REDUCTION_MEAN),
    SUM_ENTRY("reduce_l1", REDUCTION_L1),
    SUM_ENTRY("reduce_l2", REDUCTION_L2),
    SUM_ENTRY("reduce_sum_square", REDUCTION_SQUARES),
    SUM_ENTRY("reduce_log_sum", REDUCTION_LOG),
    SUM_ENTRY("reduce_log_sum_exp", REDUCTION_LOG_EXP),
    SLOPE_ENTRY("reduce_l1", REDUCTION_L1),
    SLOPE_ENTRY("reduce_l2", REDUCTION_L2),
    SLOPE_ENTRY("reduce_sum_square", REDUCTION_SQUARES),
    SLOPE_ENTRY("reduce_log_sum_exp", REDUCTION_LOG_EXP),
    PEN_CUDA_ENTRY("reduce_max", extremum_supports, extremum_steps, REDUCTION_MAX),
    PEN_CUDA_ENTRY("reduce_min", extremum_supports, extremum_steps, REDUCTION_MIN),
    PEN_CUDA_ENTRY("reduce_prod", extremum_supports, extremum_steps, REDUCTION_PRODUCT),
    PEN_CUDA_ENTRY("reduce_prod_backward", spread_supports, multiply_backward_steps,
                   REDUCTION_PRODUCT),
    PEN_CUDA_ENTRY("reduce_sum_backward", spread_supports, spread_steps, REDUCTION_SUM),
    PEN_CUDA_ENTRY("reduce_max_backward", spread_supports, spread_steps, REDUCTION_MAX),
    PEN_CUDA_ENTRY("reduce_min_backward", spread_supports, spread_steps, REDUCTION_MIN),
};

PEN_CUDA_FAMILY_OF(reduction);
