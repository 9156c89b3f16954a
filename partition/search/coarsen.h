// Problems made smaller: groups put together that a good placement keeps together anyway.
//
// Each function gives a class to every group, for pen_problem_merge.
#ifndef PEN_PARTITION_SEARCH_COARSEN_H
#define PEN_PARTITION_SEARCH_COARSEN_H

#include "partition/problem/problem.h"

// Groups that no forward edge orders (they hold backward nodes alone) would multiply the down-sets;
// each joins the group it exchanges most with. out_count is the number of groups that joined
// another. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_coarsen_unordered(const pen_problem *problem, pen_arena *arena,
                                               uint32_t *out_class, uint32_t *out_count);

typedef struct pen_coarsen_options {
    uint64_t seed;                   // varies the choice
    const uint32_t *device_of_group; // [group_count] only groups of one device join
    double compute_limit;            // no class costs more where it is cheapest
} pen_coarsen_options;

// Pairs of groups that exchange much for their size join, each group at most once. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_coarsen_pairs(const pen_problem *problem,
                                           const pen_coarsen_options *options, pen_arena *arena,
                                           uint32_t *out_class, uint32_t *out_count);

#endif // PEN_PARTITION_SEARCH_COARSEN_H
