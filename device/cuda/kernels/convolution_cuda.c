// Convolutions and their gradients: kernels/convolution.cu, the bias' by kernels/pool.cu.
#include "base/integer.h"
#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "device/cuda/cudnn.h"
#include "graph/ops/product/convolution_geometry.h"

// Rows of a group below which a tile would be almost empty.
#define CONV_ROWS_LEAST 16
// Blocks that a weight's gradient is made by, where it has the terms; those of a piece at least.
#define CONV_BLOCKS 512u
#define CONV_PIECE_LEAST 512u

typedef enum conv_rule { CONV_FORWARD, CONV_TRANSPOSED, CONV_INPUT, CONV_WEIGHT } conv_rule;

static bool conv_find(const pen_graph *graph, const pen_node *node, pen_conv_geometry *out) {
    static pen_status (*const find[])(const pen_graph *, const pen_node *, pen_conv_geometry *) = {
        [CONV_FORWARD] = pen_conv_geometry_of,
        [CONV_TRANSPOSED] = pen_conv_transpose_geometry,
        [CONV_INPUT] = pen_conv_backward_input_geometry,
        [CONV_WEIGHT] = pen_conv_backward_weight_geometry,
    };
    const pen_status status = find[pen_cuda_rule(node)](graph, node, out);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "the host's kernel says what is wrong");
    return false;
}

static uint32_t conv_what(const pen_node *node) {
    const uint32_t rule = pen_cuda_rule(node);
    return rule == CONV_FORWARD  ? PEN_CUDA_CONV
           : rule == CONV_WEIGHT ? PEN_CUDA_CONV_WEIGHT
                                 : PEN_CUDA_CONV_INPUT;
}

static bool conv_fits(const pen_conv_geometry *g) {
    uint64_t input = 1, output = 1, kernel = 1;
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        if (g->input_size[d] > PEN_CUDA_WINDOW_MOST || g->output_size[d] > PEN_CUDA_WINDOW_MOST ||
            g->pad_begin[d] > PEN_CUDA_WINDOW_MOST || g->stride[d] > PEN_CUDA_WINDOW_MOST ||
            g->kernel_size[d] * g->dilation[d] > PEN_CUDA_WINDOW_MOST)
            return false;
        if (!pen_u64_mul(input, (uint64_t)g->input_size[d], &input) ||
            !pen_u64_mul(output, (uint64_t)g->output_size[d], &output) ||
            !pen_u64_mul(kernel, (uint64_t)g->kernel_size[d], &kernel))
            return false;
    }
    const uint64_t batch = (uint64_t)g->batch, channels = (uint64_t)g->input_channels;
    return pen_u64_mul(input, batch * pen_max_u64(channels, 1), &input) &&
           pen_u64_mul(output, batch * pen_max_u64((uint64_t)g->output_channels, 1), &output) &&
           input <= INT32_MAX && output <= INT32_MAX &&
           kernel * channels <= INT32_MAX / (uint64_t)pen_max_i64(g->output_channels, 1);
}

static uint64_t conv_volume(const uint32_t *sizes) {
    return (uint64_t)sizes[0] * sizes[1] * sizes[2];
}

// Columns of the largest part of a group.
static uint64_t conv_columns(const struct cuda_conv_args *args) {
    uint64_t positions = args->batch;
    if (args->what == PEN_CUDA_CONV_WEIGHT) return args->channels * conv_volume(args->kernel);
    for (uint32_t d = 0; d < PEN_SPATIAL_LIMIT; d++) {
        const uint32_t pace = args->what == PEN_CUDA_CONV_INPUT ? args->stride[d] : 1;
        positions *= (args->target[d] + pace - 1) / pace;
    }
    return positions;
}

static uint32_t conv_tiles(uint64_t count) {
    return (uint32_t)((count + PEN_CUDA_TILE - 1) / PEN_CUDA_TILE);
}

static bool conv_is_narrow(const struct cuda_conv_args *args) {
    return args->rows < CONV_ROWS_LEAST;
}

// Pieces of terms of a weight's gradient: as many as there must be blocks, if it is long enough.
static void conv_cut(struct cuda_conv_args *args, bool is_whole) {
    const uint64_t terms = args->batch * conv_volume(args->target);
    const uint64_t tiles =
        (uint64_t)conv_tiles(args->rows) * conv_tiles(conv_columns(args)) * args->groups;
    const uint64_t most = is_whole ? 1 : pen_max_u64(terms / CONV_PIECE_LEAST, 1);
    const uint64_t pieces = pen_min_u64(pen_max_u64(CONV_BLOCKS / tiles, 1), most);
    args->piece_terms = (uint32_t)pen_align_up(terms / pieces + 1, 16);
    args->pieces = (uint32_t)pen_max_u64((terms + args->piece_terms - 1) / args->piece_terms, 1);
    args->parts = args->pieces;
}

