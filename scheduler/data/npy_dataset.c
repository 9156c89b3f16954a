// NumPy files: one or a list of them for each input of the graph, and for the labels;
// memory-mapped. And arrays of a program, which need no file.

#include <inttypes.h>
#include <string.h>

#include "base/system/file.h"
#include "scheduler/data/array_parts.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/file_list.h"

// An array, in one file or more.
typedef struct npy_array {
    pen_mapping *files; // [parts.count]; of arrays: empty
    pen_array_parts parts;
} npy_array;

typedef struct npy_state {
    npy_array *inputs; // [input_count]
    uint32_t input_count;
    npy_array *labels; // [label_count]
    uint32_t label_count;
} npy_state;

// An array that the program has given, by name.
static pen_status npy_find_array(const char *name, const pen_dataset_options *options,
                                 pen_array_source *out_source) {
    for (uint32_t i = 0; i < options->array_count; i++) {
        const pen_dataset_array *array = &options->arrays[i];
        if (strcmp(array->name, name) != 0) continue;
        *out_source = (pen_array_source){
            .path = name, .element = array->element, .rank = array->rank, .data = array->data};
        memcpy(out_source->shape, array->shape, sizeof array->shape);
        return PEN_OK;
    }
    return pen_error(PEN_NOT_FOUND,
                     "no array '%s' is given: format arrays takes those of the program that trains",
                     name);
}

static pen_status npy_open_file(const pen_dataset_options *options, const char *path,
                                pen_arena *arena, pen_mapping *file, pen_array_source *source) {
    const char *kept;
    pen_npy_header header;
    PEN_TRY(pen_arena_copy_text(arena, path, strlen(path), &kept));
    if (strcmp(options->format, pen_dataset_format_arrays.name) == 0) {
        return npy_find_array(kept, options, source);
    }
    PEN_TRY(pen_mapping_open(kept, file));
    PEN_TRY(pen_npy_read_header(file->bytes, file->length, kept, &header));
    *source = (pen_array_source){
        .path = kept,
        .element = header.element,
        .rank = header.rank,
        .data = file->bytes + header.data_offset,
    };
    memcpy(source->shape, header.shape, sizeof header.shape);
    return PEN_OK;
}

// The files of one array. The caller closes those that were opened, after an error, too.
static pen_status npy_open_array(const pen_dataset_options *options, const pen_dataset_input *files,
                                 uint32_t count, pen_arena *arena, npy_array *array) {
    PEN_TRY(PEN_NEW(arena, count, &array->files));
    PEN_TRY(PEN_NEW(arena, count, &array->parts.sources));
    array->parts.count = count;
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(npy_open_file(options, files[i].path, arena, &array->files[i],
                              &array->parts.sources[i]));
        if (array->parts.sources[i].rank == 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "'%s' is a single number, expected one entry for each example",
                             files[i].path);
        }
    }
    return PEN_OK;
}

static void npy_close_array(npy_array *array) {
    for (uint32_t i = 0; i < array->parts.count; i++) {
        pen_mapping_close(&array->files[i]);
    }
}

// Files of one name stand behind one another. How many of `count` there are at the beginning.
static uint32_t npy_count_files(const pen_dataset_input *files, uint32_t count) {
    uint32_t same = 1;
    while (same < count && strcmp(files[same].name, files[0].name) == 0)
        same++;
    return same;
}

// Arrays of a program are called as they are; files may be named by patterns.
static pen_status npy_list(const pen_dataset_options *options, const pen_dataset_input *files,
                           uint32_t count, pen_arena *arena, const pen_dataset_input **out_files,
                           uint32_t *out_count) {
    *out_files = files;
    *out_count = count;
    if (strcmp(options->format, pen_dataset_format_arrays.name) == 0) return PEN_OK;
    return pen_file_list_expand(files, count, arena, out_files, out_count);
}

// The first array decides how many examples there are; the others must have as many.
static pen_status npy_check_count(const npy_state *state, const npy_array *array,
                                  const char *what) {
    const pen_array_parts *first = &state->inputs[0].parts;
    const uint64_t found = pen_array_parts_count(&array->parts);
    const uint64_t expected = pen_array_parts_count(first);
    if (found == expected) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "'%s' has %" PRIu64 " %s, but '%s' has %" PRIu64 " examples",
                     array->parts.sources[0].path, found, what, first->sources[0].path, expected);
}

static pen_status npy_open_input(pen_dataset *dataset, const pen_dataset_options *options,
                                 const pen_dataset_input *files, uint32_t count,
                                 pen_dataset_field *fields) {
    npy_state *state = dataset->state;
    npy_array *array = &state->inputs[state->input_count];
    pen_dataset_field *field = &fields[state->input_count++];
    for (pen_dataset_field *other = fields; other < field; other++) {
        if (strcmp(other->name, files->name) == 0) {
            return pen_error(PEN_INVALID_INPUT, "input '%s' is given twice", files->name);
        }
    }
    PEN_TRY(pen_arena_copy_text(dataset->arena, files->name, strlen(files->name), &field->name));
    PEN_TRY(npy_open_array(options, files, count, dataset->arena, array));
    PEN_TRY(
        pen_array_parts_open_inputs(&array->parts, options, files->element, dataset->arena, field));
    return npy_check_count(state, array, "examples");
}

