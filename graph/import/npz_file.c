#include "graph/import/npz_file.h"

#include <string.h>

#include "base/format/npy.h"
#include "base/memory.h"
#include "graph/import/zip_file.h"

// Headers of arrays are shorter than this; only those of structured types can be longer.
#define NPZ_START_BYTES (66u << 10)

static const pen_element_type npz_elements[] = {
    [PEN_NPY_BOOL] = PEN_BOOL,       [PEN_NPY_UINT8] = PEN_UINT8, [PEN_NPY_INT8] = PEN_INT8,
    [PEN_NPY_UINT16] = PEN_UINT16,   [PEN_NPY_INT16] = PEN_INT16, [PEN_NPY_UINT32] = PEN_UINT32,
    [PEN_NPY_INT32] = PEN_INT32,     [PEN_NPY_INT64] = PEN_INT64, [PEN_NPY_FLOAT32] = PEN_FLOAT32,
    [PEN_NPY_FLOAT64] = PEN_FLOAT64,
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

static pen_status npz_list(pen_npz *npz, pen_arena *arena, uint8_t *start) {
    pen_npz_array *arrays;
    PEN_TRY(PEN_NEW(arena, pen_zip_count(npz->zip), &arrays));
    npz->arrays = arrays;
    for (uint32_t i = 0; i < pen_zip_count(npz->zip); i++) {
        const char *member = pen_zip_member_name(npz->zip, i);
        const size_t length = strlen(member);
        pen_npz_array *array = &arrays[npz->count];
        if (length <= 4 || strcmp(member + length - 4, ".npy") != 0) continue;
        PEN_TRY(npz_read_header(npz->zip, member, start, array));
        PEN_TRY(pen_arena_copy_text(arena, member, length - strlen(".npy"), &array->name));
        npz->count++;
    }
    return PEN_OK;
}

pen_status pen_npz_open(const char *name, const void *bytes, size_t length, pen_arena *arena,
                        pen_npz *out_npz) {
    pen_npz npz = {.name = name};
    PEN_TRY(pen_zip_open(name, bytes, length, &npz.zip));
    uint8_t *start = pen_memory_allocate(NPZ_START_BYTES, 1);
    pen_status status = start != NULL ? npz_list(&npz, arena, start) : pen_error_out_of_memory();
    pen_memory_free(start);
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

// The header is read again with the whole member, which has a checksum.
static pen_status npz_read(const pen_npz *npz, const pen_npz_array *array, pen_arena *arena,
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
    return pen_status_add_context(npz_read(npz, &npz->arrays[index], arena, out_data), "in %s",
                                  npz->name);
}
