#include "graph/import/keras/hdf5_reader.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/reserve.h"

#define READER_COMPLAINT_BYTES 160
#define READER_IMAGE_NAME "/dev/null/image" // the name of no file
#define READER_READ_ONLY 0u // H5F_ACC_RDONLY, without the calls that hdf5.h puts into it

// ---- errors

// The innermost complaint: the others only say what was tried.
static herr_t reader_take_complaint(unsigned n, const H5E_error2_t *complaint, void *context) {
    char *text = context;
    if (n == 0 && complaint->desc != NULL) {
        snprintf(text, READER_COMPLAINT_BYTES, "%s", complaint->desc);
    }
    return 0;
}

pen_status pen_hdf5_reader_error(const pen_hdf5_reader *reader, const char *path) {
    char complaint[READER_COMPLAINT_BYTES] = "it does not say what is wrong";
    (void)reader->h5->H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, reader_take_complaint, complaint);
    (void)reader->h5->H5Eclear2(H5E_DEFAULT);
    return pen_error(PEN_CORRUPT, "%s: HDF5 cannot read '%.200s': %s", reader->name, path,
                     complaint);
}

// ---- the bytes as a file
//
// libhdf5 takes a file from memory as an image of its own, which it copies; these make it use ours,
// and never write to it.

static void *reader_image_allocate(size_t length, H5FD_file_image_op_t op, void *context) {
    const pen_hdf5_reader *reader = context;
    (void)op;
    // what is never written to may be given as if it could be
    return length == reader->length ? (void *)(uintptr_t)reader->bytes : NULL;
}

static void *reader_image_copy(void *target, const void *source, size_t length,
                               H5FD_file_image_op_t op, void *context) {
    (void)length;
    (void)op;
    (void)context;
    return target == source ? target : NULL;
}

static void *reader_image_resize(void *image, size_t length, H5FD_file_image_op_t op,
                                 void *context) {
    (void)image;
    (void)length;
    (void)op;
    (void)context;
    return NULL;
}

static herr_t reader_image_free(void *image, H5FD_file_image_op_t op, void *context) {
    (void)image;
    (void)op;
    (void)context;
    return 0;
}

static void *reader_context_copy(void *context) {
    return context;
}

static herr_t reader_context_free(void *context) {
    (void)context;
    return 0;
}

// The library reads the mapping as it lies: callbacks keep it from making a copy of the file.
pen_status pen_hdf5_reader_open(const char *name, const void *bytes, size_t length,
                                pen_hdf5_reader *out_reader) {
    *out_reader = (pen_hdf5_reader){.name = name, .bytes = bytes, .length = length};
    PEN_TRY(pen_arena_create(&out_reader->arena));
    PEN_TRY(pen_hdf5_library_load(&out_reader->h5));
    const pen_hdf5_library *h5 = out_reader->h5;
    const hid_t access = h5->H5Pcreate(*h5->H5P_CLS_FILE_ACCESS_ID_g);
    H5FD_file_image_callbacks_t callbacks = {.image_malloc = reader_image_allocate,
                                             .image_memcpy = reader_image_copy,
                                             .image_realloc = reader_image_resize,
                                             .image_free = reader_image_free,
                                             .udata_copy = reader_context_copy,
                                             .udata_free = reader_context_free,
                                             .udata = out_reader};
    void *image = (void *)(uintptr_t)bytes; // is not written to
    if (access < 0 || h5->H5Pset_fapl_core(access, 1 << 16, false) < 0 ||
        h5->H5Pset_file_image_callbacks(access, &callbacks) < 0 ||
        h5->H5Pset_file_image(access, image, length) < 0) {
        return pen_hdf5_reader_error(out_reader, "/");
    }
    out_reader->file = h5->H5Fopen(READER_IMAGE_NAME, READER_READ_ONLY, access);
    return out_reader->file < 0 ? pen_hdf5_reader_error(out_reader, "/") : PEN_OK;
}

// ---- attributes

typedef struct reader_names {
    const pen_hdf5_reader *reader;
    char **names;
    uint32_t count, capacity;
    pen_status status;
} reader_names;

// Limits here keep a damaged file from filling memory.
static pen_status reader_add_name(reader_names *names, const char *name) {
    const char *copy;
    const size_t length = strlen(name);
    if (length == 0 || length > PEN_NAME_BYTES_LIMIT || names->count == PEN_HDF5_CHILDREN_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: an object has more than %u attributes, or one with a name of more "
                         "than %d bytes, or of none",
                         names->reader->name, PEN_HDF5_CHILDREN_LIMIT, PEN_NAME_BYTES_LIMIT);
    }
    PEN_TRY(PEN_RESERVE(names->reader->arena, &names->names, names->count, &names->capacity, 16));
    PEN_TRY(pen_arena_copy_text(names->reader->arena, name, length, &copy));
    names->names[names->count++] = (char *)(uintptr_t)copy;
    return PEN_OK;
}

static herr_t reader_take_name(hid_t object, const char *name, const H5A_info_t *info,
                               void *context) {
    reader_names *names = context;
    (void)object;
    (void)info;
    names->status = reader_add_name(names, name);
    return names->status == PEN_OK ? 0 : -1;
}

