// Elements that only change their places: kernels/move.cu. The shape rules checked what is read of
// attributes and constants here.
#include <string.h>

#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/movement/slice_range.h"

_Static_assert(PEN_RANK_LIMIT <= PEN_CUDA_RANK, "a box has room for the dimensions of a tensor");

// Elements of 1, 4 or 8 bytes; those that are added are float32.
static bool move_supports(const pen_graph *graph, const pen_node *node) {
    const pen_element_type element = pen_value_type(graph, node->inputs[0])->element;
    const size_t bytes = pen_element_bytes(element);
    if (node->accumulates && element != PEN_FLOAT32) return false;
    return bytes == 1 || bytes == 4 || bytes == 8;
}

// Of a tensor that lies row by row.
static void move_strides(const pen_shape *shape, int64_t *out_strides) {
    int64_t stride = 1;
    for (uint32_t d = shape->rank; d-- > 0;) {
        out_strides[d] = stride;
        stride *= shape->dims[d];
    }
}

// A box of this shape, from x to y; the caller says where either begins, and the strides of one.
static struct cuda_move_args move_box(const pen_cuda_call *call, const pen_shape *box,
                                      pen_cuda_address x, pen_cuda_address y) {
    const pen_element_type element = pen_value_type(call->graph, call->node->inputs[0])->element;
    struct cuda_move_args args = {.bytes = (uint32_t)pen_element_bytes(element),
                                  .rank = box->rank,
                                  .count = (uint64_t)pen_shape_element_count(box),
                                  .x = x,
                                  .y = y};
    for (uint32_t d = 0; d < box->rank; d++)
        args.dims[d] = (uint64_t)box->dims[d];
    move_strides(box, args.x_strides);
    move_strides(box, args.y_strides);
    return args;
}

static uint32_t move_step(const struct cuda_move_args *args, pen_cuda_step *out_step) {
    if (args->count == 0) return 0;
    *out_step = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_move,
                                .grid = {pen_cuda_blocks_for(args->count), 1, 1},
                                .args.move = *args};
    return 1;
}

static uint32_t transpose_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_shape *x = &pen_value_type(call->graph, node->inputs[0])->shape;
    const pen_shape *y = &pen_value_type(call->graph, node->outputs[0])->shape;
    int64_t strides[PEN_RANK_LIMIT];
    uint32_t count;
    const int64_t *perm = pen_node_ints(node, "perm", &count);
    struct cuda_move_args args = move_box(call, y, call->inputs[0], call->outputs[0]);
    move_strides(x, strides);
    for (uint32_t d = 0; d < y->rank; d++)
        args.x_strides[d] = strides[perm != NULL ? (uint32_t)perm[d] : y->rank - 1 - d];
    return move_step(&args, steps);
}

static uint32_t expand_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_shape *x = &pen_value_type(call->graph, node->inputs[0])->shape;
    const pen_shape *y = &pen_value_type(call->graph, node->outputs[0])->shape;
    int64_t strides[PEN_RANK_LIMIT];
    struct cuda_move_args args = move_box(call, y, call->inputs[0], call->outputs[0]);
    move_strides(x, strides);
    for (uint32_t d = 0; d < y->rank; d++) {
        const uint32_t before = y->rank - x->rank;
        const bool is_repeated = d < before || x->dims[d - before] == 1;
        args.x_strides[d] = is_repeated ? 0 : strides[d - before];
    }
    return move_step(&args, steps);
}

static bool reorder_supports(const pen_graph *graph, const pen_node *node) {
    return move_supports(graph, node) &&
           pen_node_int(node, "from_layout") == pen_node_int(node, "to_layout");
}

// A reorder whose layouts are equal copies: what an update still needs is kept so.
uint32_t pen_cuda_copy_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const uint64_t count = pen_cuda_count(call->graph, call->node->outputs[0]);
    const pen_shape line = {.rank = 1, .dims = {(int64_t)count}};
    const struct cuda_move_args args = move_box(call, &line, call->inputs[0], call->outputs[0]);
    return move_step(&args, steps);
}

// ---- parts of a whole along an axis

typedef enum parts_rule { PARTS_JOIN, PARTS_SPLIT } parts_rule;

static uint32_t parts_count(const pen_node *node) {
    return pen_cuda_rule(node) == PARTS_SPLIT ? node->output_count : node->input_count;
}

static bool parts_supports(const pen_graph *graph, const pen_node *node) {
    return parts_count(node) <= PEN_CUDA_STEPS * PEN_CUDA_PARTS && move_supports(graph, node);
}

