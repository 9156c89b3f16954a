#include "graph/import/keras/hdf5_serve.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/reserve.h"
#include "graph/import/keras/hdf5_dataset.h"
#include "graph/import/keras/hdf5_reader.h"
#include "graph/import/keras/hdf5_stream.h"

#define SERVE_BUFFER_BYTES (64 << 10)
#define SERVE_NONE UINT32_MAX

typedef struct serve_object {
    const char *name;
    uint32_t parent; // SERVE_NONE: it is the root
    pen_hdf5_kind kind;
    haddr_t address; // of what the name links to
} serve_object;

typedef struct serve_file {
    pen_hdf5_reader reader;
    serve_object *objects; // each group's entries are found when it is described
    uint32_t count, capacity;
    int socket;
    size_t used; // of the buffer
    uint8_t buffer[SERVE_BUFFER_BYTES];
} serve_file;

// ---- writing

static void serve_flush(serve_file *file) {
    size_t done = 0;
    while (done < file->used) {
        const ssize_t written = write(file->socket, file->buffer + done, file->used - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(0); // nobody listens
        done += (size_t)written;
    }
    file->used = 0;
}

static void serve_bytes(serve_file *file, const void *bytes, size_t length) {
    const uint8_t *at = bytes;
    while (length > 0) {
        if (file->used == sizeof file->buffer) serve_flush(file);
        const size_t room = sizeof file->buffer - file->used;
        const size_t part = length < room ? length : room;
        memcpy(file->buffer + file->used, at, part);
        file->used += part;
        at += part;
        length -= part;
    }
}

static void serve_u8(serve_file *file, int number) {
    const uint8_t byte = (uint8_t)number;
    serve_bytes(file, &byte, sizeof byte);
}

static void serve_u32(serve_file *file, uint32_t number) {
    serve_bytes(file, &number, sizeof number);
}

static void serve_text(serve_file *file, const char *text, size_t length) {
    const uint16_t count = (uint16_t)length;
    serve_bytes(file, &count, sizeof count);
    serve_bytes(file, text, count);
}

static void serve_error(serve_file *file, pen_status status) {
    const char *message = pen_status_message(status);
    serve_u8(file, (int)pen_status_get_code(status));
    serve_text(file, message, strnlen(message, PEN_HDF5_STREAM_MESSAGE_LIMIT));
    pen_status_ignore(status, "was said to who reads the file");
}

// ---- objects

static pen_status serve_add_object(serve_file *file, serve_object **out_object) {
    if (file->count == PEN_HDF5_OBJECTS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s has more than %u groups and datasets",
                         file->reader.name, PEN_HDF5_OBJECTS_LIMIT);
    }
    PEN_TRY(PEN_RESERVE(file->reader.arena, &file->objects, file->count, &file->capacity, 64));
    *out_object = &file->objects[file->count++];
    return PEN_OK;
}

static pen_status serve_path(const serve_file *file, uint32_t index, char *out_path, size_t size) {
    char *at = out_path + size - 1;
    *at = '\0';
    for (uint32_t i = index; file->objects[i].parent != SERVE_NONE; i = file->objects[i].parent) {
        const size_t length = strlen(file->objects[i].name);
        if (length + 1 > (size_t)(at - out_path)) {
            return pen_error(PEN_INVALID_INPUT, "%s: a path has more than %d bytes",
                             file->reader.name, PEN_NAME_BYTES_LIMIT);
        }
        at -= length + 1;
        *at = '/';
        memcpy(at + 1, file->objects[i].name, length);
    }
    if (*at == '\0') *--at = '/';
    memmove(out_path, at, strlen(at) + 1);
    return PEN_OK;
}

// Whether a link leads back to a group that it is in.
static bool serve_is_circle(const serve_file *file, uint32_t group, haddr_t address) {
    for (uint32_t i = group; file->objects[i].parent != SERVE_NONE; i = file->objects[i].parent) {
        if (file->objects[i].address == address) return true;
    }
    return false;
}

// ---- groups

typedef struct serve_listing {
    serve_file *file;
    uint32_t group;
    const char *path;
    uint32_t first;
    pen_status status;
} serve_listing;

