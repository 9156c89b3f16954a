// Problems made smaller: groups put together that a good placement keeps together anyway.
//
// Each function gives a class to every group, for pen_problem_merge.
#ifndef PEN_PARTITION_COARSEN_H
#define PEN_PARTITION_COARSEN_H

#include "partition/problem.h"

// Groups that no forward edge orders (they hold backward nodes alone) would multiply the down-sets;
// each joins the group it exchanges most with. out_count is the number of groups that joined
// another. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_coarsen_unordered(const pen_problem *problem, pen_arena *arena,
                                               uint32_t *out_class, uint32_t *out_count);

// For placements with a value below `limit`, which nothing is lost for:
// an output joins its owner and its readers when moving it would take a device to the limit.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_coarsen_below(const pen_problem *problem, double limit,
                                           pen_arena *arena, uint32_t *out_class,
                                           uint32_t *out_count);

#endif // PEN_PARTITION_COARSEN_H
