// Where values lie: buffer offsets from lifetimes.
//
// Values that outlive a step (parameters, states, accumulated gradients) or are fed from outside
// (inputs, scalars, constants) get a place of their own in the persistent region. All others share
// the arena: two of them may overlap only if they are never alive at once. Views share their
// source's bytes; an output takes over the storage of an input that dies there where the op
// allows it (in place); a value that replaces a persistent one lies where that one lies.
//
// Offsets are found by first fit in order of falling size ("greedy by size", Pisarchyk and Lee,
// "Efficient Memory Management for Deep Neural Net Inference", 2020), and in some other orders, of
// which the best is taken. That is within a few per cent of the peak of live bytes, the lower bound
// that is reported beside it.
#ifndef PEN_GRAPH_ANALYSIS_MEMORY_PLAN_H
#define PEN_GRAPH_ANALYSIS_MEMORY_PLAN_H

#include "base/arena.h"
#include "graph/graph.h"

#define PEN_MEMORY_ALIGNMENT 64u

typedef enum pen_memory_region {
    PEN_MEMORY_NONE, // never in memory: unused, or read when kernels are prepared
    PEN_MEMORY_PERSISTENT,
    PEN_MEMORY_ARENA,
} pen_memory_region;

typedef struct pen_memory_slot {
    pen_memory_region region;
    uint64_t offset; // bytes from the region's start, a multiple of PEN_MEMORY_ALIGNMENT
} pen_memory_slot;

// Everything borrowed for the call.
typedef struct pen_memory_request {
    const pen_graph *graph;
    const pen_node_id *order; // execution order of all nodes that run
    uint32_t order_count;
    const uint64_t *bytes_of_value;    // [value_count], as laid out on the device
    const uint64_t *workspace_of_node; // [node_count], or NULL: none
    const pen_value_id *kept;          // values that must be there at the end of `order`
    uint32_t kept_count;
} pen_memory_request;

typedef struct pen_memory_plan {
    uint64_t persistent_bytes;
    uint64_t arena_bytes;
    uint64_t live_bytes_peak;    // most bytes of the arena alive at once: no plan can do better
    uint32_t in_place_count;     // outputs that took over an input's storage
    pen_memory_slot *values;     // [value_count]
    uint64_t *workspace_offsets; // [node_count], in the arena
} pen_memory_plan;

// The plan lives in `arena`. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_memory_plan_build(const pen_memory_request *request, pen_arena *arena,
                                               pen_memory_plan **out_plan);

#endif // PEN_GRAPH_ANALYSIS_MEMORY_PLAN_H
