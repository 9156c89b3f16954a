// Placements that take little of the memory there is, by the memory model itself.
//
// Searches by objective see estimates of memory. Where those find nothing, this looks for what
// fits and nothing else: everything on one device, and lines of nodes cut into segments so that the
// device that is fullest for its size is as little full as can be.
#ifndef PEN_PARTITION_PLAN_MEMORY_SEGMENTS_H
#define PEN_PARTITION_PLAN_MEMORY_SEGMENTS_H

#include "partition/plan/plan_solution.h"

// `problem` is the planner's graph lowered, contiguous and without limits. Writes the device of
// each of its groups and returns in *out_fullness the largest share of a device's memory that is
// used, with one microbatch in flight: at most 1 where it fits, and then it is not searched on;
// INFINITY where none was found, as pins may have it. Looks no longer than until `deadline` (by
// pen_clock_seconds) once something was found. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_memory_segments_find(const pen_planner *planner,
                                                  const pen_problem *problem, double deadline,
                                                  pen_arena *arena, uint32_t *device_of_group,
                                                  double *out_fullness);

#endif // PEN_PARTITION_PLAN_MEMORY_SEGMENTS_H
