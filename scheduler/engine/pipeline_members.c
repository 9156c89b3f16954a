// Who takes part in a pipeline: the devices of the job, less those that were given up, with spares
// in the place of those that were lost.

#include <string.h>

#include "base/system/process_heap.h"
#include "partition/costs/cluster.h"
#include "partition/replicas/replica_spec.h"
#include "partition/spec/name_match.h"
#include "scheduler/engine/pipeline_kinds.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/job/job_links.h"

// A worker that has devices is nobody's spare.
static pen_status members_check_spares(const pen_job *job) {
    const char *const *spares = job->recovery.spares.items;
    for (uint32_t i = 0; i < job->recovery.spares.count; i++) {
        for (uint32_t d = 0; d < job->cluster.device_count; d++) {
            const pen_cluster_device_spec *device = &job->cluster.devices[d];
            if (device->host == NULL || strcmp(device->host, spares[i]) != 0) continue;
            return pen_job_blame(job, &spares[i],
                                 pen_error(PEN_INVALID_INPUT,
                                           "spares: '%s' is the host of device '%s', expected a "
                                           "worker of which no device is",
                                           spares[i], device->name));
        }
    }
    return PEN_OK;
}

void pen_pipeline_look_for_tasks(pipeline_engine *p) {
    const pen_engine_tasks *tasks = p->options.tasks;
    const pen_cluster_spec *cluster = &p->options.job->cluster;
    if (tasks == NULL) return;
    tasks->look(tasks->context);
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const pen_cluster_device_spec *device = &cluster->devices[d];
        if (device->per != PEN_CLUSTER_PER_TASK) continue;
        p->members[d].host = tasks->find(tasks->context, device->task)->host;
    }
}

// Which devices are threads of this process, processes that it starts, or workers elsewhere. The
// heap is prepared for gRPC only where there are links.
pen_status pen_pipeline_find_members(pipeline_engine *p) {
    const pen_job *job = p->options.job;
    const pen_cluster_spec *cluster = &job->cluster;
    uint32_t started = 0, linked = 0;
    PEN_TRY(PEN_NEW(p->arena, cluster->device_count, &p->members));
    PEN_TRY(PEN_NEW(p->arena, (size_t)cluster->device_count + 2, &p->is_missing));
    PEN_TRY(PEN_NEW(p->arena, (size_t)cluster->device_count + 2, &p->is_refused));
    PEN_TRY(PEN_NEW(p->arena, (size_t)cluster->device_count + 2, &p->was_there));
    PEN_TRY(members_check_spares(job));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const char *host = cluster->devices[d].host;
        const bool is_started = pen_host_is_started(host);
        p->members[d] = (pipeline_member){.host = host,
                                          .launched = is_started ? started : PIPELINE_NOT_LAUNCHED};
        started += is_started;
        linked += host != NULL;
    }
    const pen_engine_log *log = p->options.log;
    const pen_launch_options options = {.tls = pen_job_transport_tls(p->options.job),
                                        .is_insecure = p->options.insecure,
                                        .token_file = job->token_file,
                                        .store = log == NULL ? NULL : log->folder,
                                        .mirror = log == NULL ? NULL : log->mirror,
                                        .program = p->options.worker_program};
    if (started > 0) PEN_TRY(pen_launch_workers(started, &options, &p->launched));
    if (linked > 0) pen_process_heap_prepare();
    return PEN_OK;
}

// ---- the job without what is lost

static bool members_is_gone(const pipeline_engine *p, const char *name) {
    const pen_cluster_spec *cluster = &p->options.job->cluster;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (p->members[d].is_lost && strcmp(cluster->devices[d].name, name) == 0) return true;
    }
    return false;
}

