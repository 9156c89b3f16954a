// Training graphs of any size for placement: deep networks of uneven blocks, forward, backward and
// update nodes, on unequal devices.
//
// Costs are worked out from shapes, as a roofline would: seconds on a device of 50 Tflop/s and
// 100 GB/s to and from it. Nodes that share parameters share a colour.
//
// Lifetime: a graph lives in the arena it was made with.
#ifndef PEN_TESTS_SUPPORT_GIANT_GRAPH_H
#define PEN_TESTS_SUPPORT_GIANT_GRAPH_H

#include "partition/problem/problem.h"

typedef enum giant_graph_kind {
    GIANT_TRANSFORMER, // attention by heads, here and there experts instead of one feed-forward
    GIANT_BRANCHING,   // convolutions: blocks of several branches, residual and dense ones
} giant_graph_kind;

typedef struct giant_graph_options {
    giant_graph_kind kind;
    uint32_t node_count; // so many nodes or up to one block more
    uint32_t device_count;
    uint64_t seed;
    bool is_contiguous;
    // Rates 1:2:4:8 and memories 1:2:4, larger ones with the faster; else all are alike.
    bool is_unequal;
    double room; // all devices' memory, as a multiple of what all nodes need
} giant_graph_options;

// Equal options give equal graphs. OUT_OF_MEMORY
PEN_NODISCARD pen_status giant_graph_make(const giant_graph_options *options, pen_arena *arena,
                                          pen_problem_given *out_given);

// Writes the graph as a workload of the operator-placement benchmark; times in ms. Devices are
// written as so many equal accelerators, whatever they are. IO
PEN_NODISCARD pen_status giant_graph_write(const pen_problem_given *given, const char *path);

#endif // PEN_TESTS_SUPPORT_GIANT_GRAPH_H