// The sizes of a split's parts: those that are given, or NULL where all are alike.
static const int64_t *parts_sizes(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const int64_t *sizes = NULL;
    uint32_t given = 0;
    if (pen_cuda_rule(node) == PARTS_SPLIT && pen_cuda_has(node, 1)) {
        pen_status_ignore(pen_value_read_ints(call->graph, node->inputs[1], &given, &sizes),
                          "it was read when the shape was inferred");
    }
    return sizes;
}

static int64_t parts_size(const pen_cuda_call *call, const int64_t *sizes, uint32_t axis,
                          uint32_t i) {
    const pen_node *node = call->node;
    if (sizes != NULL) return sizes[i];
    if (pen_cuda_rule(node) == PARTS_JOIN)
        return pen_value_type(call->graph, node->inputs[i])->shape.dims[axis];
    return pen_value_type(call->graph, node->inputs[0])->shape.dims[axis] / node->output_count;
}

// A launch has room for some parts alone.
static uint32_t parts_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const bool is_split = pen_cuda_rule(node) == PARTS_SPLIT;
    const pen_value_id value = is_split ? node->inputs[0] : node->outputs[0];
    const pen_shape *whole = &pen_value_type(call->graph, value)->shape;
    const uint32_t axis = pen_cuda_axis(node, whole), count = parts_count(node);
    const int64_t *sizes = parts_sizes(call);
    const pen_element_type element = pen_value_type(call->graph, value)->element;
    struct cuda_parts_args args = {.bytes = (uint32_t)pen_element_bytes(element),
                                   .is_split = is_split,
                                   .outer = (uint64_t)pen_shape_count(whole, 0, axis),
                                   .dim = (uint64_t)whole->dims[axis],
                                   .inner = (uint64_t)pen_shape_count(whole, axis + 1, whole->rank),
                                   .whole = is_split ? call->inputs[0] : call->outputs[0]};
    uint32_t step_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t k = args.count++;
        args.parts[k] = is_split ? pen_cuda_output(call, i) : call->inputs[i];
        args.starts[k + 1] = args.starts[k] + (uint64_t)parts_size(call, sizes, axis, i);
        if (args.count < PEN_CUDA_PARTS && i + 1 < count) continue;
        const uint64_t moved = args.outer * (args.starts[args.count] - args.starts[0]) * args.inner;
        if (moved > 0) {
            steps[step_count++] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_parts,
                                                  .grid = {pen_cuda_blocks_for(moved), 1, 1},
                                                  .args.parts = args};
        }
        args.starts[0] = args.starts[args.count];
        args.count = 0;
    }
    return step_count;
}

// ---- slices

static bool slice_integers(const pen_graph *graph, const pen_node *node, uint32_t i,
                           uint32_t *out_count, const int64_t **out_integers) {
    *out_integers = NULL;
    if (!pen_cuda_has(node, i)) return true;
    const pen_status status = pen_value_read_ints(graph, node->inputs[i], out_count, out_integers);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "the host's kernel reads it when it runs");
    return false;
}

// What a slice, or its gradient, takes of a whole of this shape.
static bool slice_range(const pen_graph *graph, const pen_node *node, const pen_shape *whole,
                        pen_slice_range *out_range) {
    pen_slice_spec spec;
    uint32_t others = 0;
    if (!slice_integers(graph, node, 1, &spec.count, &spec.starts) ||
        !slice_integers(graph, node, 2, &others, &spec.ends) ||
        !slice_integers(graph, node, 3, &others, &spec.axes) ||
        !slice_integers(graph, node, 4, &others, &spec.steps)) {
        return false;
    }
    const pen_status status = pen_slice_resolve(&spec, whole, out_range);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "the host's kernel says what is wrong");
    return false;
}

typedef enum slice_rule { SLICE_FORWARD, SLICE_BACKWARD } slice_rule;

static const pen_shape *slice_whole(const pen_graph *graph, const pen_node *node) {
    const bool is_backward = pen_cuda_rule(node) == SLICE_BACKWARD;
    return &pen_value_type(graph, is_backward ? node->outputs[0] : node->inputs[0])->shape;
}

static bool slice_supports(const pen_graph *graph, const pen_node *node) {
    pen_slice_range range;
    const bool is_backward = pen_cuda_rule(node) == SLICE_BACKWARD;
    if (is_backward && !pen_cuda_is_float(graph, node->inputs[0])) return false;
    return move_supports(graph, node) && slice_range(graph, node, slice_whole(graph, node), &range);
}

