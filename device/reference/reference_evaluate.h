// Runs one node on the reference kernels with operands that are constants: what pen_infer_shapes
// folds with.
#ifndef PEN_DEVICE_REFERENCE_REFERENCE_EVALUATE_H
#define PEN_DEVICE_REFERENCE_REFERENCE_EVALUATE_H

#include "base/status.h"
#include "graph/graph_types.h"

// A pen_evaluate_fn; `context` is not used. Inputs that are not constant have a type only: for
// ops that look at nothing else. UNSUPPORTED when there is no kernel for the op.
PEN_NODISCARD pen_status pen_reference_evaluate(void *context, const pen_graph *graph,
                                                pen_node_id node, void *const *out_data);

#endif // PEN_DEVICE_REFERENCE_REFERENCE_EVALUATE_H
