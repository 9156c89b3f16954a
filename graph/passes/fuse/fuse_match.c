#include "graph/passes/fuse/fuse_match.h"

#include <math.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/copy_graph.h"

pen_fuse_match pen_fuse_match_begin(const pen_graph *graph, const pen_readers *readers) {
    return (pen_fuse_match){.graph = graph, .readers = readers, .last = PEN_NODE_NONE};
}

static void match_add(pen_fuse_match *match, pen_node_id node, bool passes) {
    for (uint32_t i = 0; i < match->node_count; i++) {
        if (match->nodes[i].index == node.index) return;
    }
    if (match->node_count == PEN_FUSE_NODE_LIMIT) {
        match->is_full = true;
        return;
    }
    match->nodes[match->node_count] = node;
    match->passes[match->node_count++] = passes;
}

void pen_fuse_join(pen_fuse_match *match, pen_node_id node) {
    match_add(match, node, false);
}

static bool match_holds(const pen_fuse_match *match, pen_node_id node) {
    for (uint32_t i = 0; i < match->node_count; i++) {
        if (match->nodes[i].index == node.index) return true;
    }
    return false;
}

static bool match_value_is_inside(const pen_fuse_match *match, pen_value_id value) {
    const pen_readers *readers = match->readers;
    if (readers->is_visible[value.index]) return false;
    for (uint32_t i = readers->first[value.index]; i < readers->first[value.index + 1]; i++) {
        const pen_node_id reader = readers->nodes[i];
        if (!match_holds(match, reader) && pen_graph_copy_computes(match->graph, reader)) {
            return false;
        }
    }
    return true;
}

bool pen_fuse_is_closed(const pen_fuse_match *match) {
    if (match->is_full) return false;
    for (uint32_t i = 0; i < match->node_count; i++) {
        const pen_node *node = pen_graph_node(match->graph, match->nodes[i]);
        if (match->passes[i] || match->nodes[i].index == match->last.index) continue;
        if (node->role != PEN_ROLE_FORWARD || node->accumulates) return false;
        for (uint32_t k = 0; k < node->output_count; k++) {
            if (pen_value_is(node->outputs[k]) && !match_value_is_inside(match, node->outputs[k])) {
                return false;
            }
        }
    }
    return true;
}

// Whether a node's output is its operand.
static bool match_passes(const pen_fuse_match *match, pen_node_id id) {
    const pen_node *node = pen_graph_node(match->graph, id);
    if (node->op != PEN_OP(identity) && node->op != PEN_OP(cast)) {
        return false;
    }
    return pen_tensor_type_equal(pen_value_type(match->graph, node->inputs[0]),
                                 pen_value_type(match->graph, node->outputs[0]));
}

pen_value_id pen_fuse_behind(pen_fuse_match *match, pen_value_id value) {
    for (;;) {
        const pen_value *found = pen_graph_value(match->graph, value);
        if (found->kind != PEN_VALUE_COMPUTED || !match_passes(match, found->producer) ||
            match->is_full) {
            return value;
        }
        match_add(match, found->producer, true);
        value = pen_graph_node(match->graph, found->producer)->inputs[0];
    }
}

bool pen_fuse_same(pen_fuse_match *match, pen_value_id a, pen_value_id b) {
    return pen_value_same(pen_fuse_behind(match, a), pen_fuse_behind(match, b));
}

bool pen_fuse_is(const pen_fuse_match *match, pen_node_id node, const pen_op *op) {
    return pen_node_is(node) && pen_graph_node(match->graph, node)->op == op;
}

pen_node_id pen_fuse_made_by(pen_fuse_match *match, pen_value_id value, const pen_op *op) {
    if (!pen_value_is(value)) return PEN_NODE_NONE;
    const pen_value *found = pen_graph_value(match->graph, pen_fuse_behind(match, value));
    if (found->kind != PEN_VALUE_COMPUTED || found->producer_output != 0) return PEN_NODE_NONE;
    if (!pen_fuse_is(match, found->producer, op)) return PEN_NODE_NONE;
    pen_fuse_join(match, found->producer);
    return found->producer;
}

// The only node that reads `value` and computes anything.
static pen_node_id match_only_reader(const pen_fuse_match *match, pen_value_id value) {
    const pen_readers *readers = match->readers;
    pen_node_id only = PEN_NODE_NONE;
    if (readers->is_visible[value.index]) return PEN_NODE_NONE;
    for (uint32_t i = readers->first[value.index]; i < readers->first[value.index + 1]; i++) {
        const pen_node_id reader = readers->nodes[i];
        if (!pen_graph_copy_computes(match->graph, reader)) continue;
        if (pen_node_is(only)) return PEN_NODE_NONE;
        only = reader;
    }
    return only;
}

pen_node_id pen_fuse_reader(pen_fuse_match *match, pen_value_id value, pen_value_id *out_value) {
    pen_node_id reader = match_only_reader(match, value);
    while (pen_node_is(reader) && !match->is_full && match_passes(match, reader)) {
        match_add(match, reader, true);
        value = pen_fuse_output(match, reader);
        reader = match_only_reader(match, value);
    }
    *out_value = value;
    return reader;
}

pen_value_id pen_fuse_input(const pen_fuse_match *match, pen_node_id id, uint32_t input) {
    const pen_node *node = pen_graph_node(match->graph, id);
    return input < node->input_count ? node->inputs[input] : PEN_VALUE_NONE;
}

pen_value_id pen_fuse_output(const pen_fuse_match *match, pen_node_id node) {
    return pen_graph_node(match->graph, node)->outputs[0];
}

const pen_tensor_type *pen_fuse_type(const pen_fuse_match *match, pen_value_id value) {
    return pen_value_type(match->graph, value);
}

bool pen_fuse_number(pen_fuse_match *match, pen_value_id value, double *out_number) {
    if (!pen_value_is(value)) return false;
    value = pen_fuse_behind(match, value);
    const pen_value *found = pen_graph_value(match->graph, value);
    if (found->kind != PEN_VALUE_CONSTANT || found->data == NULL) return false;
    if (pen_shape_element_count(&found->type.shape) != 1) return false;
    if (found->type.element != PEN_FLOAT32 && found->type.element != PEN_FLOAT64 &&
        !pen_element_is_integer(found->type.element)) {
        return false;
    }
    const pen_status status = pen_value_read_number(match->graph, value, out_number);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "what cannot be read is no number");
    return false;
}

bool pen_fuse_near(double found, double number) {
    return fabs(found - number) <= 1e-5 * fabs(number);
}

bool pen_fuse_is_number(pen_fuse_match *match, pen_value_id value, double number) {
    double found;
    return pen_fuse_number(match, value, &found) && pen_fuse_near(found, number);
}

pen_value_id pen_fuse_other(pen_fuse_match *match, pen_node_id node, pen_value_id value) {
    const pen_value_id first = pen_fuse_input(match, node, 0);
    return pen_fuse_same(match, first, value) ? pen_fuse_input(match, node, 1) : first;
}
