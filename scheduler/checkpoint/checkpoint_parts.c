#include "scheduler/checkpoint/checkpoint_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/store/commit_log.h"
#include "scheduler/store/safetensors.h"

#define PARTS_ALIGNMENT 8 // of where ranges begin

typedef struct parts_builder {
    const pen_shard_place *place;
    pen_arena *arena;
    pen_checkpoint_part *parts; // [count], [room]
    uint32_t count;
    uint32_t room;
} parts_builder;

static bool parts_read_number(const char **at, char before, uint64_t *out_number) {
    if (**at != before) return false;
    const char *digits = *at + 1;
    if (*digits < '0' || *digits > '9') return false;
    char *end;
    *out_number = strtoull(digits, &end, 10);
    *at = end;
    return end - digits <= 15;
}

// "[32,512]", up to the end of the text.
static bool parts_read_shape(const char *at, pen_shape *out_shape) {
    pen_shape shape = {0};
    if (strcmp(at, "[]") == 0) {
        *out_shape = shape;
        return true;
    }
    char before = '[';
    while (*at == before && shape.rank < PEN_RANK_LIMIT) {
        uint64_t dim = 0;
        if (!parts_read_number(&at, before, &dim)) return false;
        shape.dims[shape.rank++] = (int64_t)dim;
        before = ',';
    }
    *out_shape = shape;
    return strcmp(at, "]") == 0 && shape.rank > 0;
}

// Takes "NAME@FIRST+BYTES[32,512]" apart, or "NAME@FIRST+RUN/STRIDE[32,512]"; a stride of 0 says
// that there is none. False: it is a whole tensor's name.
static bool parts_read_slice(const char *name, pen_checkpoint_part *part, size_t *out_length) {
    const char *at = strrchr(name, '@');
    pen_tensor_slice *slice = &part->slice;
    if (at == NULL || at == name) return false;
    *out_length = (size_t)(at - name);
    return parts_read_number(&at, '@', &slice->start) && parts_read_number(&at, '+', &slice->run) &&
           (*at != '/' || parts_read_number(&at, '/', &slice->stride)) &&
           parts_read_shape(at, &part->type.shape);
}

bool pen_checkpoint_part_is_range(const pen_checkpoint_part *part) {
    const pen_tensor_slice *slice = &part->slice;
    if (slice->stride != pen_tensor_type_bytes(&part->type)) return false;
    const bool ends = slice->start + slice->run == slice->stride;
    return slice->start % PARTS_ALIGNMENT == 0 && (slice->run % PARTS_ALIGNMENT == 0 || ends);
}

// Whether what a name says can be: the part lies within the tensor and has the entry's bytes, a
// range is aligned as copies are, and a slice has whole elements.
static bool parts_fits(pen_checkpoint_part *part) {
    const pen_status status = pen_tensor_type_check(&part->type);
    const bool is_type = status == PEN_OK;
    pen_status_ignore(status, "said with the name");
    if (!is_type) return false;
    pen_tensor_slice *slice = &part->slice;
    const uint64_t whole = pen_tensor_type_bytes(&part->type);
    const size_t size = pen_element_bytes(part->type.element);
    const bool is_sliced = slice->stride != 0;
    if (!is_sliced) slice->stride = whole;
    if (slice->start > slice->stride || slice->run > slice->stride - slice->start) return false;
    if (!is_sliced) return part->bytes == slice->run && pen_checkpoint_part_is_range(part);
    return slice->start % size == 0 && slice->run % size == 0 && slice->stride % size == 0 &&
           whole % slice->stride == 0 && part->bytes == whole / slice->stride * slice->run;
}

// A name may say which part of a tensor the entry is. It comes from a file, and is not believed.
static pen_status parts_add(parts_builder *builder, uint32_t shard,
                            const pen_safetensors_entry *entry, const char *path) {
    if (builder->count == builder->room) {
        pen_checkpoint_part *larger;
        builder->room = builder->room == 0 ? 256 : 2 * builder->room;
        PEN_TRY(PEN_NEW(builder->arena, builder->room, &larger));
        if (builder->count > 0) memcpy(larger, builder->parts, builder->count * sizeof *larger);
        builder->parts = larger;
    }
    const uint64_t bytes = pen_tensor_type_bytes(&entry->type);
    pen_checkpoint_part part = {
        .type = entry->type, .bytes = bytes, .shard = shard, .offset = entry->offset};
    size_t length = 0;
    if (parts_read_slice(entry->name, &part, &length)) {
        if (!parts_fits(&part)) {
            return pen_error(PEN_CORRUPT, "'%s': '%s' is no part of a tensor", path, entry->name);
        }
    } else {
        length = strlen(entry->name);
        part.type = entry->type;
        part.slice = (pen_tensor_slice){.run = bytes, .stride = bytes};
    }
    PEN_TRY(pen_arena_copy_text(builder->arena, entry->name, length, &part.name));
    builder->parts[builder->count++] = part;
    return PEN_OK;
}

