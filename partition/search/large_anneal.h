// Local search on placements of very many groups and devices: a step costs what the groups that
// move have as inputs and outputs, never a look at all devices.
//
// The energy is a high norm of the loads; groups at the border of their device move to a device
// they exchange with, alone, in stretches of the line, or against another. Memory and the order of
// devices are kept at every step.
#ifndef PEN_PARTITION_SEARCH_LARGE_ANNEAL_H
#define PEN_PARTITION_SEARCH_LARGE_ANNEAL_H

#include "base/annealing.h"
#include "partition/problem/problem.h"

// As pen_load_anneal, in rounds that end earlier than `step_count` when little is gained. Steps
// cool, whatever `is_counted` says: the deadline only ends the search. Warmths are shares of a
// load. `line` is a topological order of the groups of a contiguous problem.
PEN_NODISCARD pen_status pen_large_anneal(const pen_problem *problem, const uint32_t *line,
                                          const pen_annealing_options *options,
                                          uint32_t *device_of_group, double *out_value);

#endif // PEN_PARTITION_SEARCH_LARGE_ANNEAL_H
