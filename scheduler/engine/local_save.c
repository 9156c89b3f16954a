#include "scheduler/engine/local_save.h"

#include "base/memory.h"
#include "base/thread.h"
#include "scheduler/runtime/executor/snapshot.h"

struct pen_local_save {
    const pen_tensor_store *store;
    pen_arena *arena;
    uint64_t bytes;
    pen_snapshot_writer *writer;
    pen_arena *written; // of the last one: name and summary
    pen_mutex lock;
    // guarded by lock
    pen_engine_saved saved;
    pen_shard_summary summary;
    pen_status failure;
};

static pen_status local_save_read(void *context, uint32_t index, uint64_t first, void *out,
                                  uint64_t bytes) {
    const pen_local_save *save = context;
    return save->store->read(save->store->context, index, first, out, bytes);
}

static pen_status local_save_keep(pen_local_save *save, const pen_shard_summary *summary) {
    uint32_t *checksums;
    save->summary = *summary;
    PEN_TRY(PEN_NEW(save->written, summary->chunk_count, &checksums));
    for (uint32_t i = 0; i < summary->chunk_count; i++) {
        checksums[i] = summary->checksums[i];
    }
    save->summary.checksums = checksums;
    save->summary.holders = "";
    return pen_arena_format(save->written, &save->summary.file, "%s", summary->file);
}

static void local_save_done(void *context, uint64_t step, pen_status take_status,
                            const pen_shard_summary *summary) {
    pen_local_save *save = context;
    pen_mutex_lock(&save->lock);
    if (take_status == PEN_OK) take_status = local_save_keep(save, summary);
    save->failure = take_status;
    save->saved = (pen_engine_saved){.state = take_status == PEN_OK ? PEN_ENGINE_SAVE_DURABLE
                                                                    : PEN_ENGINE_SAVE_FAILED,
                                     .step = step,
                                     .shard_count = 1,
                                     .shards = &save->summary,
                                     .failure = pen_status_message(take_status)};
    pen_mutex_unlock(&save->lock);
}

// Memory for the copy is taken, and touched, once: a checkpoint then costs the time of a copy.
static pen_status local_save_start(pen_local_save *save) {
    const pen_tensor_store *store = save->store;
    pen_shard_tensor *tensors;
    PEN_TRY(pen_arena_create(&save->arena));
    PEN_TRY(pen_arena_create(&save->written));
    PEN_TRY(PEN_NEW(save->arena, store->count, &tensors));
    for (uint32_t t = 0; t < store->count; t++) {
        tensors[t] =
            (pen_shard_tensor){.type = store->tensors[t].type, .bytes = store->tensors[t].bytes};
        PEN_TRY(pen_shard_tensor_name(&store->tensors[t], save->arena, &tensors[t].name));
    }
    save->bytes = pen_snapshot_bytes(tensors, store->count, false);
    const pen_snapshot_options options = {.tensors = tensors,
                                          .count = store->count,
                                          .read = local_save_read,
                                          .context = save,
                                          .done = local_save_done,
                                          .done_context = save};
    return pen_snapshot_writer_create(&options, &save->writer);
}

pen_status pen_local_save_create(const pen_tensor_store *tensors, pen_local_save **out_save) {
    pen_local_save *save = pen_memory_allocate(1, sizeof *save);
    if (save == NULL) return pen_error_out_of_memory();
    save->store = tensors;
    pen_mutex_init(&save->lock);
    const pen_status status = local_save_start(save);
    if (status != PEN_OK) {
        pen_local_save_destroy(save);
        return status;
    }
    *out_save = save;
    return PEN_OK;
}

uint64_t pen_local_save_bytes(const pen_local_save *save) {
    return save == NULL ? 0 : save->bytes;
}

void pen_local_save_destroy(pen_local_save *save) {
    if (save == NULL) return;
    pen_snapshot_writer_destroy(save->writer);
    pen_status_ignore(save->failure, "it was told");
    pen_mutex_deinit(&save->lock);
    pen_arena_destroy(save->written);
    pen_arena_destroy(save->arena);
    pen_memory_free(save);
}

pen_status pen_local_save_begin(pen_local_save *save, uint64_t generation, uint64_t step,
                                const char *folder) {
    const char *name;
    pen_mutex_lock(&save->lock);
    PEN_ASSERT(save->saved.state != PEN_ENGINE_SAVE_WRITING);
    pen_status_ignore(save->failure, "it was told");
    save->failure = PEN_OK;
    save->saved = (pen_engine_saved){.state = PEN_ENGINE_SAVE_WRITING, .step = step};
    pen_mutex_unlock(&save->lock);
    pen_arena_reset(save->written);
    const pen_shard_place place = {.disk = pen_disk_of_machine(), .folder = folder};
    PEN_TRY(place.disk->kind->make_folder(place.disk, folder));
    PEN_TRY(pen_shard_name(generation, step, 0, save->written, &name));
    return pen_snapshot_take(save->writer, step, place, name);
}

void pen_local_save_poll(pen_local_save *save, pen_engine_saved *out_saved) {
    pen_mutex_lock(&save->lock);
    *out_saved = save->saved;
    pen_mutex_unlock(&save->lock);
}
