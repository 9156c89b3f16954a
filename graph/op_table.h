// The families of operators. Each is defined in its file in graph/ops/.
#ifndef PEN_GRAPH_OP_TABLE_H
#define PEN_GRAPH_OP_TABLE_H

#include "graph/op.h"

extern const pen_op_family pen_elementwise_family;   // elementwise_op.c: arithmetic, extrema
extern const pen_op_family pen_unary_family;         // unary_op.c: abs, exp, sin …
extern const pen_op_family pen_activation_family;    // activation_op.c: relu, sigmoid, clip …
extern const pen_op_family pen_gelu_family;          // gelu_op.c: gelu, swish
extern const pen_op_family pen_comparison_family;    // comparison_op.c: equal, less, not, where …
extern const pen_op_family pen_reduction_family;     // reduction_op.c
extern const pen_op_family pen_recurrent_family;     // recurrent_op.c: lstm, gru, rnn
extern const pen_op_family pen_softmax_family;       // softmax_op.c
extern const pen_op_family pen_loss_family;          // loss_op.c
extern const pen_op_family pen_matmul_family;        // matmul_op.c: matmul, gemm
extern const pen_op_family pen_convolution_family;   // convolution_op.c
extern const pen_op_family pen_pooling_family;       // pooling_op.c
extern const pen_op_family pen_normalization_family; // normalization_op.c: batch, local response
extern const pen_op_family pen_layer_norm_family;    // layer_norm_op.c: layer, instance, group …
extern const pen_op_family pen_dropout_family;       // dropout_op.c
extern const pen_op_family pen_reshape_family;       // reshape_op.c: same bytes, other shape
extern const pen_op_family pen_movement_family;      // movement_op.c: concat, split, transpose …
extern const pen_op_family pen_slice_family;         // slice_op.c: slice, pad
extern const pen_op_family pen_indexing_family;      // indexing_op.c: gather, scatter
extern const pen_op_family pen_constant_family;      // constant_op.c: shape, range, cast …
extern const pen_op_family pen_optimizer_family;     // optimizer_op.c
extern const pen_op_family pen_attention_family;     // attention_op.c
extern const pen_op_family pen_transfer_family;      // transfer_op.c: reorder
extern const pen_op_family pen_series_family;        // series_op.c: trilu, cum_sum …
extern const pen_op_family pen_selection_family;     // selection_op.c: top_k, compress, unique …
extern const pen_op_family pen_einsum_family;        // einsum_op.c
extern const pen_op_family pen_resize_family;        // resize_op.c: resize, grid_sample, roi_align
extern const pen_op_family pen_quantization_family;  // quantization_op.c: small integers
extern const pen_op_family pen_random_family;   // random_op.c: bernoulli, multinomial, random_…
extern const pen_op_family pen_spectrum_family; // spectrum_op.c: dft, windows
extern const pen_op_family pen_unpool_family;   // unpool_op.c: max_unpool
extern const pen_op_family pen_tree_family; // tree_op.c: tree_sum tree_total rows_total fold_rows
extern const pen_op_family pen_version_family; // version_op.c: asynchronous lanes

#endif // PEN_GRAPH_OP_TABLE_H
