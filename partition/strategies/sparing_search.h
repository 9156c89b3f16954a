// Looks for a placement that sends less within what its problem bears (pen_problem_sparing).
//
// Steps that are predicted alike are not alike: each transfer is one more thing that may come late,
// and nothing predicts how late. So of placements whose steps a prediction cannot tell apart, one
// that sends much less is the best.
#ifndef PEN_PARTITION_STRATEGIES_SPARING_SEARCH_H
#define PEN_PARTITION_STRATEGIES_SPARING_SEARCH_H

#include "partition/problem/problem.h"

typedef struct pen_sparing_options {
    uint64_t seed;
    double seconds;  // nominal, of counted steps
    double deadline; // by pen_clock_seconds: ends the search
} pen_sparing_options;

// Begins from `device_of_node` [node_count], a right placement of a problem with `sparing`, and
// changes it where it finds a better one. OUT_OF_MEMORY, and the step-time function's errors.
PEN_NODISCARD pen_status pen_sparing_search(const pen_problem *problem,
                                            const pen_sparing_options *options,
                                            uint32_t *device_of_node);

#endif // PEN_PARTITION_STRATEGIES_SPARING_SEARCH_H
