// Turns a model exported for training into one for inference: batch normalization uses the
// running statistics and leaves them alone, dropout passes everything through, recurrent nodes save
// nothing for a gradient.
#ifndef PEN_GRAPH_PASSES_SET_INFERENCE_H
#define PEN_GRAPH_PASSES_SET_INFERENCE_H

#include "base/status.h"
#include "graph/graph_types.h"

// Before shapes are inferred.
//   UNSUPPORTED  the model uses a statistic that only training gives
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_set_inference(pen_graph *graph);

// The same for one batch normalization.
PEN_NODISCARD pen_status pen_set_inference_normalization(pen_graph *graph, pen_node_id node);

#endif // PEN_GRAPH_PASSES_SET_INFERENCE_H
