// Writes einsums as sums, transposes, reshapes and matrix products, of which devices have fast
// kernels, gradients are built, and other passes find larger patterns.
//
// Operands are taken in from the left, one by one: labels that are in neither of the two others
// (the next operand, and what is still to come) are summed first; those that both have and nothing
// later wants are the inner dimension of a product; where there are none, the product is
// elementwise. An einsum over a diagonal, over integers, or with intermediate results of more
// dimensions than tensors may have, stays as it is.
#ifndef PEN_GRAPH_PASSES_FUSE_LOWER_EINSUM_H
#define PEN_GRAPH_PASSES_FUSE_LOWER_EINSUM_H

#include "base/status.h"
#include "graph/graph_types.h"

// `graph` is typed, and without gradients. *out_graph is `graph` itself, and *out_values NULL,
// where there is no einsum; else a new graph in the same arena, and out_values[v] the new id of
// value v of `graph` ([value count of graph]). OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_lower_einsum(pen_graph *graph, pen_graph **out_graph,
                                          const pen_value_id **out_values);

#endif // PEN_GRAPH_PASSES_FUSE_LOWER_EINSUM_H
