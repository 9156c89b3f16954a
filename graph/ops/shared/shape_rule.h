// What shape rules of several families share.
//
// Threads: as the graph of the context.
#ifndef PEN_GRAPH_OPS_SHARED_SHAPE_RULE_H
#define PEN_GRAPH_OPS_SHARED_SHAPE_RULE_H

#include <stdint.h>

#include "base/status.h"
#include "graph/op.h"
#include "graph/ops/shared/gradient_rule.h"

// Turns an error of a function that does not know the node into one that begins with it. Takes
// `status`; PEN_OK stays PEN_OK.
PEN_NODISCARD pen_status pen_infer_wrap(const pen_infer_context *context, pen_status status);

// pen_shape_axis with an error that names the node. INVALID_INPUT
PEN_NODISCARD pen_status pen_infer_axis(const pen_infer_context *context, uint32_t rank,
                                        int64_t axis, uint32_t *out_axis);

// Checks that input `input` has the element type of input 0. INVALID_INPUT names both.
PEN_NODISCARD pen_status pen_infer_same_element(const pen_infer_context *context, uint32_t input);

// The dimensions that constant input `input` says. INVALID_INPUT: more than PEN_RANK_LIMIT
PEN_NODISCARD pen_status pen_infer_dims(const pen_infer_context *context, uint32_t input,
                                        uint32_t *out_rank, const int64_t **out_dims);

// The element type of input 0 and the shape in the ints attribute `name` (the shape of a forward
// operand that a backward op no longer sees). INVALID_INPUT: more than PEN_RANK_LIMIT numbers.
PEN_NODISCARD pen_status pen_infer_shape_attribute(const pen_infer_context *context,
                                                   const char *name, pen_tensor_type *out_type);

// `bytes` of ops that read as much of their operands as they write: twice the outputs.
uint64_t pen_bytes_moved(const pen_graph *graph, pen_node_id node);

#endif // PEN_GRAPH_OPS_SHARED_SHAPE_RULE_H
