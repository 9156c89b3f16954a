// Makes a training graph of several replicas of one, to be cut.
//
// A replica runs some lanes of a step (graph/lanes.h) in stages of its own. So the forward and
// backward nodes are there once for each replica; the first's keep their names, those of replica r
// are called "<node>@<r>", and so are what they make. Parameters, inputs, scalars and updates are
// there once. What updates read of a replica:
//
//   tree_sum    has the replica's lanes; tree_total, or lane_stack, reads the stacks of all
//   stack_rows  has the rows of the replica's microbatches; rows_total puts those of all together
//
// Batch normalization changes running statistics in every microbatch, which replicas run at the
// same time. So its nodes give what their microbatch had instead, not rounded; that is kept as
// rows, and an update of the first replica takes the rows in, in the order of microbatches
// (fold_rows). Other states that the forward pass changes are refused, and so are updates that read
// anything else.
//
// The cut then sends sums to where updates are, and new parameters back, as it does for parameters
// that several stages read.
#ifndef PEN_GRAPH_PASSES_CUT_REPLICATE_H
#define PEN_GRAPH_PASSES_CUT_REPLICATE_H

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph_types.h"

typedef struct pen_replica {
    uint32_t first_lane;
    uint32_t lane_count;
    const uint32_t *stage_of_node; // [node_count] of forward and backward nodes; stages are
                                   // numbered through all replicas
} pen_replica;

// Everything borrowed for the call.
typedef struct pen_replicate_request {
    const pen_graph *graph;   // typed, layouts final, backward split, with lanes
    const pen_node_id *order; // [order_count]
    uint32_t order_count;
    uint32_t microbatch_count; // of a full step
    uint32_t replica_count;    // at least 1
    const pen_replica *replicas;
    const uint32_t *update_stage_of_node; // [node_count] of updates: their parameters' owners
} pen_replicate_request;

typedef struct pen_replicated {
    const pen_graph *graph; // in the arena of the old one
    const pen_node_id *order;
    uint32_t order_count;
    const uint32_t *stage_of_node;     // [node_count]
    const pen_value_id *const *values; // [replica_count][value_count of the old graph] what has
                                       // become of each in the replica; updates: PEN_VALUE_NONE
} pen_replicated;

//   UNSUPPORTED  the forward pass changes a state, or an update reads what has no sum over lanes;
//                names the node
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_replicate(const pen_replicate_request *request, pen_arena *arena,
                                       pen_replicated *out_replicated);

#endif // PEN_GRAPH_PASSES_CUT_REPLICATE_H
