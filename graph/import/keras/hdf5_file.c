#include "graph/import/keras/hdf5_file.h"

#include <hdf5.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/memory.h"

#define HDF5_COMPLAINT_BYTES 160
#define HDF5_PACKING_LIMIT 1100 // deflate makes at most 1032 bytes of one

// libhdf5 is not safe for threads: held by whoever is in it.
static pthread_mutex_t hdf5_lock = PTHREAD_MUTEX_INITIALIZER;
static bool hdf5_is_ready;        // guarded by hdf5_lock
static uint64_t hdf5_open_number; // guarded by hdf5_lock

struct pen_hdf5 {
    const char *name;
    const uint8_t *bytes;
    size_t length;
    hid_t id;
};

void pen_hdf5_enter(void) {
    pthread_mutex_lock(&hdf5_lock);
}

void pen_hdf5_leave(void) {
    pthread_mutex_unlock(&hdf5_lock);
}

// ---- errors

// The innermost complaint: the others only say what was tried.
static herr_t hdf5_take_complaint(unsigned n, const H5E_error2_t *complaint, void *context) {
    char *text = context;
    if (n == 0 && complaint->desc != NULL) {
        snprintf(text, HDF5_COMPLAINT_BYTES, "%s", complaint->desc);
    }
    return 0;
}

static pen_status hdf5_error(const pen_hdf5 *file, const char *path) {
    char complaint[HDF5_COMPLAINT_BYTES] = "it does not say what is wrong";
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, hdf5_take_complaint, complaint);
    (void)H5Eclear2(H5E_DEFAULT);
    return pen_error(PEN_CORRUPT, "%s: HDF5 cannot read '%.200s': %s", file->name, path, complaint);
}

// ---- the bytes as a file
//
// libhdf5 takes a file from memory as an image of its own, which it copies; these make it use ours,
// and never write to it.

static void *hdf5_image_allocate(size_t length, H5FD_file_image_op_t op, void *context) {
    const pen_hdf5 *file = context;
    (void)op;
    // what is never written to may be given as if it could be
    return length == file->length ? (void *)(uintptr_t)file->bytes : NULL;
}

static void *hdf5_image_copy(void *target, const void *source, size_t length,
                             H5FD_file_image_op_t op, void *context) {
    (void)length;
    (void)op;
    (void)context;
    return target == source ? target : NULL;
}

static void *hdf5_image_resize(void *image, size_t length, H5FD_file_image_op_t op, void *context) {
    (void)image;
    (void)length;
    (void)op;
    (void)context;
    return NULL;
}

static herr_t hdf5_image_free(void *image, H5FD_file_image_op_t op, void *context) {
    (void)image;
    (void)op;
    (void)context;
    return 0;
}

static void *hdf5_context_copy(void *context) {
    return context;
}

static herr_t hdf5_context_free(void *context) {
    (void)context;
    return 0;
}

// Images go by names of no file, each by its own: libhdf5 takes equal names for one file.
static herr_t hdf5_open_image(pen_hdf5 *file, hid_t access) {
    char image_name[64];
    snprintf(image_name, sizeof image_name, "/dev/null/%" PRIu64, ++hdf5_open_number);
    H5FD_file_image_callbacks_t callbacks = {.image_malloc = hdf5_image_allocate,
                                             .image_memcpy = hdf5_image_copy,
                                             .image_realloc = hdf5_image_resize,
                                             .image_free = hdf5_image_free,
                                             .udata_copy = hdf5_context_copy,
                                             .udata_free = hdf5_context_free,
                                             .udata = file};
    if (H5Pset_fapl_core(access, 1 << 16, false) < 0) return -1;
    if (H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0) return -1;
    if (H5Pset_file_image_callbacks(access, &callbacks) < 0) return -1;
    void *image = (void *)(uintptr_t)file->bytes; // is not written to
    if (H5Pset_file_image(access, image, file->length) < 0) return -1;
    file->id = H5Fopen(image_name, H5F_ACC_RDONLY, access);
    return file->id < 0 ? -1 : 0;
}

