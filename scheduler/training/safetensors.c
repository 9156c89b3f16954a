#include "scheduler/training/safetensors.h"

#include <jansson.h>
#include <string.h>

#include "base/file.h"
#include "base/integer.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/name_map.h"

#define SAFETENSORS_HEADER_LIMIT (16u << 20)
#define SAFETENSORS_COUNT_LIMIT 65536u
#define SAFETENSORS_METADATA "__metadata__"

struct pen_safetensors {
    const char *path;
    pen_arena *arena;
    pen_mapping mapping; // empty when the bytes are borrowed
    const uint8_t *data; // [data_bytes], behind the header
    uint64_t data_bytes;
    pen_safetensors_entry *entries; // [count]
    uint32_t count;
    pen_name_map names;
};

typedef struct safetensors_type {
    const char *name;
    pen_element_type element;
} safetensors_type;

static const safetensors_type safetensors_types[] = {
    {"F32", PEN_FLOAT32}, {"F64", PEN_FLOAT64}, {"F16", PEN_FLOAT16}, {"BF16", PEN_BFLOAT16},
    {"I8", PEN_INT8},     {"I16", PEN_INT16},   {"I32", PEN_INT32},   {"I64", PEN_INT64},
    {"U8", PEN_UINT8},    {"U16", PEN_UINT16},  {"U32", PEN_UINT32},  {"U64", PEN_UINT64},
    {"BOOL", PEN_BOOL},
};
#define SAFETENSORS_TYPE_COUNT (sizeof safetensors_types / sizeof *safetensors_types)

static const char *safetensors_type_name(pen_element_type element) {
    for (size_t i = 0; i < SAFETENSORS_TYPE_COUNT; i++) {
        if (safetensors_types[i].element == element) return safetensors_types[i].name;
    }
    return "";
}

static pen_status safetensors_corrupt(const pen_safetensors *file, const char *name,
                                      const char *what) {
    return pen_error(PEN_CORRUPT, "%s: tensor '%s' %s", file->path, name, what);
}

static pen_status safetensors_read_type(const pen_safetensors *file, const char *name,
                                        const json_t *value, pen_tensor_type *out_type) {
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    const json_t *shape = json_object_get(value, "shape");
    if (dtype == NULL) return safetensors_corrupt(file, name, "has no dtype");
    if (!json_is_array(shape)) return safetensors_corrupt(file, name, "has no shape");
    pen_tensor_type type = {0};
    for (size_t i = 0; i < SAFETENSORS_TYPE_COUNT; i++) {
        if (strcmp(safetensors_types[i].name, dtype) == 0)
            type.element = safetensors_types[i].element;
    }
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
    entry->data = file->data + begin;
    PEN_TRY(pen_name_map_add(&file->names, entry->name, file->count));
    file->count += 1;
    return PEN_OK;
}

