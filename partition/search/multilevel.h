// Annealing on coarser and coarser problems, then back: a move of a coarse group is a move of many
// that belong together, which no sequence of small good moves makes.
//
// One cycle pairs groups until few are left, anneals there, hands the placement to the next finer
// problem, and so on. Pairs are of groups that share a device, so that the placement to start from
// is one of the coarsest problem too.
#ifndef PEN_PARTITION_SEARCH_MULTILEVEL_H
#define PEN_PARTITION_SEARCH_MULTILEVEL_H

#include "base/annealing.h"
#include "partition/problem/problem.h"

typedef struct pen_multilevel_options {
    pen_annealing_options run; // of all levels together; warmth_first is the coarsest level's,
                               // which is halved from level to level
    double warmth_least;       // no level starts cooler
    uint32_t group_target;     // of the coarsest level
} pen_multilevel_options;

// One cycle on `problem` from `device_of_group`, a right placement; leaves the best placement
// found, and its value. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_multilevel_cycle(const pen_problem *problem, const uint32_t *line,
                                              const pen_multilevel_options *options,
                                              uint32_t *device_of_group, double *out_value);

#endif // PEN_PARTITION_SEARCH_MULTILEVEL_H
