// Recurrent nets: lstm, gru and rnn, with the sequences' lengths, initial states, both directions,
// peepholes, clipping, and all of ONNX' activations.
//
// Operands, outputs and what is saved for the gradient are listed in recurrent_geometry.h; the
// names of activations are one text, separated by spaces. A node of which only outputs of ONNX are
// asked for saves nothing, and cannot be differentiated.

#include "graph/graph.h"
#include "graph/ops/product/recurrent_geometry.h"
#include "graph/ops/shared/infer_checks.h"
#include "graph/ops/shared/shape_rule.h"

// The first output that is ours.
static uint32_t recurrent_own_output(pen_recurrent_kind kind) {
    return kind == PEN_RECURRENT_LSTM ? PEN_RECURRENT_LAST_C + 1 : PEN_RECURRENT_LAST_H + 1;
}

static pen_status recurrent_check_operand(const pen_infer_context *context, uint32_t input,
                                          const pen_shape *shape) {
    if (!pen_infer_has_input(context, input)) return PEN_OK;
    PEN_TRY(pen_infer_check_same_element(context, input, 0));
    return pen_infer_check_shape(context, input, shape);
}

static pen_status recurrent_check_lengths(const pen_infer_context *context, uint32_t input,
                                          const pen_recurrent_geometry *g) {
    if (!pen_infer_has_input(context, input)) return PEN_OK;
    const pen_shape shape = {1, {g->batch}};
    PEN_TRY(pen_infer_check_element(context, input,
                                    PEN_ELEMENT_BIT(PEN_INT32) | PEN_ELEMENT_BIT(PEN_INT64)));
    return pen_infer_check_shape(context, input, &shape);
}

static pen_status recurrent_geometry(const pen_infer_context *context,
                                     pen_recurrent_geometry *out_geometry) {
    PEN_TRY(pen_infer_check_element(context, PEN_RECURRENT_X, PEN_ELEMENTS_FLOAT));
    PEN_TRY(pen_infer_check_same_element(context, PEN_RECURRENT_W, 0));
    PEN_TRY(pen_infer_check_same_element(context, PEN_RECURRENT_R, 0));
    return pen_infer_wrap(
        context,
        pen_recurrent_geometry_of(pen_infer_graph(context), pen_infer_node(context), out_geometry));
}

static pen_shape recurrent_bias_shape(const pen_recurrent_geometry *g) {
    return (pen_shape){2, {g->directions, 2 * g->gates * g->hidden}};
}

static pen_shape recurrent_peephole_shape(const pen_recurrent_geometry *g) {
    return (pen_shape){2, {g->directions, 3 * g->hidden}};
}

static pen_status recurrent_infer(pen_infer_context *context) {
    pen_recurrent_geometry g;
    PEN_TRY(recurrent_geometry(context, &g));
    const pen_shape bias = recurrent_bias_shape(&g), peepholes = recurrent_peephole_shape(&g);
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_B, &bias));
    PEN_TRY(recurrent_check_lengths(context, PEN_RECURRENT_LENGTHS, &g));
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_INITIAL_H, &g.state.shape));
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_INITIAL_C, &g.state.shape));
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_PEEPHOLES, &peepholes));
    PEN_TRY(pen_infer_set(context, PEN_RECURRENT_Y, &g.y));
    PEN_TRY(pen_infer_set(context, PEN_RECURRENT_LAST_H, &g.state));
    const uint32_t own = recurrent_own_output(g.kind);
    if (g.kind == PEN_RECURRENT_LSTM) {
        PEN_TRY(pen_infer_set(context, PEN_RECURRENT_LAST_C, &g.state));
        PEN_TRY(pen_infer_set(context, own + 1, &g.cell_type));
    }
    return g.saved > 0 ? pen_infer_set(context, own, &g.gate_type) : PEN_OK;
}

