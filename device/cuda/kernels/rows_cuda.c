// Gradients that are lists of rows, as those of embeddings: kernels/rows.cu keeps the rows of
// microbatches; an update takes their sums in a table of zeros, which is the gradient of all.
#include <string.h>

#include "base/integer.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/op.h"

#define ROWS_OPERANDS 16 // more than an update has

// The shape of the table of which operand `rows` says rows.
static pen_shape rows_table(const pen_graph *graph, const pen_node *node) {
    pen_shape shape = {0};
    if (node->op->is_update) return pen_value_type(graph, node->inputs[0])->shape;
    const int64_t *dims = pen_node_ints(node, "shape", &shape.rank);
    for (uint32_t d = 0; d < shape.rank; d++)
        shape.dims[d] = dims[d];
    return shape;
}

static bool rows_are_there(const pen_graph *graph, const pen_node *node, uint32_t rows) {
    if (!pen_cuda_has(node, rows)) return false;
    return pen_cuda_count(graph, node->inputs[rows]) > 0;
}

bool pen_cuda_rows_supported(const pen_graph *graph, const pen_node *node, uint32_t rows) {
    if (!pen_cuda_has(node, rows)) return true;
    const uint64_t count = pen_cuda_count(graph, node->inputs[rows]);
    const pen_shape table = rows_table(graph, node);
    return count < UINT32_MAX && pen_shape_element_count(&table) > 0;
}

uint64_t pen_cuda_rows_count(const pen_graph *graph, const pen_node *node, uint32_t rows,
                             uint32_t gradient) {
    if (!pen_cuda_has(node, rows)) return pen_cuda_count(graph, node->inputs[gradient]);
    const pen_shape table = rows_table(graph, node);
    return (uint64_t)pen_shape_element_count(&table);
}

uint64_t pen_cuda_rows_bytes(const pen_graph *graph, const pen_node *node, uint32_t rows) {
    if (!pen_cuda_has(node, rows)) return 0;
    return pen_align_up(pen_cuda_rows_count(graph, node, rows, 0) * sizeof(float), 64);
}

// The gather that picked the rows has looked whether there are such.
uint32_t pen_cuda_rows_steps(const pen_cuda_call *call, uint32_t rows, uint32_t gradient,
                             pen_cuda_steps_of *rest, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    pen_cuda_address inputs[ROWS_OPERANDS];
    pen_cuda_call own = *call;
    uint32_t count = 1;
    if (!pen_cuda_has(node, rows)) return rest(call, steps);
    PEN_ASSERT(node->input_count <= ROWS_OPERANDS);
    memcpy(inputs, call->inputs, node->input_count * sizeof *inputs);
    inputs[gradient] = call->workspace;
    own.inputs = inputs;
    own.workspace = call->workspace + pen_cuda_rows_bytes(call->graph, node, rows);
    const pen_shape table = rows_table(call->graph, node);
    const uint64_t all = (uint64_t)pen_shape_element_count(&table);
    const uint64_t length = all / (uint64_t)table.dims[0];
    const pen_element_type index = pen_value_type(call->graph, node->inputs[rows])->element;
    steps[0] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_fill,
                               .grid = {pen_cuda_blocks_for(all), 1, 1},
                               .args.fill = {.count = all, .y = call->workspace}};
    if (rows_are_there(call->graph, node, rows)) {
        count = 2;
        steps[1] = (pen_cuda_step){
            .kernel = PEN_CUDA_KERNEL_gather_backward,
            .grid = {pen_cuda_blocks_for(length), 1, 1},
            .args.gather = {.indices_are_wide = index == PEN_INT64,
                            .bytes = sizeof(float),
                            .outer = 1,
                            .dim = (uint64_t)table.dims[0],
                            .index_count = pen_cuda_count(call->graph, node->inputs[rows]),
                            .inner = length,
                            .x = call->inputs[gradient],
                            .indices = call->inputs[rows],
                            .y = call->workspace,
                            .error = call->error}};
    }
    return count + rest(&own, &steps[count]);
}

// ---- rows of microbatches behind each other

static bool stack_supports(const pen_graph *graph, const pen_node *node) {
    const size_t bytes = pen_element_bytes(pen_value_type(graph, node->inputs[0])->element);
    return bytes == 4 || bytes == 8;
}

// Which rows are those of a microbatch is known when it runs: `stack_draw` says it.
static uint32_t stack_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_element_type element = pen_value_type(call->graph, node->inputs[0])->element;
    const pen_shape *y = &pen_value_type(call->graph, node->outputs[0])->shape;
    const struct cuda_stack_args args = {.bytes = (uint32_t)pen_element_bytes(element),
                                         .is_float = element == PEN_FLOAT32,
                                         .count = (uint64_t)pen_shape_element_count(y),
                                         .x_count = pen_cuda_count(call->graph, node->inputs[0]),
                                         .turn = (uint64_t)pen_node_int(node, "each") *
                                                 (uint64_t)pen_shape_count(y, 1, y->rank),
                                         .place = call->random,
                                         .x = call->inputs[0],
                                         .y = call->outputs[0]};
    if (args.count == 0) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_stack,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.stack = args};
    return 1;
}

// Not a random number: where the rows of the microbatch begin. One that is none of the node's has
// its place behind the last.
static struct cuda_random stack_draw(const pen_node *node, const pen_run_context *run) {
    const int64_t turn = (int64_t)run->microbatch - pen_node_int(node, "first");
    return (struct cuda_random){.stream = turn < 0 ? UINT64_MAX : (uint64_t)turn};
}

static const pen_cuda_entry rows_entries[] = {
    {.op_name = "stack_rows",
     .can_accumulate = true,
     .supports = stack_supports,
     .steps = stack_steps,
     .draw = stack_draw},
};

PEN_CUDA_FAMILY_OF(rows);