static herr_t hdf5_prepare(void) {
    if (hdf5_is_ready) return 0;
    if (H5dont_atexit() < 0 || H5open() < 0) return -1;
    if (H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0) return -1;
    if (H5PLset_loading_state(0) < 0) return -1; // no code from files that a file names
    hdf5_is_ready = true;
    return 0;
}

static pen_status hdf5_open_locked(pen_hdf5 *file) {
    if (hdf5_prepare() < 0) return hdf5_error(file, "/");
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0) return hdf5_error(file, "/");
    const pen_status status = hdf5_open_image(file, access) < 0 ? hdf5_error(file, "/") : PEN_OK;
    (void)H5Pclose(access);
    return status;
}

pen_status pen_hdf5_open(const char *name, const void *bytes, size_t length, pen_hdf5 **out_file) {
    static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    if (length < sizeof signature || memcmp(bytes, signature, sizeof signature) != 0) {
        return pen_error(PEN_CORRUPT, "%s: not an HDF5 file by its first bytes", name);
    }
    pen_hdf5 *file = pen_memory_allocate(1, sizeof *file);
    if (file == NULL) return pen_error_out_of_memory();
    *file = (pen_hdf5){.name = name, .bytes = bytes, .length = length, .id = -1};
    pthread_mutex_lock(&hdf5_lock);
    const pen_status status = hdf5_open_locked(file);
    pthread_mutex_unlock(&hdf5_lock);
    if (status != PEN_OK) {
        pen_memory_free(file);
        return status;
    }
    *out_file = file;
    return PEN_OK;
}

void pen_hdf5_close(pen_hdf5 *file) {
    if (file == NULL) return;
    pthread_mutex_lock(&hdf5_lock);
    (void)H5Fclose(file->id); // it was only read
    (void)H5Eclear2(H5E_DEFAULT);
    pthread_mutex_unlock(&hdf5_lock);
    pen_memory_free(file);
}

// ---- finding

static pen_status hdf5_object_kind(const pen_hdf5 *file, const char *path,
                                   pen_hdf5_kind *out_kind) {
    const hid_t object = H5Oopen(file->id, path, H5P_DEFAULT);
    if (object < 0) return hdf5_error(file, path);
    const H5I_type_t type = H5Iget_type(object);
    *out_kind = type == H5I_GROUP     ? PEN_HDF5_GROUP
                : type == H5I_DATASET ? PEN_HDF5_DATASET
                                      : PEN_HDF5_OTHER;
    (void)H5Oclose(object);
    return PEN_OK;
}

// Looks at each step of the path, so that none leads out of the file.
static pen_status hdf5_find_locked(const pen_hdf5 *file, const char *path,
                                   pen_hdf5_kind *out_kind) {
    char prefix[PEN_NAME_BYTES_LIMIT + 1];
    const size_t length = strlen(path);
    PEN_ASSERT(path[0] == '/');
    *out_kind = PEN_HDF5_ABSENT;
    if (length > PEN_NAME_BYTES_LIMIT) return PEN_OK;
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        if (path[i - 1] == '/') continue; // the root, or an empty step
        memcpy(prefix, path, i);
        prefix[i] = '\0';
        H5L_info_t link;
        *out_kind = PEN_HDF5_ABSENT;
        const htri_t exists = H5Lexists(file->id, prefix, H5P_DEFAULT);
        if (exists < 0) return hdf5_error(file, prefix);
        if (exists == 0) return PEN_OK;
        if (H5Lget_info(file->id, prefix, &link, H5P_DEFAULT) < 0) return hdf5_error(file, prefix);
        *out_kind = PEN_HDF5_OTHER;
        if (link.type != H5L_TYPE_HARD) return PEN_OK;
        PEN_TRY(hdf5_object_kind(file, prefix, out_kind));
        const bool is_last = path[i] == '\0' || path[i + 1] == '\0';
        if (is_last || *out_kind == PEN_HDF5_GROUP) continue;
        *out_kind = PEN_HDF5_ABSENT; // nothing is within what is no group
        return PEN_OK;
    }
    return strcmp(path, "/") == 0 ? hdf5_object_kind(file, path, out_kind) : PEN_OK;
}