static pen_status recurrent_backward_check_saved(const pen_infer_context *context,
                                                 const pen_recurrent_geometry *g) {
    const uint32_t gates = PEN_RECURRENT_BACKWARD_GATES, cells = PEN_RECURRENT_BACKWARD_CELLS;
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_BACKWARD_Y, &g->y.shape));
    PEN_TRY(recurrent_check_operand(context, gates, &g->gate_type.shape));
    PEN_TRY(recurrent_check_operand(context, cells, &g->cell_type.shape));
    if (g->saved > 0 && !pen_infer_has_input(context, gates)) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the gates (input %u) are missing",
                               gates);
    }
    if (g->kind == PEN_RECURRENT_LSTM && !pen_infer_has_input(context, cells)) {
        return pen_infer_error(context, PEN_INVALID_INPUT, "the cells (input %u) are missing",
                               cells);
    }
    return PEN_OK;
}

// Each gradient has the type of what it is the gradient of.
static pen_status recurrent_backward_infer(pen_infer_context *context) {
    pen_recurrent_geometry g;
    PEN_TRY(recurrent_geometry(context, &g));
    const pen_shape bias = recurrent_bias_shape(&g), peepholes = recurrent_peephole_shape(&g);
    const pen_shape *state = &g.state.shape;
    PEN_TRY(recurrent_backward_check_saved(context, &g));
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_BACKWARD_DY, &g.y.shape));
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_BACKWARD_DH, state));
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_BACKWARD_DC, state));
    PEN_TRY(recurrent_check_lengths(context, PEN_RECURRENT_BACKWARD_LENGTHS, &g));
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_BACKWARD_INITIAL_H, state));
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_BACKWARD_INITIAL_C, state));
    PEN_TRY(recurrent_check_operand(context, PEN_RECURRENT_BACKWARD_PEEPHOLES, &peepholes));
    const pen_element_type element = g.y.element;
    const pen_tensor_type bias_type = {element, bias}, peephole_type = {element, peepholes};
    PEN_TRY(pen_infer_set(context, PEN_RECURRENT_DW, pen_infer_input(context, PEN_RECURRENT_W)));
    PEN_TRY(pen_infer_set(context, PEN_RECURRENT_DR, pen_infer_input(context, PEN_RECURRENT_R)));
    PEN_TRY(pen_infer_set(context, PEN_RECURRENT_DX, pen_infer_input(context, PEN_RECURRENT_X)));
    PEN_TRY(pen_infer_set(context, PEN_RECURRENT_DB, &bias_type));
    PEN_TRY(pen_infer_set(context, PEN_RECURRENT_DINITIAL_H, &g.state));
    PEN_TRY(pen_infer_set(context, PEN_RECURRENT_DINITIAL_C, &g.state));
    return pen_infer_set(context, PEN_RECURRENT_DPEEPHOLES, &peephole_type);
}

// ---- gradients

// Operands of the backward node that are operands of the forward one.
static const uint32_t recurrent_passed[][2] = {
    {PEN_RECURRENT_X, PEN_RECURRENT_X},
    {PEN_RECURRENT_W, PEN_RECURRENT_W},
    {PEN_RECURRENT_R, PEN_RECURRENT_R},
    {PEN_RECURRENT_BACKWARD_LENGTHS, PEN_RECURRENT_LENGTHS},
    {PEN_RECURRENT_BACKWARD_INITIAL_H, PEN_RECURRENT_INITIAL_H},
    {PEN_RECURRENT_BACKWARD_INITIAL_C, PEN_RECURRENT_INITIAL_C},
    {PEN_RECURRENT_BACKWARD_PEEPHOLES, PEN_RECURRENT_PEEPHOLES},
};

// Outputs of the backward node, and the operand that each is the gradient of.
static const uint32_t recurrent_gradients[][2] = {
    {PEN_RECURRENT_DW, PEN_RECURRENT_W},
    {PEN_RECURRENT_DR, PEN_RECURRENT_R},
    {PEN_RECURRENT_DX, PEN_RECURRENT_X},
    {PEN_RECURRENT_DB, PEN_RECURRENT_B},
    {PEN_RECURRENT_DINITIAL_H, PEN_RECURRENT_INITIAL_H},
    {PEN_RECURRENT_DINITIAL_C, PEN_RECURRENT_INITIAL_C},
    {PEN_RECURRENT_DPEEPHOLES, PEN_RECURRENT_PEEPHOLES},
};
#define RECURRENT_COUNT(array) (sizeof(array) / sizeof *(array))

