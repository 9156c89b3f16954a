// The contract of this folder's files among themselves.
//
// What goes where when a graph is cut: the lists of every device, and the channels between them.
// cut_plan.c finds it out, cut_twins.c first undoes what the compiler shares, and cut_part.c makes
// the graph of one device of it.
#ifndef PEN_GRAPH_PASSES_CUT_CUT_STATE_H
#define PEN_GRAPH_PASSES_CUT_CUT_STATE_H

#include "base/arena.h"
#include "base/name_map.h"
#include "base/status.h"
#include "graph/analysis/readers.h"
#include "graph/passes/cut/cut.h"

// When a node runs.
typedef enum cut_class {
    CUT_DEAD, // not in the order
    CUT_FORWARD,
    CUT_INPUT_HALF,
    CUT_WEIGHT_HALF,
    CUT_UPDATE,
} cut_class;

// Where a list stands among all: by device, then forward lists by stage, backward ones by falling
// stage and half, updates by phase and stage.
typedef struct cut_key {
    uint32_t device;
    uint32_t ranks[3];
    pen_part_list list; // without its positions
} cut_key;

// The reader's own copy of a parameter that another device updates.
typedef struct cut_copy {
    pen_value_id parameter;
    pen_value_id updated; // by the other device
    uint32_t stage;       // the reader's lowest
    uint32_t phase;
} cut_copy;

typedef struct cut_plan {
    const pen_cut_request *request;
    const pen_graph *graph;
    pen_arena *arena;   // of the result
    pen_arena *scratch; // of all else
    uint32_t node_count;
    uint32_t value_count;
    uint32_t twin_count;     // nodes that are not of the order that was asked for
    cut_class *classes;      // [node_count]
    uint32_t *phases;        // [node_count], of updates
    cut_class *again;        // [node_count] with which half it runs again; CUT_DEAD: it does not
    pen_value_id *successor; // [value_count] what replaces a parameter or state
    pen_readers readers;     // of the whole graph

    uint32_t copy_count;
    cut_copy *copies;
    uint32_t key_count;
    cut_key *keys;        // [key_count], in order, each once: the lists
    uint32_t *first_list; // [device_count + 1], of each device
    uint32_t channel_count;
    pen_channel *channels;        // in the arena; `from` and `to` are filled in with the parts
    pen_value_id *channel_values; // [channel_count], of the whole graph
    pen_name_map node_names;      // of the whole graph, which added ones keep clear of
    pen_name_map value_names;
} cut_plan;

// INVALID_INPUT, OUT_OF_MEMORY as pen_cut_stages.
PEN_NODISCARD pen_status pen_cut_plan_make(const pen_cut_request *request, pen_arena *arena,
                                           pen_arena *scratch, cut_plan *out_plan);

// Makes the part of one device, and fills in its ends of channels. `*count` goes up by each node of
// the request's order.
PEN_NODISCARD pen_status pen_cut_part_make(cut_plan *plan, uint32_t device, pen_part *out_part,
                                           uint32_t *count);

// Where in `keys` the list of a node of the order is, or the one in which it runs again.
uint32_t pen_cut_plan_list(const cut_plan *plan, uint32_t node, bool is_again);
// The same for updates of a phase.
uint32_t pen_cut_plan_update_list(const cut_plan *plan, uint32_t stage, uint32_t phase);

static inline uint32_t cut_stage(const cut_plan *plan, uint32_t node) {
    return plan->request->stage_of_node[node];
}
static inline uint32_t cut_device(const cut_plan *plan, uint32_t node) {
    return plan->request->device_of_stage[plan->request->stage_of_node[node]];
}
static inline bool cut_is_backward(cut_class subject) {
    return subject == CUT_INPUT_HALF || subject == CUT_WEIGHT_HALF;
}
// Whether `reader` reads what `maker` made when it ran again.
static inline bool cut_reads_again(const cut_plan *plan, uint32_t reader, uint32_t maker) {
    if (plan->again[maker] == CUT_DEAD || cut_stage(plan, reader) != cut_stage(plan, maker)) {
        return false;
    }
    return cut_is_backward(plan->classes[reader]);
}

#endif // PEN_GRAPH_PASSES_CUT_CUT_STATE_H
