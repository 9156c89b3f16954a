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
//   + with links, for each result and each other device that reads it, charged to both ends,
//     cost · link[owner's device][reading device] + link_latency[owner's device][reading device]
// A device whose send and receive are 0 moves data for nothing (a CPU core, say). A result of cost
// 0 is not moved: it pays no latency either.
//
// A device holds Σ bytes + microbatches · Σ bytes_in_flight of its nodes. Buffers for what it
// receives are not counted here but in the stages that a step-time function is given.
//
// The objectives, all to be made small:
//   throughput  the largest load
//   latency     the finish time of one sample (partition/objective/latency.h)
//   step time   seconds of a training step of `microbatch_count` microbatches, by the function that
//               was handed in, of the stages that partition/objective/step_time.h makes. Costs are
//               seconds of one microbatch, of an update of one step; cost of a result is its bytes
//               and a link takes seconds a byte. What devices compute to send and receive
//               (`handling`), and which lines links share (`seats`), count here alone
//   traffic     the sum of the costs of all results over each other device that reads them
// A contiguous placement has an acyclic graph of devices, as its forward nodes see it.
//
// Whatever asks for a placement, a benchmark's file or a graph with costs and a cluster, is lowered
// to this form: unequal devices by slowness or by a row of costs for each kind, devices that a node
// may not use by infinite costs or by name, pins and colocation by the fields of a node.
//
// Lifetime: a problem lives in the arena it was made with; what it was made from is borrowed for as
//           long.
// Threads:  immutable once returned; any thread may read it.
#ifndef PEN_PARTITION_PROBLEM_PROBLEM_H
#define PEN_PARTITION_PROBLEM_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/graph_types.h"
#include "partition/problem/link_handling.h"
#include "partition/problem/problem_lists.h"
#include "partition/problem/stage_graph.h"

#define PEN_PROBLEM_ANY UINT32_MAX // no pin, no colour

#define PEN_PROBLEM_DEVICE_LIMIT 4096     // devices
#define PEN_PROBLEM_EDGE_LIMIT (1u << 27) // edges
#define PEN_PROBLEM_MEMORY_SLACK 1e-9     // of a device's memory, for sums of fractions
#define PEN_PROBLEM_COST_LIMIT 1e30       // no cost, and no sum of costs, is above

typedef enum pen_objective {
    PEN_OBJECTIVE_THROUGHPUT,
    PEN_OBJECTIVE_LATENCY,
    PEN_OBJECTIVE_STEP_TIME,
    PEN_OBJECTIVE_TRAFFIC,
} pen_objective;

// "throughput", "latency", "step_time", "traffic", NULL: by the numbers above.
extern const char *const pen_objective_names[];

typedef struct pen_problem_device {
    uint32_t kind;         // row of the compute costs
    double slowness;       // > 0, multiplies them
    double send;           // >= 0
    double receive;        // >= 0
    double bytes_limit;    // INFINITY: not limited
    uint32_t microbatches; // in flight at once; 0 counts as 1
    // Latency: nodes run as soon as their inputs are there, as many at once as there are; else the
    // nodes of a device form pieces that run one after another.
    bool is_parallel;
} pen_problem_device;

typedef struct pen_problem_node {
    double bytes;           // once
    double bytes_in_flight; // for each microbatch in flight on its device
    double workspace_bytes; // while it runs; for stages alone, no device's sum has it
    double transfer;        // cost of its result, when moved
    uint32_t color;         // nodes of one colour share a device; PEN_PROBLEM_ANY: its own
    uint32_t pin;           // the device it must be on, or PEN_PROBLEM_ANY
    pen_role role;          // no TRANSFER; only forward nodes are judged for contiguity
    uint32_t loop;          // forward nodes of one loop, and colour, share a stage; 0: none. No way
                            // leads from one node of a loop to another by way of other nodes.
} pen_problem_node;

// `node` may not be on `device`.
typedef struct pen_problem_forbidden {
    uint32_t node;
    uint32_t device;
} pen_problem_forbidden;

