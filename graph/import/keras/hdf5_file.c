#include "graph/import/keras/hdf5_file.h"

#include <string.h>

#include "base/format/unpack.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/reserve.h"
#include "graph/import/keras/hdf5_process.h"

#define FILE_OBJECTS_FIRST 32

// An error that belongs to a part of the file, and is given to who asks for that part.
typedef struct file_error {
    pen_status_code code; // PEN_CODE_OK: none
    const char *text;
} file_error;

typedef struct file_attribute {
    const char *name;
    file_error error;
    uint32_t count;
    const char **texts;
} file_attribute;

typedef struct file_object {
    const char *name;
    pen_hdf5_kind kind;
    file_error error; // of datasets
    union {
        struct {
            uint32_t first_entry, entry_count; // objects, in order of names
            uint32_t attribute_count;
            file_attribute *attributes;
        } group;
        struct {
            pen_tensor_type type;
            uint64_t offset;
        } dataset;
    } of;
} file_object;

struct pen_hdf5 {
    const char *name;
    const uint8_t *bytes;
    size_t length;
    pen_hdf5_source source;
    uint64_t bytes_left; // that the source may still send
    uint64_t unpacked;   // bytes so far
    pen_hdf5_process *process;
    pen_arena *arena;
    file_object *objects;
    uint32_t count, capacity;
};

// ---- the stream: all of it comes from outside

static pen_status file_nonsense(const pen_hdf5 *file) {
    return pen_error(PEN_CORRUPT, "%s: the process that reads it says what makes no sense",
                     file->name);
}

static pen_status file_too_much(const pen_hdf5 *file) {
    return pen_error(PEN_INVALID_INPUT, "%s: its groups and texts have more than %u bytes",
                     file->name, PEN_HDF5_CATALOGUE_LIMIT);
}

static pen_status file_take(pen_hdf5 *file, void *bytes, size_t length) {
    if (length > file->bytes_left) return file_too_much(file);
    file->bytes_left -= length;
    return file->source.read(file->source.context, bytes, length);
}

static pen_status file_take_u32(pen_hdf5 *file, uint32_t *out_number) {
    return file_take(file, out_number, sizeof *out_number);
}

// A text without zeros.
static pen_status file_take_text(pen_hdf5 *file, size_t length, const char **out_text) {
    char *text;
    if (length > file->bytes_left) return file_too_much(file);
    PEN_TRY(PEN_NEW(file->arena, length + 1, &text));
    PEN_TRY(file_take(file, text, length));
    if (memchr(text, '\0', length) != NULL) return file_nonsense(file);
    *out_text = text;
    return PEN_OK;
}

static pen_status file_take_name(pen_hdf5 *file, const char **out_name) {
    uint16_t length;
    PEN_TRY(file_take(file, &length, sizeof length));
    if (length == 0 || length > PEN_NAME_BYTES_LIMIT) return file_nonsense(file);
    return file_take_text(file, length, out_name);
}

static pen_status file_take_error(pen_hdf5 *file, file_error *out_error) {
    uint8_t code;
    uint16_t length;
    PEN_TRY(file_take(file, &code, sizeof code));
    PEN_TRY(file_take(file, &length, sizeof length));
    if (length > PEN_HDF5_STREAM_MESSAGE_LIMIT) return file_nonsense(file);
    PEN_TRY(file_take_text(file, length, &out_error->text));
    out_error->code = (pen_status_code)code;
    const bool is_known = code == PEN_INVALID_INPUT || code == PEN_NOT_FOUND ||
                          code == PEN_UNSUPPORTED || code == PEN_OUT_OF_MEMORY ||
                          code == PEN_CORRUPT;
    return is_known ? PEN_OK : file_nonsense(file);
}

static pen_status file_raise(const file_error *error) {
    if (error->code == PEN_CODE_OK) return PEN_OK;
    if (error->code == PEN_OUT_OF_MEMORY) return pen_error_out_of_memory();
    return pen_error(error->code, "%s", error->text);
}

static pen_status file_add_object(pen_hdf5 *file, file_object **out_object) {
    if (file->count == PEN_HDF5_OBJECTS_LIMIT) return file_nonsense(file);
    PEN_TRY(
        PEN_RESERVE(file->arena, &file->objects, file->count, &file->capacity, FILE_OBJECTS_FIRST));
    *out_object = &file->objects[file->count++];
    return PEN_OK;
}

