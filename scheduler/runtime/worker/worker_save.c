// Checkpoints at a worker: its tensors are copied aside, and written while training goes on.

#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "scheduler/runtime/worker/worker_device.h"

// On the device's thread.
static pen_status save_read_here(worker_device *device) {
    const worker_read *read = &device->read;
    return pen_executor_read_part(device->executors[0], read->value, read->first, read->out,
                                  read->bytes);
}

// What the host does not see is read by its device's thread.
static pen_status save_read(void *context, uint32_t index, uint64_t first, void *out,
                            uint64_t bytes) {
    pen_worker_run *run = context;
    const worker_saved *saved = &run->saved_places[index];
    if (saved->memory != NULL) {
        memcpy(out, saved->memory + first, bytes);
        return PEN_OK;
    }
    saved->device->read =
        (worker_read){.value = saved->value, .first = first, .out = out, .bytes = bytes};
    return pen_worker_run_call(run, saved->device, save_read_here);
}

static void save_tell(const pen_worker_run *run, uint64_t order, uint64_t step,
                      pen_status take_status, const pen_shard_summary *summary) {
    const pen_worker_run_events *events = &run->options.events;
    const pen_run_saved saved = {run->options.generation, order, step};
    events->shard(events->context, &saved, take_status, summary);
}

// Of the order that the writer took last: the next one is refused until this is done.
static void save_done(void *context, uint64_t step, pen_status take_status,
                      const pen_shard_summary *summary) {
    pen_worker_run *run = context;
    pen_mutex_lock(&run->lock);
    const uint64_t order = run->shard.order;
    pen_mutex_unlock(&run->lock);
    save_tell(run, order, step, take_status, summary);
}

// Where it lies is looked up once: saves only copy.
static pen_status save_add(pen_worker_run *run, const pen_run_spec_saved *saved) {
    const pen_graph *graph = run->spec->forms[0].parts[saved->device].part->graph;
    const pen_tensor_piece piece = {.device = saved->device, .value = saved->value.index};
    const pen_tensor_type *type = pen_value_type(graph, saved->value);
    const uint64_t bytes = pen_tensor_type_bytes(type);
    worker_device *device = &run->devices[run->local_of_device[saved->device]];
    pen_memory_place place;
    PEN_TRY(pen_worker_run_find_tensor(run, &piece, &place));
    if (bytes > pen_executor_bytes(device->executors[0], saved->value)) {
        return pen_error(PEN_CORRUPT, "'%s' is saved, and has fewer bytes than its type",
                         saved->name);
    }
    run->saved[run->saved_count] =
        (pen_shard_tensor){.name = saved->name, .type = *type, .bytes = bytes};
    run->saved_places[run->saved_count++] =
        (worker_saved){.device = device,
                       .value = saved->value,
                       .memory = device->is_staged ? NULL : pen_memory_place_address(place)};
    if (!device->is_staged) device->saved_bytes += bytes; // else the copy is the process's
    return PEN_OK;
}

// Whether the devices' memory has room for a copy of what they hold.
static bool save_has_room(const pen_worker_run *run) {
    for (uint32_t d = 0; d < run->device_count; d++) {
        const worker_device *device = &run->devices[d];
        const uint64_t limit = run->spec->devices[device->index].memory_bytes;
        if (limit > 0 && pen_worker_run_device_bytes(run, device->index) > limit) return false;
    }
    return true;
}

// Where there is no room for a copy beside the tensors, saves write directly, and the training
// waits for them.
pen_status pen_worker_run_prepare_save(pen_worker_run *run) {
    const pen_run_spec *spec = run->spec;
    PEN_TRY(PEN_NEW(run->arena, spec->saved_count, &run->saved));
    PEN_TRY(PEN_NEW(run->arena, spec->saved_count, &run->saved_places));
    for (uint32_t i = 0; i < spec->saved_count; i++) {
        if (run->local_of_device[spec->saved[i].device] == UINT32_MAX) continue;
        PEN_TRY(save_add(run, &spec->saved[i]));
    }
    if (run->saved_count == 0) return PEN_OK;
    const bool is_direct = run->options.stores->count == 0 || !save_has_room(run);
    for (uint32_t d = 0; d < run->device_count && is_direct; d++) {
        run->devices[d].saved_bytes = 0;
    }
    if (run->options.stores->count == 0) return PEN_OK;
    const pen_snapshot_options options = {.tensors = run->saved,
                                          .count = run->saved_count,
                                          .read = save_read,
                                          .context = run,
                                          .direct = is_direct,
                                          .done = save_done,
                                          .done_context = run};
    return pen_snapshot_writer_create(&options, &run->writer);
}

static bool save_is_at_rest(pen_worker_run *run) {
    bool is_at_rest = true;
    pen_mutex_lock(&run->lock);
    for (uint32_t d = 0; d < run->device_count; d++) {
        const pen_worker_wait wait = pen_worker_core_get_wait(run->core, run->devices[d].index);
        if (!wait.is_idle || wait.is_running) is_at_rest = false;
    }
    pen_mutex_unlock(&run->lock);
    return is_at_rest;
}

