// The order in which nodes run on one device. Nodes that nothing asked for depends on are left out.
//
// Nodes for a microbatch run in the order of their ids. Updates run apart, once a step; or, when
// a step has one microbatch, each as soon as its gradient is there and nobody reads the old
// parameter any more, so that no gradient lives longer than it must.
#ifndef PEN_GRAPH_ANALYSIS_EXECUTION_ORDER_H
#define PEN_GRAPH_ANALYSIS_EXECUTION_ORDER_H

#include <stdbool.h>

#include "base/arena.h"
#include "graph/graph_types.h"

typedef struct pen_execution_order {
    pen_node_id *nodes; // [count]
    uint32_t count;
    uint32_t update_first; // where updates begin; `count` when they are between the others
} pen_execution_order;

typedef struct pen_execution_options {
    bool mix_updates;         // place updates as early as they can run
    const pen_value_id *kept; // values asked for; what replaces a persistent value always is
    uint32_t kept_count;
} pen_execution_options;

// OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_execution_order_build(const pen_graph *graph,
                                                   const pen_execution_options *options,
                                                   pen_arena *arena,
                                                   pen_execution_order *out_order);

#endif // PEN_GRAPH_ANALYSIS_EXECUTION_ORDER_H
