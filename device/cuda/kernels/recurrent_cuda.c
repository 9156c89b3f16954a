// lstm, gru and rnn, and their gradients: kernels/recurrent.cu, and products. Clipping, gates that
// are coupled, and other activations than the usual ones are left to the host.
#include <math.h>

#include "base/integer.h"
#include "base/status.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/product/recurrent_geometry.h"

#define RECURRENT_COLUMNS_MOST ((int64_t)PEN_CUDA_GRID_MOST * PEN_CUDA_TILE)

typedef enum recurrent_rule { RECURRENT_FORWARD, RECURRENT_BACKWARD } recurrent_rule;

static bool recurrent_geometry(const pen_graph *graph, const pen_node *node,
                               pen_recurrent_geometry *out_geometry) {
    const pen_status status = pen_recurrent_geometry_of(graph, node, out_geometry);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "the host's kernel says what is wrong");
    return false;
}

// Whether direction d has the usual functions; a rnn may have either of two.
static bool recurrent_functions_are_usual(const pen_recurrent_geometry *g, int64_t d) {
    const pen_recurrent_activation *functions = g->activations[d];
    if (g->kind == PEN_RECURRENT_RNN) {
        return functions[0].function == g->activations[0][0].function &&
               (functions[0].function == PEN_RECURRENT_TANH ||
                functions[0].function == PEN_RECURRENT_RELU);
    }
    if (functions[0].function != PEN_RECURRENT_SIGMOID) return false;
    if (functions[1].function != PEN_RECURRENT_TANH) return false;
    return g->kind == PEN_RECURRENT_GRU || functions[2].function == PEN_RECURRENT_TANH;
}

static bool recurrent_is_usual(const pen_recurrent_geometry *g) {
    if (g->clip < (double)INFINITY || g->input_forget) return false;
    for (int64_t d = 0; d < g->directions; d++)
        if (!recurrent_functions_are_usual(g, d)) return false;
    return true;
}

static bool recurrent_fits(const pen_recurrent_geometry *g) {
    int64_t rows;
    return g->steps > 0 && g->batch > 0 && g->inputs > 0 && g->hidden > 0 &&
           g->hidden <= PEN_CUDA_RECURRENT_ROOM && g->inputs <= RECURRENT_COLUMNS_MOST &&
           pen_i64_mul(g->steps, g->batch, &rows) && rows <= INT32_MAX / 2;
}

static uint32_t recurrent_lengths_input(const pen_node *node) {
    const bool is_backward = pen_cuda_rule(node) == RECURRENT_BACKWARD;
    return is_backward ? PEN_RECURRENT_BACKWARD_LENGTHS : PEN_RECURRENT_LENGTHS;
}

// All are of one type but the lengths.
static bool recurrent_is_float(const pen_graph *graph, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i == recurrent_lengths_input(node)) continue;
        if (!pen_cuda_is_float(graph, node->inputs[i])) return false;
    }
    return pen_cuda_is_float(graph, node->outputs[0]);
}

static bool recurrent_supports(const pen_graph *graph, const pen_node *node) {
    const bool is_backward = pen_cuda_rule(node) == RECURRENT_BACKWARD;
    pen_recurrent_geometry g;
    if (!recurrent_is_float(graph, node) || !recurrent_geometry(graph, node, &g)) return false;
    if (is_backward && !pen_cuda_has(node, PEN_RECURRENT_BACKWARD_Y)) return false;
    return recurrent_is_usual(&g) && recurrent_fits(&g);
}

static uint32_t recurrent_what(const pen_recurrent_geometry *g) {
    if (g->kind == PEN_RECURRENT_LSTM) return PEN_CUDA_LSTM;
    if (g->kind == PEN_RECURRENT_GRU)
        return g->linear_before_reset ? PEN_CUDA_GRU : PEN_CUDA_GRU_RESET;
    return g->activations[0][0].function == PEN_RECURRENT_TANH ? PEN_CUDA_RNN_TANH
                                                               : PEN_CUDA_RNN_RELU;
}

// Examples of a block: as many as have work for its threads, if there is room for their states.
static uint32_t recurrent_group(const pen_recurrent_geometry *g) {
    const int64_t wanted = g->hidden < PEN_CUDA_BLOCK ? PEN_CUDA_BLOCK / g->hidden : 1;
    return (uint32_t)(wanted < g->batch ? wanted : g->batch);
}

