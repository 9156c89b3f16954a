// Where values lie: buffer offsets from lifetimes.
//
// Values that outlive a step (parameters, states, accumulated gradients) or are fed from outside
// (inputs, scalars, constants) get a place of their own in the persistent region. All others share
// the arena: two of them may overlap only if they are never alive at once. Views share their
// source's bytes; an output takes over the storage of an input that dies there where the op
// allows it (in place); a value that replaces a persistent one lies where that one lies.
//
// Where several lists of nodes run in turns, for several microbatches at once, a value of more than
// one list has copies: places of its own, which nothing takes over. The arena is for what lives
// within one list, so that there the lists overlap.
//
// Offsets in the arena are those of buffer_offsets.h. The peak of live bytes, the lower bound, is
// reported beside them.
#ifndef PEN_GRAPH_ANALYSIS_MEMORY_PLAN_H
#define PEN_GRAPH_ANALYSIS_MEMORY_PLAN_H

#include "base/arena.h"
#include "graph/analysis/buffer_offsets.h"
#include "graph/graph_types.h"

#define PEN_MEMORY_ALIGNMENT PEN_BUFFER_ALIGNMENT

typedef enum pen_memory_region {
    PEN_MEMORY_NONE, // never in memory: unused, or read when kernels are prepared
    PEN_MEMORY_PERSISTENT,
    PEN_MEMORY_ARENA,
    PEN_MEMORY_COPIES,
    PEN_MEMORY_LENT, // in another device's memory
} pen_memory_region;

typedef struct pen_memory_slot {
    pen_memory_region region;
    uint32_t copies; // places, 1 without copies; lent: unknown, 0
    uint64_t offset; // bytes from the region's start, a multiple of PEN_MEMORY_ALIGNMENT
    uint64_t stride; // bytes from one copy to the next, likewise
} pen_memory_slot;

// Positions in the order that run as one.
typedef struct pen_memory_list {
    uint32_t first;
    uint32_t end;
} pen_memory_list;

// Everything borrowed for the call.
typedef struct pen_memory_request {
    const pen_graph *graph;
    const pen_node_id *order; // execution order of all nodes that run
    uint32_t order_count;
    const uint64_t *bytes_of_value;    // [value_count], as laid out on the device
    const uint64_t *workspace_of_node; // [node_count], or NULL: none
    const pen_value_id *kept; // values that must be there at the end of `order`, or of their list
    uint32_t kept_count;
    const pen_memory_list *lists; // [list_count], in order and without gaps; NULL: `order` is one
    uint32_t list_count;
    const uint32_t *copies_of_value; // [value_count], 0: none, which counts for values that persist
                                     // by their kind, too; NULL: no value has copies
    const bool *is_lent;             // [value_count]; NULL: none
} pen_memory_request;

typedef struct pen_memory_plan {
    uint64_t persistent_bytes;
    uint64_t copies_bytes;
    uint64_t arena_bytes;
    uint64_t live_bytes_peak;    // most bytes of the arena alive at once: no plan can do better
    uint32_t in_place_count;     // outputs that took over an input's storage
    pen_memory_slot *values;     // [value_count]
    uint64_t *workspace_offsets; // [node_count], in the arena
} pen_memory_plan;

// The plan lives in `arena`.
//   INTERNAL       a value without copies is read by another list than makes it
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_memory_plan_build(const pen_memory_request *request, pen_arena *arena,
                                               pen_memory_plan **out_plan);

// The value whose storage `value` has: itself, but for views and what replaces persistent values.
pen_value_id pen_value_home(const pen_graph *graph, pen_value_id value);

#endif // PEN_GRAPH_ANALYSIS_MEMORY_PLAN_H
