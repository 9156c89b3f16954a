// Leaves out nodes whose results nobody needs.
//
// Needed are the outputs of the graph, the values asked for, and values that replace parameters or
// states; and whatever they are computed from. Inputs, scalars, parameters and states all stay,
// read or not; constants stay where they are read. Nodes whose results were folded go.
#ifndef PEN_GRAPH_PASSES_REMOVE_DEAD_H
#define PEN_GRAPH_PASSES_REMOVE_DEAD_H

#include "base/status.h"
#include "graph/graph_types.h"

// A new graph in the same arena, in the same order. `kept` are values to keep beside those above.
// out_values[v] is the new id of value v of `graph`, PEN_VALUE_NONE where it went
// ([value count of graph]). OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_remove_dead(const pen_graph *graph, uint32_t kept_count,
                                         const pen_value_id *kept, pen_graph **out_graph,
                                         const pen_value_id **out_values);

// The same where outputs are no results, as in a training: of them only those stay that the rest
// needs, and then they are outputs still. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_remove_idle(const pen_graph *graph, uint32_t kept_count,
                                         const pen_value_id *kept, pen_graph **out_graph,
                                         const pen_value_id **out_values);

#endif // PEN_GRAPH_PASSES_REMOVE_DEAD_H
