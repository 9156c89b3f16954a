// Where a plan has put the nodes of a model, by name: what exporters write beside them.
//
// Threads: pure functions; immutable once made.
#ifndef PEN_GRAPH_IMPORT_NODE_PLACES_H
#define PEN_GRAPH_IMPORT_NODE_PLACES_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph_types.h"

typedef struct pen_node_place {
    const char *node;
    const char *device;
    uint32_t stage;
} pen_node_place;

typedef struct pen_node_places {
    const pen_node_place *places; // [count], in order of names
    uint32_t count;
} pen_node_places;

// Sorts the places, which live on. Names are different.
pen_node_places pen_node_places_make(pen_node_place *places, uint32_t count);

// NULL when there is none of that name.
const pen_node_place *pen_node_places_find(const pen_node_places *places, const char *name);

// The place of every node of a graph, [node_count] in the arena. A node that the plan does not have
// (passes made one of several) is where the node is that computes one of its inputs, or else that
// reads its output; NULL: nowhere. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_node_places_resolve(const pen_node_places *places,
                                                 const pen_graph *graph, pen_arena *arena,
                                                 const pen_node_place *const **out_places);

#endif // PEN_GRAPH_IMPORT_NODE_PLACES_H
