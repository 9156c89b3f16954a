// Element by element of several operands, of which each may be repeated: kernels/map.cu for sums,
// products and quotients of two that are repeated as a whole, kernels/broadcast.cu for all others.
#include <string.h>

#include "base/status.h"
#include "device/cuda/cuda_kernel.h"

// An element of the operand is at i / each % count, where dimensions that are repeated stand only
// before and behind those that are not.
static bool map_repeats(const pen_shape *operand, const pen_shape *whole, uint64_t *out_each,
                        uint64_t *out_count) {
    uint64_t each = 1, count = 1;
    uint32_t d = 0;
    const uint32_t rank = operand->rank;
    for (; d < rank && operand->dims[rank - 1 - d] == 1; d++)
        each *= (uint64_t)whole->dims[whole->rank - 1 - d];
    for (; d < rank && operand->dims[rank - 1 - d] == whole->dims[whole->rank - 1 - d]; d++)
        count *= (uint64_t)operand->dims[rank - 1 - d];
    for (; d < rank; d++)
        if (operand->dims[rank - 1 - d] != 1) return false;
    *out_each = each;
    *out_count = count;
    return each > 0 && count > 0;
}

// Whether kernels/map.cu can do it.
static bool pair_is_simple(const pen_graph *graph, const pen_node *node) {
    uint64_t each, count;
    if (pen_cuda_rule(node) > PEN_CUDA_DIV || !pen_cuda_all_float(graph, node)) return false;
    const pen_shape *whole = &pen_value_type(graph, node->outputs[0])->shape;
    return map_repeats(&pen_value_type(graph, node->inputs[0])->shape, whole, &each, &count) &&
           map_repeats(&pen_value_type(graph, node->inputs[1])->shape, whole, &each, &count);
}

static uint32_t pair_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_shape *whole = &pen_value_type(call->graph, node->outputs[0])->shape;
    struct cuda_pair_args args = {.what = pen_cuda_rule(node),
                                  .count = pen_cuda_count(call->graph, node->outputs[0]),
                                  .a = call->inputs[0],
                                  .b = call->inputs[1],
                                  .y = call->outputs[0]};
    if (args.count == 0) return 0;
    (void)map_repeats(&pen_value_type(call->graph, node->inputs[0])->shape, whole, &args.a_each,
                      &args.a_count);
    (void)map_repeats(&pen_value_type(call->graph, node->inputs[1])->shape, whole, &args.b_each,
                      &args.b_count);
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_pair,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.pair = args};
    return 1;
}

// ---- what is repeated along any dimension

// Strides of an operand along the dimensions of the whole.
static void broadcast_strides(const pen_shape *operand, const pen_shape *whole, uint64_t *strides) {
    const uint32_t missing = whole->rank - operand->rank;
    uint64_t stride = 1;
    for (uint32_t d = whole->rank; d-- > 0;) {
        const uint64_t dim = d < missing ? 1 : (uint64_t)operand->dims[d - missing];
        strides[d] = dim == 1 ? 0 : stride;
        stride *= dim;
    }
}

// Whether dimension d of the arguments goes on where the one behind it ends, in all operands.
static bool broadcast_continues(const struct cuda_broadcast_args *args, uint32_t d) {
    for (uint32_t k = 0; k < 3; k++)
        if (args->strides[k][d] != args->strides[k][d + 1] * args->dims[d + 1]) return false;
    return true;
}

static void broadcast_remove(struct cuda_broadcast_args *args, uint32_t d) {
    args->rank -= 1;
    for (uint32_t e = d; e < args->rank; e++) {
        args->dims[e] = args->dims[e + 1];
        for (uint32_t k = 0; k < 3; k++)
            args->strides[k][e] = args->strides[k][e + 1];
    }
}

// Dimensions of one element are left out, and neighbours joined: kernels divide for each.
static void broadcast_fold(struct cuda_broadcast_args *args) {
    for (uint32_t d = args->rank; d-- > 0;)
        if (args->dims[d] == 1) broadcast_remove(args, d);
    for (uint32_t d = args->rank; d-- > 1;) {
        if (!broadcast_continues(args, d - 1)) continue;
        args->dims[d] *= args->dims[d - 1];
        broadcast_remove(args, d - 1);
    }
}

static void broadcast_begin(const pen_cuda_call *call, struct cuda_broadcast_args *args) {
    const pen_value_id y = call->node->outputs[0];
    const pen_shape *whole = &pen_value_type(call->graph, y)->shape;
    args->rank = whole->rank;
    args->count = pen_cuda_count(call->graph, y);
    args->y = call->outputs[0];
    for (uint32_t d = 0; d < whole->rank; d++)
        args->dims[d] = (uint64_t)whole->dims[d];
}

