// Which devices of a job are measured, and where.

#include <string.h>

#include "base/text.h"
#include "partition/costs/cluster_build.h"
#include "scheduler/measure/profile.h"

static pen_status targets_refuse_name(const pen_cluster *cluster, const char *device_name,
                                      pen_arena *arena) {
    const char **names;
    pen_text text;
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &names));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        names[d] = cluster->devices[d].name;
    }
    pen_text_init(&text, arena);
    pen_text_print(&text, "no device is called '%.100s', possible: ", device_name);
    pen_text_add_names(&text, device_name, names, cluster->device_count, 10);
    return pen_text_error(&text, PEN_NOT_FOUND);
}

// Devices of one kind, machine and number of threads are one target.
static void targets_add(const pen_cluster *cluster, uint32_t index, pen_profile_target *items,
                        uint32_t *count) {
    const pen_cluster_device *device = &cluster->devices[index];
    for (uint32_t t = 0; t < *count; t++) {
        if (strcmp(items[t].cost_kind, pen_cluster_cost_kind(device)) != 0) continue;
        if (items[t].cost_threads != pen_cluster_cost_threads(device)) continue;
        if (strcmp(items[t].host_name, device->host_name) != 0) continue;
        items[t].device_count += 1;
        return;
    }
    items[(*count)++] = (pen_profile_target){.device = device->name,
                                             .kind = device->kind,
                                             .gpu = device->gpu,
                                             .threads = device->threads,
                                             .model = device->model,
                                             .cost_kind = pen_cluster_cost_kind(device),
                                             .cost_threads = pen_cluster_cost_threads(device),
                                             .memory_bytes = device->bytes_limit,
                                             .device_count = 1,
                                             .device_index = index,
                                             .is_remote = device->is_remote,
                                             .host_name = device->host_name};
}

// What is measured of a GPU holds for its model, and nothing else says which that is.
static pen_status targets_check_model(const pen_job *job, uint32_t index) {
    const pen_cluster_device_spec *device = &job->cluster.devices[index];
    if (device->kind != PEN_CLUSTER_CUDA || device->model != NULL) return PEN_OK;
    return pen_cluster_spec_blame(
        &job->cluster, &device->written->kind,
        pen_error(PEN_INVALID_INPUT,
                  "devices: 'model' of '%.100s' is missing: what is measured of a GPU is kept by "
                  "its model, which `penstock doctor` names",
                  device->name));
}

// Each machine's kinds of device and numbers of threads once, those of this machine first.
pen_status pen_profile_find_targets(const pen_job *job, const char *device_name, pen_arena *arena,
                                    pen_profile_targets *out) {
    pen_profile_targets targets = {0};
    pen_profile_target *items;
    PEN_TRY(pen_cluster_build(&job->cluster, NULL, arena, &targets.cluster));
    const pen_cluster *cluster = targets.cluster;
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &items));
    for (int is_remote = 0; is_remote <= 1; is_remote++) {
        const uint32_t before = targets.count;
        for (uint32_t d = 0; d < cluster->device_count; d++) {
            const pen_cluster_device *device = &cluster->devices[d];
            if (device_name != NULL && strcmp(device->name, device_name) != 0) continue;
            if (device->is_remote != (is_remote == 1)) continue;
            PEN_TRY(targets_check_model(job, d));
            targets_add(cluster, d, items, &targets.count);
        }
        targets.remote_count = targets.count - before;
    }
    if (targets.count == 0) return targets_refuse_name(cluster, device_name, arena);
    targets.items = items;
    *out = targets;
    return PEN_OK;
}
