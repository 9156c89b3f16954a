#include "scheduler/store/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/name_map.h"
#include "base/planted.h"
#include "base/system/failpoint.h"
#include "base/text.h"
#include "scheduler/store/safetensors_header.h"

#define SHARD_BESIDE ".partial"
#define SHARD_PATH_BYTES 4096
#define SHARD_ALIGNMENT 8     // of where ranges begin, and end within a tensor
#define SHARD_DAMAGE_LIMIT 16 // chunks that are named

// A file that is being written, chunk by chunk.
typedef struct shard_writer {
    pen_disk *disk;
    pen_disk_file *file;
    uint8_t *buffer; // [2 chunks]: so that a piece can be read whole behind what is there
    uint64_t held;   // bytes in it, less than a chunk between calls
    uint32_t *checksums;
    uint32_t chunk_count; // written
} shard_writer;

// ---- names

pen_status pen_shard_name(uint64_t generation, uint64_t step, uint32_t worker, pen_arena *arena,
                          const char **out_name) {
    return pen_arena_format(arena, out_name, PEN_SHARD_NAME_FORMAT, generation, step, worker);
}

static bool shard_read_number(const char **at, const char *before, uint64_t *out_number) {
    const size_t length = strlen(before);
    if (strncmp(*at, before, length) != 0) return false;
    const char *digits = *at + length;
    if (*digits < '0' || *digits > '9') return false;
    char *end;
    *out_number = strtoull(digits, &end, 10);
    *at = end;
    return end - digits <= 19;
}

bool pen_shard_name_parse(const char *name, uint64_t *out_generation, uint64_t *out_step) {
    uint64_t worker = 0;
    if (!shard_read_number(&name, "g", out_generation) ||
        !shard_read_number(&name, "-s", out_step) || !shard_read_number(&name, "-w", &worker)) {
        return false;
    }
    return strcmp(name, ".safetensors") == 0 || strcmp(name, ".safetensors" SHARD_BESIDE) == 0;
}

// ---- writing

static pen_status shard_check_name(const pen_shard_tensor *tensor) {
    const size_t length = strlen(tensor->name);
    if (length > PEN_NAME_BYTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "the name '%.60s…' has %zu bytes, possible are %d",
                         tensor->name, length, PEN_NAME_BYTES_LIMIT);
    }
    for (size_t i = 0; i < length;) {
        const size_t step =
            pen_text_sequence_length((const unsigned char *)tensor->name + i, length - i);
        if (step == 0) {
            return pen_error(PEN_INVALID_INPUT, "the name of tensor '%s' is no UTF-8",
                             tensor->name);
        }
        i += step;
    }
    return PEN_OK;
}

pen_status pen_shard_tensor_name(const pen_stored_tensor *tensor, pen_arena *arena,
                                 const char **out_name) {
    const pen_tensor_slice *slice = tensor->slice;
    char shape[PEN_SHAPE_TEXT_BYTES];
    *out_name = tensor->name;
    if (slice == NULL) return PEN_OK;
    const size_t size = pen_element_bytes(tensor->type.element);
    return pen_arena_format(arena, out_name, "%s@%" PRIu64 "+%" PRIu64 "/%" PRIu64 "%s",
                            slice->whole, slice->start * size, slice->run * size,
                            slice->stride * size, pen_shape_format(&slice->shape, shape));
}