// Step time: steps of up to `step_seconds` count alike, and what is sent decides between them, in
// multiples of `sent_seconds` (pen_stage_graph_sent_seconds). What is longer counts many times.
typedef struct pen_problem_sparing {
    double step_seconds;
    double sent_seconds; // > 0
} pen_problem_sparing;

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
    const pen_problem_edge *edges;     // acyclic; doubled ones and loops do not count
    const double *compute;             // [kind_count][node_count]; INFINITY: cannot run there
    const double *link;                // [device_count][device_count], or NULL
    const double *link_latency;        // [device_count][device_count], or NULL; only beside `link`
    const pen_link_handling *handling; // of links that differ, or NULL; only beside `link`
    const uint32_t *handling_of_pair;  // [device_count][device_count]: its place in `handling`
    const double *link_load;           // likewise; pen_link_handling_load of it
    const pen_device_seat *seats;      // [device_count], or NULL
    const pen_problem_forbidden *forbidden; // [forbidden_count] in any order
    uint32_t forbidden_count;
    uint32_t devices_used_minimum; // devices with a node, at least; 0: any number
    uint32_t devices_used_maximum; // and at most; 0: any number
    uint32_t microbatch_count;     // step time: of a step, at least 1
    bool is_finer;              // step time, bounds: stages may be cut finer than a placement's are
    pen_step_time_fn step_time; // step time; partition/objective/step_time.h: what it must keep
    const void *step_time_context;
    const pen_problem_sparing *sparing; // step time; NULL: the step alone counts
    const char *const *names;           // [node_count] for messages, or NULL: numbers
    const char *const *device_names;    // [device_count], likewise
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
    double *group_compute;         // [kind_count][group_count]
    double *group_bytes;           // [group_count] once
    double *group_bytes_in_flight; // [group_count], or NULL where all are 0
    uint32_t *group_pin;           // [group_count] device or PEN_PROBLEM_ANY
    pen_problem_lists members;     // of groups: nodes
    pen_problem_lists after;  // of groups: groups that read a forward node of it with a forward one
    pen_problem_lists before; // of groups: the other way round

    // outputs, sorted by owner
    uint32_t output_count;
    uint32_t *output_owner;    // [output_count] group
    double *output_cost;       // [output_count] > 0
    double *output_results;    // [output_count] results it is made of: each pays a link's latency
    pen_problem_lists readers; // of outputs: groups other than the owner, ascending
    uint32_t *own_first;       // [group_count + 1]: outputs of group g are own_first[g] …
    pen_problem_lists reads;   // of groups: outputs of other groups
} pen_problem;

// A copy of `given`, right as far as its figures are, in which nothing is left unsaid: every device
// has a microbatch in flight, and what is forbidden by name costs infinitely much. Devices for
// which the same is forbidden go on sharing a kind. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_problem_adopt(const pen_problem_given *given, pen_arena *arena,
                                           pen_problem_given *out_given);

// The same problem for another objective; its groups are shared. Step time becomes throughput with
// updates spread over the microbatches of a step, which is how searches that weigh loads see it;
// where it is known what the ends of links compute, that stands in place of latencies.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_problem_as_throughput(const pen_problem *problem, pen_arena *arena,
                                                   const pen_problem **out_problem);

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

// Bytes that group `group` takes on device `device`.
static inline double pen_problem_bytes(const pen_problem *problem, uint32_t group,
                                       uint32_t device) {
    const double bytes = problem->group_bytes[group];
    if (problem->group_bytes_in_flight == NULL) return bytes;
    return bytes +
           problem->group_bytes_in_flight[group] * problem->given.devices[device].microbatches;
}

// What moving output `output` over the link from one device to another adds to the load of each.
// The problem must have links.
static inline double pen_problem_link_cost(const pen_problem *problem, uint32_t output,
                                           uint32_t from, uint32_t to) {
    const uint64_t at = (uint64_t)from * problem->given.device_count + to;
    const double moved = problem->output_cost[output] * problem->given.link[at];
    if (problem->given.link_latency == NULL) return moved;
    return moved + problem->output_results[output] * problem->given.link_latency[at];
}

// How many devices a placement may use: at least 1, and no more than there are groups but for what
// is asked for.
static inline void pen_problem_devices_used(const pen_problem *problem, uint32_t *out_least,
                                            uint32_t *out_most) {
    const pen_problem_given *given = &problem->given;
    const uint32_t asked = given->devices_used_maximum;
    const uint32_t count = problem->group_count;
    *out_least = given->devices_used_minimum > 1 ? given->devices_used_minimum : 1;
    *out_most = asked > 0 && asked < given->device_count ? asked : given->device_count;
    if (count > 0 && count < *out_most) *out_most = count > *out_least ? count : *out_least;
}

// Where nodes are, when groups are there: fills device_of_node [node_count].
static inline void pen_problem_place_nodes(const pen_problem *problem,
                                           const uint32_t *device_of_group,
                                           uint32_t *device_of_node) {
    for (uint32_t v = 0; v < problem->given.node_count; v++) {
        device_of_node[v] = device_of_group[problem->group_of_node[v]];
    }
}

static inline bool pen_problem_is_forward(const pen_problem_given *given, uint32_t node) {
    return given->nodes[node].role == PEN_ROLE_FORWARD;
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

#endif // PEN_PARTITION_PROBLEM_PROBLEM_H
