// Element by element of several operands, of which each may be repeated: kernels/map.cu for sums,
// products and quotients of two that are repeated as a whole, kernels/broadcast.cu for all others.
#include <string.h>

#include "base/integer.h"
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

// The dimensions of a kernel's argument, with strides of its operands.
typedef struct broadcast_dims {
    uint32_t operands, rank;
    uint64_t *dims;
    uint64_t (*strides)[PEN_CUDA_RANK]; // [operands]
} broadcast_dims;

// Whether dimension d goes on where the one behind it ends, in all operands.
static bool broadcast_continues(const broadcast_dims *of, uint32_t d) {
    for (uint32_t k = 0; k < of->operands; k++)
        if (of->strides[k][d] != of->strides[k][d + 1] * of->dims[d + 1]) return false;
    return true;
}

static void broadcast_remove(broadcast_dims *of, uint32_t d) {
    of->rank -= 1;
    for (uint32_t e = d; e < of->rank; e++) {
        of->dims[e] = of->dims[e + 1];
        for (uint32_t k = 0; k < of->operands; k++)
            of->strides[k][e] = of->strides[k][e + 1];
    }
}

// Dimensions of one element are left out, and neighbours joined: kernels divide for each. Returns
// how many are left.
static uint32_t broadcast_join(broadcast_dims of) {
    for (uint32_t d = of.rank; d-- > 0;)
        if (of.dims[d] == 1) broadcast_remove(&of, d);
    for (uint32_t d = of.rank; d-- > 1;) {
        if (!broadcast_continues(&of, d - 1)) continue;
        of.dims[d] *= of.dims[d - 1];
        broadcast_remove(&of, d - 1);
    }
    return of.rank;
}

static void broadcast_fold(struct cuda_broadcast_args *args) {
    args->rank = broadcast_join((broadcast_dims){3, args->rank, args->dims, args->strides});
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

// Whether all operands are of the type of the result, a kind of integer, that nothing is added to.
static bool combine_is_whole(const pen_graph *graph, const pen_node *node) {
    const pen_value_id y = node->outputs[0];
    if (node->accumulates || !pen_cuda_is_whole(graph, y)) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_tensor_type *type = pen_value_type(graph, node->inputs[i]);
        if (type->element != pen_value_type(graph, y)->element) return false;
    }
    return true;
}

static bool combine_supports(const pen_graph *graph, const pen_node *node) {
    const uint32_t what = pen_cuda_rule(node);
    const bool has_whole = what <= PEN_CUDA_MIN || what == PEN_CUDA_MOD;
    return pen_cuda_all_float(graph, node) || (has_whole && combine_is_whole(graph, node));
}

static uint32_t combine_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    if (pair_is_simple(call->graph, node)) return pair_steps(call, steps);
    struct cuda_broadcast_args args = broadcast_args(call);
    if (args.what == PEN_CUDA_MAX_BACKWARD || args.what == PEN_CUDA_MIN_BACKWARD)
        args.of = (uint32_t)pen_node_int(node, "index");
    if (args.what == PEN_CUDA_MOD) args.of = pen_node_int(node, "fmod") != 0;
    args.error = call->error;
    return broadcast_step(&args,
                          pen_cuda_is_float(call->graph, node->outputs[0])
                              ? PEN_CUDA_KERNEL_combine
                              : PEN_CUDA_KERNEL_combine_whole,
                          steps);
}

// Where integers are divided one may be 0.
static bool quotient_can_raise(const pen_graph *graph, const pen_node *node) {
    return !pen_cuda_is_float(graph, node->outputs[0]);
}

static pen_status quotient_blame(const pen_graph *graph, const pen_node *node, uint32_t word) {
    (void)graph;
    (void)word;
    return pen_error(PEN_INVALID_INPUT, "%s '%s': division of an integer by 0", node->op->name,
                     node->name);
}

// ---- powers, whose exponents may be integers

// The operand of the exponents.
static uint32_t power_exponent(const pen_node *node) {
    return pen_cuda_rule(node) == PEN_CUDA_POW ? 1 : 2;
}

static bool power_has_whole_exponents(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_is_float(graph, node->outputs[0]) &&
           pen_cuda_is_whole(graph, node->inputs[power_exponent(node)]);
}

static bool power_supports(const pen_graph *graph, const pen_node *node) {
    return power_has_whole_exponents(graph, node) || combine_supports(graph, node);
}

// The kernel reads exponents as they are: as floats they would be odd or even otherwise.
static uint32_t power_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const uint32_t count = combine_steps(call, steps);
    if (count > 0)
        (void)pen_cuda_type(call->graph, node->inputs[power_exponent(node)],
                            &steps[0].args.broadcast.type);
    return count;
}

// ---- gradients of extrema of any number of operands

static bool shares_supports(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_all_float(graph, node) && node->input_count <= PEN_CUDA_OPERANDS + 1;
}

