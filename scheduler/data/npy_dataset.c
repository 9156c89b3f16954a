// NumPy files: one for each input of the graph, one for the labels; memory-mapped. And arrays of a
// program, which need no file.

#include <inttypes.h>
#include <string.h>

#include "base/system/file.h"
#include "scheduler/data/array_source.h"
#include "scheduler/data/dataset_format.h"

typedef struct npy_file {
    pen_mapping file; // of an array: empty
    pen_array_source source;
} npy_file;

typedef struct npy_state {
    npy_file *inputs; // [input_count]
    uint32_t input_count;
    npy_file labels[PEN_DATASET_LABEL_COUNT_LIMIT];
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

static pen_status npy_file_open(const char *path, const pen_dataset_options *options,
                                pen_arena *arena, npy_file *file) {
    const char *kept;
    pen_npy_header header;
    PEN_TRY(pen_arena_copy_text(arena, path, strlen(path), &kept));
    if (strcmp(options->format, pen_dataset_format_arrays.name) == 0) {
        return npy_find_array(kept, options, &file->source);
    }
    PEN_TRY(pen_mapping_open(kept, &file->file));
    PEN_TRY(pen_npy_read_header(file->file.bytes, file->file.length, kept, &header));
    file->source = (pen_array_source){
        .path = kept,
        .element = header.element,
        .rank = header.rank,
        .data = file->file.bytes + header.data_offset,
    };
    memcpy(file->source.shape, header.shape, sizeof header.shape);
    return PEN_OK;
}

// The first file decides how many examples there are; the others must have as many.
static pen_status npy_open_input(pen_dataset *dataset, const pen_dataset_options *options,
                                 uint32_t index, pen_dataset_field *field) {
    const npy_state *state = dataset->state;
    const pen_dataset_input *input = &options->inputs[index];
    npy_file *file = &state->inputs[index];
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(options->inputs[i].name, input->name) == 0) {
            return pen_error(PEN_INVALID_INPUT, "input '%s' has two files", input->name);
        }
    }
    PEN_TRY(pen_arena_copy_text(dataset->arena, input->name, strlen(input->name), &field->name));
    PEN_TRY(npy_file_open(input->path, options, dataset->arena, file));
    PEN_TRY(pen_array_source_open_inputs(&file->source, options, input->element, false,
                                         dataset->arena, field));
    const pen_array_source *first = &state->inputs[0].source;
    if (file->source.shape[0] != first->shape[0]) {
        return pen_error(PEN_INVALID_INPUT, "'%s' has %" PRId64 " examples, but '%s' has %" PRId64,
                         file->source.path, file->source.shape[0], first->path, first->shape[0]);
    }
    return PEN_OK;
}

// Labels with names are what the loss that takes them wants.
static pen_dataset_element npy_label_element(const pen_dataset_options *options, const char *name) {
    if (options->label_element != PEN_DATASET_AUTO) return options->label_element;
    for (uint32_t i = 0; i < options->target_count; i++) {
        const pen_dataset_target *target = &options->targets[i];
        if (target->labels == NULL || strcmp(target->labels, name) != 0) continue;
        return target->has_classes ? PEN_DATASET_INT64 : PEN_DATASET_FLOAT32;
    }
    return PEN_DATASET_AUTO;
}

static pen_status npy_open_label_file(pen_dataset *dataset, const pen_dataset_options *options,
                                      const pen_dataset_input *file, pen_dataset_field *field) {
    npy_state *state = dataset->state;
    npy_file *opened = &state->labels[state->label_count++];
    pen_array_source *source = &opened->source;
    const pen_array_source *first = &state->inputs[0].source;
    PEN_TRY(pen_arena_copy_text(dataset->arena, file->name, strlen(file->name), &field->name));
    PEN_TRY(npy_file_open(file->path, options, dataset->arena, opened));
    PEN_TRY(pen_array_source_open_labels(source, npy_label_element(options, file->name), field));
    if (source->shape[0] != first->shape[0]) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has %" PRId64 " labels, but '%s' has %" PRId64 " examples",
                         source->path, source->shape[0], first->path, first->shape[0]);
    }
    dataset->label_sources[state->label_count - 1] = source->path;
    return PEN_OK;
}

// One file, or several with names.
static pen_status npy_open_labels(pen_dataset *dataset, const pen_dataset_options *options) {
    const pen_dataset_input only = {.name = "labels", .path = options->labels};
    const bool is_only = options->labels != NULL;
    const uint32_t count = is_only ? 1 : options->label_file_count;
    pen_dataset_field *fields;
    if (count == 0) return PEN_OK;
    if (count > PEN_DATASET_LABEL_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "format %s has %" PRIu32 " labels, expected at most %d",
                         options->format, count, PEN_DATASET_LABEL_COUNT_LIMIT);
    }
    PEN_TRY(PEN_NEW(dataset->arena, count, &fields));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(npy_open_label_file(dataset, options, is_only ? &only : &options->label_files[i],
                                    &fields[i]));
    }
    dataset->info.labels = fields;
    dataset->info.label_count = count;
    return PEN_OK;
}

// A file for each input of the model. Names are not checked here: the model is compiled later, and
// says which inputs it has.
static pen_status npy_open(pen_dataset *dataset, const pen_dataset_options *options) {
    const uint32_t count = options->input_count;
    npy_state *state;
    pen_dataset_field *fields;
    if (count == 0 || count > PEN_DATASET_INPUT_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "format %s has %" PRIu32 " inputs, expected 1 to %d",
                         options->format, count, PEN_DATASET_INPUT_COUNT_LIMIT);
    }
    PEN_TRY(PEN_NEW(dataset->arena, 1, &state));
    dataset->state = state;
    PEN_TRY(PEN_NEW(dataset->arena, count, &state->inputs));
    state->input_count = count;
    PEN_TRY(PEN_NEW(dataset->arena, count, &fields));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(npy_open_input(dataset, options, i, &fields[i]));
    }
    dataset->info.inputs = fields;
    dataset->info.input_count = count;
    dataset->info.example_count = (uint64_t)state->inputs[0].source.shape[0];
    return npy_open_labels(dataset, options);
}

static pen_status npy_dataset_read(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                                   void *const *out_inputs, void *const *out_labels) {
    const npy_state *state = dataset->state;
    for (uint32_t i = 0; i < state->input_count; i++) {
        if (out_inputs[i] == NULL) continue;
        pen_array_source_read(&state->inputs[i].source, indices, count, out_inputs[i]);
    }
    for (uint32_t i = 0; i < state->label_count; i++) {
        if (out_labels[i] == NULL) continue;
        pen_array_source_read(&state->labels[i].source, indices, count, out_labels[i]);
    }
    return PEN_OK;
}

static void npy_close(pen_dataset *dataset) {
    npy_state *state = dataset->state;
    if (state == NULL) return;
    for (uint32_t i = 0; i < state->input_count; i++) {
        pen_mapping_close(&state->inputs[i].file);
    }
    for (uint32_t i = 0; i < state->label_count; i++) {
        pen_mapping_close(&state->labels[i].file);
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
