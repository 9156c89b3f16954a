// Chooses how values lie in memory, and puts `reorder` nodes where neighbours differ.
//
// Only a device knows which layouts its kernels like; it says so through rules, and this pass
// walks the graph once in order: each node sees the layouts its inputs have, says which it wants
// and which its outputs will have. A reorder is made once per value and layout, however many
// nodes want it.
#ifndef PEN_GRAPH_PASSES_ASSIGN_LAYOUTS_H
#define PEN_GRAPH_PASSES_ASSIGN_LAYOUTS_H

#include "base/status.h"
#include "graph/graph_types.h"

typedef struct pen_layout_rules {
    void *context;
    // `inputs` holds the layouts the inputs have, [node's input_count], and is overwritten with
    // those wanted; `outputs`, [node's output_count], starts as plain.
    pen_status (*choose)(void *context, const pen_graph *graph, pen_node_id node,
                         pen_layout *inputs, pen_layout *outputs);
} pen_layout_rules;

// A new graph, in the same arena, with layouts set and reorders put in. Inputs, scalars,
// parameters, states, constants and outputs of the graph stay plain, as do values that replace
// persistent ones. `out_values[v]` is the new id of value v ([value_count of graph], arena).
PEN_NODISCARD pen_status pen_assign_layouts(const pen_graph *graph, const pen_layout_rules *rules,
                                            pen_graph **out_graph, const pen_value_id **out_values);

#endif // PEN_GRAPH_PASSES_ASSIGN_LAYOUTS_H
