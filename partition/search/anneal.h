// Annealing of placements for the throughput objective: moves, swaps and moves of connected
// regions, each weighed in the time its groups have inputs and outputs.
//
// Plain descent on the largest load stalls, because few moves touch the worst device. The energy is
// a high norm of the loads instead, with a little of their mean,
//     ln(Σ load^p) / p + m · Σ load / (device_count · scale),
// so that any load that shrinks counts, the largest most. Memory may be exceeded on the way, where
// the device then counts as the fullest and more: where memory is tight few moves would be left
// otherwise. What is kept as the best exceeds nothing.
//
// Lifetime: lives in the arena it was made with, and borrows the problem.
// Threads:  belongs to one thread at a time.
#ifndef PEN_PARTITION_SEARCH_ANNEAL_H
#define PEN_PARTITION_SEARCH_ANNEAL_H

#include <stdatomic.h>

#include "partition/objective/load_state.h"

typedef struct pen_anneal_options {
    uint64_t seed;
    uint64_t step_count;
    double deadline;     // by pen_clock_seconds: as it comes near, cooling is as if steps had run
                         // out; INFINITY: the result depends on the other options alone
    bool is_counted;     // steps alone cool; the deadline only ends the run
    double warmth_first; // largest relative loss of energy that is commonly accepted, at the start
    double warmth_last;  // at the end
    bool is_sharp;       // p of the energy is 32, else 16
    double enough;       // stops at this value
    const atomic_bool *stop; // stops when it becomes true; NULL: never
} pen_anneal_options;

typedef struct pen_anneal pen_anneal;

// `line` has every group once: neighbours in it are likely to move together. It is borrowed.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_anneal_new(const pen_problem *problem, const uint32_t *line,
                                        pen_arena *arena, pen_anneal **out_anneal);

// Starts from `device_of_group` [group_count], a right placement, and leaves the best placement
// found there, the start if nothing was better. Returns its largest load.
double pen_anneal_run(pen_anneal *anneal, const pen_anneal_options *options,
                      uint32_t *device_of_group);

// Ranks the devices ([device_count]), each another number, so that every forward edge leads to an
// equal or larger one. False, and ranks without meaning, when the devices have no such order.
bool pen_rank_devices(const pen_problem *problem, const uint32_t *device_of_group,
                      uint32_t *out_rank);

#endif // PEN_PARTITION_SEARCH_ANNEAL_H
