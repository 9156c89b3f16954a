// Local search on placements of very many groups and devices: a step costs what the groups that
// move have as inputs and outputs, never a look at all devices.
//
// The energy is a high norm of the loads; groups at the border of their device move to a device
// they exchange with, alone, in stretches of the line, or against another. Memory and the order of
// devices are kept at every step.
#ifndef PEN_PARTITION_SEARCH_LARGE_REFINE_H
#define PEN_PARTITION_SEARCH_LARGE_REFINE_H

#include "partition/problem/problem.h"

typedef struct pen_large_refine_options {
    uint64_t seed;
    uint64_t step_count; // at most; it ends earlier when little is gained
    double deadline;     // by pen_clock_seconds: the search ends there at the latest
    double warmth_first; // loss that is commonly accepted at the start, as a share of a load
    double warmth_last;  // at the end
} pen_large_refine_options;

// Rounds of search. Starts from `device_of_group` [group_count], a right placement, and leaves the
// better of that and what was found; *out_value is its largest load. `line` has every group once;
// of a contiguous problem it is a topological order. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_large_refine(const pen_problem *problem, const uint32_t *line,
                                          const pen_large_refine_options *options,
                                          uint32_t *device_of_group, double *out_value);

#endif // PEN_PARTITION_SEARCH_LARGE_REFINE_H
