#include "scheduler/engine/audit_room.h"

#include "device/device.h"

#define ROOM_TIMES 2 // what a device takes

static uint64_t room_taken(const pen_plan *plan, uint32_t device) {
    const pen_device_memory *memory = &plan->devices[device].memory;
    return memory->total - memory->saved;
}

// Whether the host sees the device's memory. What is kept for an audit is read there; and bits of a
// GPU are not those of a device of another kind, which would be asked to compute the same.
static bool room_is_seen(const pen_cluster *cluster, uint32_t device) {
    return !pen_device_kind_has_own_memory(cluster->devices[device].kind);
}

// What the plan leaves of a worker's devices.
static uint64_t room_left(const pen_plan *plan, const pen_cluster *cluster,
                          const pen_run_workers *workers, uint32_t worker) {
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const uint64_t limit = cluster->devices[d].bytes_limit, taken = room_taken(plan, d);
        if (workers->worker_of_device[d] != worker || limit <= taken) continue;
        if (!room_is_seen(cluster, d)) continue;
        bytes += limit - taken < UINT64_MAX - bytes ? limit - taken : UINT64_MAX - bytes;
    }
    return bytes;
}

// Devices whose own worker has no room for what it keeps have no row: nobody could judge them.
pen_status pen_audit_room_find(const pen_plan *plan, const pen_cluster *cluster,
                               const pen_run_workers *workers, pen_arena *arena,
                               const bool **out_has_room) {
    const size_t width = (size_t)workers->count + 1;
    uint64_t *left;
    bool *has_room;
    PEN_TRY(PEN_NEW(arena, width, &left));
    PEN_TRY(PEN_NEW(arena, plan->device_count * width, &has_room));
    for (uint32_t w = 1; w <= workers->count; w++) {
        left[w] = room_left(plan, cluster, workers, w);
    }
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const uint64_t bytes = room_taken(plan, d);
        if (!room_is_seen(cluster, d)) continue;
        if (left[workers->worker_of_device[d]] < bytes) continue;
        for (uint32_t w = 1; w <= workers->count; w++) {
            has_room[d * width + w] = left[w] / ROOM_TIMES >= bytes;
        }
    }
    *out_has_room = has_room;
    return PEN_OK;
}

static uint32_t room_count_judged(const pen_plan *plan, const pen_run_workers *workers,
                                  const bool *has_room) {
    uint32_t count = 0;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        bool is_judged = false;
        for (uint32_t w = 1; w <= workers->count; w++) {
            is_judged = is_judged || (w != workers->worker_of_device[d] &&
                                      has_room[(size_t)d * (workers->count + 1) + w]);
        }
        count += is_judged;
    }
    return count;
}

// The same rule as when it is trained, so that the plan promises what will be done.
pen_status pen_audit_room_describe(const pen_plan *plan, const pen_cluster *cluster, uint64_t every,
                                   pen_arena *arena, const char **out_text) {
    pen_run_workers workers;
    const bool *has_room;
    *out_text = NULL;
    PEN_TRY(pen_run_workers_number(cluster, false, arena, &workers));
    if (workers.count < 2) return PEN_OK;
    if (every == 0) return pen_arena_format(arena, out_text, "off: recovery.audit is 0");
    PEN_TRY(pen_audit_room_find(plan, cluster, &workers, arena, &has_room));
    const uint32_t count = room_count_judged(plan, &workers, has_room);
    bool are_seen = true;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        are_seen = are_seen && room_is_seen(cluster, d);
    }
    if (count == 0 && are_seen) {
        return pen_arena_format(arena, out_text,
                                "off: no worker has memory left for what another does");
    }
    if (count == 0) {
        return pen_arena_format(arena, out_text,
                                "off: GPUs are not audited, and for other devices no worker has "
                                "memory left");
    }
    const char *often = "every step";
    if (every > 1) {
        PEN_TRY(pen_arena_format(arena, &often, "every %llu steps", (unsigned long long)every));
    }
    if (count == plan->device_count) {
        return pen_arena_format(arena, out_text, "%s, of all devices", often);
    }
    return pen_arena_format(arena, out_text,
                            "%s, of %u of %u devices: %sfor the others no worker has "
                            "memory left",
                            often, count, plan->device_count,
                            are_seen ? "" : "GPUs are not audited, and ");
}
