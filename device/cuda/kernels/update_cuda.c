// Updates of parameters by SGD and Adam, norms of gradients, and the scale that they give:
// kernels/update.cu.
#include "base/integer.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/ops/training/optimizer_op.h"

static bool update_is_number(const pen_graph *graph, const pen_node *node, uint32_t i) {
    if (!pen_cuda_has(node, i)) return true;
    const pen_element_type element = pen_value_type(graph, node->inputs[i])->element;
    return element == PEN_FLOAT32 || element == PEN_FLOAT64;
}

bool pen_cuda_update_supports(const pen_graph *graph, const pen_node *node) {
    const pen_op_update *at = &node->op->update;
    if (!pen_cuda_has(node, at->rate) || !pen_cuda_rows_supported(graph, node, at->rows))
        return false;
    for (uint32_t i = 0; i < at->rate && i < node->input_count; i++)
        if (!pen_cuda_is_float(graph, node->inputs[i])) return false;
    return update_is_number(graph, node, at->rate) && update_is_number(graph, node, at->scale) &&
           update_is_number(graph, node, at->step);
}

static bool update_is_wide(const pen_cuda_call *call, uint32_t i) {
    return pen_cuda_has(call->node, i) &&
           pen_value_type(call->graph, call->node->inputs[i])->element == PEN_FLOAT64;
}

// An update without a step has its parameter there, a float32.
uint32_t pen_cuda_update_wide(const pen_cuda_call *call) {
    const pen_op_update *at = &call->node->op->update;
    return (update_is_wide(call, at->rate) ? PEN_CUDA_WIDE_RATE : 0u) |
           (update_is_wide(call, at->scale) ? PEN_CUDA_WIDE_SCALE : 0u) |
           (update_is_wide(call, at->step) ? PEN_CUDA_WIDE_STEP : 0u);
}

// Without momentum there is no velocity: `v` and `v_new` are 0, and the kernel reads neither.
static uint32_t sgd_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_op_update *at = &node->op->update;
    const uint64_t count = pen_cuda_count(call->graph, node->inputs[0]);
    if (count == 0) return 0;
    *steps = (pen_cuda_step){PEN_CUDA_OF_MANY(sgd, cuda_sgd_args),
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.sgd = {.wide = pen_cuda_update_wide(call),
                                          .nesterov = pen_node_int(node, "nesterov") != 0,
                                          .count = count,
                                          .p = call->inputs[0],
                                          .gradient = call->inputs[at->gradient],
                                          .v = pen_cuda_input(call, at->state),
                                          .rate = call->inputs[at->rate],
                                          .scale = pen_cuda_input(call, at->scale),
                                          .flag = call->flag,
                                          .p_new = call->outputs[0],
                                          .v_new = pen_cuda_output(call, 1),
                                          .rate_scale = pen_node_float(node, "lr_scale"),
                                          .momentum = (float)pen_node_float(node, "momentum"),
                                          .decay = (float)pen_node_float(node, "weight_decay"),
                                          .most = (float)pen_node_float(node, "clip_value")}};
    return 1;
}

// The kernel makes the step's corrections of the betas itself, for it alone knows the step.
static uint32_t adam_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const pen_op_update *at = &node->op->update;
    const uint64_t count = pen_cuda_count(call->graph, node->inputs[0]);
    if (count == 0) return 0;
    *steps = (pen_cuda_step){PEN_CUDA_OF_MANY(adam, cuda_adam_args),
                             .grid = {pen_cuda_blocks_for(count), 1, 1},
                             .args.adam = {.wide = pen_cuda_update_wide(call),
                                           .decoupled = pen_node_int(node, "decoupled") != 0,
                                           .count = count,
                                           .p = call->inputs[0],
                                           .gradient = call->inputs[at->gradient],
                                           .m = call->inputs[at->state],
                                           .v = call->inputs[at->state + 1],
                                           .rate = call->inputs[at->rate],
                                           .step = call->inputs[at->step],
                                           .scale = pen_cuda_input(call, at->scale),
                                           .flag = call->flag,
                                           .p_new = call->outputs[0],
                                           .m_new = call->outputs[1],
                                           .v_new = call->outputs[2],
                                           .rate_scale = pen_node_float(node, "lr_scale"),
                                           .beta1 = pen_node_float(node, "beta1"),
                                           .beta2 = pen_node_float(node, "beta2"),
                                           .decay = pen_node_float(node, "weight_decay"),
                                           .epsilon = (float)pen_node_float(node, "epsilon"),
                                           .most = (float)pen_node_float(node, "clip_value")}};
    return 1;
}

// ---- norms

static bool norm_supports(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_rows_supported(graph, node, PEN_NORM_ROWS) &&
           pen_cuda_is_float(graph, node->inputs[0]);
}

