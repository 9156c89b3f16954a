// Tar files as WebDataset has them: pictures and NumPy arrays, found by an index that is made once,
// and read where they lie. A file that is compressed is unpacked beside the index.

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/system/interrupt.h"
#include "base/text.h"
#include "scheduler/data/array_source.h"
#include "scheduler/data/cache/array_cache_writer.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/file_list.h"
#include "scheduler/data/gzip_reader.h"
#include "scheduler/data/picture_reader.h"
#include "scheduler/data/tar/tar_index.h"

#define TAR_UNPACK_BYTES (1u << 20) // at a time

typedef struct tar_field {
    const struct tar_state *state;
    uint32_t place;               // in a row
    pen_picture_reader *pictures; // NULL: arrays
    pen_array_source array;       // of arrays: what each is like
} tar_field;

typedef struct tar_state {
    const pen_dataset_input *shards; // [shard_count] paths
    uint32_t shard_count;
    pen_mapping *files; // [shard_count], unpacked
    pen_tar_parts parts;
    uint32_t field_count;
    tar_field fields[PEN_DATASET_INPUT_COUNT_LIMIT]; // [field_count]
    pen_array_cache index;                           // of one field
    uint32_t row_length;
} tar_state;

// ---- shards

static pen_status tar_describe(const char *path, pen_text *text) {
    struct stat facts;
    if (stat(path, &facts) != 0) {
        return pen_error(errno == ENOENT ? PEN_NOT_FOUND : PEN_IO, "cannot look at '%s': %s", path,
                         strerror(errno));
    }
    char *real = realpath(path, NULL); // one file has one name, from whichever folder
    if (real == NULL) return pen_error_out_of_memory();
    pen_text_print(text, "%s: %lld bytes, %lld.%09ld\n", real, (long long)facts.st_size,
                   (long long)facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
    free(real);
    return PEN_OK;
}

static pen_status tar_unpack_to(pen_gzip_reader *reader, pen_file *file) {
    uint8_t *bytes = pen_memory_allocate(TAR_UNPACK_BYTES, 1);
    if (bytes == NULL) return pen_error_out_of_memory();
    size_t count = TAR_UNPACK_BYTES;
    pen_status status = PEN_OK;
    while (status == PEN_OK && count == TAR_UNPACK_BYTES) {
        status = pen_gzip_reader_read(reader, bytes, TAR_UNPACK_BYTES, &count);
        if (status == PEN_OK) status = pen_file_write(file, bytes, count);
    }
    pen_memory_free(bytes);
    return status == PEN_OK ? pen_file_commit(file) : status;
}

static pen_status tar_unpack(const pen_mapping *packed, const char *path, const char *to) {
    pen_gzip_reader *reader = NULL;
    pen_file *file = NULL;
    pen_status status = pen_gzip_reader_open(packed->bytes, packed->length, path, &reader);
    if (status == PEN_OK) status = pen_file_create_beside(to, &file);
    if (status == PEN_OK) status = tar_unpack_to(reader, file);
    pen_gzip_reader_close(reader);
    return pen_status_join(status, pen_file_close(file));
}

// A compressed shard has no places: what it holds is written once, and mapped in its stead.
static pen_status tar_open_packed(const pen_dataset_options *options, const char *path,
                                  pen_arena *arena, pen_mapping *file) {
    pen_text text;
    const char *request, *key, *to;
    pen_text_init(&text, arena);
    pen_text_add(&text, "unpacked ");
    PEN_TRY(tar_describe(path, &text));
    PEN_TRY(pen_text_finish(&text, &request));
    PEN_TRY(pen_cache_path(options->cache, request, arena, &key));
    PEN_TRY(pen_arena_format(arena, &to, "%s.tar", key));
    if (access(to, R_OK) != 0) {
        if (options->cache_only) {
            return pen_error(PEN_NOT_FOUND, "'%s' is compressed, and '%s' is not there yet", path,
                             to);
        }
        PEN_TRY(pen_folder_create(options->cache, arena));
        PEN_TRY(tar_unpack(file, path, to));
        pen_log(PEN_LOG_NOTE, "unpacked '%s' to '%s'", path, to);
    }
    pen_mapping_close(file);
    return pen_mapping_open(to, file);
}

static pen_status tar_open_shards(const pen_dataset_options *options, pen_arena *arena,
                                  tar_state *state) {
    PEN_TRY(pen_file_list_expand(options->shards, options->shard_count, arena, &state->shards,
                                 &state->shard_count));
    PEN_TRY(PEN_NEW(arena, state->shard_count, &state->files));
    for (uint32_t i = 0; i < state->shard_count; i++) {
        const char *path = state->shards[i].path;
        pen_mapping *file = &state->files[i];
        PEN_TRY(pen_mapping_open(path, file));
        if (pen_gzip_is(file->bytes, file->length)) {
            PEN_TRY(tar_open_packed(options, path, arena, file));
        }
    }
    return PEN_OK;
}

// ---- the index

typedef struct tar_making {
    pen_cache_writer *writer;
    uint64_t row_count;
    uint64_t row_bytes;
} tar_making;

static pen_status tar_take(void *context, const int64_t *row) {
    tar_making *making = context;
    making->row_count += 1;
    if (pen_interrupt_requested()) return pen_error(PEN_CANCELLED, "stopped, as was wished");
    return pen_cache_writer_add(making->writer, 0, row, making->row_bytes);
}

static pen_status tar_make_rows(const tar_state *state, tar_making *making) {
    const pen_cache_field field = {
        .name = "index", .element = PEN_NPY_INT64, .rank = 1, .shape = {state->row_length}};
    making->row_bytes = state->row_length * sizeof(int64_t);
    PEN_TRY(pen_cache_writer_begin(making->writer, &field, 1));
    for (uint32_t s = 0; s < state->shard_count; s++) {
        PEN_TRY(pen_tar_index_read(&state->parts, &state->files[s], state->shards[s].path, s,
                                   tar_take, making));
    }
    if (making->row_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "'%s' has no examples", state->shards[0].path);
    }
    pen_log(PEN_LOG_NOTE, "found %" PRIu64 " examples in %" PRIu32 " tar files", making->row_count,
            state->shard_count);
    return pen_cache_writer_commit(making->writer, making->row_count);
}

