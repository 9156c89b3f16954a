#include "scheduler/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/system/interrupt.h"
#include "scheduler/data/augment/augment.h"
#include "scheduler/data/augment/augment_mix.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/decode_team.h"

// Indices translated, or labels checked, at a time: enough to hide the cost of a call, and fits
// the stack.
#define DATASET_CHUNK 256

static const pen_dataset_format *const dataset_formats[] = {
    &pen_dataset_format_idx,    &pen_dataset_format_npy,  &pen_dataset_format_csv,
    &pen_dataset_format_images, &pen_dataset_format_text, &pen_dataset_format_tokens,
    &pen_dataset_format_arrays, &pen_dataset_format_sql,  &pen_dataset_format_webdataset,
};
#define DATASET_FORMAT_COUNT (sizeof dataset_formats / sizeof dataset_formats[0])

pen_status pen_dataset_field_measure(pen_dataset_field *field, const char *what) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < field->rank; i++) {
        if (field->shape[i] <= 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "%s: dimension %" PRIu32 " of an example is %" PRId64
                             ", expected at least 1",
                             what, i, field->shape[i]);
        }
        if (!pen_u64_mul(count, (uint64_t)field->shape[i], &count) ||
            count > PEN_TENSOR_BYTES_LIMIT / sizeof(int64_t)) {
            return pen_error(PEN_INVALID_INPUT, "%s: one example is larger than %" PRIu64 " bytes",
                             what, (uint64_t)PEN_TENSOR_BYTES_LIMIT);
        }
    }
    field->element_count = count;
    field->bytes = count * (field->element == PEN_DATASET_INT64 ? sizeof(int64_t) : sizeof(float));
    return PEN_OK;
}

pen_status pen_dataset_add_single_input(pen_dataset *dataset, const pen_dataset_options *options,
                                        pen_dataset_field **out_field) {
    pen_dataset_field *field;
    PEN_TRY(PEN_NEW(dataset->arena, 1, &field));
    const char *name = options->input_name == NULL ? "" : options->input_name;
    PEN_TRY(pen_arena_copy_text(dataset->arena, name, strlen(name), &field->name));
    field->element = PEN_DATASET_FLOAT32;
    dataset->info.inputs = field;
    dataset->info.input_count = 1;
    *out_field = field;
    return PEN_OK;
}

void pen_dataset_set_labels(pen_dataset *dataset, const pen_dataset_field *labels,
                            const char *source) {
    dataset->info.labels = labels;
    dataset->info.label_count = 1;
    dataset->label_sources[0] = source;
}

void pen_dataset_field_flatten(pen_dataset_field *field, const pen_dataset_options *options) {
    for (uint32_t i = 0; field->rank == 3 && i < 3; i++)
        field->picture[i] = field->shape[i];
    if (field->rank == 2) {
        field->picture[0] = 1;
        field->picture[1] = field->shape[0];
        field->picture[2] = field->shape[1];
    }
    if (!options->flatten) return;
    field->rank = 1;
    field->shape[0] = (int64_t)field->element_count;
}

static pen_status dataset_find_format(const char *name, const pen_dataset_format **out_format) {
    if (name == NULL) name = "";
    for (size_t i = 0; i < DATASET_FORMAT_COUNT; i++) {
        if (strcmp(dataset_formats[i]->name, name) == 0) {
            *out_format = dataset_formats[i];
            return PEN_OK;
        }
    }
    char names[128] = "";
    size_t length = 0;
    for (size_t i = 0; i < DATASET_FORMAT_COUNT && length < sizeof names; i++) {
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s",
                                   i == 0 ? "" : ", ", dataset_formats[i]->name);
    }
    return pen_error(PEN_NOT_FOUND, "no data format is called '%s'; there are %s", name, names);
}