pen_status pen_hdf5_find(const pen_hdf5 *file, const char *path, pen_hdf5_kind *out_kind) {
    pthread_mutex_lock(&hdf5_lock);
    const pen_status status = hdf5_find_locked(file, path, out_kind);
    pthread_mutex_unlock(&hdf5_lock);
    return status;
}

static pen_status hdf5_require(const pen_hdf5 *file, const char *path, pen_hdf5_kind wanted) {
    static const char *const names[] = {"nothing", "a group", "a dataset", "something else"};
    pen_hdf5_kind kind;
    PEN_TRY(hdf5_find_locked(file, path, &kind));
    if (kind == wanted || (wanted == PEN_HDF5_ABSENT && kind != PEN_HDF5_ABSENT)) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "%s: '%.200s' is %s, expected %s", file->name, path,
                     names[kind], wanted == PEN_HDF5_ABSENT ? "an object" : names[wanted]);
}

// ---- groups

typedef struct hdf5_listing {
    pen_arena *arena;
    pen_hdf5_child *children;
    uint32_t count, limit;
    pen_status status;
} hdf5_listing;

static herr_t hdf5_take_child(hid_t group, const char *name, const H5L_info_t *link,
                              void *context) {
    hdf5_listing *listing = context;
    if (listing->count == listing->limit) return 1;
    if (strlen(name) > PEN_NAME_BYTES_LIMIT) {
        listing->status =
            pen_error(PEN_INVALID_INPUT, "a name has more than %d bytes", PEN_NAME_BYTES_LIMIT);
        return -1;
    }
    pen_hdf5_child *child = &listing->children[listing->count];
    child->kind = PEN_HDF5_OTHER;
    if (link->type == H5L_TYPE_HARD) {
        const hid_t object = H5Oopen(group, name, H5P_DEFAULT);
        if (object < 0) return -1;
        const H5I_type_t type = H5Iget_type(object);
        if (type == H5I_GROUP) child->kind = PEN_HDF5_GROUP;
        if (type == H5I_DATASET) child->kind = PEN_HDF5_DATASET;
        (void)H5Oclose(object);
    }
    listing->status = pen_arena_copy_text(listing->arena, name, strlen(name), &child->name);
    if (listing->status != PEN_OK) return -1;
    listing->count++;
    return 0;
}

static pen_status hdf5_list_locked(const pen_hdf5 *file, const char *path, hdf5_listing *listing) {
    H5G_info_t info;
    PEN_TRY(hdf5_require(file, path, PEN_HDF5_GROUP));
    if (H5Gget_info_by_name(file->id, path, &info, H5P_DEFAULT) < 0) return hdf5_error(file, path);
    if (info.nlinks > PEN_HDF5_CHILDREN_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s: '%.200s' has %" PRIu64 " entries, at most %u can",
                         file->name, path, (uint64_t)info.nlinks, PEN_HDF5_CHILDREN_LIMIT);
    }
    listing->limit = (uint32_t)info.nlinks;
    PEN_TRY(PEN_NEW(listing->arena, listing->limit, &listing->children));
    if (H5Literate_by_name(file->id, path, H5_INDEX_NAME, H5_ITER_INC, NULL, hdf5_take_child,
                           listing, H5P_DEFAULT) < 0) {
        if (listing->status == PEN_OK) return hdf5_error(file, path);
        (void)H5Eclear2(H5E_DEFAULT);
        return pen_status_add_context(listing->status, "in '%.200s' of %s", path, file->name);
    }
    return PEN_OK;
}

pen_status pen_hdf5_list(const pen_hdf5 *file, const char *path, pen_arena *arena,
                         uint32_t *out_count, const pen_hdf5_child **out_children) {
    hdf5_listing listing = {.arena = arena};
    pthread_mutex_lock(&hdf5_lock);
    const pen_status status = hdf5_list_locked(file, path, &listing);
    pthread_mutex_unlock(&hdf5_lock);
    *out_count = status == PEN_OK ? listing.count : 0;
    *out_children = listing.children;
    return status;
}

