// What a job says of its placement: how it is looked for, what is made small, and what is demanded
// of it.
//
// Lifetime: borrowed from whoever read it.
// Threads:  immutable.
#ifndef PEN_PARTITION_STRATEGIES_PLACEMENT_SPEC_H
#define PEN_PARTITION_STRATEGIES_PLACEMENT_SPEC_H

#include "base/option/option.h"
#include "partition/problem/problem.h"
#include "partition/spec/constraints.h"

// The key `placement` of a job.
typedef struct pen_placement_spec {
    const char *strategy; // one of pen_strategies
    pen_objective objective;
    double time_limit_seconds; // > 0
    int64_t seed;              // not negative
    bool contiguous;           // devices form a line: no tensor goes back to an earlier one
    pen_constraints constraints;
    int64_t replicas;       // pipelines that share the lanes of a step; 0: as many as are fastest
    pen_option_list owners; // const char *: devices that update parameters; none, or "replicas":
                            // those of the replicas
} pen_placement_spec;

// The keys of `placement`; fills pen_placement_spec.
extern const pen_option_table pen_placement_table;

#endif // PEN_PARTITION_STRATEGIES_PLACEMENT_SPEC_H
