// Placements to start from: right in all respects, and good along a line.
#ifndef PEN_PARTITION_SEARCH_INITIAL_PLACEMENT_H
#define PEN_PARTITION_SEARCH_INITIAL_PLACEMENT_H

#include "partition/problem/problem.h"

typedef struct pen_initial_placement {
    uint32_t *device_of_group; // [group_count] of the problem that was given
    uint32_t *line;            // [group_count] its groups along the best line
    double value;              // the plan's: largest load; latency: the sum of the segments' times
    bool is_found;
    bool is_cut; // the clock ended the search for it
} pen_initial_placement;

typedef struct pen_initial_options {
    uint64_t seed;
    uint32_t order_count; // lines to try
    double deadline;      // by pen_clock_seconds, or INFINITY; the first line is always tried
    double *work;         // nominal seconds left, see pen_segment_plan_options; the first line is
                          // always tried; NULL: not counted
    uint32_t set_limit;   // down-sets to look at for an exact answer; 0: none
} pen_initial_options;

// The problem made contiguous, with all groups in an order: those that no forward edge orders join
// one that they exchange with.
//   DOES_NOT_FIT   groups that lie on a cycle then fit on no device
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_initial_chain(const pen_problem *problem, pen_arena *arena,
                                           const pen_problem **out_chained);

// Segments along several lines, then along all of them at once, then, where there are at most
// `set_limit` down-sets, the best contiguous placement there is: *out_bound is its value then, else
// 0. A problem that is not contiguous is placed as if it were. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_initial_segments(const pen_problem *problem,
                                              const pen_initial_options *options, pen_arena *arena,
                                              pen_initial_placement *out_start, double *out_bound);

// A placement of a chained problem, whose groups are in the order `order`, as one of the problem
// that it was made from: fills line and device_of_group [group_count of it]. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_initial_unchain(const pen_problem *problem, const pen_problem *chained,
                                             const uint32_t *order,
                                             const uint32_t *device_of_chained, pen_arena *arena,
                                             pen_initial_placement *io_placement);

// Makes `device_of_group` right: groups leave devices that may not run them, or whose memory is
// exceeded, for others with room, lightest first; forward edges of a contiguous problem never lead
// back. `line` is a topological order of the groups, used for the latter.
//   DOES_NOT_FIT  none was found: the least memory missing, the device and the group in the way
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_initial_repair(const pen_problem *problem, const uint32_t *line,
                                            pen_arena *arena, uint32_t *device_of_group);

#endif // PEN_PARTITION_SEARCH_INITIAL_PLACEMENT_H