// Makes the index and opens it. Another process may have made it while this one waited for it.
static pen_status tar_make_index(const pen_dataset_options *options, pen_arena *arena,
                                 const char *request, tar_state *state) {
    tar_making making = {0};
    PEN_TRY(pen_cache_writer_create(options->cache, request, &making.writer));
    pen_status status = PEN_OK;
    bool is_made = false;
    if (pen_cache_writer_has_waited(making.writer)) {
        status = pen_array_cache_open(options->cache, request, arena, &state->index);
        is_made = status == PEN_OK;
        pen_status_ignore(status, "the index is made");
    }
    status = is_made ? PEN_OK : tar_make_rows(state, &making);
    pen_cache_writer_destroy(making.writer);
    if (status != PEN_OK || is_made) return status;
    return pen_array_cache_open(options->cache, request, arena, &state->index);
}

// The index is of these files, as large and as old as they are, and of these parts.
static pen_status tar_request(const tar_state *state, pen_arena *arena, const char **out_request) {
    pen_text text;
    pen_text_init(&text, arena);
    for (uint32_t s = 0; s < state->shard_count; s++)
        PEN_TRY(tar_describe(state->shards[s].path, &text));
    for (uint32_t i = 0; i < state->parts.input_count; i++) {
        pen_text_print(&text, "%s: %s\n", state->parts.inputs[i].name, state->parts.inputs[i].path);
    }
    pen_text_print(&text, "labels: %s\n", state->parts.label == NULL ? "" : state->parts.label);
    if (state->parts.weight != NULL) pen_text_print(&text, "weights: %s\n", state->parts.weight);
    return pen_text_finish(&text, out_request);
}

static const int64_t *tar_row(const tar_state *state, uint64_t example) {
    return (const int64_t *)(const void *)state->index.data[0].bytes + example * state->row_length;
}

// What was kept is looked at again before it is followed.
static pen_status tar_check_index(const tar_state *state) {
    const pen_array_cache *index = &state->index;
    bool holds = index->field_count == 1 && !index->fields[0].is_pictures &&
                 index->fields[0].element == PEN_NPY_INT64 && index->fields[0].rank == 1 &&
                 index->fields[0].shape[0] == state->row_length;
    for (uint64_t i = 0; holds && i < index->row_count; i++) {
        const int64_t *row = tar_row(state, i);
        holds = row[0] >= 0 && row[0] < state->shard_count;
        for (uint32_t f = 0; holds && f < state->field_count; f++) {
            const uint64_t length = state->files[row[0]].length;
            const uint64_t first = (uint64_t)row[2 + 2 * f], count = (uint64_t)row[3 + 2 * f];
            holds = first <= length && count <= length - first;
        }
    }
    if (holds) return PEN_OK;
    return pen_error(PEN_CORRUPT, "the index of '%s' does not fit the file", state->shards[0].path);
}

