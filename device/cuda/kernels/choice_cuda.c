// What is picked by size, one-hot rows and constants: kernels/choice.cu.
#include <string.h>

#include "base/integer.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/element.h"

// Numbers of a line of which the first k are looked for, at most: each is compared with all others.
#define CHOICE_MOST 65536
// Comparisons of all lines together, at most.
#define CHOICE_WORK ((uint64_t)1 << 36)

typedef enum choice_rule { CHOICE_LARGEST, CHOICE_LEAST, CHOICE_TOP } choice_rule;

// The node's first operand as lines along its axis.
static struct cuda_choice_args choice_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const pen_tensor_type *x = pen_value_type(call->graph, node->inputs[0]);
    const uint32_t axis = pen_cuda_axis(node, &x->shape);
    const uint64_t inner = (uint64_t)pen_shape_count(&x->shape, axis + 1, x->shape.rank);
    struct cuda_choice_args args = {.bytes = (uint32_t)pen_element_bytes(x->element),
                                    .lines = (uint64_t)pen_shape_count(&x->shape, 0, axis) * inner,
                                    .count = (uint64_t)x->shape.dims[axis],
                                    .inner = inner,
                                    .x = call->inputs[0]};
    (void)pen_cuda_type(call->graph, node->inputs[0], &args.type);
    return args;
}

static bool place_supports(const pen_graph *graph, const pen_node *node) {
    uint32_t type;
    return pen_cuda_type(graph, node->inputs[0], &type) &&
           pen_cuda_count(graph, node->inputs[0]) > 0 &&
           pen_node_int(node, "select_last_index") == 0;
}

static uint32_t place_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_choice_args args = choice_args(call);
    args.is_least = pen_cuda_rule(call->node) == CHOICE_LEAST;
    args.places = call->outputs[0];
    *steps =
        (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_choose_place,
                        .grid = {pen_cuda_blocks_for(args.lines * PEN_CUDA_TEAM(args.count)), 1, 1},
                        .args.choice = args};
    return 1;
}

static bool top_supports(const pen_graph *graph, const pen_node *node) {
    const pen_shape *x = &pen_value_type(graph, node->inputs[0])->shape;
    const uint64_t count = (uint64_t)x->dims[pen_cuda_axis(node, x)];
    uint32_t type;
    uint64_t work;
    return pen_cuda_type(graph, node->inputs[0], &type) && count <= CHOICE_MOST &&
           pen_u64_mul(pen_cuda_count(graph, node->inputs[0]), count, &work) && work <= CHOICE_WORK;
}

static uint32_t top_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_shape *y = &pen_value_type(call->graph, call->node->outputs[0])->shape;
    struct cuda_choice_args args = choice_args(call);
    args.is_least = pen_node_int(call->node, "largest") == 0;
    args.k = (uint64_t)y->dims[pen_cuda_axis(call->node, y)];
    args.y = call->outputs[0];
    args.places = pen_cuda_output(call, 1);
    if (args.lines * args.k == 0) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_choose_top,
                             .grid = {pen_cuda_blocks_for(args.lines * args.count), 1, 1},
                             .args.choice = args};
    return 1;
}

static bool choice_can_move(const pen_graph *graph, pen_value_id value) {
    const size_t bytes = pen_element_bytes(pen_value_type(graph, value)->element);
    return bytes == 1 || bytes == 4 || bytes == 8;
}

static bool one_hot_supports(const pen_graph *graph, const pen_node *node) {
    uint32_t type;
    return pen_cuda_type(graph, node->inputs[0], &type) && choice_can_move(graph, node->outputs[0]);
}

static uint32_t one_hot_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_tensor_type *y = pen_value_type(call->graph, node->outputs[0]);
    const uint32_t axis = pen_cuda_axis(node, &y->shape);
    struct cuda_one_hot_args args = {
        .bytes = (uint32_t)pen_element_bytes(y->element),
        .count = pen_cuda_count(call->graph, node->outputs[0]),
        .depth = (uint64_t)y->shape.dims[axis],
        .inner = (uint64_t)pen_shape_count(&y->shape, axis + 1, y->shape.rank),
        .indices = call->inputs[0],
        .values = call->inputs[2],
        .y = call->outputs[0]};
    (void)pen_cuda_type(call->graph, node->inputs[0], &args.type);
    if (args.count == 0) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_one_hot,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.one_hot = args};
    return 1;
}

static bool constant_supports(const pen_graph *graph, const pen_node *node) {
    return choice_can_move(graph, node->outputs[0]);
}

static uint32_t constant_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_value_id y = call->node->outputs[0];
    const pen_element_type element = pen_value_type(call->graph, y)->element;
    struct cuda_constant_args args = {.bytes = (uint32_t)pen_element_bytes(element),
                                      .count = pen_cuda_count(call->graph, y),
                                      .y = call->outputs[0]};
    pen_element_write(element, &args.bits, 0, pen_node_float(call->node, "value"));
    if (args.count == 0) return 0;
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_constant,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.constant = args};
    return 1;
}

// None of these adds to what is there.
#define CHOICE_ENTRY(op, supports_op, steps_op, rule_op)                                           \
    { .op_name = (op), .supports = (supports_op), .steps = (steps_op), .rule = (rule_op) }
static const pen_cuda_entry choice_entries[] = {
    CHOICE_ENTRY("arg_max", place_supports, place_steps, CHOICE_LARGEST),
    CHOICE_ENTRY("arg_min", place_supports, place_steps, CHOICE_LEAST),
    CHOICE_ENTRY("top_k", top_supports, top_steps, CHOICE_TOP),
    CHOICE_ENTRY("one_hot", one_hot_supports, one_hot_steps, 0),
    CHOICE_ENTRY("constant_of_shape", constant_supports, constant_steps, 0),
};

PEN_CUDA_FAMILY_OF(choice);
