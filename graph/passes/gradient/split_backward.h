// Tells the two halves of the backward pass apart, so that schedules may use them apart.
//
// The input half computes gradients of activations: what the stage before waits for. The weight
// half computes gradients of parameters, which only the update needs. A backward node belongs to
// the weight half when all that reads it is updates, or the weight half of the same forward node
// (or sums that belong to none); everything else of the backward pass is the input half. A node
// that nobody reads keeps the half its gradient rule gave it.
#ifndef PEN_GRAPH_PASSES_GRADIENT_SPLIT_BACKWARD_H
#define PEN_GRAPH_PASSES_GRADIENT_SPLIT_BACKWARD_H

#include "base/status.h"
#include "graph/graph_types.h"

// Sets the roles of backward nodes. Afterwards no node of the input half reads one of the weight
// half. INTERNAL: a forward node reads a gradient. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_split_backward(pen_graph *graph);

#endif // PEN_GRAPH_PASSES_GRADIENT_SPLIT_BACKWARD_H
