// The search of `exhaustive`, for strategies that finish small problems with it.
#ifndef PEN_PARTITION_STRATEGIES_EXHAUSTIVE_H
#define PEN_PARTITION_STRATEGIES_EXHAUSTIVE_H

#include "partition/problem/problem.h"

typedef struct pen_exhaustive_options {
    uint64_t visit_limit; // partial placements to look at
    double deadline;      // by pen_clock_seconds, or INFINITY
} pen_exhaustive_options;

// Looks for placements below *io_value, which becomes the best value; `device_of_group` is only
// written when there is one. *out_is_complete is false, and nothing is proved, when there are too
// many groups or a limit was met.
//   OUT_OF_MEMORY
//   others         the step-time function's, but for DOES_NOT_FIT
PEN_NODISCARD pen_status pen_exhaustive_search(const pen_problem *problem,
                                               const pen_exhaustive_options *options,
                                               pen_arena *arena, uint32_t *device_of_group,
                                               double *io_value, bool *out_is_complete);

#endif // PEN_PARTITION_STRATEGIES_EXHAUSTIVE_H