// Of two operands they are the general kernel's.
static uint32_t shares_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_shape *whole = &pen_value_type(call->graph, node->outputs[0])->shape;
    if (node->input_count == 3) return combine_steps(call, steps);
    struct cuda_shares_args args = {.is_least = pen_cuda_rule(node) == PEN_CUDA_MIN_BACKWARD,
                                    .of = (uint32_t)pen_node_int(node, "index"),
                                    .operands = node->input_count - 1,
                                    .count = pen_cuda_count(call->graph, node->outputs[0]),
                                    .dy = call->inputs[0],
                                    .y = call->outputs[0]};
    if (args.count == 0) return 0;
    for (uint32_t d = 0; d < whole->rank; d++)
        args.dims[d] = (uint64_t)whole->dims[d];
    for (uint32_t k = 0; k < args.operands; k++) {
        args.x[k] = call->inputs[k + 1];
        broadcast_strides(&pen_value_type(call->graph, node->inputs[k + 1])->shape, whole,
                          args.strides[k]);
    }
    args.rank =
        broadcast_join((broadcast_dims){args.operands, whole->rank, args.dims, args.strides});
    *steps = (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_combine_shares,
                             .grid = {pen_cuda_blocks_for(args.count), 1, 1},
                             .args.shares = args};
    return 1;
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
    if (many_step_count(node) > PEN_CUDA_STEPS) return false;
    return pen_cuda_all_float(graph, node) ||
           (node->input_count > 1 && combine_is_whole(graph, node));
}

// What there is before the last launch: an operand may lie where the result comes to.
static uint64_t many_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    if (many_step_count(node) < 2) return 0;
    return pen_tensor_type_bytes(pen_value_type(graph, node->outputs[0]));
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

// Each launch joins one operand to what there is, in the workspace until the last.
static uint32_t many_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const uint32_t count = many_step_count(node);
    const bool is_pair = node->input_count == 2 && pen_cuda_rule(node) != PEN_CUDA_SCALE;
    if (is_pair) return combine_steps(call, steps);
    if (node->input_count == 1) return pen_cuda_spread(call, 1, steps);
    if (pen_cuda_count(call->graph, node->outputs[0]) == 0) return 0;
    const pen_cuda_kernel_number kernel = pen_cuda_is_float(call->graph, node->outputs[0])
                                              ? PEN_CUDA_KERNEL_combine
                                              : PEN_CUDA_KERNEL_combine_whole;
    for (uint32_t k = 1; k <= count; k++) {
        struct cuda_broadcast_args args = {.what = many_what(node)};
        (void)pen_cuda_type(call->graph, node->outputs[0], &args.type);
        if (k == node->input_count) args.what = PEN_CUDA_SCALE;
        args.factor = 1 / (float)node->input_count;
        many_place(call, k, call->workspace, &args);
        if (k < count) args.y = call->workspace;
        broadcast_fold(&args);
        (void)broadcast_step(&args, kernel, &steps[k - 1]);
        steps[k - 1].only_sets = k < count;
    }
    return count;
}

// Of integers, as many as the result has; the first operand is the node's.
static struct cuda_broadcast_args whole_args(const pen_cuda_call *call) {
    struct cuda_broadcast_args args = {.rank = 1, .x = {call->inputs[0]}, .y = call->outputs[0]};
    args.count = args.dims[0] = pen_cuda_count(call->graph, call->node->outputs[0]);
    args.strides[0][0] = args.strides[1][0] = 1;
    (void)pen_cuda_type(call->graph, call->node->inputs[0], &args.type);
    return args;
}

// What has one operand besides has zeros in its place.
uint32_t pen_cuda_function_whole(const pen_cuda_call *call, uint32_t what,
                                 pen_cuda_step *out_step) {
    struct cuda_broadcast_args args = whole_args(call);
    args.what = what;
    if (what == PEN_CUDA_SUB) {
        args.x[1] = args.x[0];
        args.x[0] = 0;
    }
    return broadcast_step(&args, PEN_CUDA_KERNEL_combine_whole, out_step);
}

// The larger of x and the least, then the smaller of that and the most.
uint32_t pen_cuda_clip_whole(const pen_cuda_call *call, pen_cuda_step *steps) {
    struct cuda_broadcast_args args = whole_args(call);
    uint32_t count = 0;
    args.strides[1][0] = 0;
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
#define QUOTIENT_ENTRY(op, what)                                                                   \
    {                                                                                              \
        .op_name = (op), .can_accumulate = true, .supports = combine_supports,                     \
        .steps = combine_steps, .blame = quotient_blame, .can_raise = quotient_can_raise,          \
        .rule = (what)                                                                             \
    }
#define POWER_ENTRY(op, what)                                                                      \
    {                                                                                              \
        .op_name = (op), .can_accumulate = true, .supports = power_supports, .steps = power_steps, \
        .rule = (what)                                                                             \
    }
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
    QUOTIENT_ENTRY("div", PEN_CUDA_DIV),
    QUOTIENT_ENTRY("mod", PEN_CUDA_MOD),
    COMBINE_ENTRY("div_backward_divisor", PEN_CUDA_DIV_DIVISOR),
    POWER_ENTRY("pow", PEN_CUDA_POW),
    POWER_ENTRY("pow_backward_base", PEN_CUDA_POW_BASE),
    COMBINE_ENTRY("pow_backward_exponent", PEN_CUDA_POW_EXPONENT),
    MANY_ENTRY("max", PEN_CUDA_MAX),
    MANY_ENTRY("min", PEN_CUDA_MIN),
    MANY_ENTRY("sum", PEN_CUDA_ADD),
    MANY_ENTRY("mean", PEN_CUDA_SCALE),
    PEN_CUDA_ENTRY("max_backward", shares_supports, shares_steps, PEN_CUDA_MAX_BACKWARD),
    PEN_CUDA_ENTRY("min_backward", shares_supports, shares_steps, PEN_CUDA_MIN_BACKWARD),
    COMBINE_ENTRY("prelu", PEN_CUDA_PRELU),
    COMBINE_ENTRY("prelu_backward", PEN_CUDA_PRELU_X),
    COMBINE_ENTRY("prelu_backward_slope", PEN_CUDA_PRELU_SLOPE),
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