// Positions of the slice's box are strides apart in the whole; those of the other lie densely.
static uint32_t slice_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_shape *whole = slice_whole(call->graph, node);
    const bool is_backward = pen_cuda_rule(node) == SLICE_BACKWARD;
    pen_slice_range range;
    int64_t strides[PEN_RANK_LIMIT], first = 0;
    uint32_t count = 0;
    if (!slice_range(call->graph, node, whole, &range)) return 0;
    struct cuda_move_args args = move_box(call, &range.shape, call->inputs[0], call->outputs[0]);
    move_strides(whole, strides);
    for (uint32_t d = 0; d < whole->rank; d++) {
        first += range.start[d] * strides[d];
        (is_backward ? args.y_strides : args.x_strides)[d] = range.step[d] * strides[d];
    }
    *(is_backward ? &args.y_first : &args.x_first) = first;
    const uint64_t elements = (uint64_t)pen_shape_element_count(whole);
    if (is_backward && elements > 0) { // all that the slice did not take is 0
        steps[0] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_fill,
                                   .grid = {pen_cuda_blocks_for(elements), 1, 1},
                                   .args.fill = {.count = elements, .y = call->outputs[0]}};
        count = 1;
    }
    return count + move_step(&args, &steps[count]);
}

// ---- rows of a table

typedef enum gather_rule { GATHER_FORWARD, GATHER_BACKWARD } gather_rule;

// Data comes first, then the indices; backward the gradient is the whole.
static const pen_shape *gather_whole(const pen_graph *graph, const pen_node *node) {
    const bool is_backward = pen_cuda_rule(node) == GATHER_BACKWARD;
    return &pen_value_type(graph, is_backward ? node->outputs[0] : node->inputs[0])->shape;
}

static bool gather_supports(const pen_graph *graph, const pen_node *node) {
    const uint64_t indices = pen_cuda_count(graph, node->inputs[1]);
    if (pen_cuda_rule(node) == GATHER_BACKWARD && !pen_cuda_is_float(graph, node->inputs[0]))
        return false;
    return move_supports(graph, node) && indices > 0 && indices < UINT32_MAX &&
           pen_shape_element_count(gather_whole(graph, node)) > 0;
}

static struct cuda_gather_args gather_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const pen_shape *whole = gather_whole(call->graph, node);
    const uint32_t axis = pen_cuda_axis(node, whole);
    return (struct cuda_gather_args){
        .indices_are_wide = pen_value_type(call->graph, node->inputs[1])->element == PEN_INT64,
        .bytes = (uint32_t)pen_element_bytes(pen_value_type(call->graph, node->inputs[0])->element),
        .outer = (uint64_t)pen_shape_count(whole, 0, axis),
        .dim = (uint64_t)whole->dims[axis],
        .index_count = pen_cuda_count(call->graph, node->inputs[1]),
        .inner = (uint64_t)pen_shape_count(whole, axis + 1, whole->rank),
        .x = call->inputs[0],
        .indices = call->inputs[1],
        .y = call->outputs[0],
        .error = call->error};
}

static uint32_t gather_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const struct cuda_gather_args args = gather_args(call);
    const uint64_t count = args.outer * args.index_count * args.inner;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_gather,
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.gather = args};
    return 1;
}

// Begins with zeros, or with the sum that is given.
static uint32_t gather_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const struct cuda_gather_args args = gather_args(call);
    const uint64_t count = args.outer * args.dim * args.inner;
    const struct cuda_fill_args begin = {
        .count = count, .x = pen_cuda_input(call, 2), .y = call->outputs[0]};
    steps[0] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_fill,
                               .grid = {pen_cuda_blocks_for(count), 1, 1},
                               .args.fill = begin};
    steps[1] = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_gather_backward,
                               .grid = {pen_cuda_blocks_for(args.outer * args.inner), 1, 1},
                               .args.gather = args};
    return 2;
}

static pen_status gather_blame(const pen_graph *graph, const pen_node *node, uint32_t word) {
    const pen_shape *whole = gather_whole(graph, node);
    const int64_t dim = whole->dims[pen_cuda_axis(node, whole)];
    const uint64_t position = pen_cuda_count(graph, node->inputs[1]) - word;
    return pen_error(
        PEN_INVALID_INPUT, "%s '%s': the index at position %llu is outside of [%lld, %lld)",
        node->op->name, node->name, (unsigned long long)position, (long long)-dim, (long long)dim);
}

// ---- elements one by one along an axis

static bool elements_supports(const pen_graph *graph, const pen_node *node) {
    const uint64_t indices = pen_cuda_count(graph, node->inputs[1]);
    return move_supports(graph, node) && indices > 0 && indices < UINT32_MAX;
}

