#include "graph/import/npz_file.h"

#include <string.h>

#include "base/format/npy.h"
#include "base/memory.h"
#include "graph/import/stored_zip.h"
#include "graph/import/zip_file.h"

// Headers of arrays are shorter than this; only those of structured types can be longer.
#define NPZ_START_BYTES (66u << 10)

static const pen_element_type npz_elements[] = {
    [PEN_NPY_BOOL] = PEN_BOOL,       [PEN_NPY_UINT8] = PEN_UINT8,
    [PEN_NPY_INT8] = PEN_INT8,       [PEN_NPY_UINT16] = PEN_UINT16,
    [PEN_NPY_INT16] = PEN_INT16,     [PEN_NPY_UINT32] = PEN_UINT32,
    [PEN_NPY_INT32] = PEN_INT32,     [PEN_NPY_INT64] = PEN_INT64,
    [PEN_NPY_FLOAT32] = PEN_FLOAT32, [PEN_NPY_FLOAT64] = PEN_FLOAT64,
    [PEN_NPY_FLOAT16] = PEN_FLOAT16, [PEN_NPY_BFLOAT16] = PEN_BFLOAT16,
};

static pen_status npz_make_type(const pen_npy_header *header, pen_tensor_type *out_type) {
    *out_type = pen_tensor_type_make(npz_elements[header->element], header->rank, header->shape);
    return pen_tensor_type_check(out_type);
}

// The header says how long it is itself, and what follows it; the archive says how much that is.
static pen_status npz_read_header(const pen_zip *zip, const char *member, uint8_t *start,
                                  pen_npz_array *array) {
    pen_npy_header header;
    pen_zip_size size;
    size_t count = 0;
    PEN_TRY(pen_zip_measure(zip, member, &size));
    PEN_TRY(pen_zip_read_start(zip, member, start, NPZ_START_BYTES, &count));
    if (size.bytes > count && pen_npy_header_bytes(start, count) > count) {
        return pen_error(PEN_UNSUPPORTED, "'%.200s': its .npy header has more than %u bytes",
                         member, NPZ_START_BYTES);
    }
    PEN_TRY(pen_npy_read_header(start, size.bytes, member, &header));
    return npz_make_type(&header, &array->type);
}

// Whether a member is an array, by its name; *out_length is that of the array's name.
static bool npz_is_array(const char *member, size_t *out_length) {
    const size_t length = strlen(member);
    if (length <= 4 || strcmp(member + length - 4, ".npy") != 0) return false;
    *out_length = length - strlen(".npy");
    return true;
}

static pen_status npz_list(pen_npz *npz, pen_arena *arena, uint8_t *start) {
    pen_npz_array *arrays;
    PEN_TRY(PEN_NEW(arena, pen_zip_count(npz->zip), &arrays));
    npz->arrays = arrays;
    for (uint32_t i = 0; i < pen_zip_count(npz->zip); i++) {
        const char *member = pen_zip_member_name(npz->zip, i);
        pen_npz_array *array = &arrays[npz->count];
        size_t length;
        if (!npz_is_array(member, &length)) continue;
        PEN_TRY(npz_read_header(npz->zip, member, start, array));
        PEN_TRY(pen_arena_copy_text(arena, member, length, &array->name));
        npz->count++;
    }
    return PEN_OK;
}

static pen_status npz_open_packed(pen_npz *npz, const void *bytes, size_t length,
                                  pen_arena *arena) {
    PEN_TRY(pen_zip_open(npz->name, bytes, length, &npz->zip));
    uint8_t *start = pen_memory_allocate(NPZ_START_BYTES, 1);
    const pen_status status =
        start != NULL ? npz_list(npz, arena, start) : pen_error_out_of_memory();
    pen_memory_free(start);
    return status;
}

// ---- archives that are mapped

static pen_status npz_read_stored_header(const pen_npz *npz, const pen_stored_zip_entry *entry,
                                         pen_tensor_type *out_type, const void **out_data) {
    pen_npy_header header;
    const uint8_t *bytes = npz->stored->bytes + entry->offset;
    PEN_TRY(pen_npy_read_header(bytes, entry->length, entry->name, &header));
    *out_data = bytes + header.data_offset;
    return npz_make_type(&header, out_type);
}