// What is demanded of devices that are gone is no longer.
static pen_status members_reduce_constraints(pipeline_engine *p, pen_constraints *constraints) {
    const pen_option_list given_pins = constraints->pins, given_forbidden = constraints->forbidden;
    pen_constraint_pin *pins;
    pen_constraint_forbid *forbidden;
    PEN_TRY(PEN_NEW(p->placed, given_pins.count, &pins));
    PEN_TRY(PEN_NEW(p->placed, given_forbidden.count, &forbidden));
    constraints->pins = (pen_option_list){.items = pins};
    constraints->forbidden = (pen_option_list){.items = forbidden};
    for (uint32_t i = 0; i < given_pins.count; i++) {
        const pen_constraint_pin *pin = &((const pen_constraint_pin *)given_pins.items)[i];
        if (!members_is_gone(p, pin->to)) pins[constraints->pins.count++] = *pin;
    }
    for (uint32_t i = 0; i < given_forbidden.count; i++) {
        const pen_constraint_forbid *one =
            &((const pen_constraint_forbid *)given_forbidden.items)[i];
        if (!members_is_gone(p, one->on)) forbidden[constraints->forbidden.count++] = *one;
    }
    return PEN_OK;
}

// Owners that are lost leave their parameters to the others; without any, or if nobody else is left
// to run the model, replicas update. `left` devices.
static pen_status members_reduce_owners(pipeline_engine *p, pen_job *job, uint32_t left) {
    const pen_cluster_spec *cluster = &p->options.job->cluster;
    const char *const *given = job->placement.owners.items;
    const char **names, **kept;
    bool *is_owner;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(p->placed, cluster->device_count, &names));
    PEN_TRY(PEN_NEW(p->placed, cluster->device_count, &kept));
    PEN_TRY(PEN_NEW(p->placed, cluster->device_count, &is_owner));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        names[d] = cluster->devices[d].name;
    }
    const pen_name_set set = {names, cluster->device_count, "device"};
    const bool has_owners = pen_replicas_have_owners(&job->placement);
    for (uint32_t i = 0; has_owners && i < job->placement.owners.count; i++) {
        pen_name_matches matches;
        PEN_TRY(pen_match_devices(&set, given[i], p->placed, &matches));
        for (uint32_t m = 0; m < matches.count; m++) {
            is_owner[matches.indices[m]] = true;
        }
    }
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (is_owner[d] && !p->members[d].is_lost) kept[count++] = names[d];
    }
    if (count >= left) count = 0;
    if (has_owners) job->placement.owners = (pen_option_list){kept, count};
    if (job->placement.replicas > left - count) job->placement.replicas = left - count;
    return PEN_OK;
}

// The job without the devices that are lost, and with spares in their places: then it is planned as
// any other job. Constraints that ask for more devices than are left are loosened.
pen_status pen_pipeline_reduce_job(pipeline_engine *p) {
    const pen_job *given = p->options.job;
    const uint32_t count = given->cluster.device_count;
    pen_cluster_device_spec *devices;
    pen_job *job;
    uint32_t left = 0;
    bool is_as_given = true;
    PEN_TRY(PEN_NEW(p->placed, 1, &job));
    PEN_TRY(PEN_NEW(p->placed, count, &devices));
    PEN_TRY(PEN_NEW(p->placed, count, &p->member_of_device));
    *job = *given;
    for (uint32_t d = 0; d < count; d++) {
        is_as_given = is_as_given && !p->members[d].is_lost &&
                      p->members[d].host == given->cluster.devices[d].host;
        if (p->members[d].is_lost) continue;
        p->member_of_device[left] = d;
        pen_cluster_device_spec *device = &devices[left++];
        *device = given->cluster.devices[d];
        if (p->options.tasks != NULL && device->per == PEN_CLUSTER_PER_TASK) {
            const pen_engine_tasks *tasks = p->options.tasks;
            pen_cluster_spec_set_task(&given->cluster, tasks->find(tasks->context, device->task),
                                      device);
        }
        device->host = p->members[d].host;
    }
    if (left == 0) return pen_error(PEN_UNAVAILABLE, "no device is left");
    pen_constraints *constraints = &job->placement.constraints;
    job->cluster.devices = devices;
    job->cluster.device_count = left;
    job->cluster.is_reduced = left < count;
    job->cluster.is_mixed = p->kept != NULL && p->kept->holds;
    if (job->cluster.is_mixed) {
        constraints->kept = p->kept->entries;
        constraints->kept_count = p->kept->count;
    }
    is_as_given = is_as_given && !job->cluster.is_mixed;
    p->job = is_as_given ? given : job; // that given knows its positions
    if (left == count) return PEN_OK;
    if (constraints->stages.minimum > left) constraints->stages.minimum = left;
    PEN_TRY(members_reduce_owners(p, job, left));
    return members_reduce_constraints(p, constraints);
}
