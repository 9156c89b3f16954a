#include "graph/import/npz_file.h"

#include <string.h>

#include "base/format/npy.h"
#include "graph/import/zip_file.h"

static const pen_element_type npz_elements[] = {
    [PEN_NPY_BOOL] = PEN_BOOL,       [PEN_NPY_UINT8] = PEN_UINT8, [PEN_NPY_INT8] = PEN_INT8,
    [PEN_NPY_UINT16] = PEN_UINT16,   [PEN_NPY_INT16] = PEN_INT16, [PEN_NPY_UINT32] = PEN_UINT32,
    [PEN_NPY_INT32] = PEN_INT32,     [PEN_NPY_INT64] = PEN_INT64, [PEN_NPY_FLOAT32] = PEN_FLOAT32,
    [PEN_NPY_FLOAT64] = PEN_FLOAT64,
};

static pen_status npz_read_array(const pen_zip *zip, const char *member, pen_arena *arena,
                                 pen_npz_array *array) {
    const uint8_t *bytes;
    size_t length;
    pen_npy_header header;
    PEN_TRY(pen_zip_read(zip, member, arena, &bytes, &length));
    PEN_TRY(pen_npy_read_header(bytes, length, member, &header));
    array->type = pen_tensor_type_make(npz_elements[header.element], header.rank, header.shape);
    array->data = bytes + header.data_offset;
    PEN_TRY(pen_tensor_type_check(&array->type));
    return pen_arena_copy_text(arena, member, strlen(member) - strlen(".npy"), &array->name);
}

static pen_status npz_read_all(const pen_zip *zip, pen_arena *arena, pen_npz *out_npz) {
    pen_npz_array *arrays;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, pen_zip_count(zip), &arrays));
    for (uint32_t i = 0; i < pen_zip_count(zip); i++) {
        const char *member = pen_zip_member_name(zip, i);
        const size_t length = strlen(member);
        if (length <= 4 || strcmp(member + length - 4, ".npy") != 0) continue;
        PEN_TRY(npz_read_array(zip, member, arena, &arrays[count]));
        count++;
    }
    *out_npz = (pen_npz){.count = count, .arrays = arrays};
    return PEN_OK;
}

pen_status pen_npz_read(const char *name, const void *bytes, size_t length, pen_arena *arena,
                        pen_npz *out_npz) {
    pen_zip *zip;
    PEN_TRY(pen_zip_open(name, bytes, length, &zip));
    const pen_status status = npz_read_all(zip, arena, out_npz);
    pen_zip_close(zip);
    return pen_status_add_context(status, "in %s", name);
}
