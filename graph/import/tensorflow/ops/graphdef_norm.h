// Batch normalization of TensorFlow, in one node or in several, as it is and in training.
//
// The statistics of a graph for serving are constants. In training mode (model: train_batch_norm)
// they are states: nodes whose scale or offset is trained take the batch's, and replace them. Keras
// normalises all but images by Mul, Rsqrt and Sub; that is recognised in training mode.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_NORM_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_NORM_H

#include <stdbool.h>

#include "graph/import/tensorflow/graphdef_convert.h"
#include "graph/import/tensorflow/graphdef_match.h"

// x * m + (offset - mean * m), m = scale / sqrt(variance + epsilon)
typedef struct pen_graphdef_norm {
    pen_graphdef_place x, mean, variance, epsilon;
    pen_graphdef_place scale, offset; // node UINT32_MAX: there is none
} pen_graphdef_norm;

// Whether node `n` is the last one of those.
bool pen_graphdef_norm_match(const pen_graphdef_block *block, uint32_t n,
                             pen_graphdef_norm *out_norm);

// Puts one node in their place; `results` [node][output] is what the block's nodes gave.
// *out_is_done: false where they are better left alone.
PEN_NODISCARD pen_status pen_graphdef_norm_convert(pen_graphdef_result ***results,
                                                   const pen_graphdef_norm *norm,
                                                   pen_graphdef_draft *draft, bool *out_is_done);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_OPS_GRAPHDEF_NORM_H
