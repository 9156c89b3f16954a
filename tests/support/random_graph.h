// Random graphs of a model with a loss, its gradients and updates: branches, broadcasts, views,
// weights used more than once, values that nobody needs.
#ifndef PEN_TESTS_SUPPORT_RANDOM_GRAPH_H
#define PEN_TESTS_SUPPORT_RANDOM_GRAPH_H

#include "graph/graph.h"
#include "graph/passes/gradient/build_gradients.h"
#include "graph/passes/gradient/build_updates.h"
#include "tests/support/check.h"

#define RANDOM_GRAPH_PARAMETERS 4
#define RANDOM_GRAPH_INPUTS 2

typedef struct random_graph {
    pen_graph *graph;
    pen_value_id inputs[RANDOM_GRAPH_INPUTS];
    pen_value_id parameters[RANDOM_GRAPH_PARAMETERS];
    pen_value_id loss; // a scalar
    pen_value_id seed; // a scalar to be: its gradient
    uint32_t forward_count;
    pen_gradients *gradients; // of all parameters
} random_graph;

// All operators are smooth. Fails the test on error.
random_graph random_graph_forward(pen_arena *arena, uint64_t seed, pen_element_type element,
                                  uint32_t node_count);
// Adds `seed` and the gradients of all parameters.
void random_graph_differentiate(random_graph *random);
// Adds updates of an optimizer drawn from `seed`.
pen_updates random_graph_update(random_graph *random, uint64_t seed, bool accumulate);

// ---- hand-made graphs. All fail the test on error.
pen_value_id graph_value_of(pen_graph *graph, const char *name, pen_value_kind kind,
                            const pen_tensor_type *type);
// A node of one output and up to three operands; PEN_VALUE_NONE ends them.
pen_value_id graph_apply(pen_graph *graph, const char *op, const char *name, pen_value_id a,
                         pen_value_id b, pen_value_id c);

#endif // PEN_TESTS_SUPPORT_RANDOM_GRAPH_H
