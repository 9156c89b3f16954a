#include "scheduler/store/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json_reader.h"
#include "base/integer.h"
#include "base/limits.h"
#include "base/name_map.h"
#include "base/system/file.h"
#include "scheduler/store/safetensors_header.h"

#define SAFETENSORS_METADATA "__metadata__"

struct pen_safetensors {
    const char *path;
    pen_arena *arena;
    pen_mapping mapping; // empty when the bytes are borrowed
    const uint8_t *data; // [data_bytes], behind the header; NULL: not in memory
    uint64_t data_bytes;
    uint64_t data_offset;           // in the file
    pen_safetensors_entry *entries; // [count]
    uint32_t count;
    pen_name_map names;
};

static pen_status safetensors_corrupt(const pen_safetensors *file, const char *name,
                                      const char *what) {
    return pen_error(PEN_CORRUPT, "%s: tensor '%s' %s", file->path, name, what);
}

// Sizes are checked as those of any tensor: files come from anywhere.
static pen_status safetensors_read_type(const pen_safetensors *file, const char *name,
                                        const json_t *value, pen_tensor_type *out_type) {
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    const json_t *shape = json_object_get(value, "shape");
    if (dtype == NULL) return safetensors_corrupt(file, name, "has no dtype");
    if (!json_is_array(shape)) return safetensors_corrupt(file, name, "has no shape");
    pen_tensor_type type = {0};
    type.element = pen_safetensors_element_find(dtype);
    if (type.element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "%s: tensor '%s' has elements of type '%.16s'",
                         file->path, name, dtype);
    }
    if (json_array_size(shape) > PEN_RANK_LIMIT) {
        return safetensors_corrupt(file, name, "has too many dimensions");
    }
    type.shape.rank = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < type.shape.rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim)) return safetensors_corrupt(file, name, "has a bad shape");
        type.shape.dims[i] = json_integer_value(dim);
    }
    PEN_TRY(pen_status_add_context(pen_tensor_type_check(&type), "in tensor '%s' of %s", name,
                                   file->path));
    *out_type = type;
    return PEN_OK;
}

// Offsets must lie in the file and have exactly the bytes of the shape.
static pen_status safetensors_read_entry(pen_safetensors *file, const char *name,
                                         const json_t *value) {
    pen_safetensors_entry *entry = &file->entries[file->count];
    if (strlen(name) > PEN_NAME_BYTES_LIMIT) {
        return safetensors_corrupt(file, "", "has too long a name");
    }
    PEN_TRY(pen_arena_copy_text(file->arena, name, strlen(name), &entry->name));
    PEN_TRY(safetensors_read_type(file, name, value, &entry->type));
    const json_t *offsets = json_object_get(value, "data_offsets");
    const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
    if (!json_is_integer(first) || !json_is_integer(second) || json_array_size(offsets) != 2) {
        return safetensors_corrupt(file, name, "has no data_offsets");
    }
    const int64_t begin = json_integer_value(first), end = json_integer_value(second);
    if (begin < 0 || end < begin || (uint64_t)end > file->data_bytes) {
        return safetensors_corrupt(file, name, "lies outside of the file");
    }
    if ((uint64_t)(end - begin) != pen_tensor_type_bytes(&entry->type)) {
        return safetensors_corrupt(file, name, "has a length that is not its shape's");
    }
    entry->offset = file->data_offset + (uint64_t)begin;
    entry->data = file->data == NULL ? NULL : file->data + begin;
    PEN_TRY(pen_name_map_add(&file->names, entry->name, file->count));
    file->count += 1;
    return PEN_OK;
}

static int safetensors_compare(const void *left, const void *right) {
    const pen_safetensors_entry *a = left, *b = right;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    // empty tensors share an offset with the one behind them
    const uint64_t first_bytes = pen_tensor_type_bytes(&a->type);
    const uint64_t second_bytes = pen_tensor_type_bytes(&b->type);
    if (first_bytes != second_bytes) return first_bytes < second_bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

// Sorts by place, and makes sure that the tensors tile the data.
static pen_status safetensors_check_tiling(pen_safetensors *file) {
    qsort(file->entries, file->count, sizeof *file->entries, safetensors_compare);
    uint64_t at = file->data_offset;
    for (uint32_t i = 0; i < file->count; i++) {
        if (file->entries[i].offset != at) {
            return safetensors_corrupt(file, file->entries[i].name,
                                       "overlaps another, or has a gap before it");
        }
        at += pen_tensor_type_bytes(&file->entries[i].type);
    }
    if (at != file->data_offset + file->data_bytes) {
        return pen_error(PEN_CORRUPT, "%s: bytes behind the last tensor", file->path);
    }
    pen_name_map_init(&file->names, file->arena);
    for (uint32_t i = 0; i < file->count; i++) {
        PEN_TRY(pen_name_map_add(&file->names, file->entries[i].name, i));
    }
    return PEN_OK;
}

static pen_status safetensors_read_header(pen_safetensors *file, json_t *header) {
    if (!json_is_object(header) || json_object_size(header) > PEN_SAFETENSORS_COUNT_LIMIT) {
        return pen_error(PEN_CORRUPT, "%s: the header is not a list of tensors", file->path);
    }
    PEN_TRY(PEN_NEW(file->arena, json_object_size(header), &file->entries));
    pen_name_map_init(&file->names, file->arena);
    const char *name;
    json_t *value;
    json_object_foreach(header, name, value) {
        if (strcmp(name, SAFETENSORS_METADATA) == 0) continue;
        PEN_TRY(safetensors_read_entry(file, name, value));
    }
    return safetensors_check_tiling(file);
}

// Of a file of `length` bytes the first `given` are there: all, or at least the header.
static pen_status safetensors_read(pen_safetensors *file, const uint8_t *bytes, uint64_t given,
                                   uint64_t length) {
    uint64_t header_bytes = 0;
    if (given < sizeof header_bytes) {
        return pen_error(PEN_CORRUPT, "%s: too short to be a safetensors file", file->path);
    }
    for (uint32_t i = 0; i < sizeof header_bytes; i++) {
        header_bytes |= (uint64_t)bytes[i] << (8 * i);
    }
    if (header_bytes > PEN_SAFETENSORS_HEADER_LIMIT || header_bytes > given - sizeof header_bytes) {
        return pen_error(PEN_CORRUPT,
                         "%s: a header of %llu bytes does not fit; is it a safetensors file?",
                         file->path, (unsigned long long)header_bytes);
    }
    file->data_offset = sizeof header_bytes + header_bytes;
    file->data = given == length ? bytes + file->data_offset : NULL;
    file->data_bytes = length - file->data_offset;
    json_t *header = NULL;
    const void *text = bytes + sizeof header_bytes;
    PEN_TRY(
        pen_status_add_context(pen_json_load(file->path, text, header_bytes, PEN_CORRUPT, &header),
                               "in the header of the safetensors file '%s'", file->path));
    const pen_status status = safetensors_read_header(file, header);
    json_decref(header);
    return status;
}

static pen_status safetensors_create(const char *path, pen_safetensors **out_file) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    pen_safetensors *file = pen_arena_allocate(arena, 1, sizeof *file, alignof(max_align_t));
    if (file == NULL) {
        pen_arena_destroy(arena);
        return pen_error_out_of_memory();
    }
    file->arena = arena;
    const pen_status status = pen_arena_copy_text(arena, path, strlen(path), &file->path);
    if (status != PEN_OK) {
        pen_arena_destroy(arena);
        return status;
    }
    *out_file = file;
    return PEN_OK;
}

