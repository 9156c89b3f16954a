// Placing what is too large for the portfolio: a start by filling devices along several lines, or
// by METIS when that is better, then local search from the best.
#ifndef PEN_PARTITION_SEARCH_LARGE_SEARCH_H
#define PEN_PARTITION_SEARCH_LARGE_SEARCH_H

#include "partition/search/initial_placement.h"

#define PEN_LARGE_THREAD_LIMIT 16

// Fills out_device_of_group [group_count] with some partition to start from; pen_metis_partition
// is one.
typedef pen_status (*pen_large_partition_fn)(const pen_problem *problem, uint64_t seed,
                                             pen_arena *arena, uint32_t *out_device_of_group);

typedef struct pen_large_search_options {
    uint64_t seed;
    double begin;    // by pen_clock_seconds; what is done is planned from the time between
    double deadline; // them, so that equal times give equal placements
    double cut;      // likewise: who is late with that may go on until then; 0: the deadline
    uint32_t thread_count;
    pen_large_partition_fn partition; // tried before threads start, unless NULL or too slow
} pen_large_search_options;

// Whether a problem had better be placed here, by its groups and devices. Objectives other than
// throughput are then served by even loads, which is not the same but what can be had.
bool pen_problem_is_large(const pen_problem *problem);

// A right placement: its value is the largest load, its line a topological order of the groups
// where the problem is contiguous.
//   DOES_NOT_FIT  none was found; says what stands in the way
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_large_search(const pen_problem *problem,
                                          const pen_large_search_options *options, pen_arena *arena,
                                          pen_initial_placement *out_start);

#endif // PEN_PARTITION_SEARCH_LARGE_SEARCH_H