// ---- attributes

typedef struct hdf5_texts {
    const pen_hdf5 *file;
    const char *attribute;
    pen_arena *arena;
    uint32_t count;
    const char **texts;
} hdf5_texts;

static pen_status hdf5_texts_error(const hdf5_texts *texts, const char *found,
                                   const char *expected) {
    return pen_error(PEN_INVALID_INPUT, "%s: attribute '%s' is %s, expected %s", texts->file->name,
                     texts->attribute, found, expected);
}

// Texts of one length each, padded.
static pen_status hdf5_read_padded(hdf5_texts *texts, hid_t attribute, hid_t type) {
    const size_t size = H5Tget_size(type);
    size_t bytes;
    char *buffer;
    if (size == 0 || !pen_size_mul(size, texts->count, &bytes) || bytes > PEN_HDF5_TEXT_LIMIT) {
        return hdf5_texts_error(texts, "too long", "less");
    }
    const bool is_spaced = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
    PEN_TRY(PEN_NEW(texts->arena, bytes, &buffer));
    if (H5Aread(attribute, type, buffer) < 0) return hdf5_error(texts->file, texts->attribute);
    for (uint32_t i = 0; i < texts->count; i++) {
        const char *text = buffer + i * size;
        size_t length = strnlen(text, size);
        while (is_spaced && length > 0 && text[length - 1] == ' ')
            length--;
        PEN_TRY(pen_arena_copy_text(texts->arena, text, length, &texts->texts[i]));
    }
    return PEN_OK;
}

// Texts that libhdf5 allocates, each as long as it is. Several may be the same bytes of the file,
// so together they may be far more than it has.
static pen_status hdf5_read_variable(hdf5_texts *texts, hid_t attribute, hid_t type, hid_t space) {
    size_t bytes;
    char **buffer;
    if (!pen_size_mul(texts->file->length, texts->count, &bytes) ||
        (texts->count > 1 && bytes > PEN_HDF5_TEXT_LIMIT)) {
        return hdf5_texts_error(texts, "a long list of texts of varying length", "a shorter one");
    }
    PEN_TRY(PEN_NEW(texts->arena, texts->count, &buffer));
    if (H5Aread(attribute, type, buffer) < 0) return hdf5_error(texts->file, texts->attribute);
    pen_status status = PEN_OK;
    for (uint32_t i = 0; i < texts->count && status == PEN_OK; i++) {
        const char *text = buffer[i] != NULL ? buffer[i] : "";
        const size_t length = strnlen(text, PEN_HDF5_TEXT_LIMIT + 1);
        status = length > PEN_HDF5_TEXT_LIMIT
                     ? hdf5_texts_error(texts, "too long", "less")
                     : pen_arena_copy_text(texts->arena, text, length, &texts->texts[i]);
    }
    (void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, buffer);
    return status;
}

static pen_status hdf5_read_attribute(hdf5_texts *texts, hid_t attribute, hid_t type, hid_t space) {
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    if (count < 0) return hdf5_error(texts->file, texts->attribute);
    if (count > PEN_HDF5_TEXTS_LIMIT)
        return hdf5_texts_error(texts, "a long list", "a shorter one");
    PEN_TRY(PEN_NEW(texts->arena, (size_t)count, &texts->texts));
    texts->count = (uint32_t)count;
    if (count == 0) return PEN_OK; // Keras writes empty lists as numbers
    if (H5Tget_class(type) != H5T_STRING) return hdf5_texts_error(texts, "something else", "text");
    const htri_t is_variable = H5Tis_variable_str(type);
    if (is_variable < 0) return hdf5_error(texts->file, texts->attribute);
    if (is_variable > 0) return hdf5_read_variable(texts, attribute, type, space);
    return hdf5_read_padded(texts, attribute, type);
}

