// Borders, repetitions, triangles, running sums, and blocks of planes that become channels:
// kernels/move.cu. The shape rules checked what is read of attributes and constants here.
#include <string.h>

#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/op.h"

enum { BORDER_REPEATS = 1, BORDER_BACKWARD = 2 };

static bool border_is(const pen_node *node, uint32_t bit) {
    return (pen_cuda_rule(node) & bit) != 0;
}

static uint32_t border_bytes(const pen_graph *graph, const pen_node *node) {
    return (uint32_t)pen_element_bytes(pen_value_type(graph, node->inputs[0])->element);
}

// Elements of 1, 4 or 8 bytes; those that are added are float32.
static bool border_can_copy(const pen_graph *graph, const pen_node *node) {
    const uint32_t bytes = border_bytes(graph, node);
    if (node->accumulates && !pen_cuda_is_float(graph, node->outputs[0])) return false;
    return bytes == 1 || bytes == 4 || bytes == 8;
}

// The pads before each dimension, and behind; NULL: they depend on data, or there are none.
static const int64_t *border_pads(const pen_graph *graph, const pen_node *node) {
    const int64_t *pads = NULL;
    uint32_t count;
    if (border_is(node, BORDER_REPEATS)) return NULL;
    pen_status_ignore(pen_value_read_ints(graph, node->inputs[1], &count, &pads),
                      "the host's kernel says what is wrong");
    return pads;
}

static bool border_supports(const pen_graph *graph, const pen_node *node) {
    if (border_is(node, BORDER_BACKWARD) && !pen_cuda_is_float(graph, node->inputs[0]))
        return false;
    return border_can_copy(graph, node) &&
           (border_is(node, BORDER_REPEATS) || border_pads(graph, node) != NULL);
}

static uint32_t border_mode(const pen_node *node) {
    if (border_is(node, BORDER_REPEATS)) return PEN_CUDA_BORDER_REPEAT;
    const char *mode = pen_node_text(node, "mode");
    if (strcmp(mode, "constant") == 0) return PEN_CUDA_BORDER_CONSTANT;
    return strcmp(mode, "edge") == 0 ? PEN_CUDA_BORDER_EDGE : PEN_CUDA_BORDER_REFLECT;
}

// Backward, x is the gradient of what has the border, and y that of what has none.
static uint32_t border_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const bool is_backward = border_is(node, BORDER_BACKWARD);
    const pen_value_id with = is_backward ? node->inputs[0] : node->outputs[0];
    const pen_value_id without = is_backward ? node->outputs[0] : node->inputs[0];
    const pen_shape *y = &pen_value_type(call->graph, with)->shape;
    const pen_shape *x = &pen_value_type(call->graph, without)->shape;
    const int64_t *pads = border_pads(call->graph, node);
    struct cuda_border_args args = {.mode = border_mode(node),
                                    .bytes = border_bytes(call->graph, node),
                                    .rank = y->rank,
                                    .count = (uint64_t)pen_shape_element_count(y),
                                    .x_count = (uint64_t)pen_shape_element_count(x),
                                    .x = call->inputs[0],
                                    .value =
                                        is_backward || pads == NULL ? 0 : pen_cuda_input(call, 2),
                                    .y = call->outputs[0]};
    for (uint32_t d = 0; d < y->rank; d++) {
        args.dims[d] = (uint64_t)y->dims[d];
        args.x_dims[d] = (uint64_t)x->dims[d];
        args.before[d] = pads == NULL ? 0 : pads[d];
    }
    const uint64_t count = is_backward ? args.x_count : args.count;
    if (count == 0) return 0;
    *steps = (pen_cuda_step){.kernel = is_backward ? PEN_CUDA_KERNEL_border_backward
                                                   : PEN_CUDA_KERNEL_border,
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.border = args};
    return 1;
}

// ---- triangles and running sums

static bool border_number(const pen_graph *graph, const pen_node *node, int64_t *out_number) {
    const int64_t *numbers = NULL;
    uint32_t count = 0;
    *out_number = 0;
    if (!pen_cuda_has(node, 1)) return true;
    pen_status_ignore(pen_value_read_ints(graph, node->inputs[1], &count, &numbers),
                      "the host's kernel reads it when it runs");
    if (numbers == NULL || count != 1) return false;
    *out_number = numbers[0];
    return true;
}

static bool triangle_supports(const pen_graph *graph, const pen_node *node) {
    int64_t diagonal;
    return border_can_copy(graph, node) && border_number(graph, node, &diagonal);
}

