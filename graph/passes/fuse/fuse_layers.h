// The contract of the rules that fuse layers. Finds layers that exporters write as several nodes,
// and makes one operator of each, which reads and writes less and keeps less for the backward pass:
//
//   (x - mean) / sqrt(variance + epsilon) * scale + bias    → layer_normalization
//   x * m + (bias - mean * m), m = scale / sqrt(…)          → the same
//   x / sqrt(mean of x² + epsilon) * scale                  → rms_normalization
//   instance_normalization between reshapes, * scale + bias → group_normalization, or, of rows,
//                                                             layer_normalization
//   x times the normal distribution, by erf or by tanh      → gelu
//   x times sigmoid(alpha x)                                → swish
//   x times (x / 6 + 1/2 held between 0 and 1)              → hard_swish
//
// Powers may be written as products, divisions as products with reciprocals, operands in either
// order, with casts and identities that change nothing in between. A spelling is left alone where
// somebody else reads a value in the middle of it. The fused node stands where the last of its
// nodes stood, under that one's name, and its result keeps its name.
//
// Run it when shapes are inferred and constants folded, and before gradients are built. What
// becomes superfluous stays, unread; remove_dead drops it.
#ifndef PEN_GRAPH_PASSES_FUSE_FUSE_LAYERS_H
#define PEN_GRAPH_PASSES_FUSE_FUSE_LAYERS_H

#include "graph/passes/fuse/fuse_match.h"

// `kept` are values to keep. *out_graph is `graph` itself, and *out_values NULL, where nothing was
// found; else a new graph in the same arena, and out_values[v] the new id of value v of `graph`
// ([value count of graph]). OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_fuse_layers(pen_graph *graph, uint32_t kept_count,
                                         const pen_value_id *kept, pen_graph **out_graph,
                                         const pen_value_id **out_values);

// The rules, tried in this order.
bool pen_fuse_layer_norm(pen_fuse_match *match, pen_node_id anchor); // fuse_layer_norm.c
bool pen_fuse_affine_norm(pen_fuse_match *match, pen_node_id anchor);
bool pen_fuse_group_norm(pen_fuse_match *match, pen_node_id anchor);
bool pen_fuse_row_norm(pen_fuse_match *match, pen_node_id anchor); // fuse_layer_norm.c
bool pen_fuse_gelu(pen_fuse_match *match, pen_node_id anchor);     // fuse_gelu.c

#endif // PEN_GRAPH_PASSES_FUSE_FUSE_LAYERS_H
