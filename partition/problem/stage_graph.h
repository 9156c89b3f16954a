// Stages with their costs: what a schedule is made from, and what its prediction says.
//
// A stage is a set of nodes on one device that runs as a unit: forward for a microbatch, backward
// for a microbatch (its input half first, then its weight half), update once a step. Stages form an
// acyclic graph of any shape; a device may hold several. Plain data: partition/ fills it from a
// placement, scheduler/schedule/ simulates it, and neither needs the other.
//
// What moves takes three things. The line it goes over is taken for so long that nothing else goes
// over it; it is there a latency later; and both devices compute for it: the source's after the
// task that made it, the target's before a task that reads it (what arrives while a task runs waits
// until that is over). Lines are those of `seats`.
//
// What updates exchange goes over step edges, which lead from any stage to any other: a value that
// the source's update of a phase makes (or, of phase 0, its backward tasks) is there for the
// target's update of the next phase. Every stage with updates has all phases. A device runs its
// updates last, or, overlapped, as soon as what they wait for is there.
//
// A stage may run a range of a step's microbatches only: those of its replica. Edges lead between
// stages of one range; step edges between any. A stage of an owner runs no microbatch.
//
// Lifetime: borrowed for a call, or in the arena of whoever built it.
// Threads:  immutable.
#ifndef PEN_PARTITION_PROBLEM_STAGE_GRAPH_H
#define PEN_PARTITION_PROBLEM_STAGE_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "partition/costs/link_ends.h"

typedef struct pen_stage {
    uint32_t device;
    bool has_backward;              // computes gradients, for each microbatch
    bool has_update;                // has updates, one of each phase
    bool is_recomputed;             // backward begins with forward, once more
    double forward_seconds;         // of one microbatch
    double backward_input_seconds;  // of one microbatch, without recomputing
    double backward_weight_seconds; // of one microbatch
    double update_seconds;          // once a step, in phase 0
    uint32_t first_microbatch;      // that it runs, by the step's numbers
    uint32_t microbatch_count;      // that it runs; 0: all of the step's
    bool is_owner;                  // runs none: it has updates alone, and step edges
    double fixed_bytes;             // parameters, gradients, optimizer state, receive buffers
    double workspace_bytes;         // while it runs; a device needs the largest of its stages'
    double activation_bytes;        // kept for each microbatch from its forward to its backward
    double halved_bytes; // besides, from its input half to its weight half where they run apart
} pen_stage;

// What moving values takes besides the line, of one microbatch. All 0 on one device.
typedef struct pen_stage_handling {
    double latency_seconds; // from the line's end until they are there
    double send_seconds;    // of the source's device
    double receive_seconds; // of the target's device
} pen_stage_handling;

// Activations from `source` to `target`, and their gradients back.
typedef struct pen_stage_edge {
    uint32_t source;
    uint32_t target;
    double forward_bytes;   // of one microbatch
    bool has_gradient;      // back from `target`; both stages have a backward pass
    double backward_bytes;  // of one microbatch
    double forward_seconds; // on their way; 0 on one device
    double backward_seconds;
    pen_stage_handling forward_handling;
    pen_stage_handling backward_handling;
} pen_stage_edge;

// Values that go from the update of one stage to that of another, once a step.
typedef struct pen_stage_step_edge {
    uint32_t source; // any stage with updates
    uint32_t target; // any other
    uint32_t phase;  // that they leave with, below update_phase_count - 1
    double bytes;
    double seconds; // on their way; 0 on one device
    pen_stage_handling handling;
} pen_stage_step_edge;

// When updates run: behind all other tasks of their device, or among them, so that what they
// exchange travels while the backward passes of other stages are computed.
typedef enum pen_exchange {
    PEN_EXCHANGE_AFTER_BACKWARD,
    PEN_EXCHANGE_OVERLAPPED,
} pen_exchange;

// "after_backward", "overlapped", NULL: by the numbers above.
extern const char *const pen_exchange_names[];

typedef struct pen_stage_graph {
    uint32_t stage_count; // in topological order: edges go from lower to higher
    uint32_t edge_count;
    uint32_t device_count;
    uint32_t microbatch_count; // of a step, at least 1
    const pen_stage *stages;
    const pen_stage_edge *edges;
    const double *bytes_limit;   // [device_count], INFINITY: not limited
    uint32_t update_phase_count; // 0 stands for 1
    uint32_t step_edge_count;
    const pen_stage_step_edge *step_edges; // [step_edge_count], in the order in which each source
                                           // sends what leaves with one phase
    const pen_device_seat *seats; // [device_count]; NULL: each ordered pair of devices has a line
    pen_exchange exchange;        // of updates
} pen_stage_graph;

