#include "scheduler/plan/plan_memory.h"

#include <math.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "partition/plan/stage_assign.h"
#include "scheduler/compile/program_cut.h"
#include "scheduler/plan/process_memory.h"
#include "scheduler/plan/saved_memory.h"
#include "scheduler/transport/ring/ring.h"

typedef struct plan_measure {
    const pen_plan_memory_request *request;
    pen_arena *arena;
    const pen_cut *cut;
    pen_run_form_built built;
    uint32_t *worker_of_device;
    pen_part_first *firsts; // [device_count] of those apart, where values of its part lie
} plan_measure;

static pen_status measure_workers(plan_measure *m) {
    const uint32_t device_count = m->request->plan->device_count;
    PEN_TRY(PEN_NEW(m->arena, device_count, &m->worker_of_device));
    for (uint32_t d = 0; d < device_count; d++) {
        m->worker_of_device[d] = m->request->cluster->devices[d].process + 1;
    }
    return PEN_OK;
}

static pen_status measure_cut(const plan_measure *m, const pen_plan_form *form,
                              const pen_cut **out_cut) {
    const pen_plan_memory_request *request = m->request;
    pen_program_parts parts;
    PEN_TRY(pen_program_cut(form->program, request->plan, request->schedule, m->arena, &parts));
    *out_cut = parts.cut;
    return PEN_OK;
}

static pen_status measure_copies(const plan_measure *m, const pen_plan_form *form, uint32_t count,
                                 const pen_cut *cut, pen_run_form_built *out_built) {
    const bool has_replicas = m->request->plan->replica_count > 1;
    const pen_run_form_request request = {.cut = cut,
                                          .schedule = m->request->schedule,
                                          .first_microbatch =
                                              has_replicas ? form->first_microbatch : 0,
                                          .microbatch_count = count,
                                          .microbatch_size = form->program->microbatch_size,
                                          .trains = form->trains,
                                          .worker_of_device = m->worker_of_device,
                                          .value_bytes = m->request->value_bytes,
                                          .value_bytes_context = m->request->contexts[0]};
    return pen_run_form_build(&request, m->arena, out_built);
}

// Whether the host does not see the device's memory, as a GPU's. What feeds a form is no device.
static bool measure_is_apart(const plan_measure *m, uint32_t device) {
    return device < m->request->plan->device_count &&
           m->request->devices[device]->kind->has_own_memory;
}

// What is lent takes nothing; where either end has memory of its own, values are copied.
static pen_status measure_device(plan_measure *m, uint32_t device, pen_device_memory *out_memory) {
    pen_part_first *first = &m->firsts[device];
    pen_value_id *lent;
    uint32_t lent_count = 0;
    PEN_TRY(PEN_NEW(m->arena, m->cut->channel_count, &lent));
    for (uint32_t c = 0; c < m->cut->channel_count; c++) {
        const pen_channel *channel = &m->cut->channels[c];
        if (channel->target != device || !m->built.form.channels[c].is_shared) continue;
        if (measure_is_apart(m, channel->source) || measure_is_apart(m, device)) {
            continue; // it is copied
        }
        lent[lent_count++] = channel->to;
    }
    const pen_part_memory_request request = {.part = &m->cut->parts[device],
                                             .copies_of_value = m->built.buffers[device].copies,
                                             .lent = lent,
                                             .lent_count = lent_count,
                                             .value_bytes = m->request->value_bytes,
                                             .workspace = m->request->workspace,
                                             .context = m->request->contexts[device],
                                             .device = m->request->devices[device]};
    if (!measure_is_apart(m, device)) return pen_part_memory_find(&request, out_memory);
    PEN_TRY(PEN_NEW(m->arena, pen_graph_value_count(request.part->graph), &first->slots));
    return pen_part_memory_find_first(&request, first, out_memory);
}

