// A user's constraints as facts about the nodes of a graph and the devices of a cluster.
//
// Names and patterns mean the nodes that plans list: the model's own, with the loss. What else goes
// with them follows.
#ifndef PEN_PARTITION_LOWER_GRAPH_CONSTRAINTS_H
#define PEN_PARTITION_LOWER_GRAPH_CONSTRAINTS_H

#include "graph/analysis/forward_owner.h"
#include "partition/costs/cluster.h"
#include "partition/problem/problem.h"
#include "partition/spec/constraints.h"

typedef struct pen_graph_constraints {
    const uint32_t *color; // [node_count], the lowest node of those that must share its device
    const uint32_t *pin;   // [node_count], device or PEN_PROBLEM_ANY
    const pen_problem_forbidden *forbidden; // [forbidden_count]
    uint32_t forbidden_count;
} pen_graph_constraints;

// `constraints` NULL: none. Errors have the position of the entry.
//   NOT_FOUND      an entry matches nothing: near names are listed
//   INVALID_INPUT  a pattern that is none, two pins for nodes that share a device, a pin to a
//                  device that is forbidden, nodes forbidden everywhere
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_graph_constraints_resolve(const pen_forward_owners *owners,
                                                       const pen_cluster *cluster,
                                                       const pen_constraints *constraints,
                                                       pen_arena *arena,
                                                       pen_graph_constraints *out_resolved);

// Whether pins leave devices an order: no two of them have pinned nodes that lead from one to the
// other and back. For placements that must be contiguous. Longer circles are not looked for.
//   INVALID_INPUT  names the pinned nodes
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_graph_constraints_check_line(const pen_forward_owners *owners,
                                                          const pen_cluster *cluster,
                                                          const pen_graph_constraints *resolved,
                                                          pen_arena *arena);

#endif // PEN_PARTITION_LOWER_GRAPH_CONSTRAINTS_H