static pen_value_id recurrent_output(const pen_node *node, uint32_t output) {
    return output < node->output_count ? node->outputs[output] : PEN_VALUE_NONE;
}

// Gates and cells that the forward pass kept come in; without them there is no gradient.
static pen_status recurrent_backward_operands(pen_gradient_context *context,
                                              const pen_recurrent_geometry *g,
                                              pen_value_id *operands) {
    const pen_node *node = pen_gradient_node(context);
    for (uint32_t i = 0; i < PEN_RECURRENT_BACKWARD_INPUT_COUNT; i++) {
        operands[i] = PEN_VALUE_NONE;
    }
    for (uint32_t i = 0; i < RECURRENT_COUNT(recurrent_passed); i++) {
        const uint32_t from = recurrent_passed[i][1];
        if (from < node->input_count) operands[recurrent_passed[i][0]] = node->inputs[from];
    }
    const uint32_t own = recurrent_own_output(g->kind);
    const bool is_lstm = g->kind == PEN_RECURRENT_LSTM;
    operands[PEN_RECURRENT_BACKWARD_Y] = node->outputs[PEN_RECURRENT_Y];
    if (g->saved > 0) operands[PEN_RECURRENT_BACKWARD_GATES] = recurrent_output(node, own);
    if (is_lstm) operands[PEN_RECURRENT_BACKWARD_CELLS] = recurrent_output(node, own + 1);
    const bool is_saved = (g->saved == 0 || pen_value_is(operands[PEN_RECURRENT_BACKWARD_GATES])) &&
                          (!is_lstm || pen_value_is(operands[PEN_RECURRENT_BACKWARD_CELLS]));
    if (!is_saved) {
        return pen_error(PEN_UNSUPPORTED, "%s '%s' does not save its gates for a gradient",
                         node->op->name, node->name);
    }
    operands[PEN_RECURRENT_BACKWARD_DY] = pen_gradient_of_output(context, PEN_RECURRENT_Y);
    if (node->output_count > PEN_RECURRENT_LAST_H) {
        operands[PEN_RECURRENT_BACKWARD_DH] = pen_gradient_of_output(context, PEN_RECURRENT_LAST_H);
    }
    if (is_lstm && node->output_count > PEN_RECURRENT_LAST_C) {
        operands[PEN_RECURRENT_BACKWARD_DC] = pen_gradient_of_output(context, PEN_RECURRENT_LAST_C);
    }
    return PEN_OK;
}

// One node makes all gradients; outputs that nobody needs are dropped, the last ones first.
static pen_status recurrent_gradient(pen_gradient_context *context) {
    pen_graph *graph = pen_gradient_graph(context);
    pen_recurrent_geometry g;
    PEN_TRY(pen_recurrent_geometry_of(graph, pen_gradient_node(context), &g));
    pen_value_id operands[PEN_RECURRENT_BACKWARD_INPUT_COUNT];
    PEN_TRY(recurrent_backward_operands(context, &g, operands));
    const bool is_reached = pen_value_is(operands[PEN_RECURRENT_BACKWARD_DY]) ||
                            pen_value_is(operands[PEN_RECURRENT_BACKWARD_DH]) ||
                            pen_value_is(operands[PEN_RECURRENT_BACKWARD_DC]);
    if (!is_reached) return PEN_OK; // only what is saved is read
    pen_value_id made[PEN_RECURRENT_BACKWARD_OUTPUT_COUNT];
    const pen_gradient_emission emission = {
        .for_input = PEN_RECURRENT_X,
        .inputs = operands,
        .input_count = PEN_RECURRENT_BACKWARD_INPUT_COUNT,
        .repeats_attributes = true,
        .output_count = PEN_RECURRENT_BACKWARD_OUTPUT_COUNT,
    };
    PEN_TRY(pen_gradient_emit(context, &emission, made));
    const pen_node_id backward = pen_graph_value(graph, made[0])->producer;
    for (uint32_t i = RECURRENT_COUNT(recurrent_gradients); i-- > 0;) {
        const uint32_t output = recurrent_gradients[i][0], input = recurrent_gradients[i][1];
        if (pen_gradient_needed(context, input)) {
            pen_gradient_set(context, input, made[output]);
        } else if (output > 0) {
            pen_graph_drop_output(graph, backward, output);
        }
    }
    return PEN_OK;
}