// Workers make an executor for each form, whether it is ever run or not. What one takes beside the
// first counts as workspace.
static pen_status measure_form(const plan_measure *m, const pen_plan_form *form,
                               pen_plan_device_memory *memory) {
    const pen_cut *cut;
    pen_run_form_built built;
    PEN_TRY(measure_cut(m, form, &cut));
    PEN_TRY(measure_copies(m, form, 1, cut, &built));
    for (uint32_t d = 0; d < m->request->plan->device_count; d++) {
        const pen_part_memory_request request = {.part = &cut->parts[d],
                                                 .copies_of_value = built.buffers[d].copies,
                                                 .value_bytes = m->request->value_bytes,
                                                 .workspace = m->request->workspace,
                                                 .context = m->request->contexts[d],
                                                 .device = m->request->devices[d]};
        uint64_t bytes;
        if (m->firsts[d].graph == NULL || request.part->list_count == 0) continue;
        PEN_TRY(pen_part_memory_find_further(&request, &m->firsts[d], &bytes));
        memory[d].memory.workspace += bytes;
        memory[d].memory.total += bytes;
    }
    return PEN_OK;
}

// What a device takes for itself counts as workspace.
static void measure_own(const plan_measure *m, uint32_t device, pen_device_memory *memory) {
    const uint64_t own = pen_device_own_bytes(m->request->devices[device]);
    memory->workspace += own;
    memory->total += own;
}

// Whether something else comes to where the value of a channel lies at its maker.
static bool measure_is_of_another(const plan_measure *m, const pen_channel *channel) {
    const pen_memory_slot *slots = m->firsts[channel->source].slots;
    const pen_graph *graph = m->cut->parts[channel->source].graph;
    if (slots == NULL) return true;
    const pen_memory_slot *own = &slots[channel->from.index];
    if (!pen_value_same(pen_part_value_root(graph, channel->from), channel->from)) return true;
    for (uint32_t c = 0; c < m->cut->channel_count; c++) {
        if (m->cut->channels[c].target != channel->source) continue;
        const pen_memory_slot *slot = &slots[m->cut->channels[c].to.index];
        if (slot->region == own->region && slot->offset == own->offset) return true;
    }
    return false;
}

// Whether the reader copies from the maker, and nothing is on the host: as workers decide
// (staging_try_to_reach). GPUs of other machines cannot be asked.
static bool measure_is_direct(const plan_measure *m, uint32_t c) {
    const pen_channel *channel = &m->cut->channels[c];
    const pen_run_channel *run = &m->built.form.channels[c];
    if (!run->is_shared || run->is_per_step) return false;
    if (!measure_is_apart(m, channel->source) || !measure_is_apart(m, channel->target)) {
        return false;
    }
    const pen_device_kind *kind = m->request->devices[channel->target]->kind;
    const pen_cluster_device *maker = &m->request->cluster->devices[channel->source];
    const pen_cluster_device *reader = &m->request->cluster->devices[channel->target];
    if (kind != m->request->devices[channel->source]->kind || kind->may_reach == NULL) return false;
    if (m->built.buffers[channel->source].copies[channel->from.index] == 0) return false;
    if (measure_is_of_another(m, channel)) return false;
    if (reader->is_remote) return reader->gpu == maker->gpu;
    return kind->may_reach(reader->gpu, maker->gpu);
}

// Of the host's memory, what goes to and from devices that it does not see: pinned memory of such
// a device, and room for what its channels carry (pen_worker_staging_open takes it).
static pen_status measure_staging(plan_measure *m, uint32_t device, uint64_t *io_bytes) {
    const pen_part *part = &m->cut->parts[device];
    uint64_t pinned;
    if (!measure_is_apart(m, device)) return PEN_OK;
    PEN_TRY(pen_device_pinned_bytes(m->request->devices[device], part->graph, part->order,
                                    part->order_count, &pinned));
    *io_bytes += pinned;
    for (uint32_t c = 0; c < m->built.form.channel_count; c++) {
        const pen_run_channel *channel = &m->built.form.channels[c];
        if (measure_is_direct(m, c)) continue;
        const bool is_made_apart =
            channel->is_shared && measure_is_apart(m, channel->source_device);
        const uint32_t places =
            pen_run_channel_staged(channel, channel->source_device == device,
                                   channel->target_device == device, is_made_apart);
        *io_bytes += places * pen_align_up(channel->bytes, PEN_RUN_STAGING_ALIGNMENT);
    }
    return PEN_OK;
}

