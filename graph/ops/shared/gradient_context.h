// What build_gradients keeps while it calls gradient rules. Rules see it through
// graph/ops/shared/gradient_rule.h only. The contract of these two: gradient_rule.c has the
// functions.
#ifndef PEN_GRAPH_OPS_SHARED_GRADIENT_CONTEXT_H
#define PEN_GRAPH_OPS_SHARED_GRADIENT_CONTEXT_H

#include <stdbool.h>

#include "graph/op.h"

struct pen_gradient_context {
    pen_graph *graph;
    pen_node_id node;              // the forward node whose rule is being called
    const bool *needed;            // [value_count of the forward graph]: leads to a wanted value
    const pen_value_id *of_output; // [output_count of node]
    pen_value_id *of_input;        // [input_count of node], set by the rule
};

#endif // PEN_GRAPH_OPS_SHARED_GRADIENT_CONTEXT_H
