// How many microbatches each stage may hold, and schedules that keep to it and to the memory.
//
// Memory is taken in places, for as many microbatches as a stage ever holds at once
// (schedule_memory.h). Where devices cannot hold what is wanted, windows shrink, the one that is
// largest for what was wanted first, down to 1; and where that is not enough, backward tasks run
// whole.
//
// Lifetime: in the arena they were made with.
// Threads:  one at a time.
#ifndef PEN_SCHEDULER_SCHEDULE_STAGE_WINDOWS_H
#define PEN_SCHEDULER_SCHEDULE_STAGE_WINDOWS_H

#include "scheduler/schedule/list_scheduling.h"

typedef struct pen_stage_windows {
    uint32_t *window; // [stage_count] as in pen_list_scheduling
    uint32_t *hold;   // [stage_count]
    uint32_t *halved; // [stage_count]
    bool *is_halved;  // [stage_count]
} pen_stage_windows;

// As many as it takes to fill the pipeline behind a stage: the stages on the longest way over
// gradients from it to the end, itself included. That is p - i for stage i of a chain of p. Where
// transfers make the way longer than its stages account for, so many that the stage is at most 5 %
// slower than the busiest device or link:
//
//   round(s) = f + b + max over edges s -> t with gradients (transfer + transfer back + round(t))
//   window(s) = min(microbatches, max(stages(s), ceil(0.95 round(s) / period)))
//
// where the period is what the busiest device or link takes for a microbatch. Backward tasks are
// whole. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_windows_new(const pen_stage_index *index, pen_arena *arena,
                                               pen_stage_windows *out_windows);

// The number of stages on the longest way over gradients that ends before each stage.
// out_depth: [stage_count].
void pen_stage_index_depths(const pen_stage_index *index, uint32_t *out_depth);

// A list schedule with these windows, which shrink where memory asks for it. Of `options` the
// windows are not looked at.
//   DOES_NOT_FIT   one microbatch at a time is too many; names the device and the bytes
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stage_windows_schedule(const pen_stage_index *index,
                                                    const pen_list_scheduling *options,
                                                    pen_stage_windows *windows, pen_arena *arena,
                                                    const pen_schedule **out_schedule);

#endif // PEN_SCHEDULER_SCHEDULE_STAGE_WINDOWS_H
