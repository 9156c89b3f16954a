// Copies a graph node by node, for passes that make a new graph out of an old one.
//
// A pass begins a copy, which brings over all values that are not computed; walks the nodes of the
// old graph in order, and copies, leaves out or replaces each; and ends the copy, which brings over
// the outputs. The copy keeps names, roles, types, layouts, sources, symbols, what replaces what,
// and which nodes accumulate.
//
// Lifetime: the copy lives in an arena of its own (pen_graph_create_after) and borrows the same
// tensor bytes; what the pass itself needs, and its map, are in the arena of the old graph.
#ifndef PEN_GRAPH_PASSES_COPY_GRAPH_H
#define PEN_GRAPH_PASSES_COPY_GRAPH_H

#include "base/status.h"
#include "graph/graph_types.h"

typedef struct pen_graph_copy {
    const pen_graph *from;
    pen_graph *to;
    // What has become of the old graph's values and nodes, NONE until copied. A pass that replaces
    // nodes writes these itself.
    pen_value_id *values; // [value_count of from]
    pen_node_id *nodes;   // [node_count of from]
} pen_graph_copy;

PEN_NODISCARD pen_status pen_graph_copy_begin(const pen_graph *from, pen_graph_copy *out_copy);
// The same without the values `left_out[v]` ([value_count of from]).
PEN_NODISCARD pen_status pen_graph_copy_begin_without(const pen_graph *from, const bool *left_out,
                                                      pen_graph_copy *out_copy);

// Whether a node computes anything: folding leaves nodes behind whose results became constants.
bool pen_graph_copy_computes(const pen_graph *graph, pen_node_id node);

// Copies a node of the old graph with its outputs, in the copy under the same names. Its inputs
// must have been copied. Nodes that compute nothing are left out.
PEN_NODISCARD pen_status pen_graph_copy_node(pen_graph_copy *copy, pen_node_id node);

// The same, with operands of the caller's choice: `inputs` [input_count] are values of the new
// graph, `output_names` [output_count] stand in for the old ones (NULL: the old ones).
PEN_NODISCARD pen_status pen_graph_copy_node_as(pen_graph_copy *copy, pen_node_id node,
                                                const pen_value_id *inputs,
                                                const char *const *output_names);

// A spec for a new node in the copy that does the work of `node`, an old one: its role, source and
// the forward node that it is the gradient of.
PEN_NODISCARD pen_status pen_graph_copy_spec(const pen_graph_copy *copy, pen_node_id node,
                                             const pen_op *op, const char *name,
                                             pen_node_spec *out_spec);

// Gives a spec the attributes of `node`, an old one, that are present.
PEN_NODISCARD pen_status pen_graph_copy_attributes(const pen_graph_copy *copy, pen_node_id node,
                                                   pen_node_spec *spec);

// Says that `to`, in the new graph, is what `from` was, and carries over what `from` replaces.
void pen_graph_copy_value(pen_graph_copy *copy, pen_value_id from, pen_value_id to);

// Brings over the graph's outputs.
PEN_NODISCARD pen_status pen_graph_copy_end(pen_graph_copy *copy);

#endif // PEN_GRAPH_PASSES_COPY_GRAPH_H