static pen_status hdf5_texts_locked(hdf5_texts *texts, const char *path) {
    const pen_hdf5 *file = texts->file;
    PEN_TRY(hdf5_require(file, path, PEN_HDF5_ABSENT));
    const htri_t exists = H5Aexists_by_name(file->id, path, texts->attribute, H5P_DEFAULT);
    if (exists < 0) return hdf5_error(file, path);
    if (exists == 0) return PEN_OK;
    const hid_t attribute =
        H5Aopen_by_name(file->id, path, texts->attribute, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0) return hdf5_error(file, path);
    const hid_t type = H5Aget_type(attribute);
    const hid_t space = H5Aget_space(attribute);
    const pen_status status = type < 0 || space < 0
                                  ? hdf5_error(file, path)
                                  : hdf5_read_attribute(texts, attribute, type, space);
    if (type >= 0) (void)H5Tclose(type);
    if (space >= 0) (void)H5Sclose(space);
    (void)H5Aclose(attribute);
    return pen_status_add_context(status, "at '%.200s'", path);
}

pen_status pen_hdf5_read_texts(const pen_hdf5 *file, const char *path, const char *attribute,
                               pen_arena *arena, uint32_t *out_count,
                               const char *const **out_texts) {
    hdf5_texts texts = {.file = file, .attribute = attribute, .arena = arena};
    pthread_mutex_lock(&hdf5_lock);
    const pen_status status = hdf5_texts_locked(&texts, path);
    pthread_mutex_unlock(&hdf5_lock);
    *out_count = status == PEN_OK ? texts.count : 0;
    *out_texts = texts.texts;
    return status;
}

// ---- datasets

typedef struct hdf5_dataset {
    const pen_hdf5 *file;
    const char *path;
    hid_t id, type, space, creation;
    pen_tensor_type tensor;
    hid_t memory; // the type of its elements here; libhdf5's own, not closed
} hdf5_dataset;

static pen_element_type hdf5_float_element(hid_t type, hid_t *out_memory) {
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) {
        return PEN_ELEMENT_UNKNOWN;
    }
    const size_t size = H5Tget_size(type);
    if (size == 4 && mantissa_bits == 23 && exponent_bits == 8) {
        *out_memory = H5T_IEEE_F32LE;
        return PEN_FLOAT32;
    }
    if (size == 8 && mantissa_bits == 52 && exponent_bits == 11) {
        *out_memory = H5T_IEEE_F64LE;
        return PEN_FLOAT64;
    }
    *out_memory = type; // as it lies in the file
    if (size != 2 || H5Tget_order(type) != H5T_ORDER_LE || sign != 15) return PEN_ELEMENT_UNKNOWN;
    if (mantissa_bits == 10 && exponent_bits == 5) return PEN_FLOAT16;
    if (mantissa_bits == 7 && exponent_bits == 8) return PEN_BFLOAT16;
    return PEN_ELEMENT_UNKNOWN;
}

static pen_element_type hdf5_integer_element(hid_t type, hid_t *out_memory) {
    const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
    switch (H5Tget_size(type)) {
    case 1:
        *out_memory = is_signed ? H5T_STD_I8LE : H5T_STD_U8LE;
        return is_signed ? PEN_INT8 : PEN_UINT8;
    case 2:
        *out_memory = is_signed ? H5T_STD_I16LE : H5T_STD_U16LE;
        return is_signed ? PEN_INT16 : PEN_UINT16;
    case 4:
        *out_memory = is_signed ? H5T_STD_I32LE : H5T_STD_U32LE;
        return is_signed ? PEN_INT32 : PEN_UINT32;
    case 8:
        *out_memory = is_signed ? H5T_STD_I64LE : H5T_STD_U64LE;
        return is_signed ? PEN_INT64 : PEN_UINT64;
    default:
        return PEN_ELEMENT_UNKNOWN;
    }
}

