// An error of a node that runs, told by what the user knows of it.
//
// Threads: any.
#ifndef PEN_GRAPH_NODE_BLAME_H
#define PEN_GRAPH_NODE_BLAME_H

#include "base/status.h"
#include "graph/graph.h"

// Adds "while running gather 'embedding'". Where it is data that are wrong (INVALID_INPUT), such as
// an index, they are whole numbers: then also which of these the node reads, ", which reads
// 'tokens'". Returns `status`. Does nothing to PEN_OK. No heap but that of the status.
PEN_NODISCARD pen_status pen_node_blame(const pen_graph *graph, const pen_node *node,
                                        pen_status status);

#endif // PEN_GRAPH_NODE_BLAME_H