static uint64_t norm_blocks(const pen_graph *graph, const pen_node *node) {
    const uint64_t count = pen_cuda_rows_count(graph, node, PEN_NORM_ROWS, 0);
    return count / PEN_CUDA_NORM_BLOCK + (count % PEN_CUDA_NORM_BLOCK > 0);
}

static uint64_t norm_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_rows_bytes(graph, node, PEN_NORM_ROWS) +
           norm_blocks(graph, node) * sizeof(double);
}

static uint32_t norm_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    const uint64_t blocks = norm_blocks(call->graph, node);
    const struct cuda_norm_args args = {
        .wide = pen_value_type(call->graph, node->outputs[0])->element == PEN_FLOAT64,
        .count = pen_cuda_rows_count(call->graph, node, PEN_NORM_ROWS, 0),
        .x = call->inputs[0],
        .sums = call->workspace,
        .y = call->outputs[0]};
    steps[0] =
        (pen_cuda_step){PEN_CUDA_OF_MANY(norm_blocks, cuda_norm_args),
                        .grid = {pen_cuda_blocks(pen_max_u64(blocks, 1)), 1, 1}, .args.norm = args};
    steps[1] = (pen_cuda_step){PEN_CUDA_OF_MANY(norm_total, cuda_norm_args), .grid = {1, 1, 1},
                               .args.norm = args};
    return 2;
}

static bool clip_scale_supports(const pen_graph *graph, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!update_is_number(graph, node, i)) return false;
    return node->input_count > 0 && node->input_count <= PEN_CUDA_STEPS * PEN_CUDA_NORMS;
}

// The sum so far, from launch to launch.
static uint64_t clip_scale_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    (void)graph;
    return node->input_count > PEN_CUDA_NORMS ? sizeof(double) : 0;
}

// A launch has room for some norms alone.
static uint32_t clip_scale_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_node *node = call->node;
    uint32_t step_count = 0;
    for (uint32_t first = 0; first < node->input_count; first += PEN_CUDA_NORMS) {
        const uint32_t rest = node->input_count - first;
        struct cuda_clip_scale_args args = {
            .count = rest < PEN_CUDA_NORMS ? rest : PEN_CUDA_NORMS,
            .is_first = first == 0,
            .is_last = rest <= PEN_CUDA_NORMS,
            .y_is_wide = pen_value_type(call->graph, node->outputs[0])->element == PEN_FLOAT64,
            .skips = pen_node_int(node, "skips") != 0,
            .sum = call->workspace,
            .y = call->outputs[0],
            .limit = pen_node_float(node, "limit")};
        for (uint32_t k = 0; k < args.count; k++) {
            args.norms[k] = call->inputs[first + k];
            if (update_is_wide(call, first + k)) args.wide |= (uint64_t)1 << k;
        }
        steps[step_count++] = (pen_cuda_step){
            .kernel = PEN_CUDA_KERNEL_clip_scale, .grid = {1, 1, 1}, .args.clip_scale = args};
    }
    return step_count;
}

// ---- of gradients that may be lists of rows

uint64_t pen_cuda_update_workspace_bytes(const pen_graph *graph, const pen_node *node) {
    return pen_cuda_rows_bytes(graph, node, node->op->update.rows);
}

static uint32_t sgd_rows_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_op_update *at = &call->node->op->update;
    return pen_cuda_rows_steps(call, at->rows, at->gradient, sgd_steps, steps);
}

static uint32_t adam_rows_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    const pen_op_update *at = &call->node->op->update;
    return pen_cuda_rows_steps(call, at->rows, at->gradient, adam_steps, steps);
}

static uint32_t norm_rows_steps(const pen_cuda_call *call, pen_cuda_step *steps) {
    return pen_cuda_rows_steps(call, PEN_NORM_ROWS, 0, norm_steps, steps);
}

static const pen_cuda_entry update_entries[] = {
    {.op_name = "sgd_update",
     .supports = pen_cuda_update_supports,
     .workspace_bytes = pen_cuda_update_workspace_bytes,
     .steps = sgd_rows_steps},
    {.op_name = "adam_update",
     .supports = pen_cuda_update_supports,
     .workspace_bytes = pen_cuda_update_workspace_bytes,
     .steps = adam_rows_steps},
    {.op_name = "squared_norm",
     .supports = norm_supports,
     .workspace_bytes = norm_workspace_bytes,
     .steps = norm_rows_steps},
    {.op_name = "clip_scale",
     .supports = clip_scale_supports,
     .workspace_bytes = clip_scale_workspace_bytes,
     .steps = clip_scale_steps},
};

PEN_CUDA_FAMILY_OF(update);
