// With which forward node each node of a training graph goes.
//
// A backward node goes with the forward node that it is the gradient of, but a view with the node
// that made the gradient that it looks at, unless others of its own gradient read that, too; a sum
// of gradients with the producer of the value, an update with the first forward node that reads the
// parameter, sums and norms on the way to it with what they are made from. A stage is a set of
// forward nodes; all else follows them.
//
// What must share a device forms a group: a node and its home, a view and what it looks at, what is
// made from parameters alone and its only reader, a change of layout and its only reader or else
// (also where the producer's backward pass reads it) the value's producer, what only reports (the
// accuracy) and the loss beside it or else the producer of what it reports on, and a loop.
// Parameters with several readers do not: each reader's device has a copy, and the gradients meet
// at the update's.
//
// A loop is what runs for one microbatch after the other: where the forward pass changes a state,
// all nodes from those that read it to the one that changes it. They are of one stage.
//
// Lifetime: in the arena it was made with; borrows the graph.
// Threads:  immutable once returned.
#ifndef PEN_GRAPH_ANALYSIS_FORWARD_OWNER_H
#define PEN_GRAPH_ANALYSIS_FORWARD_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/analysis/readers.h"
#include "graph/graph_types.h"

typedef struct pen_forward_owners {
    const pen_graph *graph;
    uint32_t node_count;
    uint32_t value_count;
    pen_readers readers;
    const uint32_t *home;  // [node_count], forward nodes; of a forward node itself
    const uint32_t *group; // [node_count], the lowest node of those that share its device
    const uint32_t *loop;  // [node_count], equal and above 0 for forward nodes of one loop; 0: none
    const uint32_t *root;  // [value_count], the value whose bytes it is: itself, but for views
    const bool *is_listed; // [node_count], forward nodes that a plan lists: no layout changes
    const uint32_t *listed; // [node_count], the listed node that a plan counts it for: its home, or
                            // where that is a layout change the one that goes with

    // Who reads the bytes of a root in memory, through views too: user_nodes[user_first[v]] up to,
    // not including, user_nodes[user_first[v + 1]], ascending; a node may be there twice.
    const uint32_t *user_first; // [value_count + 1]
    const uint32_t *user_nodes;
} pen_forward_owners;

// INVALID_INPUT: a graph without forward nodes. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_forward_owners_build(const pen_graph *graph, pen_arena *arena,
                                                  const pen_forward_owners **out_owners);

// The value that travels to a device where `value` is read: its root where that is computed, and a
// view of what is fed or persistent itself, for one node makes it. NONE: each device has it.
pen_value_id pen_forward_owners_source(const pen_forward_owners *owners, pen_value_id value);

// Whether some node behind the forward pass reads the bytes of a root.
bool pen_forward_owners_is_kept(const pen_forward_owners *owners, uint32_t root);

// Whether a value is passed on once a step, and not for every microbatch: it is a sum over
// microbatches, or comes after one, or leads to updates only.
bool pen_forward_owners_is_per_step(const pen_forward_owners *owners, pen_value_id value);

#endif // PEN_GRAPH_ANALYSIS_FORWARD_OWNER_H
