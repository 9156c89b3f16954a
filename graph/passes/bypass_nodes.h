// Lets readers of nodes that change nothing read what those pass on.
#ifndef PEN_GRAPH_PASSES_BYPASS_NODES_H
#define PEN_GRAPH_PASSES_BYPASS_NODES_H

#include <stdbool.h>

#include "base/status.h"
#include "graph/graph_types.h"

// Whoever reads the first result of a node that `is_idle` ([node count]) reads its first operand
// instead, also across several such nodes in a row. The nodes stay, for remove_dead.
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_bypass_nodes(pen_graph *graph, const bool *is_idle);

#endif // PEN_GRAPH_PASSES_BYPASS_NODES_H
