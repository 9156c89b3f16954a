#include "graph/passes/decode/position_copy.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

pen_status pen_position_add(pen_position_copy *c, pen_node_id node, const pen_op *op,
                            pen_node_inputs inputs, pen_node_attributes attributes,
                            pen_value_id *out_value) {
    pen_node_spec spec;
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(c->copy.to), &name, "%s/%s",
                             pen_node_name(c->graph, node), op->name));
    PEN_TRY(pen_graph_copy_spec(&c->copy, node, op, name, &spec));
    pen_node_spec_fill(&spec, inputs, attributes);
    return pen_graph_add_simple(c->copy.to, &spec, out_value);
}

pen_status pen_position_row(pen_position_copy *c, pen_node_id node, pen_value_id value,
                            uint32_t axis, pen_value_id *out_row) {
    const bool is_own = c->causality->axis[value.index] == axis;
    if (is_own && pen_value_is(c->rows[value.index])) {
        *out_row = c->rows[value.index];
        return PEN_OK;
    }
    const pen_value_id whole = c->copy.values[value.index];
    PEN_TRY(pen_position_add(c, node, PEN_OP(gather), PEN_INPUTS(whole, c->position),
                             PEN_WITH(pen_attribute_int("axis", axis)), out_row));
    if (is_own) c->rows[value.index] = *out_row;
    return PEN_OK;
}