// What the header says of a tensor, or of a range of one.
static pen_status shard_describe(const pen_shard_tensor *tensor, pen_arena *arena,
                                 pen_safetensors_item *out_item) {
    const uint64_t whole = pen_tensor_type_bytes(&tensor->type);
    const size_t element = pen_element_bytes(tensor->type.element);
    PEN_TRY(shard_check_name(tensor));
    *out_item = (pen_safetensors_item){.name = tensor->name, .type = tensor->type};
    if (tensor->first == 0 && tensor->bytes == whole) return PEN_OK;
    const bool ends = tensor->first <= whole && tensor->bytes == whole - tensor->first;
    if (element == 0 || tensor->first % SHARD_ALIGNMENT != 0 ||
        (tensor->bytes % SHARD_ALIGNMENT != 0 && !ends) || tensor->first > whole ||
        tensor->bytes > whole - tensor->first) {
        return pen_error(PEN_INVALID_INPUT,
                         "tensor '%s' of %" PRIu64 " bytes has no range %" PRIu64 "+%" PRIu64,
                         tensor->name, whole, tensor->first, tensor->bytes);
    }
    char shape[PEN_SHAPE_TEXT_BYTES];
    const int64_t count = (int64_t)(tensor->bytes / element);
    out_item->type = pen_tensor_type_make(tensor->type.element, 1, &count);
    return pen_arena_format(arena, &out_item->name, "%s@%" PRIu64 "+%" PRIu64 "%s", tensor->name,
                            tensor->first, tensor->bytes,
                            pen_shape_format(&tensor->type.shape, shape));
}

// Names must be different within a shard: whoever reads it finds tensors by them.
static pen_status shard_header(const pen_shard_source *source, pen_arena *arena,
                               const char **out_bytes, uint64_t *out_count) {
    pen_safetensors_item *items;
    pen_name_map names;
    if (source->count > PEN_SHARD_TENSOR_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%u tensors, a shard has at most %u", source->count,
                         PEN_SHARD_TENSOR_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, source->count, &items));
    pen_name_map_init(&names, arena);
    for (uint32_t i = 0; i < source->count; i++) {
        PEN_TRY(shard_describe(&source->tensors[i], arena, &items[i]));
        if (pen_name_map_find(&names, items[i].name) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT, "'%s' is in the shard twice", items[i].name);
        }
        PEN_TRY(pen_name_map_add(&names, items[i].name, i));
    }
    PEN_TRY(pen_safetensors_header(items, source->count, arena, out_bytes, out_count));
    if (*out_count <= PEN_SHARD_HEADER_BYTES_LIMIT) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "a header of %" PRIu64 " bytes, possible are %u",
                     *out_count, PEN_SHARD_HEADER_BYTES_LIMIT);
}

static pen_status shard_append(shard_writer *writer, const void *bytes, uint64_t count) {
    writer->checksums[writer->chunk_count++] = pen_checksum(bytes, count);
    return writer->disk->kind->append(writer->file, bytes, count);
}

// Writes what is held, as far as it fills a chunk.
static pen_status shard_drain(shard_writer *writer) {
    if (writer->held < PEN_SHARD_CHUNK_BYTES) return PEN_OK;
    PEN_TRY(shard_append(writer, writer->buffer, PEN_SHARD_CHUNK_BYTES));
    writer->held -= PEN_SHARD_CHUNK_BYTES;
    memmove(writer->buffer, writer->buffer + PEN_SHARD_CHUNK_BYTES, writer->held);
    return PEN_OK;
}

// Bytes from memory: whole chunks go from where they are.
static pen_status shard_put(shard_writer *writer, const void *bytes, uint64_t count) {
    const char *at = bytes;
    while (count > 0) {
        if (writer->held == 0 && count >= PEN_SHARD_CHUNK_BYTES) {
            PEN_TRY(shard_append(writer, at, PEN_SHARD_CHUNK_BYTES));
            at += PEN_SHARD_CHUNK_BYTES;
            count -= PEN_SHARD_CHUNK_BYTES;
            continue;
        }
        const uint64_t part = pen_min_u64(count, PEN_SHARD_CHUNK_BYTES - writer->held);
        memcpy(writer->buffer + writer->held, at, part);
        writer->held += part;
        at += part;
        count -= part;
        PEN_TRY(shard_drain(writer));
    }
    return PEN_OK;
}

