#include "graph/passes/decode/decode_attention.h"

#include <math.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

enum { ATTENTION_K = 1, ATTENTION_V = 2, ATTENTION_MASK = 3 };

// All positions of k or v: those that were kept, with that of the moment written among them.
static pen_status attention_kept(pen_position_copy *c, pen_node_id id, uint32_t input,
                                 pen_axis_link link, pen_value_id *out_value) {
    const pen_value_id value = pen_graph_node(c->graph, id)->inputs[input];
    if (link.reads != PEN_READS_EARLIER || !c->causality->follows[value.index]) {
        *out_value = c->copy.values[value.index];
        return PEN_OK;
    }
    *out_value = c->copy.values[value.index];
    if (pen_value_is(*out_value)) return PEN_OK; // another attention keeps it, too
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(c->copy.to), &name, "%s/kept",
                             pen_value_name(c->graph, value)));
    const pen_value state = {.name = name,
                             .kind = PEN_VALUE_STATE,
                             .type = *pen_value_type(c->graph, value),
                             .replaces = PEN_VALUE_NONE};
    pen_value_id *kept = &c->states[value.index], row;
    PEN_TRY(pen_graph_add_own_value(c->copy.to, &state, kept));
    PEN_TRY(pen_position_row(c, id, value, link.axis, &row));
    PEN_TRY(pen_position_add(c, id, PEN_OP(put_position), PEN_INPUTS(*kept, row, c->position),
                             PEN_WITH(pen_attribute_int("axis", link.axis)), out_value));
    pen_graph_set_replaces(c->copy.to, *out_value, *kept);
    c->copy.values[value.index] = *out_value;
    return PEN_OK;
}

// Whether each of `count` positions was written: those up to that of the moment.
static pen_status attention_visible(pen_position_copy *c, pen_node_id id, int64_t count,
                                    pen_value_id *out_visible) {
    if (!pen_value_is(c->visible) || c->visible_count != count) {
        int64_t *numbers;
        pen_value_id steps, later;
        PEN_TRY(PEN_NEW(pen_graph_tensor_arena(c->copy.to), (size_t)count, &numbers));
        for (int64_t i = 0; i < count; i++)
            numbers[i] = i;
        const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 1, &count);
        PEN_TRY(pen_graph_constant(c->copy.to, "positions", &type, numbers, &steps));
        PEN_TRY(pen_position_add(c, id, PEN_OP(less), PEN_INPUTS(c->position, steps),
                                 PEN_NO_ATTRIBUTES, &later));
        PEN_TRY(pen_position_add(c, id, PEN_OP(not ), PEN_INPUTS(later), PEN_NO_ATTRIBUTES,
                                 &c->visible));
        c->visible_count = count;
    }
    *out_visible = c->visible;
    return PEN_OK;
}

// The row of the mask, and what hides later positions where the mask does not.
static pen_status attention_mask(pen_position_copy *c, pen_node_id id, uint32_t axis, int64_t count,
                                 pen_value_id *mask) {
    const pen_node *node = pen_graph_node(c->graph, id);
    const bool has_mask =
        node->input_count > ATTENTION_MASK && pen_value_is(node->inputs[ATTENTION_MASK]);
    pen_value_id visible, hidden;
    *mask = PEN_VALUE_NONE;
    if (has_mask) {
        const pen_axis_link link = pen_node_axis_link(c->graph, node, axis, ATTENTION_MASK);
        const pen_value_id whole = node->inputs[ATTENTION_MASK];
        *mask = c->copy.values[whole.index];
        if (link.reads == PEN_READS_SAME) PEN_TRY(pen_position_row(c, id, whole, link.axis, mask));
    }
    if (pen_node_int(node, "causal") == 0) return PEN_OK; // it is the mask that hides them
    PEN_TRY(attention_visible(c, id, count, &visible));
    if (!has_mask) {
        *mask = visible;
        return PEN_OK;
    }
    const pen_element_type element = pen_value_type(c->copy.to, *mask)->element;
    if (element == PEN_BOOL && !pen_node_has(node, "fill")) {
        return pen_position_add(c, id, PEN_OP(and), PEN_INPUTS(*mask, visible), PEN_NO_ATTRIBUTES,
                                mask);
    }
    if (element == PEN_BOOL) {
        return pen_error(PEN_UNSUPPORTED,
                         "%s '%s' hides later positions, and others by a mask that gives their "
                         "scores a number",
                         node->op->name, node->name);
    }
    PEN_TRY(pen_graph_constant_number(c->copy.to, "hidden", element, (double)-INFINITY, &hidden));
    return pen_position_add(c, id, PEN_OP(where), PEN_INPUTS(visible, *mask, hidden),
                            PEN_NO_ATTRIBUTES, mask);
}

pen_status pen_position_attention(pen_position_copy *c, pen_node_id id, uint32_t axis,
                                  pen_value_id inputs[4]) {
    const pen_node *node = pen_graph_node(c->graph, id);
    const pen_axis_link q = pen_node_axis_link(c->graph, node, axis, 0);
    const pen_axis_link k = pen_node_axis_link(c->graph, node, axis, ATTENTION_K);
    const pen_axis_link v = pen_node_axis_link(c->graph, node, axis, ATTENTION_V);
    PEN_TRY(pen_position_row(c, id, node->inputs[0], q.axis, &inputs[0]));
    PEN_TRY(attention_kept(c, id, ATTENTION_K, k, &inputs[ATTENTION_K]));
    PEN_TRY(attention_kept(c, id, ATTENTION_V, v, &inputs[ATTENTION_V]));
    const pen_shape *keys = &pen_value_type(c->graph, node->inputs[ATTENTION_K])->shape;
    return attention_mask(c, id, axis, keys->dims[k.axis], &inputs[ATTENTION_MASK]);
}
