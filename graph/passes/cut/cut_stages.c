#include "graph/passes/cut/cut_stages.h"

#include "graph/passes/cut/cut_state.h"

// The assertions say what a cut is: each node in one list, each channel with two ends.
static pen_status cut_run(const pen_cut_request *request, pen_arena *arena, pen_arena *scratch,
                          pen_cut *cut) {
    cut_plan plan;
    pen_part *parts;
    PEN_TRY(pen_cut_plan_make(request, arena, scratch, &plan));
    PEN_TRY(PEN_NEW(arena, request->device_count, &parts));
    for (uint32_t d = 0; d < request->device_count; d++) {
        PEN_TRY(pen_cut_part_make(&plan, d, &parts[d], &cut->node_count));
    }
    cut->node_count -= plan.twin_count;
    PEN_ASSERT(cut->node_count == request->order_count); // each node is in exactly one list
    for (uint32_t c = 0; c < plan.channel_count; c++) {
        PEN_ASSERT(pen_value_is(plan.channels[c].to));
    }
    cut->device_count = request->device_count;
    cut->parts = parts;
    cut->channel_count = plan.channel_count;
    cut->channels = plan.channels;
    cut->phase_count = 1;
    for (uint32_t k = 0; k < plan.key_count; k++) {
        const uint32_t phases = plan.keys[k].list.phase + 1;
        if (phases > cut->phase_count) cut->phase_count = phases;
    }
    return PEN_OK;
}

pen_status pen_cut_stages(const pen_cut_request *request, pen_arena *arena,
                          const pen_cut **out_cut) {
    pen_cut *cut;
    pen_arena *scratch;
    PEN_TRY(PEN_NEW(arena, 1, &cut));
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = cut_run(request, arena, scratch, cut);
    pen_arena_destroy(scratch);
    PEN_TRY(pen_status_add_context(status, "while cutting the graph into stages"));
    *out_cut = cut;
    return PEN_OK;
}
