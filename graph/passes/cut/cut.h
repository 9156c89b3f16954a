// The contract of this folder: what is asked of a cut, and what it makes. Plain data; what the
// words mean stands in cut_stages.h.
#ifndef PEN_GRAPH_PASSES_CUT_CUT_H
#define PEN_GRAPH_PASSES_CUT_CUT_H

#include <stdbool.h>

#include "graph/graph_types.h"
#include "graph/task.h"

// Everything borrowed for the call.
typedef struct pen_cut_request {
    const pen_graph *graph;   // typed, layouts final, backward split
    const pen_node_id *order; // [order_count], in which one device would run them
    uint32_t order_count;
    const pen_value_id *fed; // [fed_count]: inputs and labels
    uint32_t fed_count;
    const pen_value_id *kept; // [kept_count]: loss, accuracy, outputs
    uint32_t kept_count;
    uint32_t device_count;
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
    const pen_graph *graph;   // verified; nodes of `order` and transfer nodes
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

#endif // PEN_GRAPH_PASSES_CUT_CUT_H
