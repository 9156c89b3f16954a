#include "graph/passes/decode/decode_position.h"

#include "graph/graph.h"
#include "graph/node_parts.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/decode/decode_attention.h"
#include "graph/passes/decode/position_copy.h"

// ---- nodes

// The type of one position of an output.
static pen_tensor_type position_type(const pen_position_copy *c, pen_value_id output,
                                     uint32_t axis) {
    pen_tensor_type type = *pen_value_type(c->graph, output);
    type.shape.dims[axis] = 1;
    return type;
}

// The operands: one position of those that are read so.
static pen_status position_inputs(pen_position_copy *c, pen_node_id id, uint32_t axis,
                                  pen_value_id *inputs) {
    const pen_node *node = pen_graph_node(c->graph, id);
    if (node->op == PEN_OP(attention)) return pen_position_attention(c, id, axis, inputs);
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = PEN_VALUE_NONE;
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_axis_link link = pen_node_axis_link(c->graph, node, axis, i);
        inputs[i] = c->copy.values[node->inputs[i].index];
        if (link.reads != PEN_READS_SAME) continue;
        PEN_TRY(pen_position_row(c, id, node->inputs[i], link.axis, &inputs[i]));
    }
    return PEN_OK;
}

// Views and expansions say in an operand what shape they give.
static pen_status position_reshape(pen_position_copy *c, pen_node_id id, const pen_op *op,
                                   uint32_t axis, pen_value_id input) {
    const pen_value_id output = pen_graph_node(c->graph, id)->outputs[0];
    const pen_tensor_type type = position_type(c, output, axis);
    pen_value_id shape;
    PEN_TRY(pen_graph_constant_ints(c->copy.to, "shape", type.shape.rank, type.shape.dims, &shape));
    return pen_position_add(c, id, op, PEN_INPUTS(input, shape), PEN_NO_ATTRIBUTES,
                            &c->rows[output.index]);
}

// The node again, with operands of one position. Only an attention has a mask where it had none.
static pen_status position_repeat(pen_position_copy *c, pen_node_id id, const pen_value_id *inputs,
                                  uint32_t input_count) {
    const pen_node *node = pen_graph_node(c->graph, id);
    pen_node_spec spec;
    pen_node_id made;
    const char **names;
    PEN_TRY(PEN_NEW(pen_graph_arena(c->graph), node->output_count, &names));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) names[i] = pen_value_name(c->graph, node->outputs[i]);
    }
    PEN_TRY(pen_graph_copy_spec(&c->copy, id, node->op, node->name, &spec));
    spec.inputs = inputs;
    spec.input_count = input_count;
    spec.output_count = node->output_count;
    spec.output_names = names;
    PEN_TRY(pen_graph_copy_attributes(&c->copy, id, &spec));
    PEN_TRY(pen_graph_add_node(c->copy.to, &spec, &made));
    if (node->op == PEN_OP(attention)) pen_graph_set_int(c->copy.to, made, "causal", 0);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        c->rows[node->outputs[i].index] = pen_graph_node(c->copy.to, made)->outputs[i];
    }
    return PEN_OK;
}

// What the operators say of themselves is not believed: a position has the shape of a position.
static pen_status position_check(const pen_position_copy *c, pen_node_id id, uint32_t axis) {
    const pen_node *node = pen_graph_node(c->graph, id);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_tensor_type wanted = position_type(c, node->outputs[i], axis);
        const pen_tensor_type *type = pen_value_type(c->copy.to, c->rows[node->outputs[i].index]);
        if (pen_tensor_type_equal(type, &wanted)) continue;
        char found[PEN_SHAPE_TEXT_BYTES], text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_INTERNAL, "one position of %s '%s' is %s, expected %s", node->op->name,
                         node->name, pen_tensor_type_format(type, found),
                         pen_tensor_type_format(&wanted, text));
    }
    return PEN_OK;
}