// All but where operands are. A weight's gradient is in pieces, unless it is to be whole.
static struct cuda_conv_args conv_args(const pen_node *node, const pen_conv_geometry *g,
                                       bool is_whole) {
    const uint32_t what = conv_what(node);
    const uint32_t in = (uint32_t)(g->input_channels / g->group_count);
    const uint32_t out = (uint32_t)(g->output_channels / g->group_count);
    const bool is_input = what == PEN_CUDA_CONV_INPUT;
    struct cuda_conv_args args = {.what = what,
                                  .batch = (uint32_t)g->batch,
                                  .groups = (uint32_t)g->group_count,
                                  .rows = is_input ? in : out,
                                  .channels = is_input ? out : in,
                                  .parts = 1,
                                  .pieces = 1};
    pen_cuda_copy_sizes(args.source, is_input ? g->output_size : g->input_size);
    pen_cuda_copy_sizes(args.target, is_input ? g->input_size : g->output_size);
    pen_cuda_copy_sizes(args.kernel, g->kernel_size);
    pen_cuda_copy_sizes(args.stride, g->stride);
    pen_cuda_copy_sizes(args.dilation, g->dilation);
    pen_cuda_copy_sizes(args.pad, g->pad_begin);
    if (conv_is_narrow(&args)) return args;
    if (what == PEN_CUDA_CONV_WEIGHT) conv_cut(&args, is_whole);
    if (is_input) args.parts = (uint32_t)conv_volume(args.stride);
    return args;
}

static bool conv_supports(const pen_graph *graph, const pen_node *node) {
    pen_conv_geometry g;
    if (!pen_cuda_all_float(graph, node) || !conv_find(graph, node, &g) || !conv_fits(&g))
        return false;
    const uint64_t classes = (uint64_t)g.stride[0] * (uint64_t)g.stride[1]; // each below 2^28
    if (classes > PEN_CUDA_GRID_MOST || classes * (uint64_t)g.stride[2] > PEN_CUDA_GRID_MOST)
        return false;
    const struct cuda_conv_args args = conv_args(node, &g, false);
    return (uint64_t)args.groups * args.parts <= PEN_CUDA_GRID_MOST &&
           conv_tiles(args.rows) <= PEN_CUDA_GRID_MOST;
}

static uint64_t conv_weights(const struct cuda_conv_args *args) {
    return (uint64_t)args->groups * args->rows * args->channels * conv_volume(args->kernel);
}

// Sums of pieces.
static uint64_t conv_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    pen_conv_geometry g;
    if (!conv_find(graph, node, &g)) return 0;
    const struct cuda_conv_args args = conv_args(node, &g, false);
    return args.pieces > 1 ? args.pieces * conv_weights(&args) * sizeof(float) : 0;
}

// A thread for each element or, of a weight's gradient, a warp or a block.
static pen_cuda_step conv_narrow_step(const struct cuda_conv_args *args, uint64_t count) {
    const bool by_weight = args->what == PEN_CUDA_CONV_WEIGHT;
    const bool is_short = args->batch * conv_volume(args->target) <= 32 * PEN_CUDA_BLOCK;
    const uint64_t team = !by_weight ? 1 : is_short ? 32 : PEN_CUDA_BLOCK;
    return (pen_cuda_step){.kernel = by_weight ? PEN_CUDA_KERNEL_conv_narrow_weight
                                               : PEN_CUDA_KERNEL_conv_narrow,
                           .grid = {pen_cuda_blocks_for(team * count), 1, 1},
                           .args.conv = *args};
}

pen_cuda_step pen_cuda_conv_addend(const struct cuda_conv_args *args) {
    const uint64_t channels = (uint64_t)args->groups * args->rows;
    const uint64_t volume = conv_volume(args->target), count = args->batch * channels * volume;
    return (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_combine,
                           .grid = {pen_cuda_blocks_for(count), 1, 1},
                           .args.broadcast = {.adds = 1,
                                              .what = PEN_CUDA_SCALE,
                                              .rank = 3,
                                              .count = count,
                                              .x = {args->bias},
                                              .y = args->y,
                                              .dims = {args->batch, channels, volume},
                                              .strides = {{0, 1, 0}},
                                              .factor = 1}};
}