// The same with all its arrays, which then live in `arena`. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_graph_copy(const pen_stage_graph *graph, pen_arena *arena,
                                              pen_stage_graph *out_copy);

static inline uint32_t pen_stage_graph_phases(const pen_stage_graph *graph) {
    return graph->update_phase_count > 0 ? graph->update_phase_count : 1;
}

// How many microbatches a stage runs.
static inline uint32_t pen_stage_microbatches(const pen_stage_graph *graph,
                                              const pen_stage *stage) {
    if (stage->is_owner) return 0;
    return stage->microbatch_count > 0 ? stage->microbatch_count : graph->microbatch_count;
}

// What the tasks of a stage take for a microbatch, recomputing included.
static inline double pen_stage_backward_input_seconds(const pen_stage *stage) {
    return stage->backward_input_seconds + (stage->is_recomputed ? stage->forward_seconds : 0);
}

static inline double pen_stage_microbatch_seconds(const pen_stage *stage) {
    return stage->forward_seconds + pen_stage_backward_input_seconds(stage) +
           stage->backward_weight_seconds;
}

// Adds to load [device_count] what devices compute to move an edge's values of a microbatch.
static inline void pen_stage_edge_add_handling(const pen_stage_graph *graph,
                                               const pen_stage_edge *edge, double *load) {
    const uint32_t source = graph->stages[edge->source].device;
    const uint32_t target = graph->stages[edge->target].device;
    if (source == target) return;
    load[source] += edge->forward_handling.send_seconds;
    load[target] += edge->forward_handling.receive_seconds;
    if (!edge->has_gradient) return;
    load[source] += edge->backward_handling.receive_seconds;
    load[target] += edge->backward_handling.send_seconds;
}

// Adds to load [device_count] what a microbatch takes of each device, forward and backward: its
// stages' seconds, what they compute for transfers, and the seconds and latencies of the edges at
// which they lie.
static inline void pen_stage_graph_add_loads(const pen_stage_graph *graph, double *load) {
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        const pen_stage *stage = &graph->stages[s];
        load[stage->device] += pen_stage_microbatch_seconds(stage);
    }
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        const double seconds = edge->forward_seconds + edge->backward_seconds +
                               edge->forward_handling.latency_seconds +
                               edge->backward_handling.latency_seconds;
        load[graph->stages[edge->source].device] += seconds;
        load[graph->stages[edge->target].device] += seconds;
        pen_stage_edge_add_handling(graph, edge, load);
    }
}

// What all transfers of a microbatch take together, wherever: lines, latencies and both ends.
static inline double pen_stage_graph_sent_seconds(const pen_stage_graph *graph) {
    double seconds = 0.0;
    for (uint32_t e = 0; e < graph->edge_count; e++) {
        const pen_stage_edge *edge = &graph->edges[e];
        const pen_stage_handling *there = &edge->forward_handling, *back = &edge->backward_handling;
        seconds += edge->forward_seconds + there->latency_seconds + there->send_seconds +
                   there->receive_seconds;
        seconds += edge->backward_seconds + back->latency_seconds + back->send_seconds +
                   back->receive_seconds;
    }
    return seconds;
}

// Which stages run their forward pass once more before their backward pass, to keep less.
typedef enum pen_recompute {
    PEN_RECOMPUTE_NONE,
    PEN_RECOMPUTE_STAGE, // all that have a backward pass
    PEN_RECOMPUTE_AUTO,  // those that take the least time to make it fit
} pen_recompute;

// What a schedule of a stage graph comes to.
typedef struct pen_step_prediction {
    double step_seconds;
    double bubble;       // share of the time of the devices that have stages, in which they idle
    uint32_t *in_flight; // [stage_count] microbatches held at once, at most; caller's storage
    double *bytes_peak;  // [device_count]; caller's storage
    uint32_t *halved;    // [stage_count] those between their halves; caller's storage, or NULL
} pen_step_prediction;

// Pure: equal arguments, equal results; any number of threads. Handed to partition/ by compile.
//   DOES_NOT_FIT   no order of tasks keeps the devices within their memory
//   OUT_OF_MEMORY
typedef pen_status (*pen_step_time_fn)(const void *context, const pen_stage_graph *graph,
                                       pen_step_prediction *out_prediction);

#endif // PEN_PARTITION_PROBLEM_STAGE_GRAPH_H
