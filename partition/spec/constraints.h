// What a user demands of a placement: pins, colocation, and what must not be.
//
//   placement:
//     strategy: auto
//     objective: step_time
//     time_limit: 5s
//     pin: [{nodes: "^/layer4/", to: b}]
//     colocate: [{nodes: ["^/fc/", /pool/GlobalAveragePool]}]
//     no_split: [{nodes: "^/layer1/"}]
//     forbid: [{nodes: "^/conv1/", on: "^n"}]
//     stages: {minimum: 2, maximum: 4}
//
// As written, with names and patterns; pen_graph_problem resolves them against a graph's nodes and
// a cluster's devices (partition/spec/name_match.h), and an entry that matches nothing is an error
// with near names.
//
// Lifetime: borrowed from whoever read them.
// Threads:  immutable.
#ifndef PEN_PARTITION_SPEC_CONSTRAINTS_H
#define PEN_PARTITION_SPEC_CONSTRAINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option/option.h"
#include "base/status.h"

// `nodes` are names of nodes or patterns of them (pen_match_nodes).
typedef struct pen_constraint_pin {
    const char *nodes;
    const char *to; // name of one device
} pen_constraint_pin;

typedef struct pen_constraint_colocate {
    pen_option_list nodes; // const char *: all that match any share a device
} pen_constraint_colocate;

typedef struct pen_constraint_no_split {
    const char *nodes; // nodes between two that match stay with them: a block that is one stage
} pen_constraint_no_split;

typedef struct pen_constraint_forbid {
    const char *nodes;
    const char *on; // names, ranges or pattern of devices (pen_match_devices)
} pen_constraint_forbid;

// A node that stays with devices of a kind. No key says so: a training that goes on without a
// device does.
typedef struct pen_constraint_keep {
    const char *node; // its name
    const char *kind; // "cuda"
} pen_constraint_keep;

typedef struct pen_stage_bounds {
    int64_t minimum; // devices used at least; 0: any
    int64_t maximum; // and at most; 0: any
} pen_stage_bounds;

typedef struct pen_constraints {
    pen_option_list pins;      // pen_constraint_pin
    pen_option_list colocated; // pen_constraint_colocate
    pen_option_list no_splits; // pen_constraint_no_split
    pen_option_list forbidden; // pen_constraint_forbid
    pen_stage_bounds stages;
    const pen_constraint_keep *kept; // [kept_count]
    uint32_t kept_count;

    const pen_option_source *source; // for pen_constraints_blame; NULL: positions are not known
} pen_constraints;

// Gives an error the position at which `field`, an address within the constraints or an entry of
// their lists, was written.
PEN_NODISCARD pen_status pen_constraints_blame(const pen_constraints *constraints,
                                               const void *field, pen_status status);

#endif // PEN_PARTITION_SPEC_CONSTRAINTS_H