// A weight's gradient is whole where cuDNN may take it. Else it is in pieces also where there is a
// cuDNN: whole, own kernels have a block for each tile of the weight alone, which are few.
static struct cuda_conv_args conv_args_of_call(const pen_cuda_call *call,
                                               const pen_conv_geometry *g) {
    const struct cuda_conv_args whole = conv_args(call->node, g, true);
    return call->has_cudnn && pen_cudnn_is_expressible(&whole) ? whole
                                                               : conv_args(call->node, g, false);
}

// A product of the pieces, and their sums in order; or one step.
static uint32_t conv_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const bool by_weight = pen_cuda_rule(call->node) == CONV_WEIGHT;
    const uint64_t count = pen_cuda_count(call->graph, call->node->outputs[0]);
    pen_conv_geometry g;
    if (!conv_find(call->graph, call->node, &g) || count == 0) return 0;
    struct cuda_conv_args args = conv_args_of_call(call, &g);
    args.precision = call->precision;
    args.left = call->inputs[1];
    args.right = call->inputs[0];
    args.bias = pen_cuda_input(call, 2);
    args.y = args.pieces > 1 ? call->workspace : call->outputs[0];
    if (conv_is_narrow(&args)) {
        steps[0] = conv_narrow_step(&args, count);
        return 1;
    }
    steps[0] = (pen_cuda_step){
        .kernel = PEN_CUDA_KERNEL_conv,
        .grid = {conv_tiles(conv_columns(&args)), conv_tiles(args.rows), args.groups * args.parts},
        .only_sets = args.pieces > 1,
        .args.conv = args};
    if (!by_weight || args.pieces == 1) return 1;
    steps[1] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_sum_columns,
                               .grid = {pen_cuda_blocks_for(count), 1, 1},
                               .args.sum = {.outer = 1,
                                            .divisor = 1,
                                            .reduced = args.pieces,
                                            .inner = count,
                                            .x = call->workspace,
                                            .y = call->outputs[0]}};
    return 2;
}

// ---- the bias: sums of planes, then of samples

static bool conv_bias_supports(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_all_float(graph, node) && pen_cuda_count(graph, node->inputs[0]) > 0;
}

static uint64_t conv_bias_planes(const pen_graph *graph, const pen_node *node) {
    return (uint64_t)pen_shape_count(&pen_value_type(graph, node->inputs[0])->shape, 0, 2);
}

static uint64_t conv_bias_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    return conv_bias_planes(graph, node) * sizeof(float);
}

// Sums of planes lie in the workspace, whatever the node adds to.
static uint32_t conv_bias_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const uint64_t planes = conv_bias_planes(call->graph, call->node);
    const uint64_t channels = pen_cuda_count(call->graph, call->node->outputs[0]);
    steps[0] = (pen_cuda_step){
        .kernel = PEN_CUDA_KERNEL_plane,
        .grid = {pen_cuda_blocks_for(32 * planes), 1, 1},
        .only_sets = true,
        .args.plane = {.what = PEN_CUDA_POOL_AVERAGE,
                       .planes = planes,
                       .size = pen_cuda_count(call->graph, call->node->inputs[0]) / planes,
                       .x = call->inputs[0],
                       .y = call->workspace,
                       .divisor = 1}};
    steps[1] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_sum_columns,
                               .grid = {pen_cuda_blocks_for(channels), 1, 1},
                               .args.sum = {.outer = 1,
                                            .divisor = 1,
                                            .reduced = planes / channels,
                                            .inner = channels,
                                            .x = call->workspace,
                                            .y = call->outputs[0]}};
    return 2;
}

static const pen_cuda_entry convolution_entries[] = {
    PEN_CUDA_ENTRY("conv", conv_supports, conv_steps, CONV_FORWARD),
    PEN_CUDA_ENTRY("conv_transpose", conv_supports, conv_steps, CONV_TRANSPOSED),
    PEN_CUDA_ENTRY("conv_backward_input", conv_supports, conv_steps, CONV_INPUT),
    {.op_name = "conv_backward_weight",
     .can_accumulate = true,
     .supports = conv_supports,
     .workspace_bytes = conv_workspace_bytes,
     .steps = conv_steps,
     .rule = CONV_WEIGHT},
    {.op_name = "conv_backward_bias",
     .can_accumulate = true,
     .supports = conv_bias_supports,
     .workspace_bytes = conv_bias_workspace_bytes,
     .steps = conv_bias_steps},
};

PEN_CUDA_FAMILY_OF(convolution);
