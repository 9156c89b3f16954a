// From a job to workers that are ready to run it.

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "scheduler/engine/collector.h"
#include "scheduler/engine/pipeline_audit.h"
#include "scheduler/engine/pipeline_kinds.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/job/job_links.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/plan/plan_schedule.h"
#include "scheduler/protocol/admission.h"
#include "scheduler/runner/feed.h"

#define PIPELINE_TRACE_EVENTS ((uint32_t)1 << 16) // that each thread keeps

// ---- the plan

// The cost table that the plan was made with, so that its training is predicted as the plan is;
// NULL: that of the job. A plan is trained by all the same where its table was taken away.
static const char *setup_find_costs(const pen_plan *given) {
    if (given == NULL || given->costs == NULL) return NULL;
    if (access(given->costs, R_OK) == 0) return given->costs;
    pen_log(PEN_LOG_WARNING,
            "the plan's cost table '%s' cannot be read (%s): times are predicted without it",
            given->costs, strerror(errno));
    return NULL;
}

// The plan that was given, with figures of its own, or a new one.
static pen_status setup_plan(pipeline_engine *p) {
    const pen_plan *given = p->options.plan;
    const pen_plan_form_sizes sizes = {p->options.rest, p->options.evaluate_batch,
                                       p->options.evaluate_rest};
    const pen_plan_job_options options = {.objective = -1,
                                          .seed = -1,
                                          .schedule = given == NULL ? NULL : given->schedule,
                                          .cost_table = setup_find_costs(given),
                                          .given = given,
                                          .info = p->info,
                                          .part = p->options.part,
                                          .mode = p->options.mode,
                                          .batch = p->options.evaluate_batch,
                                          .sizes = &sizes};
    pen_plan *plan;
    PEN_TRY(pen_plan_job_create(p->job, &options, &p->plan_job));
    if (given != NULL) {
        PEN_TRY(pen_status_add_context(pen_plan_job_rebuild(p->plan_job, given, p->placed, &plan),
                                       "while using the plan"));
    } else {
        PEN_TRY(pen_plan_job_place(p->plan_job, p->placed, &plan));
    }
    p->plan = plan;
    PEN_TRY(pen_plan_job_use_plan(p->plan_job, plan, &p->request));
    return pen_plan_schedule(plan, p->placed, &p->schedule);
}

// Devices of different kinds have values in the plain layout; of one kind, in its own. No kernel is
// run here: a GPU need not be there.
static pen_status setup_open_device(pipeline_engine *p) {
    const pen_cluster *cluster = p->request->cluster;
    const pen_device_kind *kind;
    if (p->job->cluster.is_mixed) return PEN_OK; // also those that were lost
    for (uint32_t d = 1; d < cluster->device_count; d++) {
        if (strcmp(cluster->devices[d].kind, cluster->devices[0].kind) != 0) return PEN_OK;
    }
    PEN_TRY(pen_device_kind_find(cluster->devices[0].kind, &kind));
    const pen_device_options options = {.name = cluster->devices[0].name,
                                        .thread_count = cluster->devices[0].threads,
                                        .precision = p->job->numerics.precision,
                                        .libraries = p->job->numerics.libraries,
                                        .only_sizes = kind->has_own_memory};
    return kind->open(&options, &p->device);
}

// ---- workers

// Other machines are only reached with TLS, as the job says or the command line gives up.
static pen_status setup_check_addresses(const pipeline_engine *p) {
    const bool is_protected = p->job->tls.ca != NULL || p->options.insecure;
    for (uint32_t d = 0; d < p->job->cluster.device_count; d++) {
        PEN_TRY(pen_run_workers_check_address(&p->job->cluster, d, is_protected));
    }
    return PEN_OK;
}

// A kind of device whose memory this process sees.
static const char *setup_find_host_kind(const pen_cluster *cluster) {
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const char *kind = cluster->devices[d].kind;
        if (!pen_device_kind_has_own_memory(kind)) return kind;
    }
    return pen_cluster_device_kind_name(PEN_CLUSTER_CPU);
}