// Operands of the node are those of the kernel, in order, and the first gives the type.
static struct cuda_broadcast_args broadcast_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const pen_shape *whole = &pen_value_type(call->graph, node->outputs[0])->shape;
    struct cuda_broadcast_args args = {.what = pen_cuda_rule(node)};
    broadcast_begin(call, &args);
    (void)pen_cuda_type(call->graph, node->inputs[0], &args.type);
    for (uint32_t k = 0; k < node->input_count; k++) {
        args.x[k] = call->inputs[k];
        broadcast_strides(&pen_value_type(call->graph, node->inputs[k])->shape, whole,
                          args.strides[k]);
    }
    broadcast_fold(&args);
    return args;
}

static uint32_t broadcast_step(const struct cuda_broadcast_args *args,
                               pen_cuda_kernel_number kernel, pen_cuda_step *out_step) {
    if (args->count == 0) return 0;
    *out_step = (pen_cuda_step){.kernel = kernel,
                                .grid = {pen_cuda_blocks_for(args->count), 1, 1},
                                .args.broadcast = *args};
    return 1;
}

uint32_t pen_cuda_spread(const pen_cuda_call *call, float factor, pen_cuda_step *out_step) {
    const pen_node *node = call->node;
    const pen_shape *whole = &pen_value_type(call->graph, node->outputs[0])->shape;
    struct cuda_broadcast_args args = {
        .what = PEN_CUDA_SCALE, .x = {call->inputs[0]}, .factor = factor};
    broadcast_begin(call, &args);
    broadcast_strides(&pen_value_type(call->graph, node->inputs[0])->shape, whole, args.strides[0]);
    broadcast_fold(&args);
    return broadcast_step(&args, PEN_CUDA_KERNEL_combine, out_step);
}

bool pen_cuda_is_whole(const pen_graph *graph, pen_value_id value) {
    uint32_t type;
    if (!pen_cuda_type(graph, value, &type)) return false;
    return type == PEN_CUDA_INT32 || type == PEN_CUDA_INT64;
}

// Integers have no quotients and powers here: those have errors, or lose bits.
static bool combine_supports(const pen_graph *graph, const pen_node *node) {
    const uint32_t what = pen_cuda_rule(node);
    const bool is_whole = what == PEN_CUDA_ADD || what == PEN_CUDA_SUB || what == PEN_CUDA_MUL ||
                          what == PEN_CUDA_MAX || what == PEN_CUDA_MIN;
    const bool is_backward = what == PEN_CUDA_MAX_BACKWARD || what == PEN_CUDA_MIN_BACKWARD;
    if (node->input_count > 3 || node->input_count < (is_backward ? 3 : 2)) return false;
    if (is_whole && node->input_count > 2) return false;
    if (pen_cuda_all_float(graph, node)) return true;
    return is_whole && !node->accumulates && pen_cuda_is_whole(graph, node->outputs[0]);
}

static uint32_t combine_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    if (pair_is_simple(call->graph, node)) return pair_steps(call, steps);
    struct cuda_broadcast_args args = broadcast_args(call);
    if (args.what == PEN_CUDA_MAX_BACKWARD || args.what == PEN_CUDA_MIN_BACKWARD)
        args.of = (uint32_t)pen_node_int(node, "index");
    return broadcast_step(&args,
                          pen_cuda_is_float(call->graph, node->outputs[0])
                              ? PEN_CUDA_KERNEL_combine
                              : PEN_CUDA_KERNEL_combine_whole,
                          steps);
}

// Of integers, where the divisors are known and none is 0: that has an error.
static bool mod_supports(const pen_graph *graph, const pen_node *node) {
    uint32_t count;
    const int64_t *divisors;
    if (node->accumulates || !pen_cuda_is_whole(graph, node->outputs[0])) return false;
    pen_status status = pen_value_read_ints(graph, node->inputs[1], &count, &divisors);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the host's kernel reads them when it runs");
        return false;
    }
    for (uint32_t i = 0; i < count; i++)
        if (divisors[i] == 0) return false;
    return true;
}

static uint32_t mod_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_broadcast_args args = broadcast_args(call);
    args.of = pen_node_int(call->node, "fmod") != 0;
    return broadcast_step(&args, PEN_CUDA_KERNEL_combine_whole, steps);
}

// ---- any number of operands, pair by pair

