// Annealing of placements for the latency objective. Each try evaluates the whole placement: the
// finish time hangs on paths, so no part of it can be weighed alone.
#ifndef PEN_PARTITION_SEARCH_LATENCY_ANNEAL_H
#define PEN_PARTITION_SEARCH_LATENCY_ANNEAL_H

#include "base/annealing.h"
#include "partition/problem/problem.h"

// As pen_load_anneal, for the finish time of one sample. Only right placements are looked at, if
// `device_of_group` is one. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_latency_anneal(const pen_problem *problem, const uint32_t *line,
                                            const pen_annealing_options *options,
                                            uint32_t *device_of_group, double *out_value);

#endif // PEN_PARTITION_SEARCH_LATENCY_ANNEAL_H