// What collects outputs is a device of this process, whose memory nobody limits.
static pen_status setup_number_workers(pipeline_engine *p) {
    const pen_cluster *cluster = p->request->cluster;
    const bool collects = pipeline_collects(p);
    PEN_TRY(pen_run_workers_number(cluster, collects, p->placed, &p->workers));
    PEN_TRY(PEN_NEW(p->placed, (size_t)cluster->device_count + collects, &p->devices));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const pen_cluster_device *device = &cluster->devices[d];
        p->devices[d] = (pen_run_spec_device){
            .name = device->name,
            .kind = device->kind,
            .thread_count = device->threads,
            .gpu = device->gpu,
            .precision = p->job->numerics.precision,
            .libraries = p->job->numerics.libraries,
            .memory_bytes = p->options.no_memory_check ? UINT64_MAX : device->bytes_limit};
    }
    if (collects) {
        p->devices[cluster->device_count] =
            (pen_run_spec_device){.name = PEN_COLLECTOR_NAME,
                                  .kind = setup_find_host_kind(cluster),
                                  .thread_count = 1,
                                  .memory_bytes = UINT64_MAX};
    }
    return PEN_OK;
}

pen_status pen_pipeline_name_workers(pipeline_engine *p) {
    for (uint32_t d = 0; d < p->request->cluster->device_count; d++) {
        const pipeline_member *member = &p->members[p->member_of_device[d]];
        if (member->host == NULL) continue;
        p->workers.list[p->workers.worker_of_device[d]].address =
            member->launched == PIPELINE_NOT_LAUNCHED
                ? member->host
                : pen_launched_address(p->launched, member->launched);
    }
    return pen_run_workers_name(&p->workers, p->placed);
}

// ---- all

// How many whole microbatches come before the rest of the last batch of an epoch.
static uint32_t setup_rest_index(const pipeline_engine *p) {
    const uint64_t batch = (uint64_t)p->job->train.batch;
    const uint64_t size = pen_plan_job_program(p->plan_job)->microbatch_size;
    return (uint32_t)pen_feed_cut(p->info->example_count % batch, size).whole_count;
}

// The plan's own program is used for whole microbatches; others are compiled for their sizes.
static pen_status setup_build_forms(pipeline_engine *p) {
    pen_compile_request compile;
    const pen_plan *plan = p->plan;
    const pen_schedule *schedule = p->schedule;
    PEN_TRY(pen_job_compile_request(p->job, p->options.part, p->info, p->placed, &compile));
    if (pipeline_collects(p)) {
        PEN_TRY(pen_collector_add(p->plan, p->schedule, p->placed, &plan, &schedule));
    }
    const pen_pipeline_request request = {.plan = plan,
                                          .schedule = schedule,
                                          .mode = p->options.mode,
                                          .program = pen_plan_job_program(p->plan_job),
                                          .compile = &compile,
                                          .device = p->device,
                                          .devices = p->devices,
                                          .workers = p->workers.list,
                                          .worker_count = p->workers.count,
                                          .worker_of_device = p->workers.worker_of_device,
                                          .rest = p->options.rest,
                                          .rest_index = setup_rest_index(p),
                                          .evaluate_batch = p->options.evaluate_batch,
                                          .evaluate_rest = p->options.evaluate_rest,
                                          .seed = (uint64_t)p->job->train.seed,
                                          .shares_memory = pen_job_shares_memory(p->job),
                                          .data = p->data,
                                          .info = p->info,
                                          .trace_limit =
                                              p->options.trace ? PIPELINE_TRACE_EVENTS : 0};
    return pen_pipeline_forms_build(&request, p->placed, &p->forms);
}

// The run as the workers would do it, in numbers: what would wait for ever is refused.
static pen_status setup_admit(pipeline_engine *p) {
    const pen_run_spec *spec = p->forms.spec;
    const pen_run_table *table = spec->table;
    const char **devices;
    const char ***channels;
    PEN_TRY(PEN_NEW(p->placed, table->device_count, &devices));
    PEN_TRY(PEN_NEW(p->placed, table->form_count, &channels));
    for (uint32_t d = 0; d < table->device_count; d++) {
        devices[d] = spec->devices[d].name;
    }
    for (uint32_t f = 0; f < table->form_count; f++) {
        PEN_TRY(PEN_NEW(p->placed, table->forms[f].channel_count, &channels[f]));
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            channels[f][c] = spec->forms[f].channels[c].value;
        }
    }
    const char *const *const *names;
    memcpy(&names, &channels, sizeof names);
    return pen_run_table_admit(table, &(pen_admission_names){devices, names});
}