static pen_status serve_kind(const serve_listing *listing, hid_t group, const char *name,
                             const H5L_info_t *link, pen_hdf5_kind *out_kind) {
    const pen_hdf5_reader *reader = &listing->file->reader;
    *out_kind = PEN_HDF5_OTHER;
    if (link->type != H5L_TYPE_HARD) return PEN_OK;
    const hid_t object = reader->h5->H5Oopen(group, name, H5P_DEFAULT);
    if (object < 0) return pen_hdf5_reader_error(reader, name);
    const H5I_type_t type = reader->h5->H5Iget_type(object);
    (void)reader->h5->H5Oclose(object);
    if (type == H5I_DATASET) *out_kind = PEN_HDF5_DATASET;
    if (type == H5I_GROUP && !serve_is_circle(listing->file, listing->group, link->u.address)) {
        *out_kind = PEN_HDF5_GROUP;
    }
    return PEN_OK;
}

// The order of names is checked, since the other side searches them by halving.
static pen_status serve_add_entry(serve_listing *listing, hid_t group, const char *name,
                                  const H5L_info_t *link) {
    serve_file *file = listing->file;
    serve_object *entry;
    const size_t length = strlen(name);
    if (length == 0 || length > PEN_NAME_BYTES_LIMIT ||
        file->count - listing->first == PEN_HDF5_CHILDREN_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: '%.200s' has more than %u entries, or one with a name of more than "
                         "%d bytes, or of none",
                         file->reader.name, listing->path, PEN_HDF5_CHILDREN_LIMIT,
                         PEN_NAME_BYTES_LIMIT);
    }
    if (strchr(name, '/') != NULL) {
        return pen_error(PEN_CORRUPT, "%s: '%.200s' has an entry with '/' in its name",
                         file->reader.name, listing->path);
    }
    if (file->count > listing->first && strcmp(file->objects[file->count - 1].name, name) >= 0) {
        return pen_error(PEN_CORRUPT, "%s: '%.200s' has its entries out of order",
                         file->reader.name, listing->path);
    }
    PEN_TRY(serve_add_object(file, &entry));
    *entry = (serve_object){.parent = listing->group, .address = link->u.address};
    PEN_TRY(pen_arena_copy_text(file->reader.arena, name, length, &entry->name));
    return serve_kind(listing, group, name, link, &entry->kind);
}

static herr_t serve_take_entry(hid_t group, const char *name, const H5L_info_t *link,
                               void *context) {
    serve_listing *listing = context;
    listing->status = serve_add_entry(listing, group, name, link);
    return listing->status == PEN_OK ? 0 : -1;
}

static pen_status serve_list(serve_listing *listing, hid_t group, uint32_t *out_count,
                             char ***out_names) {
    const pen_hdf5_reader *reader = &listing->file->reader;
    const herr_t result =
        reader->h5->H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, serve_take_entry, listing);
    if (listing->status != PEN_OK) return listing->status;
    if (result < 0) return pen_hdf5_reader_error(reader, listing->path);
    return pen_hdf5_reader_list_attributes(reader, group, listing->path, out_count, out_names);
}

static void serve_attribute(serve_file *file, hid_t group, const char *name) {
    uint32_t count = 0;
    const char **texts = NULL;
    const pen_status status =
        pen_hdf5_reader_read_texts(&file->reader, group, name, &count, &texts);
    serve_text(file, name, strlen(name));
    serve_u8(file, status == PEN_OK ? PEN_HDF5_STREAM_TEXTS : PEN_HDF5_STREAM_ERROR);
    if (status != PEN_OK) {
        serve_error(file, status);
        return;
    }
    serve_u32(file, count);
    for (uint32_t i = 0; i < count; i++) {
        serve_u32(file, (uint32_t)strlen(texts[i]));
        serve_bytes(file, texts[i], strlen(texts[i]));
    }
}

static pen_status serve_group(serve_file *file, uint32_t index, const char *path) {
    serve_listing listing = {.file = file, .group = index, .path = path, .first = file->count};
    uint32_t attribute_count = 0;
    char **attributes = NULL;
    const hid_t group = file->reader.h5->H5Oopen(file->reader.file, path, H5P_DEFAULT);
    if (group < 0) return pen_hdf5_reader_error(&file->reader, path);
    PEN_TRY(serve_list(&listing, group, &attribute_count, &attributes));
    serve_u8(file, PEN_HDF5_STREAM_GROUP);
    serve_u32(file, file->count - listing.first);
    for (uint32_t i = listing.first; i < file->count; i++) {
        serve_u8(file, (int)file->objects[i].kind);
        serve_text(file, file->objects[i].name, strlen(file->objects[i].name));
    }
    serve_u32(file, attribute_count);
    for (uint32_t i = 0; i < attribute_count; i++)
        serve_attribute(file, group, attributes[i]);
    (void)file->reader.h5->H5Oclose(group);
    return PEN_OK;
}

