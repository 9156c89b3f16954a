// Fuzzes what reads Keras' weights from HDF5: the bytes say what a file has (groups, attributes,
// datasets of any type, shape and storage), libhdf5 writes it in memory, and our reader walks it.
// The bytes of the file itself are libhdf5's to read, which crashes on some: hdf5_probe is there
// for that.
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "graph/import/keras/hdf5_file.h"
#include "tests/fuzz/fuzz.h"

#define MAKE_OBJECTS_LIMIT 24
#define MAKE_FILE_BYTES 2048 // that the image grows by: what may be unpacked follows from it
#define MAKE_DATA_BYTES 4096

// What is left of the bytes.
typedef struct recipe {
    const uint8_t *at;
    const uint8_t *end;
} recipe;

static unsigned take(recipe *bytes) {
    return bytes->at < bytes->end ? *bytes->at++ : 0;
}

static hid_t make_type(recipe *bytes) {
    const hid_t types[] = {H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_STD_I8LE,
                           H5T_STD_U16BE,  H5T_STD_I32LE,  H5T_STD_I64BE,  H5T_STD_B8LE};
    const unsigned which = take(bytes) % 12;
    if (which < 8) return H5Tcopy(types[which]);
    const hid_t type = H5Tcopy(H5T_C_S1);
    if (which == 8) {
        H5Tset_size(type, H5T_VARIABLE);
    } else {
        H5Tset_size(type, 1 + take(bytes));
    }
    H5Tset_strpad(type, which % 3 == 0   ? H5T_STR_NULLTERM
                        : which % 3 == 1 ? H5T_STR_NULLPAD
                                         : H5T_STR_SPACEPAD);
    return type;
}

static hid_t make_space(recipe *bytes, bool is_huge_allowed) {
    hsize_t dims[10];
    const int rank = (int)(take(bytes) % 10);
    if (rank == 0) return H5Screate(take(bytes) % 2 == 0 ? H5S_SCALAR : H5S_NULL);
    for (int i = 0; i < rank; i++) {
        const unsigned size = take(bytes);
        dims[i] = is_huge_allowed && size > 250 ? (hsize_t)1 << (size - 222) : size % 5;
    }
    return H5Screate_simple(rank, dims, NULL);
}

static void make_attribute(recipe *bytes, hid_t object) {
    static const char *const names[] = {"model_config", "weight_names", "layer_names", "x"};
    static const char data[MAKE_DATA_BYTES];
    const char *name = names[take(bytes) % 4];
    const hid_t type = make_type(bytes);
    const hid_t space = make_space(bytes, false);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    if (attribute >= 0 && count >= 0 && (size_t)count * H5Tget_size(type) <= sizeof data) {
        char text[64];
        const char *texts[512];
        snprintf(text, sizeof text, "%.*s", (int)(take(bytes) % 60), (const char *)bytes->at);
        for (size_t i = 0; i < 512; i++)
            texts[i] = i % 3 == 2 ? NULL : text;
        const bool is_variable = H5Tis_variable_str(type) > 0;
        if (!is_variable || count <= 512)
            H5Awrite(attribute, type, is_variable ? (const void *)texts : data);
    }
    if (attribute >= 0) H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}

static hid_t make_dataset(recipe *bytes, hid_t group, const char *name) {
    const hid_t type = make_type(bytes);
    const unsigned how = take(bytes) % 6;
    const hid_t space = make_space(bytes, true);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[10];
    const int rank = H5Sget_simple_extent_ndims(space);
    for (int i = 0; i < rank && i < 10; i++)
        chunk[i] = 1 + take(bytes) % 4;
    if (how == 1) H5Pset_layout(creation, H5D_COMPACT);
    if (how >= 2 && rank > 0) H5Pset_chunk(creation, rank, chunk);
    if (how == 3) H5Pset_deflate(creation, 6);
    if (how == 4) H5Pset_scaleoffset(creation, H5Z_SO_INT, 2);
    if (how == 5) H5Pset_fletcher32(creation);
    const hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Pclose(creation);
    H5Sclose(space);
    H5Tclose(type);
    return dataset;
}