static pen_status shard_put_read(shard_writer *writer, const pen_shard_source *source) {
    for (uint32_t i = 0; i < source->count; i++) {
        const uint64_t whole = source->tensors[i].bytes;
        for (uint64_t first = 0; first < whole; first += PEN_SHARD_CHUNK_BYTES) {
            const uint64_t bytes = pen_min_u64(PEN_SHARD_CHUNK_BYTES, whole - first);
            PEN_TRY(source->read(source->context, i, first, writer->buffer + writer->held, bytes));
            writer->held += bytes;
            PEN_TRY(shard_drain(writer));
        }
    }
    return PEN_OK;
}

static uint64_t shard_data_bytes(const pen_shard_source *source) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < source->count; i++) {
        bytes += source->tensors[i].bytes;
    }
    return bytes;
}

static pen_status shard_fill(shard_writer *writer, const pen_shard_source *source,
                             const char *header, uint64_t header_bytes) {
    PEN_TRY(shard_put(writer, header, header_bytes));
    PEN_TRY(source->data != NULL ? shard_put(writer, source->data, shard_data_bytes(source))
                                 : shard_put_read(writer, source));
    if (writer->held > 0) PEN_TRY(shard_append(writer, writer->buffer, writer->held));
    if (PEN_FAILPOINT("worker.shard_written")) {
        return pen_error(PEN_IO, "failed as the test wants it, before the sync");
    }
    return PEN_PLANTED(no_fsync_file) ? PEN_OK : writer->disk->kind->sync(writer->file);
}

// From the file beside to a durable one of that name, or to none. One that was there before stays:
// a manifest may name it, when a checkpoint of which nobody knew whether it was published is taken
// once more.
static pen_status shard_settle(pen_disk *disk, const char *folder, const char *from,
                               const char *to) {
    uint64_t bytes = 0;
    pen_status status = disk->kind->size(disk, to, &bytes);
    const bool was_there = status == PEN_OK;
    pen_status_ignore(status, "mostly it is not there");
    status = disk->kind->rename(disk, from, to);
    if (status == PEN_OK && !PEN_PLANTED(no_fsync_folder)) {
        status = disk->kind->sync_path(disk, folder);
    }
    if (status == PEN_OK && PEN_FAILPOINT("worker.shard_synced")) {
        status = pen_error(PEN_IO, "failed as the test wants it, behind the sync");
    }
    if (status == PEN_OK) return PEN_OK;
    // what failed may have been done all the same
    pen_status_ignore(disk->kind->remove(disk, from), "it is in nobody's way");
    if (!was_there) pen_status_ignore(disk->kind->remove(disk, to), "no manifest will name it");
    return status;
}

// Written beside, synced, renamed, the folder synced: only then the summary is given out. A failure
// leaves nothing under the final name.
pen_status pen_shard_write(pen_disk *disk, const pen_shard_source *source, const char *folder,
                           const char *name, pen_arena *arena, pen_shard_summary *out_summary) {
    const char *header, *from, *to;
    uint64_t header_bytes = 0;
    shard_writer writer = {.disk = disk};
    PEN_TRY(pen_arena_format(arena, &to, "%s/%s", folder, name));
    PEN_TRY(pen_arena_format(arena, &from, "%s" SHARD_BESIDE, to));
    PEN_TRY(shard_header(source, arena, &header, &header_bytes));
    const uint64_t bytes = header_bytes + shard_data_bytes(source);
    const uint64_t chunk_count = (bytes + PEN_SHARD_CHUNK_BYTES - 1) / PEN_SHARD_CHUNK_BYTES;
    PEN_TRY(PEN_NEW(arena, chunk_count, &writer.checksums));
    PEN_TRY(PEN_NEW(arena, pen_min_u64(2 * PEN_SHARD_CHUNK_BYTES, bytes), &writer.buffer));
    PEN_TRY(disk->kind->create(disk, from, &writer.file));
    const pen_status status = shard_fill(&writer, source, header, header_bytes);
    disk->kind->close(writer.file);
    if (status != PEN_OK) {
        pen_status_ignore(disk->kind->remove(disk, from), "it is in nobody's way");
        return status;
    }
    PEN_ASSERT(writer.chunk_count == chunk_count);
    PEN_TRY(shard_settle(disk, folder, from, to));
    *out_summary = (pen_shard_summary){.holders = "",
                                       .bytes = bytes,
                                       .chunk_count = writer.chunk_count,
                                       .checksums = writer.checksums};
    return pen_arena_copy_text(arena, name, strlen(name), &out_summary->file);
}

