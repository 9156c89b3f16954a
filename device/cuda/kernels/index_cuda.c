// Rows that are read and written where several indices say: kernels/index.cu.
#include "base/integer.h"
#include "base/status.h"
#include "device/cuda/cuda_kernel.h"

_Static_assert(PEN_RANK_LIMIT <= PEN_CUDA_RANK, "a tuple has room for the dimensions of a tensor");

// Threads that a scatter has at least, where there are as many rows.
#define INDEX_THREADS 4096u
// Tuples that all threads of a scatter read together, at most: each reads all of them.
#define INDEX_WORK ((uint64_t)1 << 32)

typedef enum index_rule { INDEX_GATHER, INDEX_SCATTER } index_rule;

static const pen_shape *index_shape(const pen_graph *graph, const pen_node *node, uint32_t input) {
    return &pen_value_type(graph, node->inputs[input])->shape;
}

// Indices in a tuple.
static uint32_t index_depth(const pen_graph *graph, const pen_node *node) {
    const pen_shape *indices = index_shape(graph, node, 1);
    return (uint32_t)indices->dims[indices->rank - 1];
}

// Dimensions of batches stand before those that tuples say, and those of rows behind them.
static struct cuda_nd_args index_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const pen_shape *data = index_shape(call->graph, node, 0);
    const pen_shape *indices = index_shape(call->graph, node, 1);
    const uint32_t batch = (uint32_t)pen_node_int(node, "batch_dims");
    const pen_element_type element = pen_value_type(call->graph, node->inputs[0])->element;
    struct cuda_nd_args args = {
        .bytes = (uint32_t)pen_element_bytes(element),
        .indices_are_wide = pen_value_type(call->graph, node->inputs[1])->element == PEN_INT64,
        .depth = index_depth(call->graph, node),
        .tuples = (uint64_t)pen_shape_count(indices, 0, indices->rank - 1),
        .batch_tuples = (uint64_t)pen_shape_count(indices, batch, indices->rank - 1),
        .x = call->inputs[0],
        .indices = call->inputs[1],
        .y = call->outputs[0],
        .error = call->error};
    for (uint32_t d = 0; d < args.depth; d++)
        args.dims[d] = data->dims[batch + d];
    args.inner = (uint64_t)pen_shape_count(data, batch + args.depth, data->rank);
    return args;
}

static bool index_supports(const pen_graph *graph, const pen_node *node) {
    const size_t bytes = pen_element_bytes(pen_value_type(graph, node->inputs[0])->element);
    const uint64_t count = pen_cuda_count(graph, node->inputs[1]);
    if (node->accumulates && !pen_cuda_is_float(graph, node->outputs[0])) return false;
    return (bytes == 1 || bytes == 4 || bytes == 8) && count > 0 && count < UINT32_MAX &&
           pen_shape_element_count(index_shape(graph, node, 0)) > 0;
}

static uint32_t gather_nd_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const struct cuda_nd_args args = index_args(call);
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_gather_nd,
                             .grid = {pen_cuda_blocks_for(args.tuples * args.inner), 1, 1},
                             .args.nd = args};
    return 1;
}

static uint64_t scatter_parts(uint64_t rows, uint64_t inner) {
    return pen_min_u64(rows, (INDEX_THREADS + inner - 1) / inner);
}

static bool scatter_nd_supports(const pen_graph *graph, const pen_node *node) {
    const pen_shape *data = index_shape(graph, node, 0);
    const uint32_t before = (uint32_t)pen_node_int(node, "batch_dims") + index_depth(graph, node);
    uint32_t put, type;
    uint64_t work;
    if (!index_supports(graph, node) || !pen_cuda_put_find(graph, node, &put, &type)) return false;
    const uint64_t inner = (uint64_t)pen_shape_count(data, before, data->rank);
    const uint64_t rows = pen_cuda_count(graph, node->inputs[0]) / inner;
    const uint64_t tuples = pen_cuda_count(graph, node->inputs[1]) / index_depth(graph, node);
    return pen_u64_mul(scatter_parts(rows, inner) * inner, tuples, &work) && work <= INDEX_WORK;
}

// The data are copied first, unless they are where the result is. Rows that are short are shared
// out, since one thread for each of a few columns would be few.
static uint32_t scatter_nd_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_nd_args args = index_args(call);
    const uint32_t count =
        call->inputs[0] == call->outputs[0] ? 0 : pen_cuda_copy_steps(call, steps);
    const uint64_t rows = pen_cuda_count(call->graph, call->node->inputs[0]) / args.inner;
    args.parts = scatter_parts(rows, args.inner);
    args.x = call->inputs[2];
    (void)pen_cuda_put_find(call->graph, call->node, &args.put, &args.type);
    steps[count] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_scatter_nd,
                                   .grid = {pen_cuda_blocks_for(args.parts * args.inner), 1, 1},
                                   .args.nd = args};
    return count + 1;
}

// The word counts from behind over all indices of all tuples.
static pen_status index_blame(const pen_graph *graph, const pen_node *node, uint32_t word) {
    const uint64_t position = pen_cuda_count(graph, node->inputs[1]) - word;
    const uint32_t batch = (uint32_t)pen_node_int(node, "batch_dims");
    const uint64_t d = position % index_depth(graph, node);
    const int64_t dim = index_shape(graph, node, 0)->dims[batch + d];
    return pen_error(
        PEN_INVALID_INPUT, "%s '%s': the index at position %llu is outside of [%lld, %lld)",
        node->op->name, node->name, (unsigned long long)position, (long long)-dim, (long long)dim);
}

static const pen_cuda_entry index_entries[] = {
    {.op_name = "gather_nd",
     .can_accumulate = true,
     .supports = index_supports,
     .steps = gather_nd_steps,
     .blame = index_blame,
     .rule = INDEX_GATHER},
    {.op_name = "scatter_nd",
     .supports = scatter_nd_supports,
     .steps = scatter_nd_steps,
     .blame = index_blame,
     .rule = INDEX_SCATTER},
};

PEN_CUDA_FAMILY_OF(index);