// All matrices of the tensor are cut alike.
static uint32_t triangle_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_shape *shape = &pen_value_type(call->graph, node->outputs[0])->shape;
    struct cuda_triangle_args args = {.bytes = border_bytes(call->graph, node),
                                      .is_upper = pen_node_int(node, "upper") != 0,
                                      .count = (uint64_t)pen_shape_element_count(shape),
                                      .rows = (uint64_t)shape->dims[shape->rank - 2],
                                      .columns = (uint64_t)shape->dims[shape->rank - 1],
                                      .x = call->inputs[0],
                                      .y = call->outputs[0]};
    if (args.count == 0 || !border_number(call->graph, node, &args.diagonal)) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_triangle,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.triangle = args};
    return 1;
}

static bool running_sum_supports(const pen_graph *graph, const pen_node *node) {
    int64_t axis;
    uint32_t type;
    if (!pen_cuda_type(graph, node->inputs[0], &type) || !border_number(graph, node, &axis))
        return false;
    if (node->accumulates && type != PEN_CUDA_FLOAT32) return false;
    return type == PEN_CUDA_FLOAT32 || type == PEN_CUDA_INT32 || type == PEN_CUDA_INT64;
}

// A line of the tensor is summed by one thread: there are many, and most are short.
static uint32_t running_sum_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_shape *shape = &pen_value_type(call->graph, node->outputs[0])->shape;
    int64_t given;
    if (pen_shape_element_count(shape) == 0 || !border_number(call->graph, node, &given)) return 0;
    const uint32_t axis = (uint32_t)(given < 0 ? given + shape->rank : given);
    struct cuda_running_sum_args args = {
        .is_reverse = pen_node_int(node, "reverse") != 0,
        .is_exclusive = pen_node_int(node, "exclusive") != 0,
        .outer = (uint64_t)pen_shape_count(shape, 0, axis),
        .length = (uint64_t)shape->dims[axis],
        .inner = (uint64_t)pen_shape_count(shape, axis + 1, shape->rank),
        .x = call->inputs[0],
        .y = call->outputs[0]};
    (void)pen_cuda_type(call->graph, node->inputs[0], &args.type);
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_running_sum,
                             .grid = {pen_cuda_blocks_for(args.outer * args.inner), 1, 1},
                             .args.running_sum = args};
    return 1;
}

// ---- blocks of a plane and channels: a box of six dimensions, whose order differs

// The box is n, channel, row, row in the block, column, column in the block of the wider tensor.
static uint32_t space_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const bool to_depth = pen_cuda_rule(node) != 0;
    const pen_value_id value = to_depth ? node->inputs[0] : node->outputs[0];
    const pen_shape *wide = &pen_value_type(call->graph, value)->shape;
    const int64_t b = pen_node_int(node, "blocksize"), channels = wide->dims[1];
    const int64_t rows = wide->dims[2] / b, columns = wide->dims[3] / b, plane = rows * columns;
    const bool depth_first = strcmp(pen_node_text(node, "mode"), "DCR") == 0;
    const int64_t channel = depth_first ? plane : b * b * plane;
    const int64_t block =
        depth_first ? channels * plane : plane; // from one in the block to the next
    const int64_t dims[6] = {wide->dims[0], channels, rows, b, columns, b};
    const int64_t in_wide[6] = {
        channels * plane * b * b, plane * b * b, columns * b * b, columns * b, b, 1};
    const int64_t in_deep[6] = {channels * plane * b * b, channel, columns, b * block, 1, block};
    struct cuda_move_args args = {.bytes = border_bytes(call->graph, node),
                                  .rank = 6,
                                  .count = pen_cuda_count(call->graph, value),
                                  .x = call->inputs[0],
                                  .y = call->outputs[0]};
    if (args.count == 0) return 0;
    for (uint32_t d = 0; d < 6; d++) {
        args.dims[d] = (uint64_t)dims[d];
        args.x_strides[d] = to_depth ? in_wide[d] : in_deep[d];
        args.y_strides[d] = to_depth ? in_deep[d] : in_wide[d];
    }
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_move,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.move = args};
    return 1;
}

static const pen_cuda_entry border_entries[] = {
    PEN_CUDA_ENTRY("pad", border_supports, border_steps, 0),
    PEN_CUDA_ENTRY("pad_backward", border_supports, border_steps, BORDER_BACKWARD),
    PEN_CUDA_ENTRY("tile", border_supports, border_steps, BORDER_REPEATS),
    PEN_CUDA_ENTRY("tile_backward", border_supports, border_steps,
                   BORDER_REPEATS | BORDER_BACKWARD),
    PEN_CUDA_ENTRY("trilu", triangle_supports, triangle_steps, 0),
    PEN_CUDA_ENTRY("cum_sum", running_sum_supports, running_sum_steps, 0),
    PEN_CUDA_ENTRY("depth_to_space", border_can_copy, space_steps, 0),
    PEN_CUDA_ENTRY("space_to_depth", border_can_copy, space_steps, 1),
};

PEN_CUDA_FAMILY_OF(border);
