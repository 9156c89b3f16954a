// The nodes that losses are made of. Names begin with "loss/", and are made unique.
//
// Lifetime: nodes are the graph's.
// Threads:  one writer of the graph.
#ifndef PEN_GRAPH_PASSES_GRADIENT_LOSS_NODES_H
#define PEN_GRAPH_PASSES_GRADIENT_LOSS_NODES_H

#include "base/status.h"
#include "graph/attribute.h"
#include "graph/graph_types.h"

// A node of one output, without attributes. As pen_graph_add_simple; so are all below
PEN_NODISCARD pen_status pen_loss_node(pen_graph *graph, const pen_op *op, uint32_t input_count,
                                       const pen_value_id *inputs, pen_value_id *out_output);

// A node of two operands.
PEN_NODISCARD pen_status pen_loss_pair(pen_graph *graph, const pen_op *op, pen_value_id a,
                                       pen_value_id b, pen_value_id *out_value);

// A node of one operand and one attribute.
PEN_NODISCARD pen_status pen_loss_map(pen_graph *graph, const pen_op *op, const char *name,
                                      pen_value_id value, pen_attribute_given attribute,
                                      pen_value_id *out_value);

// `value` under another shape, of as many elements; the shape is a constant called `name`.
PEN_NODISCARD pen_status pen_loss_reshape(pen_graph *graph, pen_value_id value, const char *name,
                                          uint32_t rank, const int64_t *dims,
                                          pen_value_id *out_value);

// In another element type, by its name.
PEN_NODISCARD pen_status pen_loss_cast(pen_graph *graph, pen_value_id value, const char *element,
                                       pen_value_id *out_value);

// The sum of all elements.
PEN_NODISCARD pen_status pen_loss_total(pen_graph *graph, pen_value_id value,
                                        pen_value_id *out_sum);

// share * value; the share is a constant called `name`.
PEN_NODISCARD pen_status pen_loss_multiply(pen_graph *graph, const char *name, double share,
                                           pen_value_id *io_value);

#endif // PEN_GRAPH_PASSES_GRADIENT_LOSS_NODES_H