// The other process has read a file from somebody else, so its answers are checked as a file would
// be.
static pen_status file_take_entries(pen_hdf5 *file, uint32_t group) {
    uint32_t entry_count;
    const char *before = NULL;
    PEN_TRY(file_take_u32(file, &entry_count));
    if (entry_count > PEN_HDF5_CHILDREN_LIMIT) return file_nonsense(file);
    file->objects[group].of.group.first_entry = file->count;
    file->objects[group].of.group.entry_count = entry_count;
    for (uint32_t i = 0; i < entry_count; i++) {
        uint8_t kind;
        file_object *entry;
        PEN_TRY(file_add_object(file, &entry));
        PEN_TRY(file_take(file, &kind, sizeof kind));
        PEN_TRY(file_take_name(file, &entry->name));
        entry->kind = (pen_hdf5_kind)kind;
        const bool is_known =
            kind == PEN_HDF5_GROUP || kind == PEN_HDF5_DATASET || kind == PEN_HDF5_OTHER;
        if (!is_known || strchr(entry->name, '/') != NULL ||
            (before != NULL && strcmp(before, entry->name) >= 0)) {
            return file_nonsense(file);
        }
        before = entry->name;
    }
    return PEN_OK;
}

static pen_status file_take_texts(pen_hdf5 *file, file_attribute *attribute) {
    uint32_t length;
    uint64_t total = 0;
    PEN_TRY(file_take_u32(file, &attribute->count));
    if (attribute->count > PEN_HDF5_TEXTS_LIMIT) return file_nonsense(file);
    if (attribute->count > file->bytes_left / sizeof length) return file_too_much(file);
    PEN_TRY(PEN_NEW(file->arena, attribute->count, &attribute->texts));
    for (uint32_t i = 0; i < attribute->count; i++) {
        PEN_TRY(file_take_u32(file, &length));
        total += length;
        if (total > PEN_HDF5_TEXT_LIMIT) return file_nonsense(file);
        PEN_TRY(file_take_text(file, length, &attribute->texts[i]));
    }
    return PEN_OK;
}

// An attribute that could not be read is no error until somebody asks for it.
static pen_status file_take_attributes(pen_hdf5 *file, uint32_t group) {
    file_attribute *attributes;
    uint32_t count;
    PEN_TRY(file_take_u32(file, &count));
    // each has 7 bytes and more: a name of a letter, a tag, an error without text
    if (count > PEN_HDF5_CHILDREN_LIMIT) return file_nonsense(file);
    if (count > file->bytes_left / 7) return file_too_much(file);
    PEN_TRY(PEN_NEW(file->arena, count, &attributes));
    for (uint32_t i = 0; i < count; i++) {
        char tag;
        PEN_TRY(file_take_name(file, &attributes[i].name));
        PEN_TRY(file_take(file, &tag, sizeof tag));
        if (tag == PEN_HDF5_STREAM_TEXTS) {
            PEN_TRY(file_take_texts(file, &attributes[i]));
        } else if (tag == PEN_HDF5_STREAM_ERROR) {
            PEN_TRY(file_take_error(file, &attributes[i].error));
        } else {
            return file_nonsense(file);
        }
    }
    file->objects[group].of.group.attributes = attributes;
    file->objects[group].of.group.attribute_count = count;
    return PEN_OK;
}

// Contents either lie in the file as they are, then they are borrowed, or are asked for later.
static pen_status file_take_dataset(pen_hdf5 *file, file_object *object) {
    uint8_t element, rank;
    pen_tensor_type *type = &object->of.dataset.type;
    PEN_TRY(file_take(file, &element, sizeof element));
    PEN_TRY(file_take(file, &rank, sizeof rank));
    if (element == PEN_ELEMENT_UNKNOWN || element >= PEN_BOOL || rank > PEN_RANK_LIMIT) {
        return file_nonsense(file);
    }
    type->element = (pen_element_type)element;
    type->shape.rank = rank;
    PEN_TRY(file_take(file, type->shape.dims, rank * sizeof *type->shape.dims));
    PEN_TRY(file_take(file, &object->of.dataset.offset, sizeof object->of.dataset.offset));
    const pen_status status = pen_tensor_type_check(type);
    if (status != PEN_OK) return pen_status_add_context(status, "in %s", file->name);
    const uint64_t bytes = pen_tensor_type_bytes(type);
    if (object->of.dataset.offset == PEN_HDF5_STREAM_ON_REQUEST) {
        const bool is_possible = bytes / PEN_HDF5_STREAM_PACKING_LIMIT <= file->length;
        return is_possible ? PEN_OK : file_nonsense(file);
    }
    if (object->of.dataset.offset > file->length ||
        bytes > file->length - object->of.dataset.offset) {
        return file_nonsense(file);
    }
    return PEN_OK;
}

