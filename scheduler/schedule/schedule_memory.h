// What a schedule keeps in memory: it depends on the order of each device's tasks alone, not on
// how long they take.
//
// A stage with a backward pass holds a microbatch's activations from its forward task to the end of
// its backward or backward_weight task; a stage without, only while its forward task runs. What a
// weight half needs of its input half is held between the two.
//
// Memory is taken before the first step: a stage has a place for each of as many microbatches as it
// ever holds at once, and stages do not share them.
#ifndef PEN_SCHEDULER_SCHEDULE_SCHEDULE_MEMORY_H
#define PEN_SCHEDULER_SCHEDULE_SCHEDULE_MEMORY_H

#include "scheduler/schedule/schedule.h"

// out_in_flight: [stage_count], the most microbatches that each stage holds at once.
// out_halved: [stage_count], the most that are between their halves at once; may be NULL.
// out_bytes_peak: [device_count], with what is fixed and the largest workspace of its stages.
// The schedule's tasks are the graph's (pen_schedule_check_tasks). OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_schedule_memory(const pen_stage_graph *graph,
                                             const pen_schedule *schedule, pen_arena *arena,
                                             uint32_t *out_in_flight, uint32_t *out_halved,
                                             double *out_bytes_peak);

// DOES_NOT_FIT names the first device that is above its limit, and the bytes.
PEN_NODISCARD pen_status pen_schedule_check_memory(const pen_stage_graph *graph,
                                                   const uint32_t *in_flight,
                                                   const double *bytes_peak);

#endif // PEN_SCHEDULER_SCHEDULE_SCHEDULE_MEMORY_H