static int safetensors_compare(const void *left, const void *right) {
    const pen_safetensors_entry *a = left, *b = right;
    const uintptr_t first = (uintptr_t)a->data, second = (uintptr_t)b->data;
    if (first != second) return first < second ? -1 : 1;
    // empty tensors share an offset with the one behind them
    const uint64_t first_bytes = pen_tensor_type_bytes(&a->type);
    const uint64_t second_bytes = pen_tensor_type_bytes(&b->type);
    if (first_bytes != second_bytes) return first_bytes < second_bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

// Sorts by place, and makes sure that the tensors tile the data.
static pen_status safetensors_check_tiling(pen_safetensors *file) {
    qsort(file->entries, file->count, sizeof *file->entries, safetensors_compare);
    const uint8_t *at = file->data;
    for (uint32_t i = 0; i < file->count; i++) {
        if ((const uint8_t *)file->entries[i].data != at) {
            return safetensors_corrupt(file, file->entries[i].name,
                                       "overlaps another, or has a gap before it");
        }
        at += pen_tensor_type_bytes(&file->entries[i].type);
    }
    if (at != file->data + file->data_bytes) {
        return pen_error(PEN_CORRUPT, "%s: bytes behind the last tensor", file->path);
    }
    pen_name_map_init(&file->names, file->arena);
    for (uint32_t i = 0; i < file->count; i++) {
        PEN_TRY(pen_name_map_add(&file->names, file->entries[i].name, i));
    }
    return PEN_OK;
}

static pen_status safetensors_read_header(pen_safetensors *file, json_t *header) {
    if (!json_is_object(header) || json_object_size(header) > SAFETENSORS_COUNT_LIMIT) {
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

static pen_status safetensors_read(pen_safetensors *file, const uint8_t *bytes, uint64_t length) {
    uint64_t header_bytes = 0;
    if (length < sizeof header_bytes) {
        return pen_error(PEN_CORRUPT, "%s: too short to be a safetensors file", file->path);
    }
    for (uint32_t i = 0; i < sizeof header_bytes; i++) {
        header_bytes |= (uint64_t)bytes[i] << (8 * i);
    }
    if (header_bytes > SAFETENSORS_HEADER_LIMIT || header_bytes > length - sizeof header_bytes) {
        return pen_error(PEN_CORRUPT,
                         "%s: a header of %llu bytes does not fit; is it a safetensors file?",
                         file->path, (unsigned long long)header_bytes);
    }
    file->data = bytes + sizeof header_bytes + header_bytes;
    file->data_bytes = length - sizeof header_bytes - header_bytes;
    json_error_t error;
    const void *text = bytes + sizeof header_bytes;
    json_t *header = json_loadb(text, header_bytes, JSON_REJECT_DUPLICATES, &error);
    if (header == NULL) {
        return pen_error(PEN_CORRUPT, "%s: the header is not JSON: %s", file->path, error.text);
    }
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

pen_status pen_safetensors_parse(const char *path, const void *bytes, uint64_t length,
                                 pen_safetensors **out_file) {
    pen_safetensors *file;
    PEN_TRY(safetensors_create(path, &file));
    const pen_status status = safetensors_read(file, bytes, length);
    if (status != PEN_OK) {
        pen_safetensors_close(file);
        return status;
    }
    *out_file = file;
    return PEN_OK;
}

pen_status pen_safetensors_open(const char *path, pen_safetensors **out_file) {
    pen_safetensors *file;
    PEN_TRY(safetensors_create(path, &file));
    pen_status status = pen_mapping_open(path, &file->mapping);
    if (status == PEN_OK) {
        status = safetensors_read(file, file->mapping.bytes, file->mapping.length);
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
    pen_text text;
    pen_text_init(&text, arena);
    pen_json_writer json;
    pen_json_init_text(&json, &text, 0);
    pen_json_begin_object(&json);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < source->count; i++) {
        const pen_tensor_type *type = source->types[i];
        pen_json_key(&json, source->names[i]);
        pen_json_begin_object(&json);
        pen_json_key_text(&json, "dtype", safetensors_type_name(type->element));
        pen_json_key(&json, "shape");
        pen_json_begin_array(&json);
        for (uint32_t d = 0; d < type->shape.rank; d++) {
            pen_json_integer(&json, type->shape.dims[d]);
        }
        pen_json_end_array(&json);
        pen_json_key(&json, "data_offsets");
        pen_json_begin_array(&json);
        pen_json_unsigned(&json, offset);
        offset += pen_tensor_type_bytes(type);
        pen_json_unsigned(&json, offset);
        pen_json_end_array(&json);
        pen_json_end_object(&json);
    }
    pen_json_end_object(&json);
    PEN_TRY(pen_json_finish(&json));
    const uint64_t padded = pen_align_up(text.length, 8);
    uint8_t prefix[8];
    for (uint32_t i = 0; i < sizeof prefix; i++) {
        prefix[i] = (uint8_t)(padded >> (8 * i));
    }
    PEN_TRY(pen_file_write(file, prefix, sizeof prefix));
    PEN_TRY(pen_file_write(file, text.bytes, text.length));
    return pen_file_write(file, "       ", padded - text.length);
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

const char *pen_jansson_version(void) {
    return jansson_version_str();
}