// Memory that the worker of `device` shares with others of its host, a ring for each direction in
// which values go: all of it is resident once it has been written through. For example 8 MiB in the
// middle of three stages.
static pen_status measure_rings(const plan_measure *m, uint32_t device, uint64_t *io_bytes) {
    const uint32_t device_count = m->request->plan->device_count;
    const pen_cluster_device *devices = m->request->cluster->devices;
    const uint32_t own = m->worker_of_device[device];
    bool *is_counted; // [2 * (device_count + 1)], by process: from it, to it
    if (!m->request->has_rings) return PEN_OK;
    PEN_TRY(PEN_NEW(m->arena, 2 * ((uint64_t)device_count + 1), &is_counted));
    for (uint32_t c = 0; c < m->built.form.channel_count; c++) {
        const pen_run_channel *channel = &m->built.form.channels[c];
        const uint32_t source = channel->source_device, target = channel->target_device;
        if (source >= device_count || target >= device_count) continue; // to or from who feeds
        const bool is_sent = m->worker_of_device[source] == own;
        if (is_sent == (m->worker_of_device[target] == own)) continue;
        const pen_cluster_device *other = &devices[is_sent ? target : source];
        if (other->host_index != devices[device].host_index) continue;
        bool *is_there = &is_counted[2 * other->process + is_sent];
        if (!*is_there) *io_bytes += PEN_RING_FILE_BYTES;
        *is_there = true;
    }
    return PEN_OK;
}

// What the worker of `device` takes besides.
static pen_status measure_process(plan_measure *m, uint32_t device,
                                  pen_plan_device_memory *memory) {
    const uint32_t device_count = m->request->plan->device_count;
    const pen_graph **graphs;
    uint32_t count = 0;
    uint64_t buffer_bytes = 0, staging_bytes = 0;
    PEN_TRY(PEN_NEW(m->arena, device_count, &graphs));
    for (uint32_t d = 0; d < device_count; d++) {
        if (m->worker_of_device[d] != m->worker_of_device[device]) continue;
        graphs[count++] = m->cut->parts[d].graph;
        if (!measure_is_apart(m, d)) buffer_bytes += memory[d].memory.total;
        PEN_TRY(measure_staging(m, d, &staging_bytes));
    }
    const pen_worker_memory_request request = {
        .graphs = graphs,
        .graph_count = count,
        .buffer_bytes = buffer_bytes,
        .data_bytes = m->request->data_bytes,
        .is_within = m->request->cluster->devices[device].host == NULL};
    PEN_TRY(pen_worker_memory_estimate(&request, m->arena, &memory[device].process_bytes));
    memory[device].process_bytes += staging_bytes;
    return measure_rings(m, device, &memory[device].process_bytes);
}

// Copies for checkpoints: for them no placement is refused. Those of a GPU's tensors are its
// process's, whose devices are told one figure.
static pen_status measure_saved(plan_measure *m, pen_plan_device_memory *memory) {
    const uint32_t device_count = m->request->plan->device_count;
    pen_saved_memory_device *devices;
    uint64_t *bytes;
    PEN_TRY(PEN_NEW(m->arena, device_count, &devices));
    PEN_TRY(PEN_NEW(m->arena, device_count, &bytes));
    for (uint32_t d = 0; d < device_count; d++) {
        devices[d] = (pen_saved_memory_device){
            m->worker_of_device[d], (double)memory[d].memory.total,
            measure_is_apart(m, d) ? INFINITY : m->request->plan->stages.bytes_limit[d]};
    }
    PEN_TRY(pen_saved_memory_find(m->cut, devices, bytes));
    for (uint32_t d = 0; d < device_count; d++) {
        if (!measure_is_apart(m, d)) {
            memory[d].memory.saved = bytes[d];
            memory[d].memory.total += bytes[d];
            continue;
        }
        for (uint32_t other = 0; other < device_count; other++) {
            if (m->worker_of_device[other] != m->worker_of_device[d]) continue;
            memory[other].process_bytes += bytes[d];
        }
    }
    return PEN_OK;
}

static pen_status measure_all(plan_measure *m, pen_plan_device_memory *memory) {
    const pen_plan_form whole = {.program = m->request->program, .trains = true};
    PEN_TRY(measure_workers(m));
    PEN_TRY(measure_cut(m, &whole, &m->cut));
    PEN_TRY(measure_copies(m, &whole, m->request->plan->microbatch_count, m->cut, &m->built));
    PEN_TRY(PEN_NEW(m->arena, m->request->plan->device_count, &m->firsts));
    for (uint32_t d = 0; d < m->request->plan->device_count; d++) {
        memory[d] = (pen_plan_device_memory){.worker = m->worker_of_device[d]};
        if (m->cut->parts[d].list_count > 0) PEN_TRY(measure_device(m, d, &memory[d].memory));
        measure_own(m, d, &memory[d].memory);
    }
    for (uint32_t f = 0; f < m->request->forms->count; f++) {
        PEN_TRY(measure_form(m, &m->request->forms->items[f], memory));
    }
    for (uint32_t d = 0; d < m->request->plan->device_count; d++) {
        PEN_TRY(measure_process(m, d, memory));
    }
    return m->request->is_saved ? measure_saved(m, memory) : PEN_OK;
}

