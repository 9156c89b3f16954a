// Which nodes are drawn as one, so that a picture of a large graph has few boxes.
//
// Names are paths: parts end with '/', '.' or ':'. Beginning with all nodes in one bundle, bundles
// are opened into one for each next part of their names, the largest first, and those of one size
// together, as long as the bundles stay within the limit. Nodes with flat names are bundled in the
// graph's order.
#ifndef PEN_GRAPH_DUMP_DRAWING_COLLAPSE_H
#define PEN_GRAPH_DUMP_DRAWING_COLLAPSE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph_types.h"

typedef struct pen_bundle {
    const char *name; // what its nodes' names begin with, and "*"; the name of a single node
    uint32_t node_count;
    uint32_t node_first; // lowest
} pen_bundle;

typedef struct pen_bundling {
    uint32_t bundle_count;
    pen_bundle *bundles; // in the order of their first nodes
    uint32_t *bundle_of; // [node_count], in the order given
} pen_bundling;

typedef struct pen_bundling_request {
    const uint32_t *nodes; // [node_count], lowest first
    uint32_t node_count;
    uint32_t limit;                // of bundles
    const uint32_t *group_of_node; // [nodes of the graph]; or NULL
} pen_bundling_request;

// Bundles nodes; those of two groups are never in one bundle. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_drawing_collapse(const pen_graph *graph,
                                              const pen_bundling_request *request, pen_arena *arena,
                                              pen_bundling *out_bundling);

#endif // PEN_GRAPH_DUMP_DRAWING_COLLAPSE_H
