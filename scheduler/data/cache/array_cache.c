#include "scheduler/data/cache/array_cache.h"

#include <inttypes.h>
#include <string.h>

#include "base/checksum.h"
#include "base/format/json_reader.h"
#include "base/hash.h"
#include "base/integer.h"

#define CACHE_MANIFEST_BYTES_LIMIT (1u << 20)

// ---- the manifest

static pen_status cache_broken(const char *name, const char *what) {
    return pen_error(PEN_CORRUPT, "'%s': %s is not as it was written", name, what);
}

// A whole number from 0 up to `limit` in `object`; false: it is not there.
static bool cache_number(const json_t *object, const char *key, uint64_t limit, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (uint64_t)json_integer_value(value);
    return *out <= limit;
}

static bool cache_parse_element(const json_t *object, pen_npy_element *out_element) {
    const char *name = json_string_value(json_object_get(object, "element"));
    for (int e = PEN_NPY_BOOL; name != NULL && e <= PEN_NPY_BFLOAT16; e++) {
        *out_element = (pen_npy_element)e;
        if (strcmp(name, pen_npy_element_name(*out_element)) == 0) return true;
    }
    return false;
}

static bool cache_parse_shape(const json_t *object, pen_cache_field *field) {
    const json_t *shape = json_object_get(object, "shape");
    if (!json_is_array(shape) || json_array_size(shape) >= PEN_RANK_LIMIT) return false;
    field->rank = (uint32_t)json_array_size(shape);
    uint64_t count = 1;
    for (uint32_t i = 0; i < field->rank; i++) {
        const json_t *side = json_array_get(shape, i);
        if (!json_is_integer(side) || json_integer_value(side) < 1) return false;
        field->shape[i] = json_integer_value(side);
        if (!pen_u64_mul(count, (uint64_t)field->shape[i], &count)) return false;
        if (count > PEN_TENSOR_BYTES_LIMIT / sizeof(double)) return false;
    }
    return true;
}

static pen_status cache_parse_field(const char *name, const json_t *object, pen_arena *arena,
                                    pen_cache_field *field, uint32_t *out_checksums) {
    const char *text = json_string_value(json_object_get(object, "name"));
    uint64_t data = 0, ends = 0;
    field->is_label = json_is_true(json_object_get(object, "is_label"));
    field->is_pictures = json_is_true(json_object_get(object, "is_pictures"));
    if (text == NULL || !cache_number(object, "data", UINT32_MAX, &data)) {
        return cache_broken(name, "a field");
    }
    if (field->is_pictures
            ? !cache_number(object, "ends", UINT32_MAX, &ends)
            : !cache_parse_element(object, &field->element) || !cache_parse_shape(object, field)) {
        return cache_broken(name, "a field");
    }
    out_checksums[0] = (uint32_t)data;
    out_checksums[1] = (uint32_t)ends;
    return pen_arena_copy_text(arena, text, strlen(text), &field->name);
}

// Memory is taken for no more fields than a data set has.
static pen_status cache_parse_root(const char *name, const json_t *root, const char *request,
                                   pen_arena *arena, pen_array_cache *cache) {
    const char *text = json_string_value(json_object_get(root, "request"));
    const json_t *fields = json_object_get(root, "fields");
    if (text == NULL || strcmp(text, request) != 0) {
        return pen_error(PEN_CORRUPT, "'%s' is of another request", name);
    }
    if (!cache_number(root, "rows", INT64_MAX, &cache->row_count) || cache->row_count == 0 ||
        !json_is_array(fields) || json_array_size(fields) == 0 ||
        json_array_size(fields) > PEN_CACHE_FIELDS_LIMIT) {
        return cache_broken(name, "it");
    }
    const uint32_t count = (uint32_t)json_array_size(fields);
    PEN_TRY(PEN_NEW(arena, count, &cache->fields));
    PEN_TRY(PEN_NEW(arena, count, &cache->data));
    PEN_TRY(PEN_NEW(arena, count, &cache->ends));
    PEN_TRY(PEN_NEW(arena, (size_t)count * 2, &cache->checksums));
    cache->field_count = count;
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(cache_parse_field(name, json_array_get(fields, i), arena, &cache->fields[i],
                                  &cache->checksums[i * 2]));
    }
    return PEN_OK;
}

pen_status pen_array_cache_parse(const char *name, const void *bytes, size_t length,
                                 const char *request, pen_arena *arena,
                                 pen_array_cache *out_cache) {
    json_t *root = NULL;
    *out_cache = (pen_array_cache){0};
    PEN_TRY(pen_json_load(name, bytes, length, PEN_CORRUPT, &root));
    const pen_status status = cache_parse_root(name, root, request, arena, out_cache);
    json_decref(root);
    return status;
}

// ---- the files

