// A placement says which device runs each node of a problem.
//
// Every strategy (greedy, METIS, dynamic programming, ...) fills the same result and passes the
// same check, so no caller ever asks which strategy produced the placement it holds.
//
// Lifetime: a placement lives in the arena it was made with.
// Threads:  immutable once returned; any thread may read it.
#ifndef PEN_PARTITION_OBJECTIVE_PLACEMENT_H
#define PEN_PARTITION_OBJECTIVE_PLACEMENT_H

#include "partition/problem/problem.h"

typedef struct pen_placement {
    uint32_t node_count;
    uint32_t device_count;
    uint32_t *device_of_node; // [node_count]
    double *load;             // [device_count]
    double *bytes;            // [device_count]
    double traffic;           // costs of all results that move, over the devices that read them
    uint32_t used_count;      // devices with a node
    double value;             // of the objective
    double lower_bound;       // no placement can have a smaller value
    bool is_cut; // the clock ended or hurried the search: another run may find another one
} pen_placement;

// Evaluates a placement of all nodes. The bound is 0. Nothing is checked but that devices exist.
//   DOES_NOT_FIT   step time: no order of tasks keeps the memory of the devices
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_placement_new(const pen_problem *problem,
                                           const uint32_t *device_of_node, pen_arena *arena,
                                           pen_placement **out_placement);

// The value of a placement of groups; INFINITY where no order of tasks keeps the memory of the
// devices. OUT_OF_MEMORY, and the step-time function's other errors.
PEN_NODISCARD pen_status pen_placement_weigh(const pen_problem *problem,
                                             const uint32_t *device_of_group, pen_arena *arena,
                                             double *out_value);

// Proves a placement right, from the nodes and edges as they were given: each node on a device that
// can run it, pins kept, colours together, no device over its memory, as many devices used as may
// be, and the graph of devices acyclic where that was asked. Loads and value are added up anew and
// must agree. Strategies are not trusted: pen_place calls this on every result.
//   INVALID_INPUT  what is wrong, by name
//   DOES_NOT_FIT   a device over its memory
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_placement_check(const pen_problem *problem,
                                             const pen_placement *placement);

// Whether the devices, linked as the forward nodes on them are, have an order. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_placement_is_acyclic(const pen_problem *problem,
                                                  const uint32_t *device_of_node, pen_arena *arena,
                                                  bool *out_is_acyclic);

#endif // PEN_PARTITION_OBJECTIVE_PLACEMENT_H
