// Zero bubble, as ZB-H1 does it (Qi, Wan, Huang, Lin: "Zero Bubble Pipeline Parallelism",
// arXiv:2401.10241, 2023): the backward tasks of a stage run in halves. Input halves go as early as
// they can, since other stages wait for them; weight halves fill the waits. Every stage holds at
// most as many microbatches as the first of its chain does under 1F1B, so that the memory of the
// fullest device is that of 1F1B:
//
//   hold(s) = window(s) + stages before s,     forward to input half at most window(s), as in 1F1B
//
// Within these windows forward goes before backward, so that stages behind do not wait. A uniform
// chain of p stages takes m (f + b + w) + (p - 1)(f + b - w) for m >= p microbatches, where b and w
// are the halves and w is at most f and b (the paper's table 2); under 1F1B 2 (p - 1) w more.
//
// Where nobody waits for the input half of a stage, or it has no weight half, its backward tasks
// are whole.

#include "scheduler/schedule/stage_windows.h"

// Of a weight half that has to be over before the next task comes: at 1, stages lag behind others.
#define ZERO_BUBBLE_PATIENCE 0.5

// The windows of 1F1B, with more to hold for stages behind, as the formula at the top has it.
static pen_status zero_bubble_generate(const pen_stage_graph *graph, pen_arena *arena,
                                       const pen_schedule **out_schedule) {
    static const double rank[PEN_LIST_KIND_COUNT] = {0, 1, 2};
    pen_list_scheduling options = {.patience = ZERO_BUBBLE_PATIENCE};
    const pen_stage_index *index;
    pen_stage_windows windows;
    uint32_t *depth;
    PEN_TRY(pen_stage_index_new(graph, arena, &index));
    PEN_TRY(pen_stage_windows_new(index, arena, &windows));
    PEN_TRY(PEN_NEW(arena, graph->stage_count, &depth));
    PEN_TRY(pen_list_keys_new(graph, rank, arena, &options.keys));
    pen_stage_index_depths(index, depth);
    pen_stage_index_find_halves(index, windows.is_halved);
    for (uint32_t s = 0; s < graph->stage_count; s++) {
        windows.hold[s] += windows.is_halved[s] ? depth[s] : 0;
        const uint32_t most = pen_stage_microbatches(graph, &graph->stages[s]);
        if (windows.hold[s] > most) windows.hold[s] = most;
        windows.halved[s] = windows.hold[s];
    }
    return pen_stage_windows_schedule(index, &options, &windows, arena, out_schedule);
}

const pen_schedule_generator pen_schedule_zero_bubble = {
    .name = "zero_bubble",
    .summary = "backward passes in halves, those for weights fill waits; memory as 1f1b",
    .generate = zero_bubble_generate,
};