static int dataset_compare_indices(const void *left, const void *right) {
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

// The indices of one part of a split, ascending. Both parts are cut from the same permutation of
// all examples, so that they never overlap and leave nothing out.
static pen_status dataset_split(pen_dataset *dataset, const pen_dataset_options *options) {
    const uint64_t all_count = dataset->info.example_count;
    const uint64_t eval_count = (uint64_t)((double)all_count * options->holdout);
    const bool eval = options->part == PEN_DATASET_PART_EVAL;
    const uint64_t count = eval ? eval_count : all_count - eval_count;
    if (count == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "holding out %g of %" PRIu64 " examples leaves none for %s",
                         options->holdout, all_count, eval ? "evaluation" : "training");
    }
    uint64_t *order = pen_memory_allocate(all_count, sizeof *order);
    if (order == NULL) return pen_error_out_of_memory();
    for (uint64_t i = 0; i < all_count; i++)
        order[i] = i;
    const pen_random_key key = {options->seed, pen_random_stream("holdout", 0, 0)};
    for (uint64_t i = all_count - 1; i > 0; i--) {
        const uint64_t other = pen_random_below(key, i, i + 1);
        const uint64_t index = order[i];
        order[i] = order[other];
        order[other] = index;
    }
    if (!eval) memmove(order, order + eval_count, count * sizeof *order);
    qsort(order, count, sizeof *order, dataset_compare_indices);
    dataset->subset = order;
    dataset->info.example_count = count;
    return PEN_OK;
}

static pen_status dataset_check_options(const pen_dataset_options *options) {
    if (!(options->holdout >= 0 && options->holdout < 1)) {
        return pen_error(PEN_INVALID_INPUT, "holdout is %g, expected at least 0 and below 1",
                         options->holdout);
    }
    if (options->part == PEN_DATASET_PART_EVAL && options->holdout == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "the examples held out are asked for, but holdout is 0");
    }
    return PEN_OK;
}

// Holdout and limits are the same for every format, so they stand here: formats know examples by
// number alone.
static pen_status dataset_open(pen_dataset *dataset, const pen_dataset_options *options) {
    PEN_TRY(dataset_check_options(options));
    PEN_TRY(pen_arena_create(&dataset->arena));
    PEN_TRY(dataset_find_format(options->format, &dataset->format));
    PEN_TRY(dataset->format->open(dataset, options));
    pen_dataset_info *info = &dataset->info;
    info->format = dataset->format->name;
    if (info->example_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "the %s data has no examples", info->format);
    }
    PEN_TRY(pen_dataset_open_weights(dataset, options));
    if (options->holdout > 0) PEN_TRY(dataset_split(dataset, options));
    if (options->example_limit > 0) {
        info->example_count = pen_min_u64(info->example_count, options->example_limit);
    }
    PEN_TRY(pen_dataset_open_spread(dataset, options));
    PEN_TRY(pen_dataset_open_targets(dataset, options));
    PEN_TRY(pen_dataset_open_augment(dataset, options));
    // class indices beyond the class names cannot come up: such formats number the names
    if (options->class_count == 0 || info->labels == NULL) return PEN_OK;
    PEN_TRY(pen_dataset_limit_classes(dataset, 0, options->class_count));
    if (info->class_count == 0) info->class_count = options->class_count;
    return PEN_OK;
}

pen_status pen_dataset_open(const pen_dataset_options *options, pen_dataset **out_dataset) {
    pen_dataset *dataset = pen_memory_allocate(1, sizeof *dataset);
    if (dataset == NULL) return pen_error_out_of_memory();
    const pen_status status = dataset_open(dataset, options);
    if (status != PEN_OK) {
        pen_dataset_close(dataset);
        return status;
    }
    *out_dataset = dataset;
    return PEN_OK;
}

void pen_dataset_close(pen_dataset *dataset) {
    if (dataset == NULL) return;
    pen_decode_team_destroy(dataset->team);
    if (dataset->format != NULL) dataset->format->close(dataset);
    pen_augment_destroy(dataset->augment);
    pen_mix_destroy(dataset->mix);
    pen_memory_free(dataset->subset);
    pen_memory_free(dataset->weights);
    pen_arena_destroy(dataset->arena);
    pen_memory_free(dataset);
}