static pen_status hdf5_dataset_element(hdf5_dataset *dataset) {
    const H5T_class_t class = H5Tget_class(dataset->type);
    pen_element_type element = PEN_ELEMENT_UNKNOWN;
    if (class == H5T_FLOAT) element = hdf5_float_element(dataset->type, &dataset->memory);
    if (class == H5T_INTEGER) element = hdf5_integer_element(dataset->type, &dataset->memory);
    dataset->tensor.element = element;
    if (element != PEN_ELEMENT_UNKNOWN) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED,
                     "%s: '%.200s' has elements that are neither numbers of 1, 2, 4 or 8 bytes nor "
                     "floating-point numbers of IEEE 754",
                     dataset->file->name, dataset->path);
}

static pen_status hdf5_dataset_shape(hdf5_dataset *dataset) {
    hsize_t dims[PEN_RANK_LIMIT] = {0};
    const int rank = H5Sget_simple_extent_ndims(dataset->space);
    if (rank < 0) return hdf5_error(dataset->file, dataset->path);
    if (rank > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s: '%.200s' has %d dimensions, at most %d can be",
                         dataset->file->name, dataset->path, rank, PEN_RANK_LIMIT);
    }
    if (H5Sget_simple_extent_dims(dataset->space, dims, NULL) < 0) {
        return hdf5_error(dataset->file, dataset->path);
    }
    dataset->tensor.shape.rank = (uint32_t)rank;
    for (int i = 0; i < rank; i++) {
        dataset->tensor.shape.dims[i] = dims[i] > INT64_MAX ? -1 : (int64_t)dims[i];
    }
    return pen_status_add_context(pen_tensor_type_check(&dataset->tensor), "in '%.200s' of %s",
                                  dataset->path, dataset->file->name);
}

static pen_status hdf5_refuse_storage(const hdf5_dataset *dataset, const char *what) {
    return pen_error(PEN_UNSUPPORTED,
                     "%s: '%.200s' %s; possible are contiguous, compact and chunked datasets, as "
                     "they are or with deflate, shuffle, fletcher32 and szip",
                     dataset->file->name, dataset->path, what);
}

static pen_status hdf5_check_filters(const hdf5_dataset *dataset) {
    const int count = H5Pget_nfilters(dataset->creation);
    if (count < 0) return hdf5_error(dataset->file, dataset->path);
    for (int i = 0; i < count; i++) {
        unsigned flags = 0;
        size_t value_count = 0;
        const H5Z_filter_t filter = H5Pget_filter2(dataset->creation, (unsigned)i, &flags,
                                                   &value_count, NULL, 0, NULL, NULL);
        if (filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE ||
            filter == H5Z_FILTER_FLETCHER32 || filter == H5Z_FILTER_SZIP) {
            continue;
        }
        return hdf5_refuse_storage(dataset, "passes through a filter that is not known");
    }
    return PEN_OK;
}

// Chunks are what libhdf5 allocates while it reads.
static pen_status hdf5_check_chunks(const hdf5_dataset *dataset) {
    hsize_t chunk[PEN_RANK_LIMIT] = {0};
    uint64_t bytes = pen_element_bytes(dataset->tensor.element);
    const int rank = H5Pget_chunk(dataset->creation, PEN_RANK_LIMIT, chunk);
    if (rank < 0 || rank > PEN_RANK_LIMIT) return hdf5_error(dataset->file, dataset->path);
    for (int i = 0; i < rank; i++) {
        if (pen_u64_mul(bytes, chunk[i], &bytes) && bytes <= PEN_HDF5_CHUNK_BYTES_LIMIT) continue;
        return hdf5_refuse_storage(dataset, "has very large chunks");
    }
    return hdf5_check_filters(dataset);
}

// Where the contents lie in the file; NULL: nowhere in one piece and as they are.
static const void *hdf5_dataset_in_place(const hdf5_dataset *dataset, uint64_t bytes) {
    const pen_hdf5 *file = dataset->file;
    if (H5Pget_layout(dataset->creation) != H5D_CONTIGUOUS) return NULL;
    if (H5Tequal(dataset->type, dataset->memory) <= 0) return NULL;
    const haddr_t offset = H5Dget_offset(dataset->id);
    (void)H5Eclear2(H5E_DEFAULT);
    if (offset == HADDR_UNDEF || offset > file->length || bytes > file->length - offset) {
        return NULL;
    }
    return file->bytes + offset;
}