// ---- costs

// Of one product of every gate with the input (or with the state) over the whole sequence.
static uint64_t recurrent_product_flops(const pen_shape *x, const pen_shape *weights) {
    return 2 * (uint64_t)(x->dims[0] * x->dims[1]) * (uint64_t)pen_shape_element_count(weights);
}

static uint64_t recurrent_forward_flops(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    const pen_shape *x = &pen_value_type(graph, node->inputs[PEN_RECURRENT_X])->shape;
    uint64_t flops = 10 * (uint64_t)pen_shape_element_count(
                              &pen_value_type(graph, node->outputs[PEN_RECURRENT_Y])->shape);
    for (uint32_t i = PEN_RECURRENT_W; i <= PEN_RECURRENT_R; i++) {
        flops += recurrent_product_flops(x, &pen_value_type(graph, node->inputs[i])->shape);
    }
    return flops;
}

static uint64_t recurrent_backward_flops(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    const pen_shape *x = &pen_value_type(graph, node->inputs[PEN_RECURRENT_X])->shape;
    const pen_shape *w = &pen_value_type(graph, node->inputs[PEN_RECURRENT_W])->shape;
    const pen_shape *r = &pen_value_type(graph, node->inputs[PEN_RECURRENT_R])->shape;
    const bool has_dx = pen_value_is(recurrent_output(node, PEN_RECURRENT_DX));
    return 2 * recurrent_product_flops(x, r) + (has_dx ? 2 : 1) * recurrent_product_flops(x, w);
}

// ---- the table

#define RECURRENT_ATTRIBUTES                                                                       \
    PEN_MAY("activation_alpha", FLOATS), PEN_MAY("activation_beta", FLOATS),                       \
        PEN_MAY("activations", TEXT), PEN_MAY("clip", FLOAT), PEN_TEXT_OR("direction", "forward"), \
        PEN_MAY("hidden_size", INT), PEN_INT_OR("layout", 0)

static const pen_attribute_schema lstm_attributes[] = {
    RECURRENT_ATTRIBUTES,
    PEN_INT_OR("input_forget", 0),
};
static const pen_attribute_schema gru_attributes[] = {
    RECURRENT_ATTRIBUTES,
    PEN_INT_OR("linear_before_reset", 0),
};
static const pen_attribute_schema rnn_attributes[] = {RECURRENT_ATTRIBUTES};

#define RECURRENT_OP(op, text, inputs, outputs)                                                    \
    {                                                                                              \
        .name = #op, .summary = text, PEN_TAKES(3, (inputs)), PEN_GIVES(1, (outputs)),             \
        PEN_ATTRIBUTES(op##_attributes), .infer = recurrent_infer, .gradient = recurrent_gradient, \
        .flops = recurrent_forward_flops, .work = PEN_WORK_RECURRENT                               \
    }

#define RECURRENT_BACKWARD_OP(op)                                                                  \
    {                                                                                              \
        .name = #op "_backward", .summary = "gradients of " #op "'s weights, input and states",    \
        PEN_TAKES(PEN_RECURRENT_BACKWARD_Y + 1, PEN_RECURRENT_BACKWARD_INPUT_COUNT),               \
        PEN_GIVES(1, PEN_RECURRENT_BACKWARD_OUTPUT_COUNT), PEN_ATTRIBUTES(op##_attributes),        \
        .infer = recurrent_backward_infer, .flops = recurrent_backward_flops,                      \
        .work = PEN_WORK_RECURRENT                                                                 \
    }

static const pen_op recurrent_ops[] = {
    RECURRENT_OP(lstm, "long short-term memory over a sequence", PEN_RECURRENT_INPUT_COUNT, 5),
    RECURRENT_OP(gru, "gated recurrent unit over a sequence", PEN_RECURRENT_INITIAL_C, 3),
    RECURRENT_OP(rnn, "recurrent layer of one function over a sequence", PEN_RECURRENT_INITIAL_C,
                 2),
    RECURRENT_BACKWARD_OP(lstm),
    RECURRENT_BACKWARD_OP(gru),
    RECURRENT_BACKWARD_OP(rnn),
};

PEN_OP_FAMILY(recurrent);