// Of 64 bits that do not depend on each other: thousands of files may have a path each, and of
// those that are no folders there is no manifest that would tell two apart.
pen_status pen_cache_path(const char *folder, const char *request, pen_arena *arena,
                          const char **out_path) {
    const uint64_t key = pen_hash_bytes(PEN_HASH_START, request, strlen(request));
    return pen_arena_format(arena, out_path, "%s/%016" PRIx64, folder, key);
}

// Ends grow, and the last is that of the data.
static bool cache_ends_hold(const pen_mapping *ends, uint64_t count, uint64_t length) {
    uint64_t before = 0;
    if (ends->length / sizeof(uint64_t) != count || ends->length % sizeof(uint64_t) != 0) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t end;
        memcpy(&end, ends->bytes + i * sizeof end, sizeof end);
        if (end < before || end > length) return false;
        before = end;
    }
    return before == length;
}

static bool cache_numbers_hold(const pen_cache_field *field, uint64_t count, uint64_t length) {
    uint64_t bytes = pen_npy_element_bytes(field->element);
    for (uint32_t i = 0; i < field->rank; i++)
        bytes *= (uint64_t)field->shape[i]; // bounded when it was parsed
    return pen_u64_mul(bytes, count, &bytes) && bytes == length;
}

static pen_status cache_map(const char *folder, uint32_t field, const char *ending,
                            pen_arena *arena, pen_mapping *out_mapping) {
    const char *path;
    PEN_TRY(pen_arena_format(arena, &path, "%s/%" PRIu32 ".%s", folder, field, ending));
    const pen_status status = pen_mapping_open(path, out_mapping);
    if (pen_status_get_code(status) != PEN_NOT_FOUND) return status;
    pen_status_ignore(status, "it belongs to what is kept, and that says so");
    return cache_broken(folder, path);
}

// Lengths first: only what has them is looked at.
static pen_status cache_open_field(const char *folder, uint32_t i, pen_arena *arena,
                                   pen_array_cache *cache) {
    const pen_cache_field *field = &cache->fields[i];
    const uint64_t count = cache->row_count;
    const uint32_t data_checksum = cache->checksums[i * 2];
    const uint32_t ends_checksum = cache->checksums[i * 2 + 1];
    pen_mapping *data = &cache->data[i], *ends = &cache->ends[i];
    PEN_TRY(cache_map(folder, i, "data", arena, data));
    if (field->is_pictures) PEN_TRY(cache_map(folder, i, "ends", arena, ends));
    if (field->is_pictures ? !cache_ends_hold(ends, count, data->length)
                           : !cache_numbers_hold(field, count, data->length)) {
        return cache_broken(folder, field->name);
    }
    if (pen_checksum(data->bytes, data->length) != data_checksum ||
        (field->is_pictures && pen_checksum(ends->bytes, ends->length) != ends_checksum)) {
        return cache_broken(folder, field->name);
    }
    cache->checksum = (cache->checksum ^ data_checksum) * 0x9e3779b97f4a7c15u;
    cache->checksum = (cache->checksum ^ ends_checksum) * 0x9e3779b97f4a7c15u;
    return PEN_OK;
}

static pen_status cache_open(const char *folder, const char *request, pen_arena *arena,
                             pen_array_cache *cache) {
    const char *path, *manifest, *bytes;
    size_t length;
    PEN_TRY(pen_cache_path(folder, request, arena, &path));
    PEN_TRY(pen_arena_format(arena, &manifest, "%s/manifest.json", path));
    PEN_TRY(pen_file_read(manifest, CACHE_MANIFEST_BYTES_LIMIT, arena, &bytes, &length));
    PEN_TRY(pen_array_cache_parse(manifest, bytes, length, request, arena, cache));
    for (uint32_t i = 0; i < cache->field_count; i++) {
        PEN_TRY(cache_open_field(path, i, arena, cache));
    }
    return PEN_OK;
}

pen_status pen_array_cache_open(const char *folder, const char *request, pen_arena *arena,
                                pen_array_cache *out_cache) {
    pen_array_cache cache = {0};
    const pen_status status = cache_open(folder, request, arena, &cache);
    if (status != PEN_OK) {
        pen_array_cache_close(&cache);
        return status;
    }
    *out_cache = cache;
    return PEN_OK;
}

void pen_array_cache_close(pen_array_cache *cache) {
    for (uint32_t i = 0; i < cache->field_count; i++) {
        pen_mapping_close(&cache->data[i]);
        pen_mapping_close(&cache->ends[i]);
    }
    *cache = (pen_array_cache){0};
}

const uint8_t *pen_array_cache_picture(const pen_array_cache *cache, uint32_t field, uint64_t row,
                                       uint64_t *out_length) {
    uint64_t first = 0, end;
    const uint8_t *ends = cache->ends[field].bytes;
    if (row > 0) memcpy(&first, ends + (row - 1) * sizeof first, sizeof first);
    memcpy(&end, ends + row * sizeof end, sizeof end);
    *out_length = end - first;
    return cache->data[field].bytes + first;
}