static pen_status setup_allocate(pipeline_engine *p) {
    const pen_run_table *table = p->forms.spec->table;
    uint32_t channel_limit = 1;
    for (uint32_t f = 0; f < table->form_count; f++) {
        if (table->forms[f].channel_count > channel_limit) {
            channel_limit = table->forms[f].channel_count;
        }
    }
    PEN_TRY(PEN_NEW(p->placed, channel_limit, &p->feeds));
    PEN_TRY(PEN_NEW(p->placed, table->forms[0].microbatch_count, &p->losses));
    PEN_TRY(PEN_NEW(p->placed, (size_t)table->forms[0].microbatch_count + 1, &p->step_losses));
    PEN_TRY(PEN_NEW(p->placed, table->device_count, &p->figures));
    PEN_TRY(PEN_NEW(p->placed, table->device_count, &p->busy));
    PEN_TRY(PEN_NEW(p->placed, (size_t)table->worker_count + 1, &p->clocks));
    PEN_TRY(PEN_NEW(p->placed, PIPELINE_STEPS_KEPT, &p->step_seconds));
    return pen_pipeline_prepare_passes(p);
}

// What each worker's process takes by the plan, so that one that may not have as much is refused
// before it loads anything. Copies for checkpoints are no part: without room they are not made.
static pen_status setup_sum_memory(pipeline_engine *p) {
    p->needed_bytes = NULL;
    if (p->options.no_memory_check) return PEN_OK;
    PEN_TRY(PEN_NEW(p->placed, (size_t)p->workers.count + 1, &p->needed_bytes));
    for (uint32_t d = 0; d < p->plan->device_count; d++) {
        const pen_plan_device *device = &p->plan->devices[d];
        uint64_t *needed = &p->needed_bytes[p->workers.worker_of_device[d]];
        if (*needed == 0) *needed = device->process_bytes; // the same for all its devices
        if (pen_pipeline_has_own_memory(p, d)) continue;
        *needed += device->memory.total - device->memory.saved;
    }
    return PEN_OK;
}

pen_status pen_pipeline_place(pipeline_engine *p) {
    PEN_TRY(pen_pipeline_reduce_job(p));
    PEN_TRY(setup_plan(p));
    PEN_TRY(setup_open_device(p));
    PEN_TRY(setup_check_addresses(p));
    PEN_TRY(setup_number_workers(p));
    PEN_TRY(setup_sum_memory(p));
    PEN_TRY(pen_pipeline_name_workers(p));
    PEN_TRY(setup_build_forms(p));
    PEN_TRY(setup_admit(p));
    PEN_TRY(setup_allocate(p));
    PEN_TRY(pen_pipeline_prepare_audit(p));
    return pen_pipeline_list_tensors(p);
}

// What was made for one placement goes; options, log and links stay for the next.
void pen_pipeline_unplace(pipeline_engine *p) {
    pen_pipeline_release_audit(p);
    pen_pipeline_forms_release(&p->forms);
    if (p->device != NULL) p->device->kind->close(p->device);
    for (uint32_t t = 0; p->tensor_places != NULL && t < p->tensors.count; t++) {
        pen_memory_free(p->tensor_places[t].copy);
    }
    pen_plan_job_destroy(p->plan_job);
    p->forms = (pen_pipeline_forms){0};
    p->device = NULL;
    p->tensor_places = NULL;
    p->tensors = (pen_tensor_store){0};
    p->joined = NULL;
    p->plan_job = NULL;
    p->workers.count = 0;
    p->workers.local = 0;
    p->bubble_sum = 0;
    p->bubble_count = 0;
    p->step_count = 0;
    if (p->placed != NULL) pen_arena_reset(p->placed);
}
