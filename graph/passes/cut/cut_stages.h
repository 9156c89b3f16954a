// Cuts a training graph along its stages into one graph for each device, with send and receive
// nodes where values cross.
//
// A part is what one device runs: a graph of its own with the nodes of all its stages, the
// parameters that they read, and a `receive` node for each value that comes from elsewhere, a
// `send` node for each that goes. Values keep their names, so that parts of one model cut alike at
// several microbatch sizes share parameters by name. Every node of `order` is in exactly one list
// of one part; nodes that the cut adds are send, receive and copy nodes, with recompute copies of
// forward nodes, named "<node>/recompute", and twins of backward nodes that the compiler shares
// between stages, named "<node>/twin" (cut_twins.h).
//
// A channel carries one value from one device to one other. What the model is fed comes from the
// host: whoever runs the steps.
//
//   per microbatch   an activation leaves with the forward task of its stage, a gradient with the
//                    backward task (of the halves: with the one that makes it)
//   per step         whatever updates exchange leaves with an update task of its source. A sum of
//                    gradients over microbatches leaves with phase 0 of its stage. An update that
//                    needs a value of another stage, on whatever device, is of a phase above the
//                    one in which that is made; sums are there in phase 0.
//   parameters       updated on one device and read on another: the new one is sent, and a `copy`
//                    node in the reader's next phase replaces the reader's own copy by it.
//   passing on       a view of a value that came from elsewhere leaves from a place of its own (a
//                    `copy` node), since what came is dropped when this device has read it.
//   recompute        the backward task of such a stage begins with its forward nodes, which keep
//                    nothing from their first run and touch no running statistics.
//
// Flows: activations go to the same or later stages, gradients to the same or earlier ones,
// whatever the devices; within a device, too, tasks must run in an order in which that holds.
//
// Lifetime: everything lives in the arena; names and tensor bytes are borrowed from the graph.
// Threads:  immutable once returned.
#ifndef PEN_GRAPH_PASSES_CUT_CUT_STAGES_H
#define PEN_GRAPH_PASSES_CUT_CUT_STAGES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph_types.h"
#include "graph/task.h"

// Everything borrowed for the call.
typedef struct pen_cut_request {
    const pen_graph *graph;          // typed, layouts final, backward split
    const pen_node_id *order;        // [order_count], in which one device would run them
    uint32_t order_count;            //
    const pen_value_id *fed;         // [fed_count]: inputs and labels
    uint32_t fed_count;              //
    const pen_value_id *kept;        // [kept_count]: loss, accuracy, outputs
    uint32_t kept_count;             //
    uint32_t device_count;           //
    uint32_t stage_count;            // in topological order of the forward pass
    const uint32_t *device_of_stage; // [stage_count]
    const uint32_t *stage_of_node;   // [node_count]
    const bool *is_halved;     // [stage_count] backward halves are tasks of their own; NULL: none
    const bool *is_recomputed; // [stage_count] or NULL: none
} pen_cut_request;

// Nodes that run as one task.
typedef struct pen_part_list {
    pen_task_kind kind;
    uint32_t stage;
    uint32_t phase; // of an update; else 0
    uint32_t first; // positions in the part's order
    uint32_t end;
} pen_part_list;

typedef struct pen_part {
    pen_graph *graph;         // verified; nodes of `order` and transfer nodes
    const pen_node_id *order; // [order_count], by list: without send and receive nodes
    uint32_t order_count;
    const pen_part_list *lists; // [list_count]: forward by stage, then backward by falling stage
    uint32_t list_count;        // (input half before weight half), then updates by phase and stage
    const pen_value_id *kept;   // [kept_count] those of the request that are made here
    uint32_t kept_count;
} pen_part;

typedef struct pen_channel {
    const char *value;    // its name in the whole graph
    uint32_t source;      // device, or PEN_CHANNEL_HOST
    uint32_t target;      // device
    uint32_t source_list; // in the source's part, the task it leaves with; 0 for the host
    pen_value_id from;    // in the source's graph; PEN_VALUE_NONE for the host
    pen_value_id to;      // in the target's: what its receive node makes; fed: the input itself
    bool is_per_step;     // once a step; else for every microbatch
    bool is_backward;     // a gradient
} pen_channel;

typedef struct pen_cut {
    uint32_t device_count;
    const pen_part *parts;       // [device_count]; a device without stages has no lists
    const pen_channel *channels; // [channel_count], by source (host last), target, value: a channel
    uint32_t channel_count;      // is known by its position here
    uint32_t phase_count;        // of updates, at least 1
    uint32_t node_count;         // of `order`, each in exactly one list
} pen_cut;

//   INVALID_INPUT  a value would have to flow against the order of the stages; names it
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cut_stages(const pen_cut_request *request, pen_arena *arena,
                                        const pen_cut **out_cut);

#endif // PEN_GRAPH_PASSES_CUT_CUT_STAGES_H