pen_status pen_plan_memory_find(const pen_plan_memory_request *request,
                                pen_plan_device_memory *out_memory) {
    plan_measure m = {.request = request};
    PEN_TRY(pen_arena_create(&m.arena));
    const pen_status status = measure_all(&m, out_memory);
    pen_arena_destroy(m.arena);
    return status;
}

static pen_status memory_refuse(const pen_plan *plan, uint32_t device,
                                const pen_device_memory *memory, pen_arena *arena) {
    char needed[PEN_QUANTITY_TEXT_BYTES], limit[PEN_QUANTITY_TEXT_BYTES];
    const char *kinds;
    PEN_TRY(pen_device_memory_format(memory, arena, &kinds));
    return pen_error(
        PEN_DOES_NOT_FIT, "device '%s' needs %s of memory under the schedule %s and may use %s: %s",
        plan->devices[device].name, pen_bytes_format(memory->total, needed), plan->schedule,
        pen_bytes_format((uint64_t)plan->stages.bytes_limit[device], limit), kinds);
}

static void memory_find_missing(const pen_plan_memory_request *request,
                                const pen_plan_device_memory *memory) {
    const pen_plan *plan = request->plan;
    for (uint32_t d = 0; d < plan->device_count && request->missing != NULL; d++) {
        const uint64_t told = plan->devices[d].memory.total, found = memory[d].memory.total;
        if ((double)found <= plan->stages.bytes_limit[d] || found <= told) continue;
        request->missing[d] = pen_max_u64(request->missing[d], found - told);
    }
}

// Devices are judged by what is found.
pen_status pen_plan_memory_refine(const pen_plan_memory_request *request, pen_arena *arena,
                                  pen_plan *plan) {
    pen_plan_device *devices;
    pen_plan_device_memory *memory;
    PEN_TRY(PEN_NEW(arena, plan->device_count, &devices));
    PEN_TRY(PEN_NEW(arena, plan->device_count, &memory));
    PEN_TRY(pen_plan_memory_find(request, memory));
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if ((double)memory[d].memory.total > plan->stages.bytes_limit[d]) {
            memory_find_missing(request, memory);
            return memory_refuse(plan, d, &memory[d].memory, arena);
        }
        const bool is_here = request->cluster->devices[d].host == NULL;
        devices[d] = plan->devices[d];
        devices[d].memory = memory[d].memory;
        devices[d].process_bytes = memory[d].process_bytes + (is_here ? plan->process_bytes : 0);
    }
    plan->devices = devices;
    return PEN_OK;
}

// Of whole batches, and of the last one.
#define MEMORY_EVALUATIONS 2u

// Of several devices, the pinned memory of each worker is found when the model is cut.
pen_status pen_plan_memory_process(const pen_job *job, const pen_plan_model *model,
                                   const pen_cluster *cluster, pen_arena *arena,
                                   uint64_t *out_bytes) {
    const bool is_local = cluster->device_count == 1 && cluster->devices[0].host == NULL;
    const pen_program *program = model->program;
    bool is_networked = false;
    uint64_t pinned = 0;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (cluster->devices[d].host != NULL) is_networked = true;
    }
    const bool evaluates = pen_job_data_can_evaluate(&job->data);
    const pen_process_memory_request request = {.programs = &program,
                                                .program_count = 1,
                                                .info = model->info,
                                                .batch = (uint64_t)job->train.batch,
                                                .evaluation_count =
                                                    evaluates ? MEMORY_EVALUATIONS : 0,
                                                .exports = job->outputs.export != NULL,
                                                .is_coordinator = !is_local,
                                                .is_networked = is_networked};
    if (is_local) {
        PEN_TRY(pen_device_pinned_bytes(model->devices[0], program->graph, program->order,
                                        program->order_count, &pinned));
    }
    PEN_TRY(pen_process_memory_estimate(&request, arena, out_bytes));
    *out_bytes += pinned;
    return PEN_OK;
}