// ---- copying

// A shard from another machine, chunk by chunk: each is compared with the manifest's checksum
// before it is written.
static pen_status shard_fill_copy(pen_disk *disk, pen_disk_file *file,
                                  const pen_shard_summary *summary, pen_shard_fetch fetch,
                                  void *context) {
    pen_status status = PEN_OK;
    uint8_t *chunk = pen_memory_allocate(PEN_SHARD_CHUNK_BYTES, 1);
    if (chunk == NULL) return pen_error_out_of_memory();
    for (uint32_t c = 0; c < summary->chunk_count && status == PEN_OK; c++) {
        const uint64_t first = c * PEN_SHARD_CHUNK_BYTES;
        const uint64_t count = pen_min_u64(PEN_SHARD_CHUNK_BYTES, summary->bytes - first);
        status = fetch(context, first, chunk, count);
        if (status == PEN_OK && pen_checksum(chunk, count) != summary->checksums[c]) {
            status = pen_error(PEN_CORRUPT, "bytes %" PRIu64 " to %" PRIu64 " of '%s' came damaged",
                               first, first + count - 1, summary->file);
        }
        if (status == PEN_OK) status = disk->kind->append(file, chunk, count);
    }
    pen_memory_free(chunk);
    if (status != PEN_OK || PEN_PLANTED(no_fsync_file)) return status;
    return disk->kind->sync(file);
}

pen_status pen_shard_copy(pen_disk *disk, const char *folder, const pen_shard_summary *summary,
                          pen_shard_fetch fetch, void *context) {
    char from[SHARD_PATH_BYTES], to[SHARD_PATH_BYTES];
    pen_disk_file *file;
    const int length = snprintf(from, sizeof from, "%s/%s" SHARD_BESIDE, folder, summary->file);
    if (length < 0 || (size_t)length >= sizeof from) {
        return pen_error(PEN_INVALID_INPUT, "the path '%.60s…' is too long", folder);
    }
    snprintf(to, sizeof to, "%.*s", length - (int)strlen(SHARD_BESIDE), from);
    PEN_TRY(disk->kind->create(disk, from, &file));
    const pen_status status = shard_fill_copy(disk, file, summary, fetch, context);
    disk->kind->close(file);
    if (status == PEN_OK) return shard_settle(disk, folder, from, to);
    pen_status_ignore(disk->kind->remove(disk, from), "it is in nobody's way");
    return status;
}

// ---- reading

pen_status pen_shard_reader_init(pen_shard_reader *reader, pen_disk *disk, const char *folder,
                                 const pen_shard_summary *summary) {
    uint64_t bytes = 0;
    *reader = (pen_shard_reader){.disk = disk, .folder = folder, .summary = summary};
    const int length = snprintf(reader->path, sizeof reader->path, "%s/%s", folder, summary->file);
    if (length < 0 || (size_t)length >= sizeof reader->path) {
        return pen_error(PEN_INVALID_INPUT, "the path '%.60s…' is too long", folder);
    }
    PEN_TRY(disk->kind->size(disk, reader->path, &bytes));
    if (bytes != summary->bytes) {
        return pen_error(PEN_CORRUPT,
                         "'%s' has %" PRIu64 " bytes, %" PRIu64 " were written: it is damaged "
                         "from byte %" PRIu64 " on",
                         reader->path, bytes, summary->bytes, pen_min_u64(bytes, summary->bytes));
    }
    reader->chunk = pen_memory_allocate(pen_min_u64(bytes, PEN_SHARD_CHUNK_BYTES) + 1, 1);
    return reader->chunk != NULL ? PEN_OK : pen_error_out_of_memory();
}

