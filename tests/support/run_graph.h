// Runs graphs on the reference kernels, node by node, all values kept: for tests that compare
// numbers.
#ifndef PEN_TESTS_SUPPORT_RUN_GRAPH_H
#define PEN_TESTS_SUPPORT_RUN_GRAPH_H

#include "base/arena.h"
#include "base/status.h"
#include "device/reference/reference_kernel.h"
#include "graph/graph.h"

typedef struct run_graph {
    const pen_graph *graph;
    pen_arena *arena;
    pen_tensor *tensors; // [value_count]; constants, parameters and states start with their data
    uint64_t seed;
    uint64_t step;
    uint64_t microbatch;
    bool adds; // nodes that accumulate add to what the microbatches before left
} run_graph;

// Memory for every value of a typed graph. Views get memory of their own.
PEN_NODISCARD pen_status run_graph_init(run_graph *run, const pen_graph *graph, pen_arena *arena);

// Runs nodes first … last - 1 in order. Values that replace a parameter or state are written to
// their own memory; the old contents stay.
PEN_NODISCARD pen_status run_graph_nodes(run_graph *run, uint32_t first, uint32_t last);
PEN_NODISCARD pen_status run_graph_all(run_graph *run);

#endif // PEN_TESTS_SUPPORT_RUN_GRAPH_H
