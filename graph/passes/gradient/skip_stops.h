// Lets readers of a stop_gradient read what it passes on, where that changes no gradient: then it
// costs nothing, and spellings of layers are found as if it were not there.
#ifndef PEN_GRAPH_PASSES_GRADIENT_SKIP_STOPS_H
#define PEN_GRAPH_PASSES_GRADIENT_SKIP_STOPS_H

#include "base/status.h"
#include "graph/graph_types.h"

// Before gradients are built: only where the gradient that is stopped is 0 anyway. That is so of
// the mean in a variance, mean((x - stop(mean(x)))²), over the same axes of the same x, as the sum
// of x - mean(x) is 0. Constants must be folded. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_skip_idle_stops(pen_graph *graph);

// When gradients were built, or none will be: everywhere. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_skip_stops(pen_graph *graph);

// Both change nodes of the graph; stops that nobody reads any more stay, for remove_dead.

#endif // PEN_GRAPH_PASSES_GRADIENT_SKIP_STOPS_H
