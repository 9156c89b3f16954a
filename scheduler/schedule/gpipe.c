// GPipe: all forward tasks of a step, then all backward tasks (Huang et al., "GPipe: Efficient
// training of giant neural networks using pipeline parallelism", NeurIPS 2019). Every stage holds
// all microbatches. Backward goes in microbatch order here, as everywhere.
//
// A uniform chain of p stages takes (m + p - 1)(f + b) for m microbatches.

#include "scheduler/schedule/list_scheduling.h"
#include "scheduler/schedule/schedule_memory.h"

// All forward tasks first, as Huang and others have it (2019). Nothing can be shrunk where memory
// is short: then it is refused.
static pen_status gpipe_generate(const pen_stage_graph *graph, pen_arena *arena,
                                 const pen_schedule **out_schedule) {
    const pen_stage_index *index;
    const pen_schedule *schedule;
    uint32_t *window;
    double *bytes_peak;
    PEN_TRY(pen_stage_index_new(graph, arena, &index));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &window));
    PEN_TRY(PEN_NEW(arena, graph->device_count, &bytes_peak));
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        window[s] = pen_stage_microbatches(graph, &graph->stages[s]);
    }
    const pen_list_scheduling options = {.window = window, .forwards_first = true};
    PEN_TRY(pen_list_schedule(index, &options, arena, &schedule));
    PEN_TRY(pen_schedule_memory(graph, schedule, arena, window, NULL, bytes_peak));
    PEN_TRY(pen_status_add_context(pen_schedule_check_memory(graph, window, bytes_peak),
                                   "while scheduling with gpipe, which holds all microbatches"));
    *out_schedule = schedule;
    return PEN_OK;
}

const pen_schedule_generator pen_schedule_gpipe = {
    .name = "gpipe",
    .summary = "all forward passes, then all backward passes; holds every microbatch",
    .generate = gpipe_generate,
};
