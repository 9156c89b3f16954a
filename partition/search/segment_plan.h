// The best placement of a chain of down-sets: consecutive differences are segments, each on a
// device of its own. With the complete family the answer is exact for contiguous problems with
// uniform links.
#ifndef PEN_PARTITION_SEARCH_SEGMENT_PLAN_H
#define PEN_PARTITION_SEARCH_SEGMENT_PLAN_H

#include "partition/problem/device_classes.h"
#include "partition/search/down_sets.h"

typedef struct pen_segment_plan_options {
    double value_limit; // only better placements are looked for; INFINITY: any
    double deadline;    // by pen_clock_seconds; INFINITY: none
    double *work;       // nominal seconds left: what is done is taken from them, and when none is
                        // left it ends as if the deadline had come; NULL: not counted
    // latency: a parallel device may have any number of segments, and devices no order then
    bool repeats_parallel;
} pen_segment_plan_options;

typedef struct pen_segment_plan {
    bool is_found;             // a placement better than the limit
    bool is_finished;          // neither deadline nor work cut it short
    double value;              // largest load; latency: sum of all segments' loads
    uint32_t *device_of_group; // [group_count], when found
} pen_segment_plan;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_segment_plan_find(const pen_problem *problem,
                                               const pen_device_classes *classes,
                                               const pen_down_sets *sets,
                                               const pen_segment_plan_options *options,
                                               pen_arena *arena, pen_segment_plan *out_plan);

#endif // PEN_PARTITION_SEARCH_SEGMENT_PLAN_H
