// The weighted placement problem: what every strategy solves.
//
// A problem has a fine level, the nodes as given, and a coarse one, the groups: nodes that must
// share a device (colocated, or on a cycle of a contiguous problem) are one group, and strategies
// place groups. What moves between devices is an output: the result of one producing group, with
// the groups that read it; a producer's nodes that have the same readers share an output.
//
// The load of a device, in seconds or whatever unit the costs have:
//     compute of its groups · slowness
//   + cost of each of its outputs that another device reads · send         once
//   + cost of each foreign output that it reads · receive                  once
//   + with links, for each output and each other device that reads it,
//     cost · link[owner's device][reading device], charged to both ends
// A device whose send and receive are 0 moves data for nothing (a CPU core, say).
//
// Throughput is the largest load, latency the finish time of one sample (partition/latency.h).
// A contiguous placement has an acyclic graph of devices, as its forward nodes see it.
//
// Whatever asks for a placement, a benchmark's file or a graph with costs and a cluster, is lowered
// to this form: unequal devices by slowness or by a row of costs for each kind, forbidden devices
// by infinite costs, pins and colocation by the fields of a node.
//
// Lifetime: a problem lives in the arena it was made with; what it was made from is borrowed for as
//           long.
// Threads:  immutable once returned; any thread may read it.
#ifndef PEN_PARTITION_PROBLEM_H
#define PEN_PARTITION_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define PEN_PROBLEM_ANY UINT32_MAX // no pin, no colour

#define PEN_PROBLEM_DEVICE_LIMIT 4096     // devices
#define PEN_PROBLEM_EDGE_LIMIT (1u << 27) // edges
#define PEN_PROBLEM_MEMORY_SLACK 1e-9     // of a device's memory, for sums of fractions
#define PEN_PROBLEM_COST_LIMIT 1e30       // no cost, and no sum of costs, is above

typedef enum pen_objective {
    PEN_OBJECTIVE_THROUGHPUT,
    PEN_OBJECTIVE_LATENCY,
} pen_objective;

typedef struct pen_problem_device {
    uint32_t kind;      // row of the compute costs
    double slowness;    // > 0, multiplies them
    double send;        // >= 0
    double receive;     // >= 0
    double bytes_limit; // INFINITY: not limited
    // Latency: nodes run as soon as their inputs are there, as many at once as there are; else the
    // nodes of a device form pieces that run one after another.
    bool is_parallel;
} pen_problem_device;

typedef struct pen_problem_node {
    double bytes;     // on a device with a limit
    double transfer;  // cost of its result, when moved
    uint32_t color;   // nodes of one colour share a device; PEN_PROBLEM_ANY: its own
    uint32_t pin;     // the device it must be on, or PEN_PROBLEM_ANY
    bool is_backward; // not judged for contiguity
} pen_problem_node;

typedef struct pen_problem_edge {
    uint32_t source;
    uint32_t target;
} pen_problem_edge;

// Lists of ids, one for each of `count` owners: those of owner i are
// ids[first[i]] … ids[first[i + 1] - 1].
typedef struct pen_problem_lists {
    uint32_t *first; // [count + 1]
    uint32_t *ids;
} pen_problem_lists;

// What a problem is made from.
typedef struct pen_problem_given {
    pen_objective objective;
    bool is_contiguous;
    uint32_t device_count; // at least 1
    uint32_t kind_count;   // at least 1
    uint32_t node_count;
    uint32_t edge_count;
    const pen_problem_device *devices;
    const pen_problem_node *nodes;
    const pen_problem_edge *edges;   // acyclic; doubled ones and loops do not count
    const double *compute;           // [kind_count][node_count]; INFINITY: cannot run there
    const double *link;              // [device_count][device_count], or NULL
    const char *const *names;        // [node_count] for messages, or NULL: numbers
    const char *const *device_names; // [device_count], or NULL: numbers
} pen_problem_given;

typedef struct pen_problem {
    pen_problem_given given;

    // nodes
    pen_problem_lists successors;   // of nodes
    pen_problem_lists predecessors; // of nodes
    uint32_t *node_order;           // [node_count] topological
    uint32_t *group_of_node;        // [node_count]

    // groups
    uint32_t group_count;
    double *group_compute;     // [kind_count][group_count]
    double *group_bytes;       // [group_count]
    uint32_t *group_pin;       // [group_count] device or PEN_PROBLEM_ANY
    pen_problem_lists members; // of groups: nodes
    pen_problem_lists after;  // of groups: groups that read a forward node of it with a forward one
    pen_problem_lists before; // of groups: the other way round

    // outputs, sorted by owner
    uint32_t output_count;
    uint32_t *output_owner;    // [output_count] group
    double *output_cost;       // [output_count] > 0
    pen_problem_lists readers; // of outputs: groups other than the owner, ascending
    uint32_t *own_first;       // [group_count + 1]: outputs of group g are own_first[g] …
    pen_problem_lists reads;   // of groups: outputs of other groups
} pen_problem;

// Forms the groups: nodes of one colour, and of a contiguous problem all that lie on cycles then.
//   INVALID_INPUT  a cycle of nodes, two pins in one group, costs that are no numbers
//   DOES_NOT_FIT   a group that can run nowhere: no device takes all its nodes, or has the memory
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_problem_build(const pen_problem_given *given, pen_arena *arena,
                                           pen_problem **out_problem);

// The same problem with groups put together: the nodes of all groups g with equal `class_of_group`
// form one. Classes are any numbers below group_count. Contiguous or not as asked; cycles are
// merged as in pen_problem_build, and errors are the same.
PEN_NODISCARD pen_status pen_problem_merge(const pen_problem *problem,
                                           const uint32_t *class_of_group, bool is_contiguous,
                                           pen_arena *arena, pen_problem **out_problem);

// Cost of group `group` on device `device`; INFINITY when it cannot run there.
static inline double pen_problem_compute(const pen_problem *problem, uint32_t group,
                                         uint32_t device) {
    const pen_problem_device *d = &problem->given.devices[device];
    return problem->group_compute[(uint64_t)d->kind * problem->group_count + group] * d->slowness;
}

// Whether a pin or an infinite cost keeps `group` from `device`. Memory is not looked at.
static inline bool pen_problem_allows(const pen_problem *problem, uint32_t group, uint32_t device) {
    const uint32_t pin = problem->group_pin[group];
    if (pin != PEN_PROBLEM_ANY && pin != device) return false;
    return pen_problem_compute(problem, group, device) < PEN_PROBLEM_COST_LIMIT;
}

// Bytes that device `device` may hold, rounding of sums allowed for.
static inline double pen_problem_bytes_limit(const pen_problem *problem, uint32_t device) {
    return problem->given.devices[device].bytes_limit * (1.0 + PEN_PROBLEM_MEMORY_SLACK);
}

// The group of node `node` in messages: its name, or its number. Written to `out_text` when a
// number. Returns a text that lives as long as both.
#define PEN_PROBLEM_NAME_BYTES 16
const char *pen_problem_node_name(const pen_problem_given *given, uint32_t node,
                                  char out_text[PEN_PROBLEM_NAME_BYTES]);
const char *pen_problem_device_name(const pen_problem_given *given, uint32_t device,
                                    char out_text[PEN_PROBLEM_NAME_BYTES]);

#endif // PEN_PARTITION_PROBLEM_H