// ---- datasets

static void serve_dataset(serve_file *file, const char *path) {
    pen_hdf5_dataset dataset;
    const pen_status status = pen_hdf5_dataset_open(&file->reader, path, &dataset);
    serve_u8(file, status == PEN_OK ? PEN_HDF5_STREAM_DATASET : PEN_HDF5_STREAM_ERROR);
    if (status == PEN_OK) {
        const pen_shape *shape = &dataset.tensor.shape;
        serve_u8(file, (int)dataset.tensor.element);
        serve_u8(file, (int)shape->rank);
        serve_bytes(file, shape->dims, shape->rank * sizeof *shape->dims);
        serve_bytes(file, &dataset.offset, sizeof dataset.offset);
    } else {
        serve_error(file, status);
    }
    pen_hdf5_dataset_close(&dataset);
}

static pen_status serve_rows(serve_file *file, const pen_hdf5_dataset *dataset) {
    uint8_t *rows;
    uint64_t count;
    PEN_TRY(PEN_NEW(file->reader.arena, dataset->rows_at_once * dataset->row_bytes, &rows));
    for (uint64_t first = 0; first < dataset->row_count; first += count) {
        count = dataset->rows_at_once < dataset->row_count - first ? dataset->rows_at_once
                                                                   : dataset->row_count - first;
        PEN_TRY(pen_hdf5_dataset_read(dataset, first, count, rows));
        const uint64_t bytes = count * dataset->row_bytes;
        for (uint64_t done = 0; done < bytes; done += PEN_HDF5_STREAM_PIECE_LIMIT) {
            const uint64_t left = bytes - done;
            const uint32_t piece =
                left < PEN_HDF5_STREAM_PIECE_LIMIT ? (uint32_t)left : PEN_HDF5_STREAM_PIECE_LIMIT;
            serve_u32(file, piece);
            serve_bytes(file, rows + done, piece);
        }
    }
    return PEN_OK;
}

static void serve_contents(serve_file *file, uint32_t index) {
    char path[PEN_NAME_BYTES_LIMIT + 2];
    pen_hdf5_dataset dataset;
    pen_arena *arena = file->reader.arena;
    if (index >= file->count) _exit(1);
    pen_status status = serve_path(file, index, path, sizeof path);
    if (status == PEN_OK) status = pen_arena_create(&file->reader.arena); // for the rows
    if (status == PEN_OK) {
        status = pen_hdf5_dataset_open(&file->reader, path, &dataset);
        if (status == PEN_OK) status = serve_rows(file, &dataset);
        pen_hdf5_dataset_close(&dataset);
        pen_arena_destroy(file->reader.arena);
    }
    file->reader.arena = arena;
    if (status == PEN_OK) return;
    serve_u32(file, 0);
    serve_error(file, status);
}

// ---- all

static pen_status serve_object_at(serve_file *file, uint32_t index) {
    char path[PEN_NAME_BYTES_LIMIT + 2];
    if (file->objects[index].kind == PEN_HDF5_OTHER) return PEN_OK;
    PEN_TRY(serve_path(file, index, path, sizeof path));
    if (file->objects[index].kind == PEN_HDF5_GROUP) return serve_group(file, index, path);
    serve_dataset(file, path);
    return PEN_OK;
}

static pen_status serve_catalogue(serve_file *file, const char *name, const void *bytes,
                                  size_t length) {
    serve_object *root;
    PEN_TRY(pen_hdf5_reader_open(name, bytes, length, &file->reader));
    PEN_TRY(serve_add_object(file, &root));
    *root = (serve_object){.name = "", .parent = SERVE_NONE, .kind = PEN_HDF5_GROUP};
    for (uint32_t i = 0; i < file->count; i++)
        PEN_TRY(serve_object_at(file, i));
    return PEN_OK;
}

void pen_hdf5_serve(const char *name, const void *bytes, size_t length, int socket) {
    static serve_file file;
    uint32_t wanted;
    file.socket = socket;
    const pen_status status = serve_catalogue(&file, name, bytes, length);
    if (status != PEN_OK) {
        serve_u8(&file, PEN_HDF5_STREAM_FAILURE);
        serve_error(&file, status);
        serve_flush(&file);
        return;
    }
    serve_flush(&file);
    while (read(socket, &wanted, sizeof wanted) == (ssize_t)sizeof wanted) {
        serve_contents(&file, wanted);
        serve_flush(&file);
    }
}