void pen_shard_reader_deinit(pen_shard_reader *reader) {
    pen_memory_free(reader->chunk);
    reader->chunk = NULL;
}

static uint64_t shard_chunk_bytes(const pen_shard_summary *summary, uint32_t chunk) {
    return pen_min_u64(PEN_SHARD_CHUNK_BYTES, summary->bytes - chunk * PEN_SHARD_CHUNK_BYTES);
}

// Reads a chunk into the reader, and compares it.
static pen_status shard_load(pen_shard_reader *reader, uint32_t chunk) {
    const pen_shard_summary *summary = reader->summary;
    const uint64_t first = chunk * PEN_SHARD_CHUNK_BYTES;
    const uint64_t count = shard_chunk_bytes(summary, chunk);
    reader->has_chunk = false;
    PEN_TRY(reader->disk->kind->read(reader->disk, reader->path, first, reader->chunk, count));
    const uint32_t found = pen_checksum(reader->chunk, count);
    if (found != summary->checksums[chunk] && !PEN_PLANTED(no_checksum)) {
        return pen_error(PEN_CORRUPT,
                         "'%s' is damaged in bytes %" PRIu64 " to %" PRIu64
                         ": their checksum is %08" PRIx32 ", %08" PRIx32 " was written",
                         reader->path, first, first + count - 1, found, summary->checksums[chunk]);
    }
    reader->has_chunk = true;
    reader->chunk_index = chunk;
    return PEN_OK;
}

pen_status pen_shard_reader_read(pen_shard_reader *reader, uint64_t first, void *out,
                                 uint64_t bytes) {
    char *to = out;
    PEN_ASSERT(first <= reader->summary->bytes && bytes <= reader->summary->bytes - first);
    while (bytes > 0) {
        const uint32_t chunk = (uint32_t)(first / PEN_SHARD_CHUNK_BYTES);
        if (!reader->has_chunk || reader->chunk_index != chunk) PEN_TRY(shard_load(reader, chunk));
        const uint64_t within = first % PEN_SHARD_CHUNK_BYTES;
        const uint64_t count =
            pen_min_u64(bytes, shard_chunk_bytes(reader->summary, chunk) - within);
        memcpy(to, reader->chunk + within, count);
        to += count;
        first += count;
        bytes -= count;
    }
    return PEN_OK;
}

static pen_status shard_verify(pen_shard_reader *reader) {
    pen_status all = PEN_OK;
    uint32_t damaged_count = 0;
    for (uint32_t c = 0; c < reader->summary->chunk_count; c++) {
        const pen_status status = shard_load(reader, c);
        if (status == PEN_OK) continue;
        const bool is_damage = pen_status_get_code(status) == PEN_CORRUPT;
        damaged_count++;
        if (is_damage && damaged_count > SHARD_DAMAGE_LIMIT) {
            pen_status_ignore(status, "counted");
            continue;
        }
        all = pen_status_join(all, status);
        if (!is_damage) return all;
    }
    if (damaged_count <= SHARD_DAMAGE_LIMIT) return all;
    return pen_status_join(all, pen_error(PEN_CORRUPT, "'%s' is damaged in %u more places",
                                          reader->path, damaged_count - SHARD_DAMAGE_LIMIT));
}

pen_status pen_shard_verify(pen_disk *disk, const char *folder, const pen_shard_summary *summary) {
    pen_shard_reader reader;
    pen_status status = pen_shard_reader_init(&reader, disk, folder, summary);
    if (status == PEN_OK) status = shard_verify(&reader);
    pen_shard_reader_deinit(&reader);
    return status;
}