// As kept, or made now. A worker only looks.
static pen_status tar_open_index(const pen_dataset_options *options, pen_arena *arena,
                                 tar_state *state) {
    const char *request;
    PEN_TRY(tar_request(state, arena, &request));
    pen_status status = pen_array_cache_open(options->cache, request, arena, &state->index);
    const pen_status_code code = pen_status_get_code(status);
    const bool is_absent = code == PEN_NOT_FOUND || code == PEN_CORRUPT;
    if (is_absent && !options->cache_only) {
        pen_status_ignore(status, "the index is made");
        status = tar_make_index(options, arena, request, state);
    }
    if (pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "the next says more");
        status = pen_error(PEN_NOT_FOUND,
                           "'%s' has no index of '%s': workers use that of the starting process, "
                           "in a folder that both see",
                           options->cache, state->shards[0].path);
    }
    PEN_TRY(status);
    return tar_check_index(state);
}

// ---- examples

static const uint8_t *tar_member(const tar_field *field, uint64_t example, uint64_t *out_length) {
    const int64_t *row = tar_row(field->state, example);
    *out_length = (uint64_t)row[field->place + 1];
    return field->state->files[row[0]].bytes + row[field->place];
}

static void tar_name(const tar_field *field, uint64_t example, char *text, size_t size) {
    const int64_t *row = tar_row(field->state, example);
    snprintf(text, size, "%.400s, example %" PRIu64 " (counted from 0)",
             field->state->shards[row[0]].path, example);
}

static pen_status tar_find_picture(const void *context, uint64_t index, pen_picture *out_picture) {
    const tar_field *field = context;
    uint64_t length;
    out_picture->bytes = tar_member(field, index, &length);
    out_picture->length = length;
    tar_name(field, index, out_picture->name, sizeof out_picture->name);
    return PEN_OK;
}

// An array as one of one example.
static pen_status tar_read_header(const tar_field *field, uint64_t example, const char *name,
                                  pen_array_source *source) {
    uint64_t length;
    pen_npy_header header;
    const uint8_t *bytes = tar_member(field, example, &length);
    PEN_TRY(pen_npy_read_header(bytes, length, name, &header));
    if (header.rank + 1 > PEN_RANK_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "'%s' has %" PRIu32 " dimensions", name, header.rank);
    }
    source->element = header.element;
    source->rank = header.rank + 1;
    source->shape[0] = 1;
    memcpy(source->shape + 1, header.shape, header.rank * sizeof *header.shape);
    source->data = bytes + header.data_offset;
    return PEN_OK;
}

static pen_status tar_open_array(const pen_dataset_options *options, pen_arena *arena,
                                 tar_field *field, pen_dataset_field *out_field) {
    char name[PEN_PICTURE_NAME_BYTES];
    tar_name(field, 0, name, sizeof name);
    PEN_TRY(pen_arena_copy_text(arena, name, strlen(name), &field->array.path));
    PEN_TRY(tar_read_header(field, 0, name, &field->array));
    return pen_array_source_open_inputs(&field->array, options, PEN_DATASET_AUTO, false, arena,
                                        out_field);
}

// Each array has a head of its own, which must say what the first did.
static pen_status tar_read_arrays(const tar_field *field, const pen_dataset_field *input,
                                  const uint64_t *indices, uint64_t count, void *out_elements) {
    static const uint64_t only = 0;
    char name[PEN_PICTURE_NAME_BYTES];
    for (uint64_t i = 0; i < count; i++) {
        pen_array_source source = field->array;
        tar_name(field, indices[i], name, sizeof name);
        PEN_TRY(tar_read_header(field, indices[i], name, &source));
        if (source.element != field->array.element || source.rank != field->array.rank ||
            memcmp(source.shape, field->array.shape, source.rank * sizeof *source.shape) != 0) {
            return pen_error(PEN_INVALID_INPUT, "'%s' has another type or shape than the first",
                             name);
        }
        pen_array_source_read(&source, &only, 1, (char *)out_elements + i * input->bytes);
    }
    return PEN_OK;
}

// ---- the format