// Of what the whole is made before the last launch: a mean is a sum that is divided.
static uint32_t many_what(const pen_node *node) {
    const uint32_t what = pen_cuda_rule(node);
    return what == PEN_CUDA_SCALE ? PEN_CUDA_ADD : what;
}

// Launches: one for each operand but the first, and one that divides.
static uint32_t many_step_count(const pen_node *node) {
    return node->input_count - 1 + (pen_cuda_rule(node) == PEN_CUDA_SCALE ? 1 : 0);
}

static bool many_supports(const pen_graph *graph, const pen_node *node) {
    const uint32_t what = pen_cuda_rule(node);
    const bool is_pair = node->input_count == 2 && what != PEN_CUDA_SCALE;
    if (is_pair && what != PEN_CUDA_ADD) return combine_supports(graph, node);
    return pen_cuda_all_float(graph, node) && many_step_count(node) <= PEN_CUDA_STEPS;
}

// What there is before the last launch: an operand may lie where the result comes to.
static uint64_t many_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    if (many_step_count(node) < 2) return 0;
    return pen_cuda_count(graph, node->outputs[0]) * sizeof(float);
}

// The first `args->x` is all that was joined so far, which is a whole from the second launch on.
static void many_place(const pen_cuda_call *call, uint32_t k, const pen_cuda_address so_far,
                       struct cuda_broadcast_args *args) {
    const pen_node *node = call->node;
    const pen_shape *whole = &pen_value_type(call->graph, node->outputs[0])->shape;
    const pen_shape *first = &pen_value_type(call->graph, node->inputs[0])->shape;
    broadcast_begin(call, args);
    args->x[0] = k == 1 ? call->inputs[0] : so_far;
    broadcast_strides(k == 1 ? first : whole, whole, args->strides[0]);
    if (k == node->input_count) return;
    args->x[1] = call->inputs[k];
    broadcast_strides(&pen_value_type(call->graph, node->inputs[k])->shape, whole,
                      args->strides[1]);
}

static uint32_t many_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const uint32_t count = many_step_count(node);
    const bool is_pair = node->input_count == 2 && pen_cuda_rule(node) != PEN_CUDA_SCALE;
    if (is_pair) return combine_steps(call, steps);
    if (node->input_count == 1) return pen_cuda_spread(call, 1, steps);
    if (pen_cuda_count(call->graph, node->outputs[0]) == 0) return 0;
    for (uint32_t k = 1; k <= count; k++) {
        struct cuda_broadcast_args args = {.what = many_what(node)};
        if (k == node->input_count) args.what = PEN_CUDA_SCALE;
        args.factor = 1 / (float)node->input_count;
        many_place(call, k, call->workspace, &args);
        if (k < count) args.y = call->workspace;
        broadcast_fold(&args);
        (void)broadcast_step(&args, PEN_CUDA_KERNEL_combine, &steps[k - 1]);
        steps[k - 1].only_sets = k < count;
    }
    return count;
}

// The larger of x and the least, then the smaller of that and the most.
uint32_t pen_cuda_clip_whole(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_broadcast_args args = {.rank = 1, .y = call->outputs[0]};
    uint32_t count = 0;
    args.count = args.dims[0] = pen_cuda_count(call->graph, call->node->outputs[0]);
    args.strides[0][0] = 1;
    args.x[0] = call->inputs[0];
    (void)pen_cuda_type(call->graph, call->node->inputs[0], &args.type);
    for (uint32_t i = 1; i < 3; i++) {
        args.what = i == 1 ? PEN_CUDA_MAX : PEN_CUDA_MIN;
        args.x[1] = pen_cuda_input(call, i);
        if (args.x[1] == 0) continue;
        count += broadcast_step(&args, PEN_CUDA_KERNEL_combine_whole, &steps[count]);
        args.x[0] = args.y;
    }
    return count;
}

static bool compare_supports(const pen_graph *graph, const pen_node *node) {
    uint32_t type;
    return pen_cuda_type(graph, node->inputs[0], &type);
}

static uint32_t compare_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_broadcast_args args = broadcast_args(call);
    if (args.what == PEN_CUDA_ISINF) {
        args.of = (pen_node_int(call->node, "detect_positive") != 0 ? 1u : 0u) |
                  (pen_node_int(call->node, "detect_negative") != 0 ? 2u : 0u);
    }
    return broadcast_step(&args, PEN_CUDA_KERNEL_compare, steps);
}

// Elements of 1, 4 or 8 bytes; those that are added are float32.
static bool choose_supports(const pen_graph *graph, const pen_node *node) {
    const pen_element_type element = pen_value_type(graph, node->outputs[0])->element;
    const size_t bytes = pen_element_bytes(element);
    if (node->accumulates && element != PEN_FLOAT32) return false;
    return bytes == 1 || bytes == 4 || bytes == 8;
}

