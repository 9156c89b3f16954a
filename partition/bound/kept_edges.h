// The edges that the stages of every right placement keep: the reader waits for what it reads.
//
// An edge between nodes becomes an order of tasks only where the reader's stage is on the right
// side of the owner's. That holds for all placements
//   for forward edges
//   for what a backward node reads of forward nodes of its own group, or that is moved
//   for gradients within a group; and for moved ones where the reader's stage cannot be above the
//   owner's: in contiguous placements, and for groups whose forward nodes all lead to one, which
//   alone is read by others
//   for updates within a group
//
// Lifetime: in the arena it was made with; borrows the problem. Threads: immutable.
#ifndef PEN_PARTITION_BOUND_KEPT_EDGES_H
#define PEN_PARTITION_BOUND_KEPT_EDGES_H

#include "partition/problem/problem.h"

typedef struct pen_kept_edges {
    const pen_problem *problem;
    bool *gathers; // [group_count] all its forward nodes lead to the one that others read
} pen_kept_edges;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_kept_edges_find(const pen_problem *problem, pen_arena *arena,
                                             pen_kept_edges *out_kept);

// Whether the stages of every right placement make node v wait for node u, which it reads.
bool pen_kept_edges_has(const pen_kept_edges *kept, uint32_t u, uint32_t v);

#endif // PEN_PARTITION_BOUND_KEPT_EDGES_H
