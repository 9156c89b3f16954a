// What the rules of elementwise families share: sets of element types, types of results that have
// the shape of their operands, and small backward nodes.
//
// Threads: as the graph of the context.
#ifndef PEN_GRAPH_OPS_ELEMENTWISE_ELEMENTWISE_RULE_H
#define PEN_GRAPH_OPS_ELEMENTWISE_ELEMENTWISE_RULE_H

#include <stdint.h>

#include "base/status.h"
#include "graph/op.h"
#include "graph/ops/shared/infer_checks.h"

// Shape rules of one operand whose output has its type: floating; signed; any number. INVALID_INPUT
PEN_NODISCARD pen_status pen_infer_float_map(pen_infer_context *context);
PEN_NODISCARD pen_status pen_infer_signed_map(pen_infer_context *context);
PEN_NODISCARD pen_status pen_infer_number_map(pen_infer_context *context);

// Shape rule of backward ops whose operands all have the type of the output, a floating one.
PEN_NODISCARD pen_status pen_infer_alike(pen_infer_context *context);

// The common shape of inputs `first` and up under NumPy's broadcasting. INVALID_INPUT
PEN_NODISCARD pen_status pen_infer_broadcast(const pen_infer_context *context, uint32_t first,
                                             pen_shape *out_shape);

// Checks that input `input` broadcasts to `shape` without changing it. INVALID_INPUT
PEN_NODISCARD pen_status pen_infer_broadcasts_to(const pen_infer_context *context, uint32_t input,
                                                 const pen_shape *shape);

// Checks that inputs `first` and up have an element type of `elements`, all the same. INVALID_INPUT
PEN_NODISCARD pen_status pen_infer_same_elements(const pen_infer_context *context, uint32_t first,
                                                 uint32_t elements);

// Gradient rule of ops whose derivative is 0 wherever there is one: no gradient flows.
PEN_NODISCARD pen_status pen_gradient_is_zero(pen_gradient_context *context);

// A backward node `op_name` of two operands (one, if `b` is PEN_VALUE_NONE) on the way to the
// gradient of input `for_input`.
PEN_NODISCARD pen_status pen_gradient_apply(pen_gradient_context *context, uint32_t for_input,
                                            const char *op_name, pen_value_id a, pen_value_id b,
                                            pen_value_id *out_output);

// Sums `gradient` to the shape of input `for_input` and sets it.
PEN_NODISCARD pen_status pen_gradient_set_summed(pen_gradient_context *context, uint32_t for_input,
                                                 pen_value_id gradient);

// Gradient rules of ops with one floating operand and a backward op "<name>_backward" of the same
// attributes that takes the output's gradient and the operand, or the output's and the output.
PEN_NODISCARD pen_status pen_gradient_from_input(pen_gradient_context *context);
PEN_NODISCARD pen_status pen_gradient_from_output(pen_gradient_context *context);

// flops: one for each element of output 0, or of input 0.
uint64_t pen_flops_of_output(const pen_graph *graph, pen_node_id node);
uint64_t pen_flops_of_input(const pen_graph *graph, pen_node_id node);

#endif // PEN_GRAPH_OPS_ELEMENTWISE_ELEMENTWISE_RULE_H
