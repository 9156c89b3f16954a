// Updates of optimizers that adapt the step to each element, and averages: kernels/adapt.cu.
#include <math.h>

#include "base/integer.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/training/optimizer_op.h"

static bool adapt_is_whole(const pen_node *node) {
    return pen_cuda_rule(node) == PEN_CUDA_LAMB || pen_cuda_rule(node) == PEN_CUDA_ADAFACTOR;
}

static double adapt_number(const pen_node *node, const char *name, double otherwise) {
    return pen_node_has(node, name) ? pen_node_float(node, name) : otherwise;
}

// What the optimizer calls that which the kernel calls `extra` and `beta2`.
static void adapt_own_numbers(const pen_node *node, struct cuda_adapt_args *args) {
    switch (args->what) {
    case PEN_CUDA_RMSPROP:
        args->extra = pen_node_float(node, "momentum");
        args->beta2 = pen_node_float(node, "alpha");
        break;
    case PEN_CUDA_ADAGRAD:
        args->extra = pen_node_float(node, "lr_decay");
        break;
    case PEN_CUDA_ADADELTA:
        args->beta2 = pen_node_float(node, "rho");
        break;
    case PEN_CUDA_NADAM:
        args->extra = pow(0.96, pen_node_float(node, "momentum_decay"));
        break;
    case PEN_CUDA_LION:
        args->decoupled = 1;
        break;
    case PEN_CUDA_ADAFACTOR:
        args->decoupled = 1;
        args->extra = pen_node_float(node, "beta2_decay");
        args->epsilon2 = pen_node_float(node, "epsilon2");
        args->threshold = pen_node_float(node, "clip_threshold");
        break;
    default:
        break;
    }
}

static uint64_t adapt_blocks(uint64_t count) {
    return count / PEN_CUDA_NORM_BLOCK + (count % PEN_CUDA_NORM_BLOCK > 0);
}

// Letters of what the kernel does not read are anything that its formulas can have.
static struct cuda_adapt_args adapt_args(const pen_cuda_call *call) {
    const pen_node *node = call->node;
    const pen_op_update *at = &node->op->update;
    const pen_shape *shape = &pen_value_type(call->graph, node->inputs[0])->shape;
    const pen_adafactor_shape matrix = pen_adafactor_shape_of(shape);
    const uint64_t count = (uint64_t)pen_shape_element_count(shape);
    struct cuda_adapt_args args = {
        .wide = pen_cuda_update_wide(call),
        .what = pen_cuda_rule(node),
        .decoupled = pen_node_has(node, "decoupled") && pen_node_int(node, "decoupled") != 0,
        .count = count,
        .blocks = adapt_blocks(count),
        .batches = (uint64_t)matrix.batches,
        .rows = (uint64_t)matrix.rows,
        .columns = (uint64_t)matrix.columns,
        .p = call->inputs[0],
        .gradient = call->inputs[at->gradient],
        .rate = call->inputs[at->rate],
        .step = at->step > 0 ? call->inputs[at->step] : 0,
        .scale = pen_cuda_input(call, at->scale),
        .flag = call->flag,
        .p_new = call->outputs[0],
        .sums = call->workspace,
        .means = call->workspace + 2 * adapt_blocks(count) * sizeof(double),
        .rate_scale = pen_node_float(node, "lr_scale"),
        .beta1 = adapt_number(node, "beta1", 0),
        .beta2 = adapt_number(node, "beta2", 0),
        .decay = pen_node_float(node, "weight_decay"),
        .epsilon = (float)adapt_number(node, "epsilon", 0),
        .most = (float)pen_node_float(node, "clip_value")};
    for (uint32_t i = at->state; i < at->rate; i++) {
        args.states[i - at->state] = pen_cuda_input(call, i);
        args.states_new[i - at->state] = pen_cuda_output(call, 1 + i - at->state);
    }
    adapt_own_numbers(node, &args);
    return args;
}

static uint64_t adapt_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    const pen_shape *shape = &pen_value_type(graph, node->inputs[0])->shape;
    const uint64_t blocks = adapt_blocks((uint64_t)pen_shape_element_count(shape));
    const uint64_t of_rows = pen_cuda_update_workspace_bytes(graph, node);
    if (!adapt_is_whole(node)) return of_rows;
    return of_rows +
           (2 * blocks + (uint64_t)pen_adafactor_shape_of(shape).batches) * sizeof(double);
}

static pen_cuda_step adapt_step(const struct cuda_adapt_args *args, pen_cuda_kernel_number kernel,
                                uint32_t blocks) {
    return (pen_cuda_step){.kernel = kernel, .grid = {blocks, 1, 1}, .args.adapt = *args};
}