const pen_dataset_info *pen_dataset_get_info(const pen_dataset *dataset) {
    return &dataset->info;
}

void pen_dataset_set_cancel(pen_dataset *dataset, const volatile int *cancel) {
    dataset->cancel = cancel;
}

static pen_status dataset_read_chunk(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                                     void *const *out_inputs, void *const *out_labels) {
    PEN_TRY(dataset->format->read(dataset, indices, count, out_inputs, out_labels));
    PEN_TRY(pen_dataset_change(dataset, indices, count, out_inputs));
    PEN_TRY(pen_dataset_spread(dataset, indices, count, out_labels));
    return pen_dataset_check_targets(dataset, indices, count, out_labels);
}

static void *dataset_advance(void *memory, uint64_t bytes) {
    return memory == NULL ? NULL : (char *)memory + bytes;
}

// In chunks, so that the numbers of a subset can be looked up on the stack whatever the size of the
// batch.
pen_status pen_dataset_read(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                            void *const *out_inputs, void *const *out_labels) {
    const pen_dataset_info *info = &dataset->info;
    uint64_t chunk[DATASET_CHUNK];
    void *inputs[PEN_DATASET_INPUT_COUNT_LIMIT] = {NULL};
    void *labels[PEN_DATASET_LABEL_COUNT_LIMIT] = {NULL};
    PEN_ASSERT(out_labels == NULL || info->labels != NULL);
    if (dataset->cancel != NULL && pen_interrupt_wished(dataset->cancel)) {
        return pen_error(PEN_CANCELLED, "stopped, as was wished");
    }
    for (uint64_t done = 0; done < count;) {
        const uint64_t now = pen_min_u64(count - done, DATASET_CHUNK);
        for (uint64_t i = 0; i < now; i++) {
            const uint64_t index = indices[done + i];
            PEN_ASSERT(index < info->example_count);
            chunk[i] = dataset->subset == NULL ? index : dataset->subset[index];
        }
        for (uint32_t i = 0; out_inputs != NULL && i < info->input_count; i++) {
            inputs[i] = dataset_advance(out_inputs[i], done * info->inputs[i].bytes);
        }
        for (uint32_t i = 0; out_labels != NULL && i < info->label_count; i++) {
            labels[i] = dataset_advance(out_labels[i], done * info->labels[i].bytes);
        }
        PEN_TRY(dataset_read_chunk(dataset, chunk, now, inputs, labels));
        done += now;
    }
    return PEN_OK;
}

// `values` are those of `count` examples.
static pen_status dataset_check_field(const pen_dataset *dataset, const pen_dataset_field *field,
                                      const uint64_t *indices, uint64_t count,
                                      const float *values) {
    if (field->element != PEN_DATASET_FLOAT32) return PEN_OK;
    for (uint64_t i = 0; i < count * field->element_count; i++) {
        if (isfinite(values[i])) continue;
        const uint64_t index = indices[i / field->element_count];
        return pen_error(
            PEN_NOT_FINITE, "the data: example %" PRIu64 " (counted from 0) has the value %g%s%s%s",
            dataset->subset == NULL ? index : dataset->subset[index], (double)values[i],
            field->name[0] == '\0' ? "" : " for '", field->name, field->name[0] == '\0' ? "" : "'");
    }
    return PEN_OK;
}

pen_status pen_dataset_check_finite(const pen_dataset *dataset, const uint64_t *indices,
                                    uint64_t count, void *const *inputs, void *const *labels) {
    const pen_dataset_info *info = &dataset->info;
    for (uint32_t i = 0; i < info->input_count; i++) {
        PEN_TRY(dataset_check_field(dataset, &info->inputs[i], indices, count, inputs[i]));
    }
    for (uint32_t i = 0; labels != NULL && i < info->label_count; i++) {
        PEN_TRY(dataset_check_field(dataset, &info->labels[i], indices, count, labels[i]));
    }
    return PEN_OK;
}
