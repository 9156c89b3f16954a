// A small graph of a training step, for tests of passes and dumps.
#ifndef PEN_TESTS_SUPPORT_SMALL_GRAPH_H
#define PEN_TESTS_SUPPORT_SMALL_GRAPH_H

#include "base/arena.h"
#include "graph/graph.h"

typedef struct small_graph {
    pen_graph *graph;
    pen_value_id x;          // input, float32[4,3]
    pen_value_id seed;       // input: the gradient of y
    pen_value_id weights[2]; // parameters of the nodes "fc1" and "fc2"
    pen_value_id hidden;     // output of fc1
    pen_value_id y;          // output of fc2 and of the graph
} small_graph;

// Forward nodes alone: y = (x · weight 0) · weight 1. Fails the test on error.
small_graph small_graph_forward(pen_arena *arena);
// With gradients of both weights and SGD updates: momentum, accumulation, clipping.
small_graph small_graph_training(pen_arena *arena);

// Random products, transposes and copies of float32[3,3] values: two inputs, two parameters,
// `node_count` nodes, most of them computed twice or for nobody, two outputs. `x` and `weights` are
// set, `y` is the last output.
small_graph small_graph_random(pen_arena *arena, uint64_t seed, uint32_t node_count);

#endif // PEN_TESTS_SUPPORT_SMALL_GRAPH_H