// What both kernels have of the node's shapes, options and lengths; operands are set by each.
static struct cuda_recurrent_args recurrent_args(const pen_cuda_call *call,
                                                 const pen_recurrent_geometry *g) {
    const uint32_t lengths = recurrent_lengths_input(call->node);
    const bool has_lengths = pen_cuda_has(call->node, lengths);
    const bool are_wide =
        has_lengths &&
        pen_value_type(call->graph, call->node->inputs[lengths])->element == PEN_INT64;
    return (struct cuda_recurrent_args){.what = recurrent_what(g),
                                        .precision = call->precision,
                                        .lengths = pen_cuda_input(call, lengths),
                                        .lengths_are_wide = are_wide,
                                        .error = call->error,
                                        .steps = (uint32_t)g->steps,
                                        .batch = (uint32_t)g->batch,
                                        .hidden = (uint32_t)g->hidden,
                                        .directions = (uint32_t)g->directions,
                                        .gates = (uint32_t)g->gates,
                                        .saved = (uint32_t)g->saved,
                                        .group = recurrent_group(g),
                                        .is_batch_first = g->is_batch_first,
                                        .reversed = (g->is_reverse[0] ? 1u : 0u) |
                                                    (g->is_reverse[1] ? 2u : 0u)};
}

static pen_cuda_step recurrent_step(const struct cuda_recurrent_args *args,
                                    pen_cuda_kernel_number kernel) {
    const uint64_t groups = (args->batch + args->group - 1) / args->group;
    return (pen_cuda_step){.kernel = kernel,
                           .grid = {pen_cuda_blocks(groups * args->directions), 1, 1},
                           .args.recurrent = *args};
}

// Numbers of rows of x, and of gates in one of them.
static uint64_t recurrent_rows(const pen_recurrent_geometry *g) {
    return (uint64_t)(g->steps * g->batch);
}

static uint64_t recurrent_columns(const pen_recurrent_geometry *g) {
    return (uint64_t)(g->directions * g->gates * g->hidden);
}

// ---- forward

// x times its weights, and the state's weights, transposed.
static uint64_t recurrent_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    pen_recurrent_geometry g = {0};
    (void)recurrent_geometry(graph, node, &g);
    return recurrent_columns(&g) * (recurrent_rows(&g) + (uint64_t)g.hidden) * sizeof(float);
}

// Weights of the state so that those of neighbours among the units are neighbours.
static pen_cuda_step recurrent_turn(const pen_recurrent_geometry *g, pen_cuda_address from,
                                    pen_cuda_address to) {
    const int64_t all = g->gates * g->hidden;
    return (pen_cuda_step){
        .kernel = PEN_CUDA_KERNEL_move,
        .grid = {pen_cuda_blocks_for((uint64_t)(g->directions * all * g->hidden)), 1, 1},
        .only_sets = true,
        .args.move = {.rank = 3,
                      .count = (uint64_t)(g->directions * all * g->hidden),
                      .x = from,
                      .y = to,
                      .dims = {(uint64_t)g->directions, (uint64_t)g->hidden, (uint64_t)all},
                      .x_strides = {all * g->hidden, 1, g->hidden},
                      .y_strides = {all * g->hidden, all, 1}}};
}

// The product with x for all steps at once; then a block takes examples from step to step.
static uint32_t recurrent_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    pen_recurrent_geometry g = {0};
    (void)recurrent_geometry(call->graph, call->node, &g);
    const uint64_t rows = recurrent_rows(&g), columns = recurrent_columns(&g);
    const struct cuda_product_args product = {.precision = call->precision,
                                              .alpha = 1,
                                              .m = (uint32_t)rows,
                                              .n = (uint32_t)columns,
                                              .k = (uint32_t)g.inputs,
                                              .trans_b = 1,
                                              .a = call->inputs[PEN_RECURRENT_X],
                                              .b = call->inputs[PEN_RECURRENT_W],
                                              .y = call->workspace};
    const bool is_lstm = g.kind == PEN_RECURRENT_LSTM;
    const uint32_t kept = is_lstm ? PEN_RECURRENT_LAST_C + 1 : PEN_RECURRENT_LAST_H + 1;
    struct cuda_recurrent_args args = recurrent_args(call, &g);
    args.products = call->workspace;
    args.weights = call->workspace + rows * columns * sizeof(float);
    args.bias = pen_cuda_input(call, PEN_RECURRENT_B);
    args.first_h = pen_cuda_input(call, PEN_RECURRENT_INITIAL_H);
    args.y = pen_cuda_output(call, PEN_RECURRENT_Y);
    args.last_h = pen_cuda_output(call, PEN_RECURRENT_LAST_H);
    if (g.saved > 0) args.kept_gates = pen_cuda_output(call, kept);
    if (is_lstm) {
        args.first_c = pen_cuda_input(call, PEN_RECURRENT_INITIAL_C);
        args.peepholes = pen_cuda_input(call, PEN_RECURRENT_PEEPHOLES);
        args.last_c = pen_cuda_output(call, PEN_RECURRENT_LAST_C);
        args.kept_cells = pen_cuda_output(call, kept + 1);
    }
    steps[0] = pen_cuda_product_step(&product, 1);
    steps[0].only_sets = true;
    steps[1] = recurrent_turn(&g, call->inputs[PEN_RECURRENT_R], args.weights);
    steps[2] = recurrent_step(&args, PEN_CUDA_KERNEL_recurrent);
    return 3;
}

