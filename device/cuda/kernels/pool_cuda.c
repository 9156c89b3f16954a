// Pools, and their gradients: kernels/pool.cu. A pool of whole planes has one window.
#include <string.h>

#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/op.h"
#include "graph/ops/product/convolution_geometry.h"

enum { POOL_AVERAGE = 1, POOL_WHOLE = 2, POOL_BACKWARD = 4 };

static bool pool_is(const pen_node *node, uint32_t bit) {
    return (pen_cuda_rule(node) & bit) != 0;
}

// What is pooled, or its gradient.
static pen_value_id pool_plain(const pen_node *node) {
    return pool_is(node, POOL_BACKWARD) ? node->outputs[0] : node->inputs[0];
}

static uint64_t pool_planes(const pen_graph *graph, const pen_node *node) {
    return (uint64_t)pen_shape_count(&pen_value_type(graph, pool_plain(node))->shape, 0, 2);
}

// Whole planes as windows of one dimension.
static void pool_whole(const pen_graph *graph, const pen_node *node, pen_conv_geometry *out) {
    const pen_shape *shape = &pen_value_type(graph, pool_plain(node))->shape;
    *out = (pen_conv_geometry){.spatial_rank = 1};
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        out->input_size[d] = out->output_size[d] = out->kernel_size[d] = 1;
        out->stride[d] = out->dilation[d] = 1;
    }
    out->input_size[PEN_SPATIAL_LIMIT - 1] = out->kernel_size[PEN_SPATIAL_LIMIT - 1] =
        pen_shape_count(shape, 2, shape->rank);
}

static bool pool_find(const pen_graph *graph, const pen_node *node, pen_conv_geometry *out) {
    if (pool_is(node, POOL_WHOLE)) {
        pool_whole(graph, node, out);
        return true;
    }
    const pen_status status = pool_is(node, POOL_BACKWARD)
                                  ? pen_pool_backward_geometry(graph, node, out)
                                  : pen_pool_geometry(graph, node, out);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "the host's kernel says what is wrong");
    return false;
}

static bool pool_fits(const pen_conv_geometry *g) {
    int64_t input = 1;
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        const int64_t pad_end = g->pad_end[d];
        if (g->input_size[d] > PEN_CUDA_WINDOW_MOST || g->pad_begin[d] > PEN_CUDA_WINDOW_MOST ||
            g->stride[d] > PEN_CUDA_WINDOW_MOST || pad_end > PEN_CUDA_WINDOW_MOST || pad_end < 0 ||
            g->kernel_size[d] * g->dilation[d] > PEN_CUDA_WINDOW_MOST ||
            g->output_size[d] * g->stride[d] > 2 * PEN_CUDA_WINDOW_MOST)
            return false;
        input *= g->input_size[d]; // each below 2^28: the sum of the first two fits
        if (input > PEN_CUDA_WINDOW_MOST) return false;
    }
    return true;
}

static bool pool_supports(const pen_graph *graph, const pen_node *node) {
    pen_conv_geometry g;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!pen_cuda_is_float(graph, node->inputs[i])) return false;
    return pen_cuda_is_float(graph, node->outputs[0]) && pool_find(graph, node, &g) &&
           pool_fits(&g);
}

static uint32_t pool_what(const pen_node *node) {
    return pool_is(node, POOL_AVERAGE) ? PEN_CUDA_POOL_AVERAGE : PEN_CUDA_POOL_MAX;
}

// A warp for each plane.
static pen_cuda_step pool_plane_step(const pen_cuda_call *call, const pen_conv_geometry *g) {
    const uint64_t planes = pool_planes(call->graph, call->node);
    const uint64_t size = (uint64_t)g->input_size[PEN_SPATIAL_LIMIT - 1];
    return (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_plane,
                           .grid = {pen_cuda_blocks_for(32 * planes), 1, 1},
                           .args.plane = {.what = pool_what(call->node),
                                          .planes = planes,
                                          .size = size,
                                          .x = call->inputs[0],
                                          .y = call->outputs[0],
                                          .divisor = (float)size}};
}

// Backward, a pool of whole planes is one of windows: a thread for each element of the gradient.
static uint32_t pool_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const bool is_backward = pool_is(node, POOL_BACKWARD);
    const bool is_windowed = !pool_is(node, POOL_WHOLE);
    const uint64_t count = pen_cuda_count(call->graph, node->outputs[0]);
    pen_conv_geometry g;
    if (!pool_find(call->graph, node, &g) || count == 0) return 0;
    if (!is_windowed && !is_backward) {
        steps[0] = pool_plane_step(call, &g);
        return 1;
    }
    struct cuda_pool_args args = {.what = pool_what(node),
                                  .planes = pool_planes(call->graph, node),
                                  .x = call->inputs[0],
                                  .y = call->outputs[0]};
    if (is_backward) {
        args.dy = call->inputs[0];
        args.x = pen_cuda_input(call, 1);
        args.maxima = pen_cuda_input(call, 2);
    } else {
        args.indices = pen_cuda_output(call, 1);
    }
    args.counts_pads =
        is_windowed && pool_is(node, POOL_AVERAGE) && pen_node_int(node, "count_include_pad") != 0;
    pen_cuda_copy_sizes(args.input, g.input_size);
    pen_cuda_copy_sizes(args.output, g.output_size);
    pen_cuda_copy_sizes(args.kernel, g.kernel_size);
    pen_cuda_copy_sizes(args.stride, g.stride);
    pen_cuda_copy_sizes(args.dilation, g.dilation);
    pen_cuda_copy_sizes(args.pad_begin, g.pad_begin);
    pen_cuda_copy_sizes(args.pad_end, g.pad_end);
    steps[0] = (pen_cuda_step){.kernel = is_backward ? PEN_CUDA_KERNEL_pool_backward
                                                     : PEN_CUDA_KERNEL_pool,
                               .grid = {pen_cuda_blocks_for(count), 1, 1},
                               .args.pool = args};
    return 1;
}

#define POOL_ENTRIES(op, rule_op)                                                                  \
    PEN_CUDA_ENTRY(op, pool_supports, pool_steps, rule_op),                                        \
        PEN_CUDA_ENTRY(op "_backward", pool_supports, pool_steps, (rule_op) | POOL_BACKWARD)
static const pen_cuda_entry pool_entries[] = {
    POOL_ENTRIES("max_pool", 0),
    POOL_ENTRIES("average_pool", POOL_AVERAGE),
    POOL_ENTRIES("global_max_pool", POOL_WHOLE),
    POOL_ENTRIES("global_average_pool", POOL_WHOLE | POOL_AVERAGE),
};

PEN_CUDA_FAMILY_OF(pool);