static void make_objects(recipe *bytes, hid_t file) {
    hid_t group = H5Gopen2(file, "/", H5P_DEFAULT);
    for (int i = 0; i < MAKE_OBJECTS_LIMIT && bytes->at < bytes->end; i++) {
        char name[16];
        hid_t object = -1;
        snprintf(name, sizeof name, "n%u", take(bytes) % 64);
        const unsigned what = take(bytes) % 8;
        if (what == 0) H5Lcreate_soft("/n1", group, name, H5P_DEFAULT, H5P_DEFAULT);
        if (what == 1) H5Lcreate_external("/none", "/n1", group, name, H5P_DEFAULT, H5P_DEFAULT);
        if (what == 2) H5Lcreate_hard(file, "/", group, name, H5P_DEFAULT, H5P_DEFAULT); // a circle
        if (what == 3) make_attribute(bytes, group);
        if (what == 4 || what == 5) object = make_dataset(bytes, group, name);
        if (what >= 6) object = H5Gcreate2(group, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (object < 0) continue;
        if (take(bytes) % 2 == 0) make_attribute(bytes, object);
        if (what == 6) {
            H5Gclose(group);
            group = object;
        } else {
            H5Oclose(object);
        }
    }
    H5Gclose(group);
}

// The bytes of the file that the recipe makes; NULL: none. Released with free.
static uint8_t *make_file(const uint8_t *data, size_t size, size_t *out_length) {
    recipe bytes = {data, data + size};
    uint8_t *image = NULL;
    *out_length = 0;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, MAKE_FILE_BYTES, false);
    const hid_t file = H5Fcreate("/dev/null/made", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file >= 0) {
        make_objects(&bytes, file);
        H5Fflush(file, H5F_SCOPE_GLOBAL);
        const ssize_t length = H5Fget_file_image(file, NULL, 0);
        if (length > 0) image = malloc((size_t)length);
        if (image != NULL && H5Fget_file_image(file, image, (size_t)length) == length) {
            *out_length = (size_t)length;
        }
        H5Fclose(file);
    }
    H5Pclose(access);
    H5Eclear2(H5E_DEFAULT);
    return image;
}

static void use_object(const pen_hdf5 *file, const char *path, pen_hdf5_kind kind,
                       pen_arena *arena) {
    static const char *const attributes[] = {"model_config", "weight_names", "layer_names"};
    uint32_t count;
    const char *const *texts;
    pen_tensor_type type;
    const void *data;
    for (int i = 0; i < 3 && kind != PEN_HDF5_OTHER; i++) {
        if (!fuzz_reads(pen_hdf5_read_texts(file, path, attributes[i], arena, &count, &texts))) {
            continue;
        }
        for (uint32_t t = 0; t < count; t++)
            fuzz_must(strlen(texts[t]) <= PEN_HDF5_TEXT_LIMIT);
    }
    if (!fuzz_reads(pen_hdf5_read_dataset(file, path, arena, &type, &data))) return;
    fuzz_must(kind == PEN_HDF5_DATASET);
    uint64_t sum = 0;
    for (uint64_t b = 0; b < pen_tensor_type_bytes(&type); b++)
        sum += ((const uint8_t *)data)[b];
    fuzz_must(sum <= 255 * pen_tensor_type_bytes(&type));
}

static void walk(const pen_hdf5 *file, const char *path, pen_arena *arena, int depth) {
    uint32_t count;
    const pen_hdf5_child *children;
    if (!fuzz_reads(pen_hdf5_list(file, path, arena, &count, &children))) return;
    for (uint32_t i = 0; i < count; i++) {
        const char *child;
        if (!fuzz_works(pen_arena_format(arena, &child, "%s/%s", depth == 0 ? "" : path,
                                         children[i].name))) {
            return;
        }
        use_object(file, child, children[i].kind, arena);
        if (children[i].kind == PEN_HDF5_GROUP && depth < 2) walk(file, child, arena, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_hdf5 *file;
    size_t length;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    uint8_t *image = make_file(data, size, &length);
    if (length > 0 && fuzz_reads(pen_hdf5_open("fuzz", image, length, &file))) {
        use_object(file, "/", PEN_HDF5_GROUP, arena);
        walk(file, "/", arena, 0);
        pen_hdf5_close(file);
    }
    free(image);
    pen_arena_destroy(arena);
    return 0;
}