static uint32_t choose_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_broadcast_args args = broadcast_args(call);
    const pen_tensor_type *type = pen_value_type(call->graph, call->node->outputs[0]);
    args.bytes = (uint32_t)pen_element_bytes(type->element);
    return broadcast_step(&args, PEN_CUDA_KERNEL_choose, steps);
}

// dy where the condition is `when`, else zeros.
static uint32_t choose_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const uint32_t dy = pen_node_int(call->node, "when") != 0 ? 1 : 2;
    const struct cuda_broadcast_args given = broadcast_args(call);
    struct cuda_broadcast_args args = given;
    const pen_tensor_type *type = pen_value_type(call->graph, call->node->outputs[0]);
    args.bytes = (uint32_t)pen_element_bytes(type->element);
    args.x[0] = given.x[1];
    memcpy(args.strides[0], given.strides[1], sizeof args.strides[0]);
    args.x[1] = args.x[2] = 0;
    args.x[dy] = given.x[0];
    memcpy(args.strides[dy], given.strides[0], sizeof args.strides[dy]);
    return broadcast_step(&args, PEN_CUDA_KERNEL_choose, steps);
}

#define COMBINE_ENTRY(op, what) PEN_CUDA_ENTRY(op, combine_supports, combine_steps, what)
#define MANY_ENTRY(op, what)                                                                       \
    {                                                                                              \
        .op_name = (op), .can_accumulate = true, .supports = many_supports,                        \
        .workspace_bytes = many_workspace_bytes, .steps = many_steps, .rule = (what)               \
    }
#define COMPARE_ENTRY(op, what)                                                                    \
    { .op_name = (op), .supports = compare_supports, .steps = compare_steps, .rule = (what) }
static const pen_cuda_entry map_entries[] = {
    COMBINE_ENTRY("add", PEN_CUDA_ADD),
    COMBINE_ENTRY("sub", PEN_CUDA_SUB),
    COMBINE_ENTRY("mul", PEN_CUDA_MUL),
    COMBINE_ENTRY("div", PEN_CUDA_DIV),
    COMBINE_ENTRY("div_backward_divisor", PEN_CUDA_DIV_DIVISOR),
    COMBINE_ENTRY("pow", PEN_CUDA_POW),
    COMBINE_ENTRY("pow_backward_base", PEN_CUDA_POW_BASE),
    COMBINE_ENTRY("pow_backward_exponent", PEN_CUDA_POW_EXPONENT),
    MANY_ENTRY("max", PEN_CUDA_MAX),
    MANY_ENTRY("min", PEN_CUDA_MIN),
    MANY_ENTRY("sum", PEN_CUDA_ADD),
    MANY_ENTRY("mean", PEN_CUDA_SCALE),
    COMBINE_ENTRY("max_backward", PEN_CUDA_MAX_BACKWARD),
    COMBINE_ENTRY("min_backward", PEN_CUDA_MIN_BACKWARD),
    COMBINE_ENTRY("prelu", PEN_CUDA_PRELU),
    COMBINE_ENTRY("prelu_backward", PEN_CUDA_PRELU_X),
    COMBINE_ENTRY("prelu_backward_slope", PEN_CUDA_PRELU_SLOPE),
    {.op_name = "mod", .supports = mod_supports, .steps = mod_steps, .rule = PEN_CUDA_MOD},
    COMPARE_ENTRY("equal", PEN_CUDA_EQUAL),
    COMPARE_ENTRY("less", PEN_CUDA_LESS),
    COMPARE_ENTRY("less_or_equal", PEN_CUDA_LESS_OR_EQUAL),
    COMPARE_ENTRY("greater", PEN_CUDA_GREATER),
    COMPARE_ENTRY("greater_or_equal", PEN_CUDA_GREATER_OR_EQUAL),
    COMPARE_ENTRY("and", PEN_CUDA_AND),
    COMPARE_ENTRY("or", PEN_CUDA_OR),
    COMPARE_ENTRY("xor", PEN_CUDA_XOR),
    COMPARE_ENTRY("not", PEN_CUDA_NOT),
    COMPARE_ENTRY("isnan", PEN_CUDA_ISNAN),
    COMPARE_ENTRY("isinf", PEN_CUDA_ISINF),
    PEN_CUDA_ENTRY("where", choose_supports, choose_steps, 0),
    PEN_CUDA_ENTRY("where_backward", choose_supports, choose_backward_steps, 0),
};

PEN_CUDA_FAMILY_OF(map);