static bool recurrent_can_raise(const pen_graph *graph, const pen_node *node) {
    (void)graph;
    return pen_cuda_has(node, PEN_RECURRENT_LENGTHS);
}

// The word counts from behind over all examples.
static pen_status recurrent_blame(const pen_graph *graph, const pen_node *node, uint32_t word) {
    pen_recurrent_geometry g = {0};
    (void)recurrent_geometry(graph, node, &g);
    return pen_error(PEN_INVALID_INPUT,
                     "%s '%s': the length of sequence %lld is outside of 0 to %lld", node->op->name,
                     node->name, (long long)(g.batch - word), (long long)g.steps);
}

// ---- backward

// Gradients by the state's half of the gates are those by the input's, but for a gru; with two
// directions they have to lie otherwise.
static bool recurrent_has_halves(const pen_recurrent_geometry *g) {
    return g->kind == PEN_RECURRENT_GRU || g->directions > 1;
}

static uint64_t recurrent_backward_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    pen_recurrent_geometry g = {0};
    (void)recurrent_geometry(graph, node, &g);
    const uint64_t halves = recurrent_has_halves(&g) ? 2 : 1;
    const uint64_t kinds = recurrent_what(&g) == PEN_CUDA_GRU_RESET ? 2 : 1;
    const uint64_t states = kinds * (uint64_t)(g.directions * g.hidden);
    return recurrent_rows(&g) * (halves * recurrent_columns(&g) + states) * sizeof(float);
}

// The workspace has the gradients by the halves of the gates, the states before each step, and
// those that are reset.
static struct cuda_recurrent_args recurrent_backward_args(const pen_cuda_call *call,
                                                          const pen_recurrent_geometry *g) {
    const uint64_t bytes = recurrent_rows(g) * recurrent_columns(g) * sizeof(float);
    const bool has_halves = recurrent_has_halves(g);
    struct cuda_recurrent_args args = recurrent_args(call, g);
    args.weights = call->inputs[PEN_RECURRENT_R];
    args.peepholes = pen_cuda_input(call, PEN_RECURRENT_BACKWARD_PEEPHOLES);
    args.y = call->inputs[PEN_RECURRENT_BACKWARD_Y];
    args.kept_gates = pen_cuda_input(call, PEN_RECURRENT_BACKWARD_GATES);
    args.kept_cells = pen_cuda_input(call, PEN_RECURRENT_BACKWARD_CELLS);
    args.dy = pen_cuda_input(call, PEN_RECURRENT_BACKWARD_DY);
    args.dh = pen_cuda_input(call, PEN_RECURRENT_BACKWARD_DH);
    args.dc = pen_cuda_input(call, PEN_RECURRENT_BACKWARD_DC);
    args.first_h = pen_cuda_input(call, PEN_RECURRENT_BACKWARD_INITIAL_H);
    args.first_c = pen_cuda_input(call, PEN_RECURRENT_BACKWARD_INITIAL_C);
    args.products = call->workspace;
    args.dstates = has_halves ? call->workspace + bytes : 0;
    args.before = call->workspace + (has_halves ? 2 : 1) * bytes;
    if (args.what == PEN_CUDA_GRU_RESET) {
        args.resets =
            args.before + recurrent_rows(g) * (uint64_t)(g->directions * g->hidden) * sizeof(float);
    }
    args.dbias = pen_cuda_output(call, PEN_RECURRENT_DB);
    args.dpeepholes = pen_cuda_output(call, PEN_RECURRENT_DPEEPHOLES);
    args.dfirst_h = pen_cuda_output(call, PEN_RECURRENT_DINITIAL_H);
    args.dfirst_c = pen_cuda_output(call, PEN_RECURRENT_DINITIAL_C);
    return args;
}

