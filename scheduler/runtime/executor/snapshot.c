#include "scheduler/runtime/executor/snapshot.h"

#include <stdio.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/thread.h"

#define SNAPSHOT_PAGE_BYTES 4096
#define SNAPSHOT_FOLDER_BYTES 4096
#define SNAPSHOT_NAME_BYTES 256
#define SNAPSHOT_TENSOR_BYTES 1024 // that a tensor takes in the header, and while that is made

typedef enum snapshot_state {
    SNAPSHOT_IDLE,
    SNAPSHOT_WRITING,
    SNAPSHOT_LEAVING, // the thread ends
} snapshot_state;

struct pen_snapshot_writer {
    pen_snapshot_options options;
    uint64_t bytes;   // of all tensors
    uint8_t *copy;    // [bytes]; NULL: direct
    pen_arena *arena; // of one shard at a time
    pen_thread *thread;
    // of the shard being written; the writing thread's until the state is IDLE
    uint64_t step;
    pen_disk *disk;
    char folder[SNAPSHOT_FOLDER_BYTES];
    char name[SNAPSHOT_NAME_BYTES];
    pen_mutex lock;
    pen_condition changed;
    snapshot_state state; // guarded by lock
};

uint64_t pen_snapshot_bytes(const pen_shard_tensor *tensors, uint32_t count, bool direct) {
    uint64_t bytes = 2 * PEN_SHARD_CHUNK_BYTES + count * (uint64_t)SNAPSHOT_TENSOR_BYTES;
    for (uint32_t i = 0; i < count && !direct; i++) {
        bytes += tensors[i].bytes;
    }
    return bytes;
}

// Writes the shard, and tells how that went. From the copy, or from the devices.
static void snapshot_write(pen_snapshot_writer *writer) {
    const pen_snapshot_options *options = &writer->options;
    const pen_shard_source source = {.tensors = options->tensors,
                                     .count = options->count,
                                     .data = writer->copy,
                                     .read = options->read,
                                     .context = options->context};
    pen_shard_summary summary = {0};
    const uint64_t step = writer->step;
    pen_arena_reset(writer->arena);
    const pen_status status = pen_shard_write(writer->disk, &source, writer->folder, writer->name,
                                              writer->arena, &summary);
    pen_mutex_lock(&writer->lock);
    // before it is told: who hears of it may take the next at once
    if (writer->state == SNAPSHOT_WRITING) writer->state = SNAPSHOT_IDLE;
    pen_mutex_unlock(&writer->lock);
    options->done(options->done_context, step, status, status == PEN_OK ? &summary : NULL);
}

static void snapshot_run(void *context) {
    pen_snapshot_writer *writer = context;
    pen_mutex_lock(&writer->lock);
    while (writer->state != SNAPSHOT_LEAVING) {
        if (writer->state == SNAPSHOT_WRITING) {
            pen_mutex_unlock(&writer->lock);
            snapshot_write(writer);
            pen_mutex_lock(&writer->lock);
        } else {
            pen_condition_wait(&writer->changed, &writer->lock);
        }
    }
    pen_mutex_unlock(&writer->lock);
}

// Room for the copy, every page of which is there from now on.
static pen_status snapshot_reserve(pen_snapshot_writer *writer) {
    writer->copy = pen_memory_allocate(pen_max_u64(writer->bytes, 1), 1);
    if (writer->copy == NULL) return pen_error_out_of_memory();
    volatile uint8_t *page = writer->copy;
    for (uint64_t at = 0; at < writer->bytes; at += SNAPSHOT_PAGE_BYTES) {
        page[at] = 0;
    }
    return PEN_OK;
}

// Memory for the copy is taken and touched here, once; fresh memory in a step would cost several
// times the copy.
pen_status pen_snapshot_writer_create(const pen_snapshot_options *options,
                                      pen_snapshot_writer **out_writer) {
    pen_snapshot_writer *writer = pen_memory_allocate(1, sizeof *writer);
    if (writer == NULL) return pen_error_out_of_memory();
    writer->options = *options;
    for (uint32_t i = 0; i < options->count; i++) {
        writer->bytes += options->tensors[i].bytes;
    }
    pen_mutex_init(&writer->lock);
    pen_condition_init(&writer->changed);
    pen_status status = pen_arena_create(&writer->arena);
    if (status == PEN_OK && !options->direct) status = snapshot_reserve(writer);
    if (status == PEN_OK && !options->direct) {
        status = pen_thread_create("snapshot", snapshot_run, writer, &writer->thread);
    }
    if (status != PEN_OK) {
        pen_snapshot_writer_destroy(writer);
        return status;
    }
    *out_writer = writer;
    return PEN_OK;
}

static pen_status snapshot_copy(pen_snapshot_writer *writer) {
    const pen_snapshot_options *options = &writer->options;
    uint8_t *to = writer->copy;
    for (uint32_t i = 0; i < options->count; i++) {
        const uint64_t whole = options->tensors[i].bytes;
        for (uint64_t first = 0; first < whole; first += PEN_SHARD_CHUNK_BYTES) {
            const uint64_t bytes = pen_min_u64(PEN_SHARD_CHUNK_BYTES, whole - first);
            PEN_TRY(options->read(options->context, i, first, to, bytes));
            to += bytes;
        }
    }
    return PEN_OK;
}

static pen_status snapshot_keep_text(char *to, size_t room, const char *text) {
    const int length = snprintf(to, room, "%s", text);
    if (length >= 0 && (size_t)length < room) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "the path '%.60s…' is too long", text);
}

pen_status pen_snapshot_take(pen_snapshot_writer *writer, uint64_t step, pen_shard_place place,
                             const char *name) {
    PEN_ASSERT(!pen_snapshot_is_writing(writer));
    PEN_TRY(snapshot_keep_text(writer->folder, sizeof writer->folder, place.folder));
    PEN_TRY(snapshot_keep_text(writer->name, sizeof writer->name, name));
    writer->step = step;
    writer->disk = place.disk;
    if (!writer->options.direct) PEN_TRY(snapshot_copy(writer));
    pen_mutex_lock(&writer->lock);
    writer->state = SNAPSHOT_WRITING;
    pen_condition_signal(&writer->changed);
    pen_mutex_unlock(&writer->lock);
    if (writer->options.direct) snapshot_write(writer);
    return PEN_OK;
}

bool pen_snapshot_is_writing(pen_snapshot_writer *writer) {
    pen_mutex_lock(&writer->lock);
    const bool is_writing = writer->state == SNAPSHOT_WRITING;
    pen_mutex_unlock(&writer->lock);
    return is_writing;
}

void pen_snapshot_writer_destroy(pen_snapshot_writer *writer) {
    if (writer == NULL) return;
    pen_mutex_lock(&writer->lock);
    while (writer->thread != NULL && writer->state == SNAPSHOT_WRITING) {
        // the shard is whole, and told of, before the thread leaves
        pen_condition_wait_for(&writer->changed, &writer->lock, 0.01);
    }
    writer->state = SNAPSHOT_LEAVING;
    pen_condition_broadcast(&writer->changed);
    pen_mutex_unlock(&writer->lock);
    pen_thread_join(writer->thread);
    pen_condition_deinit(&writer->changed);
    pen_mutex_deinit(&writer->lock);
    pen_arena_destroy(writer->arena);
    pen_memory_free(writer->copy);
    pen_memory_free(writer);
}