// The prefix first, which says how long the header is; every byte is compared with the manifest's
// checksums before it is believed.
static pen_status parts_read_header(parts_builder *builder, pen_shard_reader *reader,
                                    uint32_t shard) {
    unsigned char prefix[8];
    uint64_t header_bytes = 0;
    uint8_t *header;
    if (reader->summary->bytes < sizeof prefix) {
        return pen_error(PEN_CORRUPT, "'%s' is too short to be a shard", reader->path);
    }
    PEN_TRY(pen_shard_reader_read(reader, 0, prefix, sizeof prefix));
    for (uint32_t i = 0; i < sizeof prefix; i++) {
        header_bytes |= (uint64_t)prefix[i] << (8 * i);
    }
    if (header_bytes > PEN_SHARD_HEADER_BYTES_LIMIT ||
        header_bytes > reader->summary->bytes - sizeof prefix) {
        return pen_error(PEN_CORRUPT, "'%s': a header of %" PRIu64 " bytes does not fit",
                         reader->path, header_bytes);
    }
    const uint64_t given = sizeof prefix + header_bytes;
    PEN_TRY(PEN_NEW(builder->arena, given, &header));
    PEN_TRY(pen_shard_reader_read(reader, 0, header, given));
    pen_safetensors *file;
    PEN_TRY(
        pen_safetensors_parse_header(reader->path, header, given, reader->summary->bytes, &file));
    pen_status status = PEN_OK;
    for (uint32_t i = 0; i < pen_safetensors_count(file) && status == PEN_OK; i++) {
        status = parts_add(builder, shard, pen_safetensors_at(file, i), reader->path);
    }
    pen_safetensors_close(file);
    return status;
}

static pen_status parts_read_shard(parts_builder *builder, const pen_shard_summary *summary,
                                   uint32_t shard) {
    pen_shard_reader reader;
    pen_status status =
        pen_shard_reader_init(&reader, builder->place->disk, builder->place->folder, summary);
    if (status == PEN_OK) status = parts_read_header(builder, &reader, shard);
    pen_shard_reader_deinit(&reader);
    if (pen_status_get_code(status) != PEN_NOT_FOUND) return status;
    pen_status_ignore(status, "a checkpoint that lacks a shard is damaged");
    return pen_error(PEN_CORRUPT, "'%s/%s' is not there", builder->place->folder, summary->file);
}

static int parts_compare(const void *left, const void *right) {
    const pen_checkpoint_part *a = left, *b = right;
    const int names = strcmp(a->name, b->name);
    if (names != 0) return names;
    if (a->slice.start != b->slice.start) return a->slice.start < b->slice.start ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return (a->shard > b->shard) - (a->shard < b->shard);
}

// That the parts from `first` up to `end`, of one tensor, are the whole of it once: they follow
// each other in its stride.
static pen_status parts_check_tensor(const pen_checkpoint_part *parts, uint32_t first,
                                     uint32_t end) {
    uint64_t at = 0;
    const pen_tensor_type *type = &parts[first].type;
    for (uint32_t p = first; p < end; p++) {
        const pen_checkpoint_part *part = &parts[p];
        if (!pen_tensor_type_equal(&part->type, type)) {
            return pen_error(PEN_CORRUPT, "the shards disagree on the type of '%s'", part->name);
        }
        if (part->slice.stride != parts[first].slice.stride) {
            return pen_error(PEN_CORRUPT, "the shards disagree on how '%s' is cut", part->name);
        }
        if (part->slice.start < at || (p > first && part->bytes == 0)) {
            return pen_error(PEN_CORRUPT, "the shards have byte %" PRIu64 " of '%s' twice",
                             part->slice.start, part->name);
        }
        if (part->slice.start > at) break;
        at += part->slice.run;
    }
    if (at == parts[first].slice.stride) return PEN_OK;
    return pen_error(PEN_CORRUPT, "no shard has byte %" PRIu64 " of '%s'", at, parts[first].name);
}

// Parts of all shards sorted by name and place: then the ranges of each tensor must follow each
// other without gap or overlap.
pen_status pen_checkpoint_parts_read(const pen_shard_place *place,
                                     const pen_commit_manifest *manifest, pen_arena *arena,
                                     pen_checkpoint_parts *out_parts) {
    parts_builder builder = {.place = place, .arena = arena};
    for (uint32_t s = 0; s < manifest->shard_count; s++) {
        PEN_TRY(parts_read_shard(&builder, &manifest->shards[s], s));
    }
    if (builder.count > 0) {
        qsort(builder.parts, builder.count, sizeof *builder.parts, parts_compare);
    }
    uint32_t first = 0;
    for (uint32_t p = 1; p <= builder.count; p++) {
        if (p < builder.count && strcmp(builder.parts[p].name, builder.parts[first].name) == 0) {
            continue;
        }
        PEN_TRY(parts_check_tensor(builder.parts, first, p));
        first = p;
    }
    *out_parts = (pen_checkpoint_parts){.parts = builder.parts, .count = builder.count};
    return PEN_OK;
}

// ---- by shard

typedef struct parts_place {
    uint64_t offset;
    uint32_t index;
} parts_place;

static int parts_compare_places(const void *left, const void *right) {
    const parts_place *a = left, *b = right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

// In the order in which they lie in the file, so that it is read from front to end.
pen_status pen_checkpoint_parts_of_shard(const pen_checkpoint_parts *parts, uint32_t shard,
                                         pen_arena *arena, const uint32_t **out_order,
                                         uint32_t *out_count) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < parts->count; p++) {
        if (parts->parts[p].shard == shard) count++;
    }
    parts_place *places;
    uint32_t *order;
    PEN_TRY(PEN_NEW(arena, count, &places));
    PEN_TRY(PEN_NEW(arena, count, &order));
    count = 0;
    for (uint32_t p = 0; p < parts->count; p++) {
        if (parts->parts[p].shard != shard) continue;
        places[count++] = (parts_place){.offset = parts->parts[p].offset, .index = p};
    }
    if (count > 0) qsort(places, count, sizeof *places, parts_compare_places);
    for (uint32_t i = 0; i < count; i++) {
        order[i] = places[i].index;
    }
    *out_order = order;
    *out_count = count;
    return PEN_OK;
}
