#include "scheduler/plan_memory.h"

#include <string.h>

#include "partition/stage_assign.h"
#include "scheduler/process_memory.h"

typedef struct plan_measure {
    const pen_plan_memory_request *request;
    pen_arena *arena;
    const pen_cut *cut;
    pen_run_form_built built;
    uint32_t *worker_of_device;
} plan_measure;

// Numbers of workers, from 1, by device: devices without host are one; so are those with one
// address, but for "localhost" without a port, which is a process for each.
static void plan_number_workers(const pen_cluster *cluster, uint32_t *out_worker) {
    uint32_t count = 0;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const char *host = cluster->devices[d].host;
        out_worker[d] = 0;
        for (uint32_t e = 0; e < d && out_worker[d] == 0; e++) {
            const char *other = cluster->devices[e].host;
            const bool is_same = host == NULL || other == NULL
                                     ? host == other
                                     : strcmp(host, other) == 0 && strcmp(host, "localhost") != 0;
            if (is_same) out_worker[d] = out_worker[e];
        }
        if (out_worker[d] == 0) out_worker[d] = ++count;
    }
}

static pen_status measure_cut(plan_measure *m) {
    const pen_program *program = m->request->program;
    const pen_plan *plan = m->request->plan;
    const uint32_t stage_count = plan->stages.stage_count;
    const uint32_t *stage_of_node;
    uint32_t *device_of_stage;
    bool *is_halved, *is_recomputed;
    pen_value_id *fed;
    PEN_TRY(pen_stage_assign(program->graph, plan, m->arena, &stage_of_node));
    PEN_TRY(PEN_NEW(m->arena, stage_count, &device_of_stage));
    PEN_TRY(PEN_NEW(m->arena, stage_count, &is_halved));
    PEN_TRY(PEN_NEW(m->arena, stage_count, &is_recomputed));
    PEN_TRY(PEN_NEW(m->arena, (size_t)program->input_count + 1, &fed));
    for (uint32_t s = 0; s < stage_count; s++) {
        device_of_stage[s] = plan->stages.stages[s].device;
        is_recomputed[s] = plan->stages.stages[s].is_recomputed;
    }
    pen_schedule_find_halved(m->request->schedule, stage_count, is_halved);
    uint32_t fed_count = 0;
    for (uint32_t i = 0; i < program->input_count; i++) {
        fed[fed_count++] = program->inputs[i];
    }
    if (pen_value_is(program->labels)) fed[fed_count++] = program->labels;
    const pen_cut_request request = {.graph = program->graph,
                                     .order = program->order,
                                     .order_count = program->order_count,
                                     .fed = fed,
                                     .fed_count = fed_count,
                                     .kept = program->kept,
                                     .kept_count = program->kept_count,
                                     .device_count = plan->device_count,
                                     .stage_count = stage_count,
                                     .device_of_stage = device_of_stage,
                                     .stage_of_node = stage_of_node,
                                     .is_halved = is_halved,
                                     .is_recomputed = is_recomputed};
    return pen_cut_stages(&request, m->arena, &m->cut);
}

static pen_status measure_copies(plan_measure *m) {
    const pen_plan *plan = m->request->plan;
    PEN_TRY(PEN_NEW(m->arena, plan->device_count, &m->worker_of_device));
    plan_number_workers(m->request->cluster, m->worker_of_device);
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

static pen_status measure_device(plan_measure *m, uint32_t device, pen_plan_memory *out_memory) {
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