static pen_status npy_open_label(pen_dataset *dataset, const pen_dataset_options *options,
                                 const pen_dataset_input *files, uint32_t count,
                                 pen_dataset_field *fields) {
    npy_state *state = dataset->state;
    npy_array *array = &state->labels[state->label_count];
    pen_dataset_field *field = &fields[state->label_count];
    if (state->label_count == PEN_DATASET_LABEL_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "format %s has more than %d labels", options->format,
                         PEN_DATASET_LABEL_COUNT_LIMIT);
    }
    state->label_count += 1;
    PEN_TRY(pen_arena_copy_text(dataset->arena, files->name, strlen(files->name), &field->name));
    PEN_TRY(npy_open_array(options, files, count, dataset->arena, array));
    PEN_TRY(pen_array_parts_open_labels(
        &array->parts, pen_dataset_label_element(options, files->name), dataset->arena, field));
    PEN_TRY(npy_check_count(state, array, "labels"));
    dataset->label_sources[state->label_count - 1] = array->parts.sources[0].path;
    return PEN_OK;
}

// One array, or several with names.
static pen_status npy_open_labels(pen_dataset *dataset, const pen_dataset_options *options) {
    const pen_dataset_input only = {.name = "labels", .path = options->labels};
    const bool is_only = options->labels != NULL;
    npy_state *state = dataset->state;
    const pen_dataset_input *files = is_only ? &only : options->label_files;
    uint32_t count = is_only ? 1 : options->label_file_count;
    pen_dataset_field *fields;
    if (count == 0) return PEN_OK;
    PEN_TRY(npy_list(options, files, count, dataset->arena, &files, &count));
    PEN_TRY(PEN_NEW(dataset->arena, PEN_DATASET_LABEL_COUNT_LIMIT, &fields));
    PEN_TRY(PEN_NEW(dataset->arena, PEN_DATASET_LABEL_COUNT_LIMIT, &state->labels));
    for (uint32_t i = 0, same; i < count; i += same) {
        same = npy_count_files(files + i, count - i);
        PEN_TRY(npy_open_label(dataset, options, files + i, same, fields));
    }
    dataset->info.labels = fields;
    dataset->info.label_count = state->label_count;
    return PEN_OK;
}

// An array for each input of the model. Names are not checked here: the model is compiled later,
// and says which inputs it has.
static pen_status npy_open(pen_dataset *dataset, const pen_dataset_options *options) {
    const pen_dataset_input *files = options->inputs;
    uint32_t count = options->input_count;
    npy_state *state;
    pen_dataset_field *fields;
    PEN_TRY(PEN_NEW(dataset->arena, 1, &state));
    dataset->state = state;
    PEN_TRY(npy_list(options, files, count, dataset->arena, &files, &count));
    PEN_TRY(PEN_NEW(dataset->arena, PEN_DATASET_INPUT_COUNT_LIMIT, &state->inputs));
    PEN_TRY(PEN_NEW(dataset->arena, PEN_DATASET_INPUT_COUNT_LIMIT, &fields));
    for (uint32_t i = 0, same; i < count; i += same) {
        if (state->input_count == PEN_DATASET_INPUT_COUNT_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "format %s has more than %d inputs",
                             options->format, PEN_DATASET_INPUT_COUNT_LIMIT);
        }
        same = npy_count_files(files + i, count - i);
        PEN_TRY(npy_open_input(dataset, options, files + i, same, fields));
    }
    if (count == 0) {
        return pen_error(PEN_INVALID_INPUT, "format %s has 0 inputs, expected 1 to %d",
                         options->format, PEN_DATASET_INPUT_COUNT_LIMIT);
    }
    dataset->info.inputs = fields;
    dataset->info.input_count = state->input_count;
    dataset->info.example_count = pen_array_parts_count(&state->inputs[0].parts);
    return npy_open_labels(dataset, options);
}

static pen_status npy_dataset_read(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                                   void *const *out_inputs, void *const *out_labels) {
    const npy_state *state = dataset->state;
    for (uint32_t i = 0; i < state->input_count; i++) {
        if (out_inputs[i] == NULL) continue;
        pen_array_parts_read(&state->inputs[i].parts, indices, count, out_inputs[i]);
    }
    for (uint32_t i = 0; i < state->label_count; i++) {
        if (out_labels[i] == NULL) continue;
        pen_array_parts_read(&state->labels[i].parts, indices, count, out_labels[i]);
    }
    return PEN_OK;
}

static void npy_close(pen_dataset *dataset) {
    npy_state *state = dataset->state;
    if (state == NULL) return;
    for (uint32_t i = 0; i < state->input_count; i++) {
        npy_close_array(&state->inputs[i]);
    }
    for (uint32_t i = 0; i < state->label_count; i++) {
        npy_close_array(&state->labels[i]);
    }
}

const pen_dataset_format pen_dataset_format_npy = {
    .name = "npy",
    .open = npy_open,
    .read = npy_dataset_read,
    .close = npy_close,
};

const pen_dataset_format pen_dataset_format_arrays = {
    .name = "arrays",
    .open = npy_open,
    .read = npy_dataset_read,
    .close = npy_close,
};
