// What gradient rules (`gradient` of graph/op.h) see and do.
//
// A rule is called once for a node of which some output has a gradient and some input needs one.
// It emits nodes that compute, from gradients of the outputs, those of the inputs that need them.
// Sums over several readers of one value are made by the caller, not by the rule.
//
// Threads: as the graph of the context.
#ifndef PEN_GRAPH_OPS_SHARED_GRADIENT_RULE_H
#define PEN_GRAPH_OPS_SHARED_GRADIENT_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/op.h"

pen_graph *pen_gradient_graph(pen_gradient_context *context);
// Valid until the next node is added: fetch again after emitting.
const pen_node *pen_gradient_node(const pen_gradient_context *context);
// PEN_VALUE_NONE where the node has no such input or output, or it is left out.
pen_value_id pen_gradient_input(const pen_gradient_context *context, uint32_t input);
pen_value_id pen_gradient_output(const pen_gradient_context *context, uint32_t output);
// The gradient that flows into an output: PEN_VALUE_NONE when nothing that counts reads it.
pen_value_id pen_gradient_of_output(const pen_gradient_context *context, uint32_t output);
// Whether input `input` is there and needs a gradient.
bool pen_gradient_needed(const pen_gradient_context *context, uint32_t input);
// Says what the gradient of an input is: same shape and element type as the input.
void pen_gradient_set(pen_gradient_context *context, uint32_t input, pen_value_id gradient);

// A backward node. Its name is "<forward name>/<suffix>"; its role follows from `for_input`: the
// weight half when that input is a parameter, else the input half.
typedef struct pen_gradient_emission {
    const char *op_name; // NULL: "<op of the forward node>_backward"
    const char *suffix;  // NULL: "backward"
    uint32_t for_input;
    const pen_value_id *inputs;
    uint32_t input_count;
    bool repeats_attributes; // those of the forward node that are present; and those below
    const pen_attribute_given *attributes; // or NULL
    uint32_t attribute_count;
    uint32_t output_count; // 0 stands for 1
} pen_gradient_emission;
// Adds the node; writes output_count ids.
PEN_NODISCARD pen_status pen_gradient_emit(pen_gradient_context *context,
                                           const pen_gradient_emission *emission,
                                           pen_value_id *out_outputs);
// Adds a node of one output and sets it as the gradient of its `for_input`.
PEN_NODISCARD pen_status pen_gradient_emit_set(pen_gradient_context *context,
                                               const pen_gradient_emission *emission);
// The same for the backward op "<name>_backward" with the forward node's attributes, as the
// gradient of input 0.
PEN_NODISCARD pen_status pen_gradient_emit_backward(pen_gradient_context *context,
                                                    uint32_t input_count,
                                                    const pen_value_id *inputs);

// A backward node `op_name` of two operands (one, if `b` is PEN_VALUE_NONE) on the way to the
// gradient of input `for_input`.
PEN_NODISCARD pen_status pen_gradient_apply(pen_gradient_context *context, uint32_t for_input,
                                            const char *op_name, pen_value_id a, pen_value_id b,
                                            pen_value_id *out_output);

// Undoes broadcasting: `gradient` summed down to the shape of input `for_input` (the same value
// when the shapes are equal).
PEN_NODISCARD pen_status pen_gradient_unbroadcast(pen_gradient_context *context, uint32_t for_input,
                                                  pen_value_id gradient, pen_value_id *out_output);
// The same, and sets it.
PEN_NODISCARD pen_status pen_gradient_set_summed(pen_gradient_context *context, uint32_t for_input,
                                                 pen_value_id gradient);

// An int64 constant "<forward name>/<suffix>" as an operand of a backward node.
PEN_NODISCARD pen_status pen_gradient_ints(pen_gradient_context *context, const char *suffix,
                                           uint32_t count, const int64_t *integers,
                                           pen_value_id *out_value);
// A tensor of zeros of `type`, made by a node for the gradient of input `for_input`.
PEN_NODISCARD pen_status pen_gradient_zeros(pen_gradient_context *context, uint32_t for_input,
                                            const pen_tensor_type *type, pen_value_id *out_value);
// Sets as the gradient of input 0 zeros into which `op_name`, scatter_elements or scatter_nd, puts
// the gradient of output 0 where `indices` say. [2] attributes.
PEN_NODISCARD pen_status pen_gradient_scatter(pen_gradient_context *context, const char *op_name,
                                              pen_value_id indices,
                                              const pen_attribute_given *attributes);

// ---- whole rules

// Of ops whose derivative is 0 wherever there is one: no gradient flows.
PEN_NODISCARD pen_status pen_gradient_is_zero(pen_gradient_context *context);
// Of ops with one floating operand and a backward op "<name>_backward" of the same attributes that
// takes the output's gradient and the operand, or the output's and the output.
PEN_NODISCARD pen_status pen_gradient_from_input(pen_gradient_context *context);
PEN_NODISCARD pen_status pen_gradient_from_output(pen_gradient_context *context);

#endif // PEN_GRAPH_OPS_SHARED_GRADIENT_RULE_H
