// What the rules of elementwise families share: sets of element types, and types of results that
// have the shape of their operands.
//
// Threads: as the graph of the context.
#ifndef PEN_GRAPH_OPS_ELEMENTWISE_ELEMENTWISE_RULE_H
#define PEN_GRAPH_OPS_ELEMENTWISE_ELEMENTWISE_RULE_H

#include <stdint.h>

#include "base/status.h"
#include "graph/op.h"
#include "graph/ops/shared/gradient_rule.h"
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

// Rows of an op of one operand, and of its backward op "<name>_backward", which takes the gradient
// of the output and one more operand: "input", or "output" where the derivative can be had from
// that (then the input may be overwritten in place). `facts` says what holds of the op, and which
// of both keeps zeros (graph/op.h).
enum {
    PEN_MAP_PLAIN = 0,
    PEN_MAP_ZEROS = 1,
    PEN_MAP_ZEROS_BACK = 2,
    PEN_MAP_ZEROS_BOTH = 3,
    PEN_MAP_POSITIVE = 4,
    PEN_MAP_RECTIFIES = 8,
};
#define PEN_MAP_OP(op, does, infer_rule, gradient_rule, facts, schema, count)                      \
    {                                                                                              \
        .name = #op, .summary = does, PEN_TAKES(1, 1), PEN_GIVES(1, 1), .attributes = schema,      \
        .attribute_count = count, .in_place_inputs = 1, .infer = infer_rule,                       \
        .gradient = gradient_rule, .output_flops = 1, .is_elementwise = true,                      \
        .keeps_zeros = ((facts)&1) != 0, .wants_positive = ((facts)&4) != 0,                       \
        .rectifies = ((facts)&8) != 0                                                              \
    }
#define PEN_MAP_BACKWARD(op, operand, facts, schema, count)                                        \
    {                                                                                              \
        .name = #op "_backward",                                                                   \
        .summary = "gradient of " #op " from that of its output, and its " operand,                \
        PEN_TAKES(2, 2), PEN_GIVES(1, 1), .attributes = schema, .attribute_count = count,          \
        .in_place_inputs = 3, .infer = pen_infer_alike, .output_flops = 1,                         \
        .keeps_zeros = ((facts)&2) != 0                                                            \
    }

// flops: one for each element of output 0, or of input 0.
uint64_t pen_flops_of_output(const pen_graph *graph, pen_node_id node);
uint64_t pen_flops_of_input(const pen_graph *graph, pen_node_id node);

#endif // PEN_GRAPH_OPS_ELEMENTWISE_ELEMENTWISE_RULE_H
