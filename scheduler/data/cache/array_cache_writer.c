#include "scheduler/data/cache/array_cache_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/format/json_writer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system/failpoint.h"
#include "base/system/interrupt.h"

#define CACHE_WAIT_SECONDS 0.2
#define CACHE_NOTE_SECONDS 10

typedef struct cache_column {
    pen_file *data;
    pen_file *ends; // of pictures
    uint64_t end;   // bytes of data
    uint32_t data_checksum;
    uint32_t ends_checksum;
} cache_column;

struct pen_cache_writer {
    pen_arena *arena;
    const char *request;
    const char *path; // of what is made
    const char *part; // until it is whole
    int lock;         // -1: not held
    bool has_waited;  // for another process that had it
    pen_cache_field fields[PEN_CACHE_FIELDS_LIMIT];
    cache_column columns[PEN_CACHE_FIELDS_LIMIT];
    uint32_t field_count;
};

// The system lets go of a lock when its process ends, however it ends.
static pen_status cache_lock(pen_cache_writer *writer) {
    const char *path;
    double next_note = 0;
    PEN_TRY(pen_arena_format(writer->arena, &path, "%s.lock", writer->path));
    writer->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (writer->lock < 0) {
        return pen_error(PEN_IO, "cannot create '%s': %s", path, strerror(errno));
    }
    while (flock(writer->lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return pen_error(PEN_IO, "cannot lock '%s': %s", path, strerror(errno));
        }
        writer->has_waited = true;
        if (pen_interrupt_requested()) return pen_error(PEN_CANCELLED, "stopped, as was wished");
        if (pen_clock_seconds() >= next_note) {
            pen_log(PEN_LOG_NOTE, "waiting for another process that makes '%s'", writer->path);
            next_note = pen_clock_seconds() + CACHE_NOTE_SECONDS;
        }
        pen_clock_pause(CACHE_WAIT_SECONDS);
    }
    return PEN_OK;
}

static pen_status cache_prepare(pen_cache_writer *writer, const char *folder, const char *request) {
    writer->lock = -1;
    PEN_TRY(pen_arena_create(&writer->arena));
    PEN_TRY(pen_folder_create(folder, writer->arena));
    PEN_TRY(pen_arena_copy_text(writer->arena, request, strlen(request), &writer->request));
    PEN_TRY(pen_cache_path(folder, request, writer->arena, &writer->path));
    PEN_TRY(pen_arena_format(writer->arena, &writer->part, "%s.part", writer->path));
    return cache_lock(writer);
}

pen_status pen_cache_writer_create(const char *folder, const char *request,
                                   pen_cache_writer **out_writer) {
    pen_cache_writer *writer = pen_memory_allocate(1, sizeof *writer);
    if (writer == NULL) return pen_error_out_of_memory();
    const pen_status status = cache_prepare(writer, folder, request);
    if (status != PEN_OK) {
        pen_cache_writer_destroy(writer);
        return status;
    }
    *out_writer = writer;
    return PEN_OK;
}

bool pen_cache_writer_has_waited(const pen_cache_writer *writer) {
    return writer->has_waited;
}

// ---- files

static void cache_close_columns(pen_cache_writer *writer) {
    for (uint32_t i = 0; i < writer->field_count; i++) {
        cache_column *column = &writer->columns[i];
        pen_status_ignore(pen_file_close(column->data), "it was committed, or is removed");
        pen_status_ignore(pen_file_close(column->ends), "it was committed, or is removed");
        *column = (cache_column){0};
    }
    writer->field_count = 0;
}

static pen_status cache_create(const pen_cache_writer *writer, uint32_t field, const char *ending,
                               pen_file **out_file) {
    const char *path;
    PEN_TRY(
        pen_arena_format(writer->arena, &path, "%s/%" PRIu32 ".%s", writer->part, field, ending));
    return pen_file_create_beside(path, out_file);
}

pen_status pen_cache_writer_begin(pen_cache_writer *writer, const pen_cache_field *fields,
                                  uint32_t field_count) {
    PEN_ASSERT(field_count <= PEN_CACHE_FIELDS_LIMIT);
    cache_close_columns(writer);
    pen_folder_remove(writer->part, 0);
    if (mkdir(writer->part, 0777) != 0) {
        return pen_error(PEN_IO, "cannot make the folder '%s': %s", writer->part, strerror(errno));
    }
    for (uint32_t i = 0; i < field_count; i++) {
        pen_cache_field *field = &writer->fields[i];
        *field = fields[i];
        PEN_TRY(pen_arena_copy_text(writer->arena, fields[i].name, strlen(fields[i].name),
                                    &field->name));
        writer->field_count = i + 1;
        PEN_TRY(cache_create(writer, i, "data", &writer->columns[i].data));
        if (field->is_pictures) PEN_TRY(cache_create(writer, i, "ends", &writer->columns[i].ends));
    }
    return PEN_OK;
}

