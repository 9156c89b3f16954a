// Fuses batch normalisation with what follows it in residual networks, to read and write large
// activations fewer times:
//
//   relu(batch_normalization(x))             → batch_normalization_relu
//   relu(batch_normalization(x) + residual)  → batch_normalization_add_relu
//   and in the backward pass
//   batch_normalization_backward(relu_backward(dy, y), x)
//       → batch_normalization_relu_backward: y is no longer read
//       → batch_normalization_add_relu_backward, with an addition that made dy (a gradient of two
//         readers) taken in
//
// A forward chain is fused where nobody else reads what lies between; a backward chain likewise,
// but the gradient behind relu may also go to the residual. Run it after the gradients are built,
// and before layouts are assigned.
#ifndef PEN_GRAPH_PASSES_FUSE_FUSE_NORMALIZATION_H
#define PEN_GRAPH_PASSES_FUSE_FUSE_NORMALIZATION_H

#include "base/status.h"
#include "graph/graph_types.h"

// A new graph in the same arena. `kept` are values to keep. out_values[v] is the new id of value v
// of `graph`, PEN_VALUE_NONE where it went ([value count of graph]). OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_fuse_normalization(const pen_graph *graph, uint32_t kept_count,
                                                const pen_value_id *kept, pen_graph **out_graph,
                                                const pen_value_id **out_values);

#endif // PEN_GRAPH_PASSES_FUSE_FUSE_NORMALIZATION_H
