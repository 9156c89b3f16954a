// Cuts layers that are too large for a device: their parameters become slices, each a parameter of
// its own (graph/tensor_slice.h), and their nodes one node for each slice, wherever that runs.
//
// What can be cut: products of activations with a parameter of two dimensions (matmul, gemm), and
// embeddings (a gather of rows of one). A product whose input is whole is cut by columns: its
// output is in pieces. Nodes that follow keep these pieces as long as they can: what goes element
// by element, views and transposes, splits along other axes or into equal blocks, attention by
// heads, dropout. A product that reads pieces along its rows, and has at least as many of these as
// columns, is cut by rows: the pieces' products are added, ((0 + 1) + 2) + 3, and then the bias. A
// softmax over classes that are in pieces, with its loss and its count of right answers, goes by
// pieces, too. Whoever else reads pieces reads them put together.
//
// Cutting by columns changes no bit of the forward pass; sums over pieces, and so gradients, round
// otherwise. Pieces draw random numbers of their own.
//
// Pieces of a node N are N/shard0, N/shard1, …; their sums N/sum1, …
#ifndef PEN_GRAPH_PASSES_SHARD_SHARD_LAYERS_H
#define PEN_GRAPH_PASSES_SHARD_SHARD_LAYERS_H

#include "base/status.h"
#include "graph/graph_types.h"

// Whether a node can be cut by itself.
bool pen_shard_can_cut(const pen_graph *graph, pen_node_id node);

// Cuts node n of a typed graph into `ways[n]` ([node_count]; 0: it stays) pieces, which differ in
// size by one where they do not divide evenly. Attention heads are not cut: pieces have whole ones
// where there are enough. `out_values` as of any rewrite; NONE of parameters that were cut.
//   INVALID_INPUT  a node cannot be cut, or has less to cut than `ways`; two that read a parameter
//                  would cut it otherwise, or one of them not at all. Says which
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_shard_nodes(const pen_graph *graph, const uint32_t *ways,
                                         uint32_t kept_count, const pen_value_id *kept,
                                         pen_graph **out_graph, const pen_value_id **out_values);

#endif // PEN_GRAPH_PASSES_SHARD_SHARD_LAYERS_H
