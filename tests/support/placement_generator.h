// Random placement problems: graphs, devices and constraints of all kinds, from one seed.
#ifndef PEN_TESTS_SUPPORT_PLACEMENT_GENERATOR_H
#define PEN_TESTS_SUPPORT_PLACEMENT_GENERATOR_H

#include "base/arena.h"
#include "partition/problem/problem.h"

typedef struct placement_wish {
    uint32_t node_count_most;   // at least 1
    uint32_t device_count_most; // at least 1
    // So many placements there are at most, valid or not (0: any number), for tests that try all.
    double placement_count_most;
    pen_objective objective;
    bool is_contiguous;
    bool has_no_links;     // between single devices; else some cases have them
    bool is_plain;         // no memory in flight, no latency of links, nothing forbidden by name
    bool has_used_bounds;  // some cases bound the count of devices used
    bool is_unconstrained; // no pins, colours, forbidden devices, limits of memory
} placement_wish;

// Equal seeds and wishes give equal problems. Of all seeds together the cases have: graphs from
// sparse to dense, chains among them, with node numbers that are in no topological order; backward
// nodes that mirror forward ones; colours; pins; kinds of devices that cannot run some nodes; rates
// 1:2:4:8, memories 1:4, tight or without limit; transfers that cost nothing, alike, or unequal and
// other one way than the other, with latency; memory that grows with the microbatches in flight;
// costs that tie and costs that do not. Some cases have no right placement. What is pointed at
// lives in the arena.
void placement_case_make(uint64_t seed, const placement_wish *wish, pen_arena *arena,
                         pen_problem_given *out_given);

// A problem built from a case that can be built; `io_seed` is moved on until one is found.
const pen_problem *placement_case_build(uint64_t *io_seed, const placement_wish *wish,
                                        pen_arena *arena);

// Random devices for all groups, ones that may run them if there are any. [group_count]
void placement_case_scatter(const pen_problem *problem, uint64_t seed, uint32_t *device_of_group);

// The devices of nodes, from those of groups, in `arena`.
uint32_t *placement_case_spread(const pen_problem *problem, const uint32_t *device_of_group,
                                pen_arena *arena);

#endif // PEN_TESTS_SUPPORT_PLACEMENT_GENERATOR_H