pen_status pen_hdf5_reader_list_attributes(const pen_hdf5_reader *reader, hid_t object,
                                           const char *path, uint32_t *out_count,
                                           char ***out_names) {
    reader_names names = {.reader = reader};
    const herr_t result =
        reader->h5->H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, reader_take_name, &names);
    if (names.status != PEN_OK) return names.status;
    if (result < 0) return pen_hdf5_reader_error(reader, path);
    *out_count = names.count;
    *out_names = names.names;
    return PEN_OK;
}

// ---- the texts of attributes

typedef struct reader_texts {
    const pen_hdf5_reader *reader;
    const char *attribute;
    hid_t id, type, space;
    uint32_t count;
    const char **texts;
} reader_texts;

static pen_status reader_texts_error(const reader_texts *texts, const char *found,
                                     const char *expected) {
    return pen_error(PEN_INVALID_INPUT, "%s: attribute '%.200s' is %s, expected %s",
                     texts->reader->name, texts->attribute, found, expected);
}

// Texts of one length each, padded.
static pen_status reader_read_padded(reader_texts *texts) {
    const pen_hdf5_library *h5 = texts->reader->h5;
    const size_t size = h5->H5Tget_size(texts->type);
    size_t bytes;
    char *buffer;
    if (size == 0 || !pen_size_mul(size, texts->count, &bytes) || bytes > PEN_HDF5_TEXT_LIMIT) {
        return reader_texts_error(texts, "too long", "less");
    }
    const bool is_spaced = h5->H5Tget_strpad(texts->type) == H5T_STR_SPACEPAD;
    PEN_TRY(PEN_NEW(texts->reader->arena, bytes, &buffer));
    if (h5->H5Aread(texts->id, texts->type, buffer) < 0) {
        return pen_hdf5_reader_error(texts->reader, texts->attribute);
    }
    for (uint32_t i = 0; i < texts->count; i++) {
        const char *text = buffer + i * size;
        size_t length = strnlen(text, size);
        while (is_spaced && length > 0 && text[length - 1] == ' ')
            length--;
        PEN_TRY(pen_arena_copy_text(texts->reader->arena, text, length, &texts->texts[i]));
    }
    return PEN_OK;
}

// Texts that libhdf5 allocates, each as long as it is. Several may be the same bytes of the file,
// so together they may be more than it has.
static pen_status reader_read_variable(reader_texts *texts) {
    const pen_hdf5_library *h5 = texts->reader->h5;
    uint64_t total = 0;
    char **buffer;
    PEN_TRY(PEN_NEW(texts->reader->arena, texts->count, &buffer));
    if (h5->H5Aread(texts->id, texts->type, buffer) < 0) {
        return pen_hdf5_reader_error(texts->reader, texts->attribute);
    }
    for (uint32_t i = 0; i < texts->count; i++) {
        const char *text = buffer[i] != NULL ? buffer[i] : "";
        total += strnlen(text, PEN_HDF5_TEXT_LIMIT + 1);
        if (total > PEN_HDF5_TEXT_LIMIT) return reader_texts_error(texts, "too long", "less");
        PEN_TRY(pen_arena_copy_text(texts->reader->arena, text, strlen(text), &texts->texts[i]));
    }
    (void)h5->H5Dvlen_reclaim(texts->type, texts->space, H5P_DEFAULT, buffer);
    return PEN_OK;
}

static pen_status reader_read_attribute(reader_texts *texts) {
    const pen_hdf5_library *h5 = texts->reader->h5;
    const hssize_t count = h5->H5Sget_simple_extent_npoints(texts->space);
    if (count < 0) return pen_hdf5_reader_error(texts->reader, texts->attribute);
    if (count > PEN_HDF5_TEXTS_LIMIT)
        return reader_texts_error(texts, "a long list", "a shorter one");
    PEN_TRY(PEN_NEW(texts->reader->arena, (size_t)count, &texts->texts));
    texts->count = (uint32_t)count;
    if (count == 0) return PEN_OK; // Keras writes empty lists as numbers
    if (h5->H5Tget_class(texts->type) != H5T_STRING) {
        return reader_texts_error(texts, "something else", "text");
    }
    const htri_t is_variable = h5->H5Tis_variable_str(texts->type);
    if (is_variable < 0) return pen_hdf5_reader_error(texts->reader, texts->attribute);
    return is_variable > 0 ? reader_read_variable(texts) : reader_read_padded(texts);
}

pen_status pen_hdf5_reader_read_texts(const pen_hdf5_reader *reader, hid_t object,
                                      const char *attribute, uint32_t *out_count,
                                      const char ***out_texts) {
    const pen_hdf5_library *h5 = reader->h5;
    reader_texts texts = {.reader = reader, .attribute = attribute};
    texts.id = h5->H5Aopen(object, attribute, H5P_DEFAULT);
    if (texts.id < 0) return pen_hdf5_reader_error(reader, attribute);
    texts.type = h5->H5Aget_type(texts.id);
    texts.space = h5->H5Aget_space(texts.id);
    const pen_status status = texts.type < 0 || texts.space < 0
                                  ? pen_hdf5_reader_error(reader, attribute)
                                  : reader_read_attribute(&texts);
    if (texts.type >= 0) (void)h5->H5Tclose(texts.type);
    if (texts.space >= 0) (void)h5->H5Sclose(texts.space);
    (void)h5->H5Aclose(texts.id);
    *out_count = texts.count;
    *out_texts = texts.texts;
    return status;
}