static pen_status hdf5_check_storage(const hdf5_dataset *dataset, uint64_t bytes) {
    const H5D_layout_t layout = H5Pget_layout(dataset->creation);
    if (layout == H5D_VIRTUAL) return hdf5_refuse_storage(dataset, "is put together of others");
    if (H5Pget_external_count(dataset->creation) != 0) {
        return hdf5_refuse_storage(dataset, "is in other files");
    }
    if (layout == H5D_CHUNKED) PEN_TRY(hdf5_check_chunks(dataset));
    if (bytes / HDF5_PACKING_LIMIT > dataset->file->length) {
        return pen_error(PEN_CORRUPT,
                         "%s: '%.200s' has %" PRIu64
                         " bytes, more than a file of %zu bytes can hold",
                         dataset->file->name, dataset->path, bytes, dataset->file->length);
    }
    return PEN_OK;
}

static pen_status hdf5_dataset_read(hdf5_dataset *dataset, pen_arena *arena,
                                    const void **out_data) {
    uint8_t *copy;
    PEN_TRY(hdf5_dataset_element(dataset));
    PEN_TRY(hdf5_dataset_shape(dataset));
    const uint64_t bytes = pen_tensor_type_bytes(&dataset->tensor);
    PEN_TRY(hdf5_check_storage(dataset, bytes));
    *out_data = hdf5_dataset_in_place(dataset, bytes);
    if (*out_data != NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, bytes, &copy));
    if (bytes > 0 &&
        H5Dread(dataset->id, dataset->memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, copy) < 0) {
        return hdf5_error(dataset->file, dataset->path);
    }
    *out_data = copy;
    return PEN_OK;
}

static pen_status hdf5_dataset_locked(hdf5_dataset *dataset, pen_arena *arena,
                                      const void **out_data) {
    PEN_TRY(hdf5_require(dataset->file, dataset->path, PEN_HDF5_DATASET));
    dataset->id = H5Dopen2(dataset->file->id, dataset->path, H5P_DEFAULT);
    if (dataset->id < 0) return hdf5_error(dataset->file, dataset->path);
    dataset->type = H5Dget_type(dataset->id);
    dataset->space = H5Dget_space(dataset->id);
    dataset->creation = H5Dget_create_plist(dataset->id);
    const bool is_open = dataset->type >= 0 && dataset->space >= 0 && dataset->creation >= 0;
    const pen_status status = is_open ? hdf5_dataset_read(dataset, arena, out_data)
                                      : hdf5_error(dataset->file, dataset->path);
    if (dataset->type >= 0) (void)H5Tclose(dataset->type);
    if (dataset->space >= 0) (void)H5Sclose(dataset->space);
    if (dataset->creation >= 0) (void)H5Pclose(dataset->creation);
    (void)H5Dclose(dataset->id);
    return status;
}

pen_status pen_hdf5_read_dataset(const pen_hdf5 *file, const char *path, pen_arena *arena,
                                 pen_tensor_type *out_type, const void **out_data) {
    hdf5_dataset dataset = {.file = file, .path = path};
    pthread_mutex_lock(&hdf5_lock);
    const pen_status status = hdf5_dataset_locked(&dataset, arena, out_data);
    pthread_mutex_unlock(&hdf5_lock);
    *out_type = dataset.tensor;
    return status;
}

const char *pen_hdf5_version(void) {
    static char text[32];
    unsigned parts[3] = {0};
    pthread_mutex_lock(&hdf5_lock);
    if (text[0] == '\0' && H5get_libversion(&parts[0], &parts[1], &parts[2]) >= 0) {
        snprintf(text, sizeof text, "%u.%u.%u", parts[0], parts[1], parts[2]);
    }
    pthread_mutex_unlock(&hdf5_lock);
    return text;
}
