// Computes each thing once: of nodes with the same op, role, attributes and operands, the first
// stays and stands for the others. Constants with the same bytes are one.
//
// Left as they are: random nodes, nodes that accumulate, and nodes of which a result is an output
// of the graph, a value asked for, or the replacement of a parameter or state: those are known by
// their names.
#ifndef PEN_GRAPH_PASSES_MERGE_DUPLICATES_H
#define PEN_GRAPH_PASSES_MERGE_DUPLICATES_H

#include "base/status.h"
#include "graph/graph_types.h"

// A new graph in the same arena, in the same order. `kept` are values to keep under their names.
// out_values[v] is the new id of value v of `graph` ([value count of graph]): that of the value
// that stands for it. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_merge_duplicates(const pen_graph *graph, uint32_t kept_count,
                                              const pen_value_id *kept, pen_graph **out_graph,
                                              const pen_value_id **out_values);

#endif // PEN_GRAPH_PASSES_MERGE_DUPLICATES_H
