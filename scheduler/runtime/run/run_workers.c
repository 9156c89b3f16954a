#include "scheduler/runtime/run/run_workers.h"

#include "scheduler/transport/grpc/address.h"

#define WORKERS_DISTANCES 3

// Nearest first.
static int workers_distance(const pen_cluster_device *device) {
    if (device->host == NULL) return 0;
    return pen_host_is_started(device->host) ? 1 : 2;
}

// The worker that has a device already: another device is of the same process. 0: there is none.
static uint32_t workers_find(const pen_cluster *cluster, const pen_run_workers *workers,
                             uint32_t device) {
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const bool is_same = cluster->devices[d].process == cluster->devices[device].process;
        if (is_same && workers->worker_of_device[d] != 0) return workers->worker_of_device[d];
    }
    return 0;
}

static void workers_add_local(pen_run_workers *workers) {
    workers->local = ++workers->count;
    workers->list[workers->local] = (pen_run_spec_worker){"this process", ""};
}

static void workers_number(const pen_cluster *cluster, uint32_t device, pen_run_workers *workers) {
    uint32_t *number = &workers->worker_of_device[device];
    if (cluster->devices[device].host == NULL) {
        if (workers->local == 0) workers_add_local(workers);
        *number = workers->local;
        return;
    }
    *number = workers_find(cluster, workers, device);
    if (*number != 0) return;
    *number = ++workers->count;
    workers->list[*number].address = cluster->devices[device].host;
}

pen_status pen_run_workers_number(const pen_cluster *cluster, bool collects, pen_arena *arena,
                                  pen_run_workers *out_workers) {
    pen_run_workers workers = {0};
    PEN_TRY(PEN_NEW(arena, (size_t)cluster->device_count + collects, &workers.worker_of_device));
    PEN_TRY(PEN_NEW(arena, (size_t)cluster->device_count + 1 + collects, &workers.list));
    workers.list[0] = (pen_run_spec_worker){"the coordinator", ""};
    if (collects) {
        workers_add_local(&workers);
        workers.worker_of_device[cluster->device_count] = workers.local;
    }
    for (int distance = 0; distance < WORKERS_DISTANCES; distance++) {
        for (uint32_t d = 0; d < cluster->device_count; d++) {
            if (workers_distance(&cluster->devices[d]) != distance) continue;
            workers_number(cluster, d, &workers);
        }
    }
    *out_workers = workers;
    return PEN_OK;
}

pen_status pen_run_workers_name(pen_run_workers *workers, pen_arena *arena) {
    for (uint32_t w = 1; w <= workers->count; w++) {
        if (w == workers->local) continue;
        PEN_TRY(pen_arena_format(arena, &workers->list[w].name, "worker %u (%s)", w,
                                 workers->list[w].address));
    }
    return PEN_OK;
}

pen_status pen_run_workers_check_address(const pen_cluster_spec *spec, uint32_t index,
                                         bool is_protected) {
    const pen_cluster_device_spec *device = &spec->devices[index];
    pen_address address;
    if (device->host == NULL || pen_host_is_started(device->host)) return PEN_OK;
    pen_status status = pen_address_read(device->host, &address);
    if (status != PEN_OK) {
        status = pen_status_add_context(status, "for the worker of device '%s'", device->name);
    } else if (!is_protected && !pen_address_is_loopback(&address)) {
        status = pen_error(PEN_INVALID_INPUT,
                           "device '%s' is at '%s', on another machine, and there is no TLS: "
                           "give tls: {ca, cert, key}, or say --insecure",
                           device->name, device->host);
    }
    return pen_cluster_spec_blame(spec, &device->written->host, status);
}