// Variances first, then the sizes of parameter and step, and then the step.
static uint32_t adapt_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const struct cuda_adapt_args args = adapt_args(call);
    const uint32_t each = pen_cuda_blocks_for(args.count);
    uint32_t count = 0;
    if (args.count == 0) return 0;
    if (args.what != PEN_CUDA_ADAFACTOR) {
        steps[count++] = (pen_cuda_step){PEN_CUDA_OF_MANY(adapt, cuda_adapt_args),
                                         .grid = {each, 1, 1}, .args.adapt = args};
    } else if (args.states[2] != 0) {
        steps[count++] = adapt_step(&args, PEN_CUDA_KERNEL_factor_elements, each);
    } else {
        const uint64_t threads = args.batches * args.rows * PEN_CUDA_TEAM(args.columns);
        steps[count++] =
            adapt_step(&args, PEN_CUDA_KERNEL_factor_rows, pen_cuda_blocks_for(threads));
        steps[count++] = adapt_step(&args, PEN_CUDA_KERNEL_factor_columns,
                                    pen_cuda_blocks_for(args.batches * args.columns));
        steps[count++] =
            adapt_step(&args, PEN_CUDA_KERNEL_factor_means, pen_cuda_blocks(args.batches));
    }
    if (!adapt_is_whole(call->node)) return count;
    struct cuda_adapt_args whole = args;
    if (args.what == PEN_CUDA_LAMB) whole.p = args.p_new; // is p as yet, and may be where that was
    steps[count++] = adapt_step(&whole, PEN_CUDA_KERNEL_whole_norms, pen_cuda_blocks(args.blocks));
    steps[count++] = adapt_step(&whole, PEN_CUDA_KERNEL_whole_sizes, 1);
    steps[count++] = adapt_step(&whole, PEN_CUDA_KERNEL_whole_apply, each);
    return count;
}

static uint32_t adapt_rows_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_op_update *at = &call->node->op->update;
    return pen_cuda_rows_steps(call, at->rows, at->gradient, adapt_steps, steps);
}

static bool average_supports(const pen_graph *graph, const pen_node *node) {
    const pen_element_type step = pen_value_type(graph, node->inputs[PEN_AVERAGE_STEP])->element;
    if (pen_cuda_has(node, PEN_AVERAGE_SCALE)) {
        const pen_element_type scale =
            pen_value_type(graph, node->inputs[PEN_AVERAGE_SCALE])->element;
        if (scale != PEN_FLOAT32 && scale != PEN_FLOAT64) return false;
    }
    return pen_cuda_is_float(graph, node->inputs[PEN_AVERAGE_PARAMETER]) &&
           (step == PEN_FLOAT32 || step == PEN_FLOAT64);
}

// The share of the parameter depends on the step, which the kernel alone knows.
static uint32_t average_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_tensor_type *step = pen_value_type(call->graph, node->inputs[PEN_AVERAGE_STEP]);
    const uint64_t count = pen_cuda_count(call->graph, node->outputs[0]);
    const bool is_wide =
        pen_cuda_has(node, PEN_AVERAGE_SCALE) &&
        pen_value_type(call->graph, node->inputs[PEN_AVERAGE_SCALE])->element == PEN_FLOAT64;
    if (count == 0) return 0;
    *steps = (pen_cuda_step){PEN_CUDA_OF_MANY(average, cuda_average_args),
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.average = {.step_is_wide = step->element == PEN_FLOAT64,
                                              .wide = is_wide ? PEN_CUDA_WIDE_SCALE : 0u,
                                              .count = count,
                                              .p = call->inputs[PEN_AVERAGE_PARAMETER],
                                              .old = call->inputs[PEN_AVERAGE_OLD],
                                              .step = call->inputs[PEN_AVERAGE_STEP],
                                              .scale = pen_cuda_input(call, PEN_AVERAGE_SCALE),
                                              .flag = call->flag,
                                              .y = call->outputs[0],
                                              .decay = pen_node_float(node, "decay"),
                                              .from = (double)pen_node_int(node, "from")}};
    return 1;
}

#define ADAPT_ENTRY(op, what)                                                                      \
    {                                                                                              \
        .op_name = op "_update", .supports = pen_cuda_update_supports,                             \
        .workspace_bytes = adapt_workspace_bytes, .steps = adapt_rows_steps, .rule = what          \
    }
static const pen_cuda_entry adapt_entries[] = {
    ADAPT_ENTRY("rmsprop", PEN_CUDA_RMSPROP),
    ADAPT_ENTRY("adagrad", PEN_CUDA_ADAGRAD),
    ADAPT_ENTRY("adadelta", PEN_CUDA_ADADELTA),
    ADAPT_ENTRY("adamax", PEN_CUDA_ADAMAX),
    ADAPT_ENTRY("nadam", PEN_CUDA_NADAM),
    ADAPT_ENTRY("radam", PEN_CUDA_RADAM),
    ADAPT_ENTRY("lion", PEN_CUDA_LION),
    ADAPT_ENTRY("lamb", PEN_CUDA_LAMB),
    ADAPT_ENTRY("adafactor", PEN_CUDA_ADAFACTOR),
    {.op_name = "average_update", .supports = average_supports, .steps = average_steps},
};

PEN_CUDA_FAMILY_OF(adapt);