// Of the state's weights: gradients by the gates times the states before each step.
static uint32_t recurrent_weight_steps(const pen_cuda_call *call, const pen_recurrent_geometry *g,
                                       const struct cuda_recurrent_args *args,
                                       pen_cuda_step *steps) {
    const uint64_t rows = recurrent_rows(g), hidden = (uint64_t)g->hidden;
    const uint64_t all = (uint64_t)g->gates * hidden;
    struct cuda_product_args product = {.precision = call->precision,
                                        .alpha = 1,
                                        .m = (uint32_t)all,
                                        .n = (uint32_t)hidden,
                                        .k = (uint32_t)rows,
                                        .trans_a = 1,
                                        .stride_a = rows * all,
                                        .stride_b = rows * hidden,
                                        .a = args->dstates != 0 ? args->dstates : args->products,
                                        .b = args->before,
                                        .y = pen_cuda_output(call, PEN_RECURRENT_DR)};
    uint32_t count = 0;
    if (product.y == 0) return 0;
    if (args->what != PEN_CUDA_GRU_RESET) {
        steps[0] = pen_cuda_product_step(&product, (uint32_t)g->directions);
        return 1;
    }
    // of each direction two gates, by the states, and the third by those that are reset
    for (uint64_t part = 0; part < 2 * (uint64_t)g->directions; part++) {
        const uint64_t d = part / 2, third = part % 2;
        const uint64_t first = d * rows * all + third * rows * 2 * hidden;
        product.m = (uint32_t)(third ? hidden : 2 * hidden);
        product.a = args->dstates + first * sizeof(float);
        product.b = (third ? args->resets : args->before) + d * rows * hidden * sizeof(float);
        product.y = pen_cuda_output(call, PEN_RECURRENT_DR) +
                    (d * all + third * 2 * hidden) * hidden * sizeof(float);
        steps[count++] = pen_cuda_product_step(&product, 1);
    }
    return count;
}

// The gradients by all gates, from the last step to the first; then those of the weights and of x
// are products over all steps at once.
static uint32_t recurrent_backward_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    pen_recurrent_geometry g = {0};
    (void)recurrent_geometry(call->graph, call->node, &g);
    const uint64_t rows = recurrent_rows(&g);
    const struct cuda_recurrent_args args = recurrent_backward_args(call, &g);
    const struct cuda_product_args of_w = {.precision = call->precision,
                                           .alpha = 1,
                                           .m = (uint32_t)recurrent_columns(&g),
                                           .n = (uint32_t)g.inputs,
                                           .k = (uint32_t)rows,
                                           .trans_a = 1,
                                           .a = args.products,
                                           .b = call->inputs[PEN_RECURRENT_X],
                                           .y = pen_cuda_output(call, PEN_RECURRENT_DW)};
    const struct cuda_product_args of_x = {.precision = call->precision,
                                           .alpha = 1,
                                           .m = (uint32_t)rows,
                                           .n = (uint32_t)g.inputs,
                                           .k = (uint32_t)recurrent_columns(&g),
                                           .a = args.products,
                                           .b = call->inputs[PEN_RECURRENT_W],
                                           .y = pen_cuda_output(call, PEN_RECURRENT_DX)};
    uint32_t count = 0;
    steps[count++] = recurrent_step(&args, PEN_CUDA_KERNEL_recurrent_backward);
    if (of_w.y != 0) steps[count++] = pen_cuda_product_step(&of_w, 1);
    count += recurrent_weight_steps(call, &g, &args, &steps[count]);
    if (of_x.y != 0) steps[count++] = pen_cuda_product_step(&of_x, 1);
    if (args.dbias != 0) {
        steps[count] = recurrent_step(&args, PEN_CUDA_KERNEL_recurrent_bias);
        steps[count++].grid[0] = pen_cuda_blocks_for(2 * recurrent_columns(&g));
    }
    if (args.dpeepholes != 0) {
        steps[count] = recurrent_step(&args, PEN_CUDA_KERNEL_recurrent_peepholes);
        steps[count++].grid[0] = pen_cuda_blocks_for(3 * (uint64_t)(g.directions * g.hidden));
    }
    return count;
}

#define RECURRENT_ENTRIES(op)                                                                      \
    {.op_name = op,                                                                                \
     .can_accumulate = true,                                                                       \
     .supports = recurrent_supports,                                                               \
     .workspace_bytes = recurrent_workspace_bytes,                                                 \
     .steps = recurrent_steps,                                                                     \
     .blame = recurrent_blame,                                                                     \
     .can_raise = recurrent_can_raise,                                                             \
     .rule = RECURRENT_FORWARD},                                                                   \
    {                                                                                              \
        .op_name = op "_backward", .can_accumulate = true, .supports = recurrent_supports,         \
        .workspace_bytes = recurrent_backward_workspace_bytes, .steps = recurrent_backward_steps,  \
        .rule = RECURRENT_BACKWARD                                                                 \
    }
static const pen_cuda_entry recurrent_entries[] = {
    RECURRENT_ENTRIES("lstm"),
    RECURRENT_ENTRIES("gru"),
    RECURRENT_ENTRIES("rnn"),
};

PEN_CUDA_FAMILY_OF(recurrent);
