// From a training graph to the weighted placement problem.
//
// Nodes of the problem are those of the graph, by the same numbers, and behind them one for each
// further result of a node that leaves its colour. Figures are of one microbatch, those of updates
// of one step; what is passed on once a step (gradients of a parameter with several readers, norms)
// is charged its share of a microbatch, there and back.
//
// The memory that the problem sees is a sum over nodes: parameters, optimizer state and gradients
// once, values kept for the backward pass for every microbatch in flight. What cannot be a sum
// (buffers of transfers, workspace) is in the memory model (partition/lower/memory_model.h).
//
// Lifetime: in the arena it was made with; borrows what it was made from.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_LOWER_GRAPH_PROBLEM_H
#define PEN_PARTITION_LOWER_GRAPH_PROBLEM_H

#include "graph/analysis/forward_owner.h"
#include "partition/costs/cost_model.h"
#include "partition/lower/graph_constraints.h"
#include "partition/problem/problem.h"

// A graph with what a device says of it. Borrowed.
typedef struct pen_planned_graph {
    const pen_graph *graph;   // of training: typed, layouts final
    const pen_node_id *order; // [order_count], in which one device would run it
    uint32_t order_count;
    uint32_t update_first;    // as in pen_execution_order
    const pen_value_id *kept; // [kept_count] values asked for: the loss
    uint32_t kept_count;
    const uint64_t *bytes_of_value;    // [value_count], as laid out on devices
    const uint64_t *workspace_of_node; // [node_count], of kernels
    uint32_t microbatch_count;         // of a step, at least 1
    bool is_local; // by one device of this process: microbatch after microbatch, without tasks
} pen_planned_graph;

typedef struct pen_graph_problem_request {
    const pen_planned_graph *planned;
    const pen_forward_owners *owners;
    const pen_graph_constraints *constraints;
    const pen_cluster *cluster;
    const pen_cost_model *costs;
    pen_objective objective;
    bool is_contiguous;
    uint32_t devices_used_minimum; // 0: any number
    uint32_t devices_used_maximum;
    const double *bytes_limit;    // [device_count] of the cluster; what the problem may use, and
                                  // the device itself
    const uint32_t *microbatches; // [device_count] in flight on each device
    pen_step_time_fn step_time;
    const void *step_time_context;
} pen_graph_problem_request;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_graph_problem_build(const pen_graph_problem_request *request,
                                                 pen_arena *arena, pen_problem_given *out_given);

// What of the graph a user would call the same model: names, operators, shapes and roles, what
// forward nodes read, their attributes and small constants; without the numbers of an optimizer,
// the layouts that a device chose and what they add. The same on every machine.
uint64_t pen_graph_hash(const pen_forward_owners *owners);

#endif // PEN_PARTITION_LOWER_GRAPH_PROBLEM_H