pen_status pen_safetensors_parse_header(const char *path, const void *bytes, uint64_t given,
                                        uint64_t length, pen_safetensors **out_file) {
    pen_safetensors *file;
    PEN_TRY(safetensors_create(path, &file));
    const pen_status status = safetensors_read(file, bytes, given, length);
    if (status != PEN_OK) {
        pen_safetensors_close(file);
        return status;
    }
    *out_file = file;
    return PEN_OK;
}

pen_status pen_safetensors_parse(const char *path, const void *bytes, uint64_t length,
                                 pen_safetensors **out_file) {
    return pen_safetensors_parse_header(path, bytes, length, length, out_file);
}

pen_status pen_safetensors_open(const char *path, pen_safetensors **out_file) {
    pen_safetensors *file;
    PEN_TRY(safetensors_create(path, &file));
    pen_status status = pen_mapping_open(path, &file->mapping);
    if (status == PEN_OK) {
        status =
            safetensors_read(file, file->mapping.bytes, file->mapping.length, file->mapping.length);
    }
    if (status != PEN_OK) {
        pen_safetensors_close(file);
        return status;
    }
    *out_file = file;
    return PEN_OK;
}

void pen_safetensors_close(pen_safetensors *file) {
    if (file == NULL) return;
    pen_mapping_close(&file->mapping);
    pen_arena_destroy(file->arena); // the file itself lives there
}

uint32_t pen_safetensors_count(const pen_safetensors *file) {
    return file->count;
}

const pen_safetensors_entry *pen_safetensors_at(const pen_safetensors *file, uint32_t index) {
    PEN_ASSERT(index < file->count);
    return &file->entries[index];
}

const pen_safetensors_entry *pen_safetensors_find(const pen_safetensors *file, const char *name) {
    const uint32_t index = pen_name_map_find(&file->names, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &file->entries[index];
}

// ---- writing

static pen_status safetensors_write_header(pen_file *file, const pen_safetensors_source *source,
                                           pen_arena *arena) {
    pen_safetensors_item *items;
    const char *bytes;
    uint64_t count = 0;
    PEN_TRY(PEN_NEW(arena, source->count, &items));
    for (uint32_t i = 0; i < source->count; i++) {
        items[i] = (pen_safetensors_item){.name = source->names[i], .type = *source->types[i]};
    }
    PEN_TRY(pen_safetensors_header(items, source->count, arena, &bytes, &count));
    return pen_file_write(file, bytes, count);
}

static pen_status safetensors_write(pen_file *file, const pen_safetensors_source *source,
                                    pen_arena *arena) {
    PEN_TRY(safetensors_write_header(file, source, arena));
    char *buffer;
    PEN_TRY(PEN_NEW(arena, PEN_SAFETENSORS_PIECE_BYTES, &buffer));
    for (uint32_t i = 0; i < source->count; i++) {
        const uint64_t whole = pen_tensor_type_bytes(source->types[i]);
        for (uint64_t first = 0; first < whole; first += PEN_SAFETENSORS_PIECE_BYTES) {
            const uint64_t bytes = pen_min_u64(PEN_SAFETENSORS_PIECE_BYTES, whole - first);
            PEN_TRY(source->read(source->context, i, first, buffer, bytes));
            PEN_TRY(pen_file_write(file, buffer, bytes));
        }
    }
    return PEN_OK;
}

pen_status pen_safetensors_save(const char *path, const pen_safetensors_source *source) {
    pen_file *file = NULL;
    pen_arena *arena = NULL;
    pen_status status = pen_arena_create(&arena);
    if (status != PEN_OK) goto done;
    status = pen_file_create_beside(path, &file);
    if (status != PEN_OK) goto done;
    status = safetensors_write(file, source, arena);
    if (status != PEN_OK) goto done;
    status = pen_file_commit(file);
done:
    status = pen_status_join(status, pen_file_close(file));
    pen_arena_destroy(arena);
    return status;
}