// The folder beneath one of those that this worker writes beneath: a name that the coordinator
// said, of which the disk itself refuses one that leads out; or where its mark is. `out_name`:
// [PEN_MESSAGE_TEXT_BYTES]
static pen_status save_find(pen_worker_run *run, const pen_run_save *save, pen_disk **out_disk,
                            char *out_name) {
    pen_shared_folders *stores = run->options.stores;
    *out_disk = &stores->folders[0].disk;
    snprintf(out_name, PEN_MESSAGE_TEXT_BYTES, "%s", save->folder);
    if (save->makes_folder) return (*out_disk)->kind->make_folder(*out_disk, save->folder);
    if (pen_shared_folders_find(stores, save->folder, save->mark, out_disk, out_name,
                                PEN_MESSAGE_TEXT_BYTES)) {
        return PEN_OK;
    }
    return pen_error(
        PEN_NOT_FOUND, "the coordinator's '%.300s' is not seen here beneath '%s'%s%s%s",
        save->folder, stores->folders[0].root, stores->count > 1 ? " or '" : "",
        stores->count > 1 ? stores->folders[1].root : "", stores->count > 1 ? "'" : "");
}

// Copies, and has the writer begin.
static pen_status save_take(pen_worker_run *run, const pen_run_save *save, pen_arena *arena) {
    const char *name;
    if (run->writer == NULL) {
        return pen_error(PEN_UNSUPPORTED,
                         "this worker writes no checkpoints: it was started without a folder for "
                         "them (penstock worker --store DIR)");
    }
    pen_disk *disk;
    char folder[PEN_MESSAGE_TEXT_BYTES];
    if (pen_snapshot_is_writing(run->writer)) {
        return pen_error(PEN_INTERNAL, "the shard before is still being written");
    }
    PEN_TRY(pen_shard_name(run->options.generation, save->step, run->options.worker, arena, &name));
    PEN_TRY(save_find(run, save, &disk, folder));
    pen_mutex_lock(&run->lock);
    run->shard.disk = disk;
    memcpy(run->shard.folder, folder, sizeof run->shard.folder);
    run->shard.is_own = save->makes_folder;
    run->shard.order = save->order;
    run->shard.step = save->step;
    pen_mutex_unlock(&run->lock);
    return pen_snapshot_take(run->writer, save->step,
                             (pen_shard_place){.disk = disk, .folder = folder}, name);
}

// Only between rounds, when no device computes. A worker with nothing to save answers at once, so
// that the coordinator need not know.
pen_status pen_worker_run_save(pen_worker_run *run, const pen_run_save *save) {
    const pen_worker_run_events *events = &run->options.events;
    const pen_run_saved saved = {run->options.generation, save->order, save->step};
    pen_arena *arena;
    if (!save_is_at_rest(run)) {
        return pen_error(PEN_CORRUPT, "asked to save step %llu while devices compute",
                         (unsigned long long)save->step);
    }
    if (run->saved_count == 0) {
        events->snapped(events->context, &saved);
        save_tell(run, save->order, save->step, PEN_OK, NULL);
        return PEN_OK;
    }
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = save_take(run, save, arena);
    pen_arena_destroy(arena);
    if (status == PEN_OK) {
        events->snapped(events->context, &saved);
    } else {
        save_tell(run, save->order, save->step, status, NULL); // the run goes on
    }
    return PEN_OK;
}

// ---- what was written

pen_status pen_worker_run_read_shard(pen_worker_run *run, uint64_t offset, void *out,
                                     uint64_t limit, uint64_t *out_count) {
    char path[PEN_MESSAGE_TEXT_BYTES + 128];
    uint64_t bytes = 0;
    pen_mutex_lock(&run->lock);
    const worker_shard shard = run->shard;
    pen_mutex_unlock(&run->lock);
    if (shard.folder[0] == '\0') return pen_error(PEN_NOT_FOUND, "no shard was written here");
    snprintf(path, sizeof path, "%s/" PEN_SHARD_NAME_FORMAT, shard.folder, run->options.generation,
             shard.step, run->options.worker);
    pen_disk *disk = shard.disk;
    PEN_TRY(disk->kind->size(disk, path, &bytes));
    if (offset > bytes) offset = bytes;
    const uint64_t count = pen_min_u64(limit, bytes - offset);
    PEN_TRY(disk->kind->read(disk, path, offset, out, count));
    *out_count = count;
    return PEN_OK;
}

// Removes all shards but those of these steps of this generation, and later ones.
static pen_status save_prune(const pen_worker_run *run, const worker_shard *shard, uint64_t before,
                             pen_arena *arena) {
    pen_disk *disk = shard->disk;
    const char *const *names;
    uint32_t count = 0;
    PEN_TRY(disk->kind->list(disk, shard->folder, PEN_COMMIT_RECORD_LIMIT, arena, &names, &count));
    for (uint32_t i = 0; i < count; i++) {
        uint64_t generation = 0, step = 0;
        const char *path;
        if (!pen_shard_name_parse(names[i], &generation, &step)) continue;
        if (generation == run->options.generation && step >= before) continue;
        PEN_TRY(pen_arena_format(arena, &path, "%s/%s", shard->folder, names[i]));
        PEN_TRY(disk->kind->remove(disk, path));
    }
    return PEN_OK;
}

void pen_worker_run_note_committed(pen_worker_run *run, uint64_t step) {
    pen_arena *arena;
    pen_mutex_lock(&run->lock);
    const worker_shard shard = run->shard;
    run->shard.committed_step = step;
    pen_mutex_unlock(&run->lock);
    // the first of a generation leaves those of the generation before
    if (!shard.is_own || shard.committed_step == 0 || step != shard.step) return;
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) {
        status = save_prune(run, &shard, shard.committed_step, arena);
        pen_arena_destroy(arena);
    }
    pen_status_ignore(status, "they take room, no more");
}
