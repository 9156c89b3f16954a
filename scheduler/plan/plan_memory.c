#include "scheduler/plan/plan_memory.h"

#include "partition/plan/stage_assign.h"
#include "scheduler/compile/program_cut.h"
#include "scheduler/plan/process_memory.h"

typedef struct plan_measure {
    const pen_plan_memory_request *request;
    pen_arena *arena;
    const pen_cut *cut;
    pen_run_form_built built;
    uint32_t *worker_of_device;
} plan_measure;

static pen_status measure_cut(plan_measure *m) {
    const pen_plan_memory_request *request = m->request;
    const uint32_t *stage_of_node;
    PEN_TRY(pen_stage_assign(request->program->graph, request->plan, m->arena, &stage_of_node));
    return pen_program_cut(request->program, &request->plan->stages, request->schedule,
                           stage_of_node, m->arena, &m->cut);
}

static pen_status measure_copies(plan_measure *m) {
    const pen_plan *plan = m->request->plan;
    PEN_TRY(PEN_NEW(m->arena, plan->device_count, &m->worker_of_device));
    for (uint32_t d = 0; d < plan->device_count; d++) {
        m->worker_of_device[d] = m->request->cluster->devices[d].process + 1;
    }
    const pen_run_form_request request = {.cut = m->cut,
                                          .schedule = m->request->schedule,
                                          .microbatch_count = plan->microbatch_count,
                                          .microbatch_size = plan->microbatch_size,
                                          .trains = true,
                                          .worker_of_device = m->worker_of_device,
                                          .value_bytes = m->request->value_bytes,
                                          .value_bytes_context = m->request->context};
    return pen_run_form_build(&request, m->arena, &m->built);
}

static pen_status measure_device(plan_measure *m, uint32_t device, pen_device_memory *out_memory) {
    pen_value_id *lent;
    uint32_t lent_count = 0;
    PEN_TRY(PEN_NEW(m->arena, m->cut->channel_count, &lent));
    for (uint32_t c = 0; c < m->cut->channel_count; c++) {
        const pen_channel *channel = &m->cut->channels[c];
        if (channel->target != device || !m->built.form.channels[c].is_shared) continue;
        lent[lent_count++] = channel->to;
    }
    const pen_part_memory_request request = {.part = &m->cut->parts[device],
                                             .copies_of_value = m->built.buffers[device].copies,
                                             .lent = lent,
                                             .lent_count = lent_count,
                                             .value_bytes = m->request->value_bytes,
                                             .workspace = m->request->workspace,
                                             .context = m->request->context};
    return pen_part_memory_find(&request, out_memory);
}

// What the worker of `device` takes besides.
static pen_status measure_process(plan_measure *m, uint32_t device,
                                  pen_plan_device_memory *memory) {
    const uint32_t device_count = m->request->plan->device_count;
    const pen_graph **graphs;
    uint32_t count = 0;
    uint64_t buffer_bytes = 0;
    PEN_TRY(PEN_NEW(m->arena, device_count, &graphs));
    for (uint32_t d = 0; d < device_count; d++) {
        if (m->worker_of_device[d] != m->worker_of_device[device]) continue;
        graphs[count++] = m->cut->parts[d].graph;
        buffer_bytes += memory[d].memory.total;
    }
    const pen_worker_memory_request request = {
        .graphs = graphs,
        .graph_count = count,
        .buffer_bytes = buffer_bytes,
        .is_within = m->request->cluster->devices[device].host == NULL};
    return pen_worker_memory_estimate(&request, m->arena, &memory[device].process_bytes);
}

static pen_status measure_all(plan_measure *m, pen_plan_device_memory *memory) {
    PEN_TRY(measure_cut(m));
    PEN_TRY(measure_copies(m));
    for (uint32_t d = 0; d < m->request->plan->device_count; d++) {
        memory[d] = (pen_plan_device_memory){.worker = m->worker_of_device[d]};
        if (m->cut->parts[d].list_count == 0) continue;
        PEN_TRY(measure_device(m, d, &memory[d].memory));
    }
    for (uint32_t d = 0; d < m->request->plan->device_count; d++) {
        PEN_TRY(measure_process(m, d, memory));
    }
    return PEN_OK;
}

pen_status pen_plan_memory_find(const pen_plan_memory_request *request,
                                pen_plan_device_memory *out_memory) {
    plan_measure m = {.request = request};
    PEN_TRY(pen_arena_create(&m.arena));
    const pen_status status = measure_all(&m, out_memory);
    pen_arena_destroy(m.arena);
    return status;
}
