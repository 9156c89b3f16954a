// 1F1B: each device goes on with a backward task as soon as there is one, and a stage holds no more
// microbatches than it takes to fill the pipeline behind it, stage_windows.h (Narayanan et al.,
// "PipeDream", SOSP 2019; "Memory-efficient pipeline-parallel DNN training", ICML 2021).
//
// A uniform chain of p stages takes (m + p - 1)(f + b) for m microbatches.

#include "scheduler/schedule/stage_windows.h"

static pen_status one_f_one_b_generate(const pen_stage_graph *graph, pen_arena *arena,
                                       const pen_schedule **out_schedule) {
    const pen_list_scheduling options = {0};
    const pen_stage_index *index;
    pen_stage_windows windows;
    PEN_TRY(pen_stage_index_new(graph, arena, &index));
    PEN_TRY(pen_stage_windows_new(index, arena, &windows));
    return pen_stage_windows_schedule(index, &options, &windows, arena, out_schedule);
}

const pen_schedule_generator pen_schedule_one_f_one_b = {
    .name = "1f1b",
    .summary = "backward passes as early as they can; holds as many microbatches as stages follow",
    .generate = one_f_one_b_generate,
};
