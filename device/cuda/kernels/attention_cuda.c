// Attention and its gradients: kernels/attention.cu. Rows of more than 128 numbers are left to the
// host, and gradients of masks of truths, which are none.
#include "base/random.h"
#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/product/attention_geometry.h"

_Static_assert(PEN_RANK_LIMIT <= PEN_CUDA_RANK, "a mask has room for the dimensions of a tensor");

typedef enum attention_rule { ATTENTION_FORWARD, ATTENTION_BACKWARD } attention_rule;

// Which operand q is; k and v come behind it.
static uint32_t attention_q(const pen_node *node) {
    return pen_cuda_rule(node) == ATTENTION_BACKWARD ? 1 : 0;
}

static uint32_t attention_mask(const pen_node *node) {
    return pen_cuda_rule(node) == ATTENTION_BACKWARD ? 5 : 3;
}

static bool attention_geometry(const pen_graph *graph, const pen_node *node,
                               pen_attention_geometry *out_geometry) {
    const pen_status status = pen_attention_geometry_of(graph, node, attention_q(node),
                                                        attention_mask(node), out_geometry);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "the host's kernel says what is wrong");
    return false;
}

// Operands are float32, but a mask of truths; what is made must fit a block's shared memory.
static bool attention_supports(const pen_graph *graph, const pen_node *node) {
    pen_attention_geometry g;
    const uint32_t mask = attention_mask(node);
    for (uint32_t i = 0; i < mask; i++)
        if (!pen_cuda_is_float(graph, node->inputs[i])) return false;
    if (pen_cuda_has(node, mask) && !pen_cuda_is_float(graph, node->inputs[mask]) &&
        pen_value_type(graph, node->inputs[mask])->element != PEN_BOOL) {
        return false;
    }
    const uint32_t made = mask == 5 ? 3 : 1;
    for (uint32_t i = 0; i < made; i++)
        if (!pen_value_is(node->outputs[i])) return false;
    if (node->output_count > made && !pen_cuda_is_float(graph, node->outputs[made])) return false;
    if (!attention_geometry(graph, node, &g)) return false;
    return g.depth > 0 && g.value_depth > 0 && g.depth <= PEN_CUDA_ATTENTION_DEPTH &&
           g.value_depth <= PEN_CUDA_ATTENTION_DEPTH && g.query_count > 0 && g.key_count > 0 &&
           g.query_count < INT32_MAX && g.key_count < INT32_MAX &&
           g.outer_count * g.head_count > 0 && g.head_count <= INT32_MAX;
}

static struct cuda_attention_strides attention_strides(const pen_attention_strides *strides) {
    return (struct cuda_attention_strides){.outer = (uint64_t)strides->outer,
                                           .head = (uint64_t)strides->head,
                                           .row = (uint64_t)strides->row,
                                           .shared = (uint32_t)strides->shared};
}

// Dimensions of the attentions from the last on, and how far the mask's next one is in each.
static void attention_place_mask(const pen_attention_geometry *g,
                                 struct cuda_attention_args *args) {
    int64_t stride = g->mask_size;
    args->mask_row = (uint64_t)g->mask_row;
    args->mask_column = (uint64_t)g->mask_column;
    args->mask_rank = g->mask_batch.rank;
    args->masks = (uint64_t)pen_shape_element_count(&g->mask_batch);
    for (uint32_t d = 0; d < g->mask_batch.rank; d++) {
        const int64_t own = g->mask_batch.dims[g->mask_batch.rank - 1 - d];
        args->mask_dims[d] = (uint64_t)g->batch.dims[g->batch.rank - 1 - d];
        args->mask_strides[d] = own > 1 ? (uint64_t)stride : 0;
        stride *= own;
    }
}