// Updates replace elements of 1, 4 or 8 bytes, and are joined with floats and integers.
bool pen_cuda_put_find(const pen_graph *graph, const pen_node *node, uint32_t *out_put,
                       uint32_t *out_type) {
    static const char *const names[] = {[PEN_CUDA_PUT] = "none",
                                        [PEN_CUDA_PUT_ADD] = "add",
                                        [PEN_CUDA_PUT_MUL] = "mul",
                                        [PEN_CUDA_PUT_MAX] = "max",
                                        [PEN_CUDA_PUT_MIN] = "min"};
    const char *reduction = pen_node_text(node, "reduction");
    const pen_value_id y = node->outputs[0];
    const bool is_known = pen_cuda_type(graph, y, out_type);
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(reduction, names[i]) != 0) continue;
        *out_put = i;
        if (i == PEN_CUDA_PUT) return move_supports(graph, node);
        return is_known && (*out_type == PEN_CUDA_FLOAT32 || pen_cuda_is_whole(graph, y));
    }
    return false;
}

static bool put_supports(const pen_graph *graph, const pen_node *node) {
    uint32_t put, type;
    return pen_cuda_put_find(graph, node, &put, &type) && elements_supports(graph, node);
}

// Positions are counted over the indices; where they are in the data, strides say.
static struct cuda_elements_args elements_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const pen_tensor_type *x = pen_value_type(call->graph, node->inputs[0]);
    const pen_tensor_type *indices = pen_value_type(call->graph, node->inputs[1]);
    const uint32_t axis = pen_cuda_axis(node, &x->shape);
    int64_t strides[PEN_RANK_LIMIT];
    struct cuda_elements_args args = {.bytes = (uint32_t)pen_element_bytes(x->element),
                                      .indices_are_wide = indices->element == PEN_INT64,
                                      .rank = x->shape.rank,
                                      .axis = axis,
                                      .count = (uint64_t)pen_shape_element_count(&indices->shape),
                                      .dim = (uint64_t)x->shape.dims[axis],
                                      .x = call->inputs[0],
                                      .indices = call->inputs[1],
                                      .y = call->outputs[0],
                                      .error = call->error};
    move_strides(&x->shape, strides);
    for (uint32_t d = 0; d < args.rank; d++) {
        args.dims[d] = (uint64_t)indices->shape.dims[d];
        args.strides[d] = (uint64_t)strides[d];
    }
    return args;
}

static uint32_t pick_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const struct cuda_elements_args args = elements_args(call);
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_pick_elements,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.elements = args};
    return 1;
}

// The data are copied first, unless they are where the result is.
static uint32_t put_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_elements_args args = elements_args(call);
    const uint32_t count =
        call->inputs[0] == call->outputs[0] ? 0 : pen_cuda_copy_steps(call, steps);
    args.updates = call->inputs[2];
    (void)pen_cuda_put_find(call->graph, call->node, &args.put, &args.type);
    steps[count] =
        (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_put_elements,
                        .grid = {pen_cuda_blocks_for(args.count / args.dims[args.axis]), 1, 1},
                        .args.elements = args};
    return count + 1;
}

static const pen_cuda_entry move_entries[] = {
    PEN_CUDA_ENTRY("reorder", reorder_supports, pen_cuda_copy_steps, 0),
    PEN_CUDA_ENTRY("copy", move_supports, pen_cuda_copy_steps, 0),
    PEN_CUDA_ENTRY("transpose", move_supports, transpose_steps, 0),
    PEN_CUDA_ENTRY("expand", move_supports, expand_steps, 0),
    PEN_CUDA_ENTRY("concat", parts_supports, parts_steps, PARTS_JOIN),
    PEN_CUDA_ENTRY("split", parts_supports, parts_steps, PARTS_SPLIT),
    PEN_CUDA_ENTRY("slice", slice_supports, slice_steps, SLICE_FORWARD),
    PEN_CUDA_ENTRY("slice_backward", slice_supports, slice_steps, SLICE_BACKWARD),
    {.op_name = "gather",
     .can_accumulate = true,
     .supports = gather_supports,
     .steps = gather_steps,
     .blame = gather_blame,
     .rule = GATHER_FORWARD},
    {.op_name = "gather_elements",
     .can_accumulate = true,
     .supports = elements_supports,
     .steps = pick_steps,
     .blame = gather_blame,
     .rule = GATHER_FORWARD},
    {.op_name = "scatter_elements",
     .supports = put_supports,
     .steps = put_steps,
     .blame = gather_blame,
     .rule = GATHER_FORWARD},
    {.op_name = "gather_backward",
     .can_accumulate = true,
     .supports = gather_supports,
     .steps = gather_backward_steps,
     .blame = gather_blame,
     .rule = GATHER_BACKWARD},
};

PEN_CUDA_FAMILY_OF(move);
