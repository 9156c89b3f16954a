// Annealing of placements for the latency objective. Each try evaluates the whole placement: the
// finish time hangs on paths, so no part of it can be weighed alone.
#ifndef PEN_PARTITION_SEARCH_LATENCY_SEARCH_H
#define PEN_PARTITION_SEARCH_LATENCY_SEARCH_H

#include "partition/search/anneal.h"

// As pen_anneal_run, for the finish time of one sample. Only right placements are looked at, if
// `device_of_group` is one. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_latency_search(const pen_problem *problem, const uint32_t *line,
                                            const pen_anneal_options *options,
                                            uint32_t *device_of_group, double *out_value);

#endif // PEN_PARTITION_SEARCH_LATENCY_SEARCH_H
