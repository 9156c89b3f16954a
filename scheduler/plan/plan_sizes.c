#include "scheduler/plan/plan_sizes.h"

#include "base/integer.h"
#include "graph/graph.h"

// Placements are judged by the most that any kind takes: which kind it will be is not known.
static pen_status sizes_widen(const pen_program *program, pen_kernel_sizes *kind,
                              pen_plan_sizes *sizes) {
    uint64_t *bytes, *workspace;
    PEN_TRY(pen_kernel_sizes_of_all(kind, program->graph, program->order, program->order_count,
                                    &bytes, &workspace));
    if (sizes->bytes == NULL) {
        sizes->bytes = bytes;
        sizes->workspace = workspace;
        return PEN_OK;
    }
    for (uint32_t v = 0; v < pen_graph_value_count(program->graph); v++) {
        sizes->bytes[v] = pen_max_u64(sizes->bytes[v], bytes[v]);
    }
    for (uint32_t n = 0; n < pen_graph_node_count(program->graph); n++) {
        sizes->workspace[n] = pen_max_u64(sizes->workspace[n], workspace[n]);
    }
    return PEN_OK;
}

pen_status pen_plan_sizes_find(const pen_plan_model *model, uint32_t device_count, pen_arena *arena,
                               pen_plan_sizes *out_sizes) {
    pen_kernel_sizes **of_kind;
    *out_sizes = (pen_plan_sizes){0};
    PEN_TRY(PEN_NEW(arena, model->device_count, &of_kind));
    PEN_TRY(PEN_NEW(arena, device_count, &out_sizes->of_device));
    PEN_TRY(PEN_NEW(arena, device_count, &out_sizes->devices));
    for (uint32_t k = 0; k < model->device_count; k++) {
        PEN_TRY(pen_kernel_sizes_new(model->devices[k], arena, &of_kind[k]));
        PEN_TRY(sizes_widen(model->program, of_kind[k], out_sizes));
    }
    for (uint32_t d = 0; d < device_count; d++) {
        const uint32_t number = model->number_of_device[d];
        out_sizes->of_device[d] = &of_kind[number];
        out_sizes->devices[d] = model->devices[number];
    }
    return PEN_OK;
}