// What comes must be of the kind that the listing said.
static pen_status file_take_object(pen_hdf5 *file, uint32_t index) {
    char tag = 0;
    const pen_hdf5_kind kind = file->objects[index].kind;
    if (kind == PEN_HDF5_OTHER) return PEN_OK;
    PEN_TRY(file_take(file, &tag, sizeof tag));
    if (tag == PEN_HDF5_STREAM_FAILURE) {
        file_error error = {0};
        PEN_TRY(file_take_error(file, &error));
        return file_raise(&error);
    }
    if (kind == PEN_HDF5_GROUP && tag == PEN_HDF5_STREAM_GROUP) {
        PEN_TRY(file_take_entries(file, index));
        return file_take_attributes(file, index);
    }
    if (kind == PEN_HDF5_DATASET && tag == PEN_HDF5_STREAM_DATASET) {
        return file_take_dataset(file, &file->objects[index]);
    }
    if (kind == PEN_HDF5_DATASET && tag == PEN_HDF5_STREAM_ERROR) {
        return file_take_error(file, &file->objects[index].error);
    }
    return file_nonsense(file);
}

static pen_status file_take_catalogue(pen_hdf5 *file) {
    file_object *root;
    PEN_TRY(pen_arena_create(&file->arena));
    PEN_TRY(file_add_object(file, &root));
    *root = (file_object){.name = "", .kind = PEN_HDF5_GROUP};
    file->bytes_left = file->source.catalogue_bytes;
    for (uint32_t i = 0; i < file->count; i++)
        PEN_TRY(file_take_object(file, i));
    return PEN_OK;
}

// ---- opening

static pen_status file_open(const pen_hdf5 *given, pen_hdf5 **out_file) {
    pen_hdf5 *file = pen_memory_allocate(1, sizeof *file);
    if (file == NULL) return pen_error_out_of_memory();
    *file = *given;
    const pen_status status = file_take_catalogue(file);
    if (status != PEN_OK) {
        file->process = NULL; // still the caller's
        pen_hdf5_close(file);
        return status;
    }
    *out_file = file;
    return PEN_OK;
}

pen_status pen_hdf5_open_stream(const char *name, const void *bytes, size_t length,
                                const pen_hdf5_source *source, pen_hdf5 **out_file) {
    const pen_hdf5 file = {.name = name, .bytes = bytes, .length = length, .source = *source};
    return file_open(&file, out_file);
}

pen_status pen_hdf5_open(const char *name, const void *bytes, size_t length, pen_hdf5 **out_file) {
    static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    pen_hdf5 file = {.name = name, .bytes = bytes, .length = length};
    if (length < sizeof signature || memcmp(bytes, signature, sizeof signature) != 0) {
        return pen_error(PEN_CORRUPT, "%s: not an HDF5 file by its first bytes", name);
    }
    PEN_TRY(pen_hdf5_process_start(name, bytes, length, &file.process));
    file.source = pen_hdf5_process_source(file.process);
    const pen_status status = file_open(&file, out_file);
    if (status != PEN_OK) pen_hdf5_process_end(file.process);
    return status;
}

void pen_hdf5_close(pen_hdf5 *file) {
    if (file == NULL) return;
    pen_hdf5_process_end(file->process);
    pen_arena_destroy(file->arena);
    pen_memory_free(file);
}

// ---- finding

static int file_compare_step(const char *step, size_t length, const char *name) {
    const int order = strncmp(step, name, length);
    return order != 0 ? order : name[length] == '\0' ? 0 : -1;
}

static const file_object *file_find_entry(const pen_hdf5 *file, const file_object *group,
                                          const char *step, size_t length) {
    uint32_t low = group->of.group.first_entry;
    uint32_t high = low + group->of.group.entry_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = file_compare_step(step, length, file->objects[middle].name);
        if (order == 0) return &file->objects[middle];
        if (order < 0) high = middle;
        if (order > 0) low = middle + 1;
    }
    return NULL;
}

static const file_object *file_find(const pen_hdf5 *file, const char *path) {
    const file_object *object = &file->objects[0];
    PEN_ASSERT(path[0] == '/');
    while (object != NULL) {
        path += strspn(path, "/");
        if (*path == '\0') return object;
        if (object->kind != PEN_HDF5_GROUP) return NULL;
        const size_t length = strcspn(path, "/");
        object = file_find_entry(file, object, path, length);
        path += length;
    }
    return NULL;
}

pen_hdf5_kind pen_hdf5_find(const pen_hdf5 *file, const char *path) {
    const file_object *object = file_find(file, path);
    return object != NULL ? object->kind : PEN_HDF5_ABSENT;
}

