// Weights of examples: where they come from, which there may be, and what the losses of some
// examples are scaled by.
#include <inttypes.h>
#include <math.h>

#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/data/dataset_format.h"

#define WEIGHTS_CHUNK 256 // read at a time

pen_status pen_dataset_make_weights(pen_dataset *dataset, const char *source) {
    dataset->weights = pen_memory_allocate(dataset->info.example_count, sizeof *dataset->weights);
    dataset->weight_source = source;
    return dataset->weights == NULL ? pen_error_out_of_memory() : PEN_OK;
}

static uint64_t weights_index(const pen_dataset *dataset, uint64_t example) {
    return dataset->subset == NULL ? example : dataset->subset[example];
}

// ---- where they come from

// All of them at once: a loader may ask for any example, and a number each takes little.
static pen_status weights_read(pen_dataset *from, pen_dataset *dataset) {
    const pen_dataset_info *info = pen_dataset_get_info(from);
    uint64_t indices[WEIGHTS_CHUNK];
    const uint64_t count = dataset->info.example_count;
    if (info->example_count != count || info->inputs[0].element_count != 1) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has %" PRIu64 " weights of %" PRIu64
                         " numbers, but there are %" PRIu64 " examples; expected one for each",
                         dataset->weight_source, info->example_count, info->inputs[0].element_count,
                         count);
    }
    for (uint64_t done = 0; done < count;) {
        const uint64_t now = pen_min_u64(count - done, WEIGHTS_CHUNK);
        for (uint64_t i = 0; i < now; i++)
            indices[i] = done + i;
        void *const places[] = {dataset->weights + done};
        PEN_TRY(pen_dataset_read(from, indices, now, places, NULL));
        done += now;
    }
    return PEN_OK;
}

// Files of weights are arrays of inputs with a number for each example; arrays of a program, too.
static pen_status weights_load(pen_dataset *dataset, const pen_dataset_options *options) {
    const bool are_arrays = dataset->format == &pen_dataset_format_arrays;
    pen_dataset_input *files;
    pen_dataset *from;
    PEN_TRY(PEN_NEW(dataset->arena, options->weight_file_count, &files));
    for (uint32_t i = 0; i < options->weight_file_count; i++) {
        files[i] = options->weight_files[i];
        files[i].element = PEN_DATASET_FLOAT32;
    }
    const pen_dataset_options wanted = {.format = are_arrays ? "arrays" : "npy",
                                        .inputs = files,
                                        .input_count = options->weight_file_count,
                                        .arrays = options->arrays,
                                        .array_count = options->array_count};
    PEN_TRY(pen_status_add_context(pen_dataset_open(&wanted, &from), "while reading the weights"));
    pen_status status = pen_arena_format(dataset->arena, &dataset->weight_source, "%s",
                                         options->weight_files[0].path);
    if (status == PEN_OK) status = pen_dataset_make_weights(dataset, dataset->weight_source);
    if (status == PEN_OK) status = weights_read(from, dataset);
    pen_dataset_close(from);
    return status;
}

pen_status pen_dataset_open_weights(pen_dataset *dataset, const pen_dataset_options *options) {
    if (options->weight_file_count > 0) PEN_TRY(weights_load(dataset, options));
    for (uint64_t i = 0; dataset->weights != NULL && i < dataset->info.example_count; i++) {
        if (isfinite(dataset->weights[i]) && dataset->weights[i] >= 0) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': the weight of example %" PRIu64
                         " (counted from 0) is %g, expected a number of at least 0",
                         dataset->weight_source, i, (double)dataset->weights[i]);
    }
    return PEN_OK;
}

// ---- what they make of losses

double pen_dataset_weight(const pen_dataset *dataset, uint64_t example) {
    if (dataset->weights == NULL) return 1;
    return (double)dataset->weights[weights_index(dataset, example)];
}

// Whether some of them count; an example that does not is named where none does.
static pen_status weights_check(const pen_dataset *dataset, const uint64_t *indices,
                                uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (pen_dataset_weight(dataset, indices[i]) > 0) return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT,
                     "'%s': the weights of all %" PRIu64 " examples of a step are 0, as of example "
                     "%" PRIu64 " (counted from 0); expected some above it: leave examples out "
                     "that do not count, or take a larger batch",
                     dataset->weight_source, count, weights_index(dataset, indices[0]));
}

pen_status pen_dataset_scale(const pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                             const pen_dataset_part_sum *of, float *out_scales) {
    const double scale = of->weight > 0 ? (double)of->example_count / of->weight : 0;
    if (dataset->weights != NULL && !of->is_whole) {
        PEN_TRY(weights_check(dataset, indices, count));
    }
    for (uint64_t i = 0; i < count; i++)
        out_scales[i] = (float)(pen_dataset_weight(dataset, indices[i]) * scale);
    return PEN_OK;
}
