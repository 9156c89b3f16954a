// Topological orders of the groups of a contiguous problem that keep apart what is apart: good
// lines to cut into segments.
#ifndef PEN_PARTITION_SEARCH_LINEAR_ORDERS_H
#define PEN_PARTITION_SEARCH_LINEAR_ORDERS_H

#include "partition/problem/problem.h"

// Order `variant` of the groups, for `seed`; equal arguments give equal orders. The first two
// variants are depth first, from the sources and from the sinks, and the same for every seed; then
// come greedy ones that keep little in flight, and ones with random turns. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_linear_order(const pen_problem *problem, uint64_t seed,
                                          uint32_t variant, pen_arena *arena, uint32_t *out_order);

// The groups in the order of their first nodes, where a problem need not be contiguous; else its
// first order. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_first_line(const pen_problem *problem, pen_arena *arena,
                                        uint32_t *out_line);

#endif // PEN_PARTITION_SEARCH_LINEAR_ORDERS_H
