// What a user demands of a placement: pins, colocation, and what must not be.
//
// As written, with names and patterns; pen_graph_problem resolves them against a graph's nodes and
// a cluster's devices, and an entry that matches nothing is an error with near names.
//
// Lifetime: borrowed from whoever read them.
// Threads:  immutable.
#ifndef PEN_PARTITION_CONSTRAINTS_H
#define PEN_PARTITION_CONSTRAINTS_H

#include <stdint.h>

#include "base/option.h"

// `nodes` are names of nodes or patterns (base/pattern.h) of them; `devices` likewise of devices.
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
    const char *on; // pattern of devices
} pen_constraint_forbid;

typedef struct pen_constraints {
    pen_option_list pins;      // pen_constraint_pin
    pen_option_list colocated; // pen_constraint_colocate
    pen_option_list no_splits; // pen_constraint_no_split
    pen_option_list forbidden; // pen_constraint_forbid
    int64_t stages_minimum;    // devices used at least; 0: any
    int64_t stages_maximum;    // and at most; 0: any
} pen_constraints;

#endif // PEN_PARTITION_CONSTRAINTS_H