static pen_status file_require(const pen_hdf5 *file, const char *path, pen_hdf5_kind wanted,
                               const file_object **out_object) {
    static const char *const names[] = {"nothing", "a group", "a dataset", "something else"};
    const file_object *object = file_find(file, path);
    const pen_hdf5_kind kind = object != NULL ? object->kind : PEN_HDF5_ABSENT;
    *out_object = object;
    if (kind == wanted) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "%s: '%.200s' is %s, expected %s", file->name, path,
                     names[kind], names[wanted]);
}

pen_status pen_hdf5_list(const pen_hdf5 *file, const char *path, pen_arena *arena,
                         uint32_t *out_count, const pen_hdf5_entry **out_entries) {
    const file_object *group;
    pen_hdf5_entry *entries;
    PEN_TRY(file_require(file, path, PEN_HDF5_GROUP, &group));
    const file_object *objects = &file->objects[group->of.group.first_entry];
    const uint32_t count = group->of.group.entry_count;
    PEN_TRY(PEN_NEW(arena, count, &entries));
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (pen_hdf5_entry){objects[i].name, objects[i].kind};
    *out_count = count;
    *out_entries = entries;
    return PEN_OK;
}

pen_status pen_hdf5_read_texts(const pen_hdf5 *file, const char *path, const char *attribute,
                               uint32_t *out_count, const char *const **out_texts) {
    const file_object *group;
    *out_count = 0;
    *out_texts = NULL;
    PEN_TRY(file_require(file, path, PEN_HDF5_GROUP, &group));
    for (uint32_t i = 0; i < group->of.group.attribute_count; i++) {
        const file_attribute *found = &group->of.group.attributes[i];
        if (strcmp(found->name, attribute) != 0) continue;
        PEN_TRY(file_raise(&found->error));
        *out_count = found->count;
        *out_texts = found->texts;
        return PEN_OK;
    }
    return PEN_OK;
}

uint64_t pen_hdf5_find_offset(const pen_hdf5 *file, const char *path) {
    const file_object *object = file_find(file, path);
    const bool is_known =
        object != NULL && object->kind == PEN_HDF5_DATASET && object->error.code == PEN_CODE_OK;
    return is_known ? object->of.dataset.offset : PEN_HDF5_STREAM_ON_REQUEST;
}

// ---- contents

static pen_status file_take_contents(pen_hdf5 *file, uint8_t *data, uint64_t length) {
    uint32_t piece;
    for (uint64_t done = 0; done < length; done += piece) {
        PEN_TRY(file_take_u32(file, &piece));
        if (piece == 0) {
            file_error error = {0};
            PEN_TRY(file_take_error(file, &error));
            return file_raise(&error);
        }
        if (piece > length - done) return file_nonsense(file);
        PEN_TRY(file_take(file, data + done, piece));
    }
    return PEN_OK;
}

pen_status pen_hdf5_find_type(const pen_hdf5 *file, const char *path, pen_tensor_type *out_type) {
    const file_object *dataset;
    PEN_TRY(file_require(file, path, PEN_HDF5_DATASET, &dataset));
    PEN_TRY(file_raise(&dataset->error));
    *out_type = dataset->of.dataset.type;
    return PEN_OK;
}

// What lies unpacked in the file is borrowed from its mapping; the rest is asked of the other
// process.
pen_status pen_hdf5_read_dataset(pen_hdf5 *file, const char *path, pen_arena *arena,
                                 pen_tensor_type *out_type, const void **out_data) {
    const file_object *dataset;
    uint8_t *data;
    PEN_TRY(file_require(file, path, PEN_HDF5_DATASET, &dataset));
    PEN_TRY(file_raise(&dataset->error));
    const uint64_t bytes = pen_tensor_type_bytes(&dataset->of.dataset.type);
    *out_type = dataset->of.dataset.type;
    if (dataset->of.dataset.offset != PEN_HDF5_STREAM_ON_REQUEST) {
        *out_data = file->bytes + dataset->of.dataset.offset;
        return PEN_OK;
    }
    file->bytes_left = file->source.contents_bytes;
    if (bytes > file->bytes_left) return file_nonsense(file);
    file->unpacked += bytes;
    PEN_TRY(pen_unpack_check(file->name, file->length, file->unpacked,
                             "write its datasets without compression"));
    PEN_TRY(PEN_NEW(arena, bytes, &data));
    *out_data = data;
    if (bytes == 0) return PEN_OK;
    PEN_TRY(file->source.ask(file->source.context, (uint32_t)(dataset - file->objects)));
    return file_take_contents(file, data, bytes);
}