// The folder that all members may be in is part of their names here.
static pen_status npz_list_stored(pen_npz *npz, pen_arena *arena) {
    const pen_stored_zip *stored = npz->stored;
    pen_npz_array *arrays;
    PEN_TRY(PEN_NEW(arena, stored->count, &arrays));
    npz->arrays = arrays;
    for (uint32_t i = 0; i < stored->count; i++) {
        const pen_stored_zip_entry *entry = &stored->entries[i];
        pen_npz_array *array = &arrays[npz->count];
        const char *member = pen_stored_zip_whole_name(stored, entry);
        const void *data;
        size_t length;
        if (!npz_is_array(member, &length)) continue;
        PEN_TRY(npz_read_stored_header(npz, entry, &array->type, &data));
        PEN_TRY(pen_arena_copy_text(arena, member, length, &array->name));
        array->entry = i;
        npz->count++;
    }
    return PEN_OK;
}

// An archive that is not all stored, or is another way than it should, is left to libzip.
static pen_status npz_find_stored(pen_npz *npz, const void *bytes, size_t length,
                                  pen_arena *arena) {
    pen_stored_zip *stored;
    PEN_TRY(PEN_NEW(arena, 1, &stored));
    const pen_status status = pen_stored_zip_read(bytes, length, arena, stored);
    if (status == PEN_OK) npz->stored = stored;
    if (pen_status_get_code(status) == PEN_OUT_OF_MEMORY) return status;
    pen_status_ignore(status, "libzip says what is wrong, or unpacks it");
    return PEN_OK;
}

pen_status pen_npz_open(const char *name, const void *bytes, size_t length, pen_arena *arena,
                        pen_npz *out_npz) {
    pen_npz npz = {.name = name};
    pen_status status = npz_find_stored(&npz, bytes, length, arena);
    if (status == PEN_OK) {
        status = npz.stored != NULL ? npz_list_stored(&npz, arena)
                                    : npz_open_packed(&npz, bytes, length, arena);
    }
    if (status != PEN_OK) {
        pen_npz_close(&npz);
        return pen_status_add_context(status, "in %s", name);
    }
    *out_npz = npz;
    return PEN_OK;
}

void pen_npz_close(pen_npz *npz) {
    pen_zip_close(npz->zip);
    *npz = (pen_npz){0};
}

static pen_status npz_read_stored(const pen_npz *npz, const pen_npz_array *array,
                                  const void **out_data) {
    const pen_stored_zip_entry *entry = &npz->stored->entries[array->entry];
    pen_tensor_type type;
    PEN_TRY(pen_stored_zip_open(npz->stored, entry->name, &entry));
    PEN_TRY(npz_read_stored_header(npz, entry, &type, out_data));
    if (pen_tensor_type_equal(&type, &array->type)) return PEN_OK;
    return pen_error(PEN_CORRUPT, "'%.200s' was changed while it was read", array->name);
}

// The header is read again with the whole member, which has a checksum.
static pen_status npz_read_packed(const pen_npz *npz, const pen_npz_array *array, pen_arena *arena,
                                  const void **out_data) {
    const char *member;
    const uint8_t *bytes;
    size_t length;
    pen_npy_header header;
    pen_tensor_type type;
    PEN_TRY(pen_arena_format(arena, &member, "%s.npy", array->name));
    PEN_TRY(pen_zip_read(npz->zip, member, UINT64_MAX, arena, &bytes, &length));
    PEN_TRY(pen_npy_read_header(bytes, length, member, &header));
    PEN_TRY(npz_make_type(&header, &type));
    *out_data = bytes + header.data_offset;
    if (pen_tensor_type_equal(&type, &array->type)) return PEN_OK;
    return pen_error(PEN_CORRUPT, "'%.200s' was changed while it was read", member);
}

pen_status pen_npz_read(const pen_npz *npz, uint32_t index, pen_arena *arena,
                        const void **out_data) {
    PEN_ASSERT(index < npz->count);
    const pen_npz_array *array = &npz->arrays[index];
    const pen_status status = npz->stored != NULL ? npz_read_stored(npz, array, out_data)
                                                  : npz_read_packed(npz, array, arena, out_data);
    return pen_status_add_context(status, "in %s", npz->name);
}
