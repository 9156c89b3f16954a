// Annealing of placements for the throughput objective: moves, swaps and moves of connected
// regions, each weighed in the time its groups have inputs and outputs.
//
// Plain descent on the largest load stalls, because few moves touch the worst device. The energy is
// a high norm of the loads instead, with a little of their mean,
//     ln(Σ load^p) / p + m · Σ load / (device_count · scale),
// so that any load that shrinks counts, the largest most. Memory may be exceeded on the way, where
// the device then counts as the fullest and more: where memory is tight few moves would be left
// otherwise. What is kept as the best exceeds nothing.
#ifndef PEN_PARTITION_SEARCH_LOAD_ANNEAL_H
#define PEN_PARTITION_SEARCH_LOAD_ANNEAL_H

#include "base/annealing.h"
#include "partition/problem/problem.h"

// Starts from `device_of_group` [group_count], a right placement, and leaves the best placement
// found there, the start if nothing was better; *out_value is its largest load. `line` has every
// group once: neighbours in it are likely to move together. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_load_anneal(const pen_problem *problem, const uint32_t *line,
                                         const pen_annealing_options *options,
                                         uint32_t *device_of_group, double *out_value);

#endif // PEN_PARTITION_SEARCH_LOAD_ANNEAL_H
