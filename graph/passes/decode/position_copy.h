// A copy of a graph in the making that has one position: what the files of this folder share.
#ifndef PEN_GRAPH_PASSES_DECODE_POSITION_COPY_H
#define PEN_GRAPH_PASSES_DECODE_POSITION_COPY_H

#include "graph/analysis/causality.h"
#include "graph/node_parts.h"
#include "graph/passes/copy_graph.h"

typedef struct pen_position_copy {
    const pen_graph *graph;
    const pen_causality *causality;
    pen_graph_copy copy;  // what is whole
    pen_value_id *rows;   // [value_count]: one position along its axis; NONE
    pen_value_id *states; // [value_count]: what is kept of it; NONE
    pen_value_id position;
    // Of what is kept, [positions]: whether it was written; made at the first use, for a count.
    pen_value_id visible;
    int64_t visible_count;
} pen_position_copy;

// Adds a node of one output that does some of the work of `node`, an old one.
PEN_NODISCARD pen_status pen_position_add(pen_position_copy *c, pen_node_id node, const pen_op *op,
                                          pen_node_inputs inputs, pen_node_attributes attributes,
                                          pen_value_id *out_value);
// One position along `axis` of an old value that `node` reads.
PEN_NODISCARD pen_status pen_position_row(pen_position_copy *c, pen_node_id node,
                                          pen_value_id value, uint32_t axis, pen_value_id *out_row);

#endif // PEN_GRAPH_PASSES_DECODE_POSITION_COPY_H
