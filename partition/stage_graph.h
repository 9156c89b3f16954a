// Stages with their costs: what a schedule is made from, and what its prediction says.
//
// A stage is a set of nodes on one device that runs as a unit: forward for a microbatch, backward
// for a microbatch (its input half first, then its weight half), update once a step. Stages form an
// acyclic graph of any shape; a device may hold several. Plain data: partition/ fills it from a
// placement, scheduler/schedule/ simulates it, and neither needs the other.
//
// Lifetime: borrowed for a call, or in the arena of whoever built it.
// Threads:  immutable.
#ifndef PEN_PARTITION_STAGE_GRAPH_H
#define PEN_PARTITION_STAGE_GRAPH_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_stage {
    uint32_t device;
    double forward_seconds;         // of one microbatch
    double backward_input_seconds;  // of one microbatch
    double backward_weight_seconds; // of one microbatch
    double update_seconds;          // once a step
    double fixed_bytes;             // parameters, gradients, optimizer state, receive buffers
    double workspace_bytes;         // while it runs; a device needs the largest of its stages'
    double activation_bytes;        // kept for each microbatch from its forward to its backward
} pen_stage;

// Activations from `source` to `target`, and their gradients back.
typedef struct pen_stage_edge {
    uint32_t source;
    uint32_t target;
    double forward_bytes;    // of one microbatch
    double backward_bytes;   // of one microbatch; 0: no gradient flows
    double forward_seconds;  // to move them, latency included; 0 on one device
    double backward_seconds; //
} pen_stage_edge;

typedef struct pen_stage_graph {
    uint32_t stage_count; // in topological order: edges go from lower to higher
    uint32_t edge_count;
    uint32_t device_count;
    uint32_t microbatch_count; // of a step, at least 1
    const pen_stage *stages;
    const pen_stage_edge *edges;
    const double *bytes_limit; // [device_count], INFINITY: not limited
} pen_stage_graph;

// Adds to load [device_count] what a microbatch takes of each device, forward and backward: its
// stages' seconds, and those of the edges at which they lie.
static inline void pen_stage_graph_add_loads(const pen_stage_graph *graph, double *load) {
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        load[stage->device] +=
            stage->forward_seconds + stage->backward_input_seconds + stage->backward_weight_seconds;
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        const double seconds = edge->forward_seconds + edge->backward_seconds;
        load[graph->stages[edge->source].device] += seconds;
        load[graph->stages[edge->target].device] += seconds;
    }
}

// What a schedule of a stage graph comes to.
typedef struct pen_step_prediction {
    double step_seconds;
    double bubble;       // share of the time of the devices that have stages, in which they idle
    uint32_t *in_flight; // [stage_count] microbatches held at once, at most; caller's storage
    double *bytes_peak;  // [device_count]; caller's storage
} pen_step_prediction;

// Pure: equal arguments, equal results; any number of threads. Handed to partition/ by compile.
//   DOES_NOT_FIT   no order of tasks keeps the devices within their memory
//   OUT_OF_MEMORY
typedef pen_status (*pen_step_time_fn)(const void *context, const pen_stage_graph *graph,
                                       pen_step_prediction *out_prediction);

#endif // PEN_PARTITION_STAGE_GRAPH_H
