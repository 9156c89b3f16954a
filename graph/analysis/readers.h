// Who reads each value.
#ifndef PEN_GRAPH_ANALYSIS_READERS_H
#define PEN_GRAPH_ANALYSIS_READERS_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph_types.h"

typedef struct pen_readers {
    const uint32_t *first;    // [value_count + 1]: value v's readers are nodes[first[v]] up to, not
                              // including, nodes[first[v + 1]]
    const pen_node_id *nodes; // in order; a node that reads a value twice is there twice
    const bool *is_visible;   // [value_count]: an output, asked for, or replaces a persistent value
} pen_readers;

// In `arena`. `kept` are values asked for.
PEN_NODISCARD pen_status pen_readers_build(const pen_graph *graph, uint32_t kept_count,
                                           const pen_value_id *kept, pen_arena *arena,
                                           pen_readers *out_readers);

static inline uint32_t pen_readers_count(const pen_readers *readers, pen_value_id value) {
    return readers->first[value.index + 1] - readers->first[value.index];
}

// The node that alone needs `value`, and once; PEN_NODE_NONE where there is none, or more.
pen_node_id pen_readers_only(const pen_readers *readers, pen_value_id value);

#endif // PEN_GRAPH_ANALYSIS_READERS_H