// What the first example has of each input says whether they are arrays or pictures.
static pen_status tar_open_inputs(pen_dataset *dataset, const pen_dataset_options *options) {
    tar_state *state = dataset->state;
    pen_dataset_field *fields;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(dataset->arena, state->field_count, &fields));
    for (uint32_t i = 0; i < options->input_count; i++) {
        const char *name = options->inputs[i].name;
        if (i > 0 && strcmp(name, options->inputs[i - 1].name) == 0) continue;
        tar_field *field = &state->fields[count];
        uint64_t length;
        *field = (tar_field){.state = state, .place = 2 + 2 * count};
        fields[count].element = PEN_DATASET_FLOAT32;
        PEN_TRY(pen_arena_copy_text(dataset->arena, name, strlen(name), &fields[count].name));
        const uint8_t *bytes = tar_member(field, 0, &length);
        if (length >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0) {
            PEN_TRY(tar_open_array(options, dataset->arena, field, &fields[count]));
        } else {
            PEN_TRY(pen_picture_reader_create(options, tar_find_picture, field, dataset,
                                              &fields[count], &field->pictures));
        }
        count += 1;
    }
    dataset->info.inputs = fields;
    dataset->info.input_count = count;
    dataset->info.example_count = state->index.row_count;
    return PEN_OK;
}

static pen_status tar_open_labels(pen_dataset *dataset, const pen_dataset_options *options) {
    pen_dataset_field *labels;
    const tar_state *state = dataset->state;
    if (options->labels == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(dataset->arena, 1, &labels));
    labels->name = "labels";
    labels->element = PEN_DATASET_INT64;
    PEN_TRY(pen_dataset_field_measure(labels, "labels"));
    pen_dataset_set_labels(dataset, labels, state->shards[0].path);
    return PEN_OK;
}

// The index has them. They are judged with those of all formats.
static pen_status tar_open_weights(pen_dataset *dataset) {
    const tar_state *state = dataset->state;
    if (state->parts.weight == NULL) return PEN_OK;
    PEN_TRY(pen_dataset_make_weights(dataset, state->shards[0].path));
    for (uint64_t i = 0; i < dataset->info.example_count; i++)
        dataset->weights[i] = pen_tar_row_weight(&state->parts, tar_row(state, i));
    return PEN_OK;
}

// Parts first: rows of the index are as long as they say.
static pen_status tar_open(pen_dataset *dataset, const pen_dataset_options *options) {
    tar_state *state;
    if (options->shard_count == 0 || options->cache == NULL || options->input_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "format webdataset needs shards, inputs and a cache");
    }
    PEN_TRY(PEN_NEW(dataset->arena, 1, &state));
    dataset->state = state;
    state->parts = (pen_tar_parts){options->inputs, options->input_count, options->labels,
                                   options->weight_column};
    state->field_count = pen_tar_parts_fields(&state->parts);
    if (state->field_count > PEN_DATASET_INPUT_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "format webdataset has more than %d inputs",
                         PEN_DATASET_INPUT_COUNT_LIMIT);
    }
    state->row_length = pen_tar_parts_row_length(&state->parts);
    PEN_TRY(tar_open_shards(options, dataset->arena, state));
    PEN_TRY(tar_open_index(options, dataset->arena, state));
    PEN_TRY(tar_open_inputs(dataset, options));
    PEN_TRY(tar_open_weights(dataset));
    return tar_open_labels(dataset, options);
}

static pen_status tar_read(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                           void *const *out_inputs, void *const *out_labels) {
    const tar_state *state = dataset->state;
    int64_t *classes = out_labels[0];
    for (uint32_t f = 0; f < state->field_count; f++) {
        const tar_field *field = &state->fields[f];
        if (out_inputs[f] == NULL) continue;
        PEN_TRY(
            field->pictures != NULL
                ? pen_picture_reader_read(field->pictures, indices, count, out_inputs[f])
                : tar_read_arrays(field, &dataset->info.inputs[f], indices, count, out_inputs[f]));
    }
    for (uint64_t i = 0; classes != NULL && i < count; i++)
        classes[i] = tar_row(state, indices[i])[1];
    return PEN_OK;
}

static void tar_close(pen_dataset *dataset) {
    tar_state *state = dataset->state;
    if (state == NULL) return;
    for (uint32_t f = 0; f < state->field_count && f < PEN_DATASET_INPUT_COUNT_LIMIT; f++)
        pen_picture_reader_destroy(state->fields[f].pictures);
    for (uint32_t s = 0; state->files != NULL && s < state->shard_count; s++)
        pen_mapping_close(&state->files[s]);
    pen_array_cache_close(&state->index);
}

const pen_dataset_format pen_dataset_format_webdataset = {
    .name = "webdataset",
    .open = tar_open,
    .read = tar_read,
    .close = tar_close,
};