// What both directions have.
static struct cuda_attention_args attention_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const uint32_t q = attention_q(node), mask = attention_mask(node);
    const double dropout = pen_node_float(node, "dropout");
    pen_attention_geometry g = {0};
    (void)attention_geometry(call->graph, node, &g); // it was found when the node was taken
    struct cuda_attention_args args = {.precision = call->precision,
                                       .heads = (uint32_t)g.head_count,
                                       .queries = (uint32_t)g.query_count,
                                       .keys = (uint32_t)g.key_count,
                                       .depth = (uint32_t)g.depth,
                                       .value_depth = (uint32_t)g.value_depth,
                                       .is_causal = pen_node_int(node, "causal") != 0,
                                       .threshold = pen_random_threshold(dropout),
                                       .attentions = (uint64_t)(g.outer_count * g.head_count),
                                       .random = call->random,
                                       .of_q = attention_strides(&g.q),
                                       .of_k = attention_strides(&g.k),
                                       .of_v = attention_strides(&g.v),
                                       .of_y = attention_strides(&g.y),
                                       .q = call->inputs[q],
                                       .k = call->inputs[q + 1],
                                       .v = call->inputs[q + 2],
                                       .scale = (float)pen_node_float(node, "scale"),
                                       .fill = (float)pen_attention_fill(node),
                                       .kept = (float)(1 / (1 - dropout))};
    if (g.has_mask) {
        args.mask = call->inputs[mask];
        args.mask_is_bool = pen_value_type(call->graph, node->inputs[mask])->element == PEN_BOOL;
        attention_place_mask(&g, &args);
    }
    return args;
}

// A block for each tile of rows.
static pen_cuda_step attention_step(const struct cuda_attention_args *args,
                                    pen_cuda_kernel_number kernel, uint64_t attentions,
                                    uint64_t rows) {
    const uint64_t tiles = (rows + PEN_CUDA_ATTENTION_ROWS - 1) / PEN_CUDA_ATTENTION_ROWS;
    return (pen_cuda_step){.kernel = kernel,
                           .grid = {pen_cuda_blocks(attentions * tiles), 1, 1},
                           .args.attention = *args};
}

static uint32_t attention_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_attention_args args = attention_args(call);
    args.y = call->outputs[0];
    steps[0] = attention_step(&args, PEN_CUDA_KERNEL_attention, args.attentions, args.queries);
    return 1;
}

static uint64_t attention_backward_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    pen_attention_geometry g = {0};
    (void)attention_geometry(graph, node, &g);
    return (uint64_t)(g.outer_count * g.head_count * g.query_count) *
           sizeof(struct cuda_attention_row);
}

// A block for each tile of a mask; a mask that is repeated along rows, or keys, has one tile of
// them.
static pen_cuda_step attention_mask_step(const struct cuda_attention_args *args) {
    const uint64_t rows = args->mask_row > 0 ? args->queries : 1;
    const uint64_t keys = args->mask_column > 0 ? args->keys : 1;
    const uint64_t key_tiles = (keys + PEN_CUDA_ATTENTION_ROWS - 1) / PEN_CUDA_ATTENTION_ROWS;
    return attention_step(args, PEN_CUDA_KERNEL_attention_backward_mask, args->masks * key_tiles,
                          rows);
}

// Rows first: what they find of the softmax is needed for the keys.
static uint32_t attention_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_attention_args args = attention_args(call);
    args.dy = call->inputs[0];
    args.y = call->inputs[4];
    args.dq = call->outputs[0];
    args.dk = call->outputs[1];
    args.dv = call->outputs[2];
    args.dmask = pen_cuda_output(call, 3);
    args.rows = call->workspace;
    steps[0] = attention_step(&args, PEN_CUDA_KERNEL_attention_backward_rows, args.attentions,
                              args.queries);
    steps[1] = attention_step(&args, PEN_CUDA_KERNEL_attention_backward_keys,
                              args.attentions / args.of_k.shared, args.keys);
    if (args.dmask == 0) return 2;
    steps[2] = attention_mask_step(&args);
    return 3;
}

static struct cuda_random attention_draw(const pen_node *node, const pen_run_context *run) {
    const pen_random_key key =
        pen_attention_random_key(node, run->seed, run->step, run->microbatch);
    return (struct cuda_random){key.seed, key.stream};
}

static const pen_cuda_entry attention_entries[] = {
    {.op_name = "attention",
     .can_accumulate = true,
     .supports = attention_supports,
     .steps = attention_steps,
     .draw = attention_draw,
     .rule = ATTENTION_FORWARD},
    {.op_name = "attention_backward",
     .can_accumulate = true,
     .supports = attention_supports,
     .workspace_bytes = attention_backward_workspace_bytes,
     .steps = attention_backward_steps,
     .draw = attention_draw,
     .rule = ATTENTION_BACKWARD},
};

PEN_CUDA_FAMILY_OF(attention);
