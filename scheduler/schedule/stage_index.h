// What is looked up in a stage graph again and again: edges by stage, stages by device, links.
//
// A link is an ordered pair of devices. A line is what carries one tensor at a time: of hosts, of
// processes, or of a link where nothing is known of seats (partition/problem/stage_graph.h). A
// route says what moving the values of an edge takes, and over which lines they go.
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

#define PEN_LINK_NONE UINT32_MAX // source and target are on one device; no line is taken

typedef struct pen_route {
    uint32_t out_line;  // PEN_LINK_NONE: none
    uint32_t in_line;   // likewise
    double out_seconds; // that the line out is taken
    double in_seconds;
    double seconds; // on the way
    pen_stage_handling handling;
} pen_route;

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
    uint32_t line_count;
    pen_route *forward_route;  // [edge_count]
    pen_route *backward_route; // [edge_count]
    pen_route *step_route;     // [step_edge_count]
} pen_stage_index;

// INVALID_INPUT names the stage or edge that is wrong: a device or stage that is not there, an edge
// against the order, a gradient between stages without a backward pass, a number that is negative
// or not finite; no microbatch, or so many that tasks cannot be counted. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_index_new(const pen_stage_graph *graph, pen_arena *arena,
                                             const pen_stage_index **out_index);

// From the end of the task that made it until a value is there, if nothing is in its way.
static inline double pen_route_seconds(const pen_route *route) {
    const double behind = route->handling.receive_seconds - route->seconds;
    return route->seconds + route->handling.latency_seconds + (behind > 0 ? behind : 0);
}

// When what arrives at `there_seconds` is received. The device computes for it while it comes in,
// from the first byte on, but not before it is free: that is kept.
static inline double pen_route_receive(double *device_free, const pen_route *route,
                                       double there_seconds) {
    const double first = there_seconds - route->seconds;
    if (route->handling.receive_seconds <= 0) return there_seconds;
    *device_free = (*device_free > first ? *device_free : first) + route->handling.receive_seconds;
    return *device_free > there_seconds ? *device_free : there_seconds;
}

// When what is ready at `ready_seconds` has arrived over its route, latency included. Lines are
// free again at line_free, which is kept. *out_start is when it set off. To be called in the order
// in which tensors become ready.
static inline double pen_route_send(double *line_free, const pen_route *route, double ready_seconds,
                                    double *out_start) {
    double start = ready_seconds;
    double there = 0;
    if (route->out_line != PEN_LINK_NONE) {
        if (line_free[route->out_line] > start) start = line_free[route->out_line];
        line_free[route->out_line] = start + route->out_seconds;
    }
    if (route->in_line != PEN_LINK_NONE) {
        const double begin = line_free[route->in_line] > start ? line_free[route->in_line] : start;
        there = line_free[route->in_line] = begin + route->in_seconds;
    }
    if (start + route->seconds > there) there = start + route->seconds;
    *out_start = start;
    return there + route->handling.latency_seconds;
}

#endif // PEN_SCHEDULER_SCHEDULE_STAGE_INDEX_H
