// Which devices of a job can be measured here.

#include <string.h>

#include "base/text.h"
#include "partition/costs/cluster.h"
#include "scheduler/measure/profile.h"

bool pen_profile_is_local(const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    if (host == NULL) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i]);
        if (strncmp(host, names[i], length) != 0) continue;
        if (host[length] == '\0' || host[length] == ':') return true;
    }
    return false;
}

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

static void targets_add(const pen_cluster_device *device, pen_profile_target *items,
                        uint32_t *count) {
    for (uint32_t t = 0; t < *count; t++) {
        if (strcmp(items[t].kind, device->kind) != 0) continue;
        if (items[t].threads != device->threads) continue;
        items[t].device_count += 1;
        return;
    }
    items[(*count)++] = (pen_profile_target){.device = device->name,
                                             .kind = device->kind,
                                             .threads = device->threads,
                                             .memory_bytes = device->bytes_limit,
                                             .device_count = 1};
}

// Devices of this machine, each kind and number of threads once. Those of other machines are
// listed, since `profile` must run there.
pen_status pen_profile_find_targets(const pen_job *job, const char *device_name, pen_arena *arena,
                                    pen_profile_targets *out) {
    const pen_cluster *cluster;
    pen_profile_target *items;
    const char **remote;
    pen_profile_targets targets = {0};
    bool is_found = device_name == NULL;
    PEN_TRY(pen_cluster_build(&job->cluster, NULL, arena, &cluster));
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &items));
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &remote));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const pen_cluster_device *device = &cluster->devices[d];
        if (device_name != NULL && strcmp(device->name, device_name) != 0) continue;
        is_found = true;
        if (pen_profile_is_local(device->host)) {
            targets_add(device, items, &targets.count);
        } else {
            remote[targets.remote_count++] = device->name;
        }
    }
    if (!is_found) return targets_refuse_name(cluster, device_name, arena);
    if (targets.count == 0) {
        return pen_error(PEN_UNSUPPORTED,
                         "device '%s' is on another machine: run `penstock profile` there",
                         remote[0]);
    }
    targets.items = items;
    targets.remote = remote;
    *out = targets;
    return PEN_OK;
}
