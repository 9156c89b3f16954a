// What is looked up in a stage graph again and again: edges by stage, stages by device, links.
//
// A link is an ordered pair of devices; it carries one tensor at a time, in the order in which its
// first device's tasks make them.
//
// Lifetime: in the arena it was made with; borrows the stage graph.
// Threads:  immutable once returned.
#ifndef PEN_SCHEDULER_SCHEDULE_STAGE_INDEX_H
#define PEN_SCHEDULER_SCHEDULE_STAGE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "partition/problem/stage_graph.h"

#define PEN_LINK_NONE UINT32_MAX // source and target are on one device

typedef struct pen_stage_index {
    const pen_stage_graph *graph;
    uint32_t *first_output;   // [stage_count + 1]: stage s has out_edges first_output[s] up to,
    uint32_t *out_edges;      // without, first_output[s + 1]; [edge_count], edges by source
    uint32_t *first_input;    // [stage_count + 1], likewise
    uint32_t *in_edges;       // [edge_count], edges by target
    uint32_t *first_stage;    // [device_count + 1], likewise
    uint32_t *device_stages;  // [stage_count], stages by device
    uint32_t *gradient_count; // [stage_count]: edges over which a stage gets gradients
    bool *has_backward;       // [stage_count]
    bool *has_update;         // [stage_count]
    uint32_t phase_count;     // of updates, at least 1
    uint32_t *first_step;     // [stage_count + 1], likewise
    uint32_t *step_edges;     // [step_edge_count], step edges by source
    uint32_t link_count;
    uint32_t *forward_link;  // [edge_count], links; PEN_LINK_NONE
    uint32_t *backward_link; // [edge_count], links; PEN_LINK_NONE
    uint32_t *step_link;     // [step_edge_count], links; PEN_LINK_NONE
} pen_stage_index;

// INVALID_INPUT names the stage or edge that is wrong: a device or stage that is not there, an edge
// against the order, a gradient between stages without a backward pass, a number that is negative
// or not finite; no microbatch, or so many that tasks cannot be counted. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_index_new(const pen_stage_graph *graph, pen_arena *arena,
                                             const pen_stage_index **out_index);

// When a tensor that is ready at `ready_seconds` has gone over `link`, which is free again then:
// link_free[link] is kept. *out_start is when it set off.
static inline double pen_link_send(double *link_free, uint32_t link, double ready_seconds,
                                   double seconds, double *out_start) {
    *out_start = ready_seconds;
    if (link == PEN_LINK_NONE) return ready_seconds;
    if (link_free[link] > ready_seconds) *out_start = link_free[link];
    link_free[link] = *out_start + seconds;
    return link_free[link];
}

#endif // PEN_SCHEDULER_SCHEDULE_STAGE_INDEX_H