// Operands that say a shape are made for the shape of one position; others steer what stays.
static pen_status position_node(pen_position_copy *c, pen_node_id id, uint32_t axis) {
    const pen_node *node = pen_graph_node(c->graph, id);
    const bool attends = node->op == PEN_OP(attention);
    pen_value_id *inputs;
    PEN_TRY(PEN_NEW(pen_graph_arena(c->graph), (size_t)node->input_count + 4, &inputs));
    PEN_TRY(position_inputs(c, id, axis, inputs));
    if (node->op->is_view) {
        PEN_TRY(position_reshape(c, id, PEN_OP(reshape), axis, inputs[0]));
    } else if (node->op == PEN_OP(expand)) {
        PEN_TRY(position_reshape(c, id, PEN_OP(expand), axis, inputs[0]));
    } else {
        const uint32_t count = !attends ? node->input_count : pen_value_is(inputs[3]) ? 4 : 3;
        PEN_TRY(position_repeat(c, id, inputs, count));
    }
    return position_check(c, id, axis);
}

// ---- the graph

// Inputs first: the token in the place of all, and the position.
static pen_status position_begin(pen_position_copy *c, const pen_causality_request *request) {
    const uint32_t value_count = pen_graph_value_count(c->graph);
    pen_arena *arena = pen_graph_arena(c->graph);
    const int64_t one = 1;
    bool *left_out;
    PEN_TRY(PEN_NEW(arena, value_count, &left_out));
    PEN_TRY(PEN_NEW(arena, value_count, &c->rows));
    PEN_TRY(PEN_NEW(arena, value_count, &c->states));
    for (uint32_t v = 0; v < value_count; v++) {
        c->rows[v] = c->states[v] = PEN_VALUE_NONE;
    }
    left_out[request->input.index] = true;
    PEN_TRY(pen_graph_copy_begin_without(c->graph, left_out, &c->copy));
    pen_value token = *pen_graph_value(c->graph, request->input);
    token.type.shape.dims[request->input_axis] = 1;
    const pen_value position = {.name = "position",
                                .kind = PEN_VALUE_INPUT,
                                .type = pen_tensor_type_make(PEN_INT64, 1, &one),
                                .replaces = PEN_VALUE_NONE};
    PEN_TRY(pen_graph_add_value(c->copy.to, &token, &c->rows[request->input.index]));
    return pen_graph_add_own_value(c->copy.to, &position, &c->position);
}

// A node may be there twice: whole, and for one position.
static pen_status position_copy_node(pen_position_copy *c, pen_node_id id) {
    const pen_node *node = pen_graph_node(c->graph, id);
    bool is_whole = false;
    uint32_t axis = PEN_AXIS_NONE;
    if (!pen_graph_copy_computes(c->graph, id)) return PEN_OK;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const uint32_t v = node->outputs[i].index;
        is_whole = is_whole || c->causality->is_whole[v];
        if (c->causality->axis[v] != PEN_AXIS_NONE) axis = c->causality->axis[v];
    }
    if (is_whole) PEN_TRY(pen_graph_copy_node(&c->copy, id));
    return axis == PEN_AXIS_NONE ? PEN_OK : position_node(c, id, axis);
}

// Nodes stand in order, so what a node reads is there. A value that is there both ways is told as
// one position.
pen_status pen_decode_position(const pen_graph *graph, const pen_causality_request *request,
                               const pen_causality *causality, pen_decoding *out_decoding) {
    pen_position_copy c = {.graph = graph, .causality = causality, .visible = PEN_VALUE_NONE};
    pen_value_id *states;
    PEN_TRY(position_begin(&c, request));
    PEN_TRY(PEN_NEW(pen_graph_arena(c.copy.to), causality->kept_count, &states));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        PEN_TRY(position_copy_node(&c, (pen_node_id){n}));
    }
    PEN_TRY(pen_graph_add_output(c.copy.to, c.rows[request->output.index]));
    for (uint32_t i = 0; i < causality->kept_count; i++) {
        states[i] = c.states[causality->kept[i].index];
    }
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        if (pen_value_is(c.rows[v])) c.copy.values[v] = c.rows[v];
    }
    *out_decoding = (pen_decoding){
        .graph = c.copy.to, .values = c.copy.values, .position = c.position, .states = states};
    return PEN_OK;
}