pen_status pen_cache_writer_add(pen_cache_writer *writer, uint32_t field, const void *bytes,
                                uint64_t length) {
    cache_column *column = &writer->columns[field];
    column->end += length;
    column->data_checksum = pen_checksum_continue(column->data_checksum, bytes, length);
    if (length > 0) PEN_TRY(pen_file_write(column->data, bytes, length));
    if (column->ends == NULL) return PEN_OK;
    column->ends_checksum =
        pen_checksum_continue(column->ends_checksum, &column->end, sizeof column->end);
    return pen_file_write(column->ends, &column->end, sizeof column->end);
}

uint64_t pen_cache_writer_bytes(const pen_cache_writer *writer) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < writer->field_count; i++)
        bytes += writer->columns[i].end;
    return bytes;
}

static void cache_write_field(const pen_cache_writer *writer, uint32_t i, pen_json_writer *json) {
    const pen_cache_field *field = &writer->fields[i];
    pen_json_begin_object(json);
    pen_json_key_text(json, "name", field->name);
    pen_json_key_bool(json, "is_label", field->is_label);
    pen_json_key_bool(json, "is_pictures", field->is_pictures);
    if (!field->is_pictures) {
        pen_json_key_text(json, "element", pen_npy_element_name(field->element));
        pen_json_key_array(json, "shape");
        for (uint32_t d = 0; d < field->rank; d++)
            pen_json_integer(json, field->shape[d]);
        pen_json_end_array(json);
    }
    pen_json_key_integer(json, "data", writer->columns[i].data_checksum);
    if (field->is_pictures) pen_json_key_integer(json, "ends", writer->columns[i].ends_checksum);
    pen_json_end_object(json);
}

// The manifest is written last, when all that it tells of is on the disk.
static pen_status cache_write_manifest(const pen_cache_writer *writer, uint64_t row_count) {
    const char *path;
    pen_file *file = NULL;
    pen_json_writer json;
    PEN_TRY(pen_arena_format(writer->arena, &path, "%s/manifest.json", writer->part));
    PEN_TRY(pen_file_create_beside(path, &file));
    pen_json_init_file(&json, pen_file_stream(file), 2);
    pen_json_begin_object(&json);
    pen_json_key_text(&json, "schema", "penstock/array-cache/1");
    pen_json_key_text(&json, "request", writer->request);
    pen_json_key_integer(&json, "rows", (int64_t)row_count);
    pen_json_key_array(&json, "fields");
    for (uint32_t i = 0; i < writer->field_count; i++)
        cache_write_field(writer, i, &json);
    pen_json_end_array(&json);
    pen_json_end_object(&json);
    pen_status status = pen_json_finish(&json);
    if (status == PEN_OK) status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
}

// What was there before makes place at the end; who reads it goes on reading it.
static pen_status cache_rename(const pen_cache_writer *writer) {
    const char *old;
    PEN_TRY(pen_arena_format(writer->arena, &old, "%s.old", writer->path));
    pen_folder_remove(old, 0);
    const bool had_old = rename(writer->path, old) == 0;
    if (rename(writer->part, writer->path) != 0) {
        return pen_error(PEN_IO, "cannot rename '%s': %s", writer->part, strerror(errno));
    }
    if (had_old) pen_folder_remove(old, 0);
    return PEN_OK;
}

pen_status pen_cache_writer_commit(pen_cache_writer *writer, uint64_t row_count) {
    for (uint32_t i = 0; i < writer->field_count; i++) {
        const cache_column *column = &writer->columns[i];
        PEN_TRY(pen_file_commit(column->data));
        if (column->ends != NULL) PEN_TRY(pen_file_commit(column->ends));
    }
    PEN_TRY(cache_write_manifest(writer, row_count));
    if (PEN_FAILPOINT("array_cache.written")) {
        return pen_error(PEN_IO, "cannot rename '%s': a failpoint is set", writer->part);
    }
    PEN_TRY(cache_rename(writer));
    return PEN_OK;
}

void pen_cache_writer_destroy(pen_cache_writer *writer) {
    if (writer == NULL) return;
    cache_close_columns(writer);
    if (writer->lock >= 0) {
        pen_folder_remove(writer->part, 0);
        (void)close(writer->lock);
    }
    pen_arena_destroy(writer->arena);
    pen_memory_free(writer);
}
