// A whole placement that changes by regions, for annealing by objectives of which no part can be
// weighed alone.
//
// Lifetime: in the arena it was made with; borrows the problem, the line and the caller's
// placement. Threads:  belongs to one thread at a time.
#ifndef PEN_PARTITION_SEARCH_CANDIDATE_H
#define PEN_PARTITION_SEARCH_CANDIDATE_H

#include "base/annealing.h"
#include "partition/search/region.h"

typedef struct pen_candidate {
    const pen_problem *problem;
    pen_annealing annealing;
    pen_region region;
    uint32_t *device_of_group; // [group_count] the caller's
    uint32_t *device_of_node;  // [node_count]
    double *bytes;             // [device_count]
    uint32_t *group_total;     // [device_count]
    uint32_t used_count;       // devices with groups
    uint32_t *best;            // [group_count]
    double best_value;         // INFINITY until there is one
    double value;              // of the placement at hand
} pen_candidate;

// Begins with the placement `device_of_group`, which is changed in place, as the best, its value
// not known. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_candidate_init(pen_candidate *candidate, const pen_problem *problem,
                                            const uint32_t *line, uint32_t *device_of_group,
                                            pen_arena *arena);

// Moves a group to `device`.
void pen_candidate_put(pen_candidate *candidate, uint32_t group, uint32_t device);

// Whether the groups of the region may be where they are now: devices run them, memory holds them,
// and the order of devices is kept.
bool pen_candidate_is_right(const pen_candidate *candidate);

// The placement at hand, of `value`, is the best if it is better.
void pen_candidate_note(pen_candidate *candidate, double value);

#endif // PEN_PARTITION_SEARCH_CANDIDATE_H
