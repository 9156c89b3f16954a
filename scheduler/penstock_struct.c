// Structs that grow, arrays and element types: from the program's form to ours and back.

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "graph/tensor_type.h"
#include "scheduler/penstock_state.h"

// No struct will ever be so large: a `struct_size` that was not set is found out before it is used.
#define STRUCT_BYTES_LIMIT 4096

static const pen_element_type struct_elements[] = {
    [PEN_ARRAY_BOOL] = PEN_BOOL,         [PEN_ARRAY_UINT8] = PEN_UINT8,
    [PEN_ARRAY_INT8] = PEN_INT8,         [PEN_ARRAY_UINT16] = PEN_UINT16,
    [PEN_ARRAY_INT16] = PEN_INT16,       [PEN_ARRAY_UINT32] = PEN_UINT32,
    [PEN_ARRAY_INT32] = PEN_INT32,       [PEN_ARRAY_UINT64] = PEN_UINT64,
    [PEN_ARRAY_INT64] = PEN_INT64,       [PEN_ARRAY_FLOAT16] = PEN_FLOAT16,
    [PEN_ARRAY_BFLOAT16] = PEN_BFLOAT16, [PEN_ARRAY_FLOAT32] = PEN_FLOAT32,
    [PEN_ARRAY_FLOAT64] = PEN_FLOAT64,
};
#define STRUCT_ELEMENT_COUNT (sizeof struct_elements / sizeof struct_elements[0])

pen_array_element pen_api_element(pen_element_type element) {
    uint32_t i = 0;
    while (i < STRUCT_ELEMENT_COUNT && struct_elements[i] != element) {
        i++;
    }
    PEN_ASSERT(i < STRUCT_ELEMENT_COUNT);
    return (pen_array_element)i;
}

static size_t struct_size_of(const void *object) {
    size_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

pen_status pen_api_check_report(const char *what, const void *report, size_t bytes) {
    const size_t size = struct_size_of(report);
    if (size > sizeof size && size <= STRUCT_BYTES_LIMIT) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "%s: struct_size is %zu, expected sizeof(%s), which is %zu in this version",
                     what, size, what, bytes);
}

// A program may be older, and lack members, or newer: what it says in members that are not known
// here must be nothing.
static pen_status struct_read(const char *what, const void *given, size_t bytes, void *out) {
    const size_t size = struct_size_of(given);
    const unsigned char *all = given;
    PEN_TRY(pen_api_check_report(what, given, bytes));
    for (size_t i = bytes; i < size; i++) {
        if (all[i] == 0) continue;
        return pen_error(PEN_UNSUPPORTED,
                         "%s: the program sets a member that version " PEN_VERSION " does not know",
                         what);
    }
    memset(out, 0, bytes);
    memcpy(out, given, size < bytes ? size : bytes);
    return PEN_OK;
}

void pen_api_fill_report(const void *from, size_t bytes, void *report) {
    const size_t size = struct_size_of(report);
    memset(report, 0, size);
    memcpy(report, from, size < bytes ? size : bytes);
    memcpy(report, &size, sizeof size);
}

pen_status pen_api_read_options(const pen_training_options *given,
                                pen_training_options *out_options) {
    *out_options = (pen_training_options){0};
    if (given == NULL) return PEN_OK;
    PEN_TRY(struct_read("pen_training_options", given, sizeof *out_options, out_options));
    if (out_options->continues && out_options->overwrites) {
        return pen_error(PEN_INVALID_INPUT, "found both `continues` and `overwrites`, expected one "
                                            "of them: checkpoints are gone on from, or forgotten");
    }
    return PEN_OK;
}

// What datasets know of; the others are only of parameters.
static pen_status struct_npy_element(const pen_array *array, pen_npy_element *out_element) {
    static const pen_npy_element elements[] = {
        [PEN_ARRAY_BOOL] = PEN_NPY_BOOL,       [PEN_ARRAY_UINT8] = PEN_NPY_UINT8,
        [PEN_ARRAY_INT8] = PEN_NPY_INT8,       [PEN_ARRAY_UINT16] = PEN_NPY_UINT16,
        [PEN_ARRAY_INT16] = PEN_NPY_INT16,     [PEN_ARRAY_UINT32] = PEN_NPY_UINT32,
        [PEN_ARRAY_INT32] = PEN_NPY_INT32,     [PEN_ARRAY_INT64] = PEN_NPY_INT64,
        [PEN_ARRAY_FLOAT32] = PEN_NPY_FLOAT32, [PEN_ARRAY_FLOAT64] = PEN_NPY_FLOAT64,
    };
    const uint32_t element = (uint32_t)array->element;
    if (element >= STRUCT_ELEMENT_COUNT) {
        return pen_error(PEN_INVALID_INPUT, "array '%s': element type %" PRIu32 " is none",
                         array->name, element);
    }
    if (array->element == PEN_ARRAY_UINT64 || array->element == PEN_ARRAY_FLOAT16 ||
        array->element == PEN_ARRAY_BFLOAT16) {
        return pen_error(PEN_UNSUPPORTED,
                         "array '%s' has elements of %s, expected bool, an integer of at most 63 "
                         "bits, float32 or float64",
                         array->name, pen_element_name(struct_elements[element]));
    }
    *out_element = elements[element];
    return PEN_OK;
}

// Shapes are checked here as those of files are when headers are read.
static pen_status struct_read_array(const pen_array *given, pen_arena *arena,
                                    pen_dataset_array *out_array) {
    pen_array array;
    PEN_TRY(struct_read("pen_array", given, sizeof array, &array));
    if (array.name == NULL) array.name = "";
    if (array.rank == 0 || array.rank > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "array '%s' has %" PRIu32
                         " dimensions, expected 1 to %d, of which the first counts examples",
                         array.name, array.rank, PEN_RANK_LIMIT);
    }
    uint64_t count = 1;
    bool fits = true;
    *out_array = (pen_dataset_array){.rank = array.rank, .data = array.data};
    for (uint32_t i = 0; i < array.rank; i++) {
        fits = fits && array.shape[i] >= 0 && pen_u64_mul(count, (uint64_t)array.shape[i], &count);
        out_array->shape[i] = array.shape[i];
    }
    if (!fits || count > PEN_TENSOR_BYTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "array '%s' has a dimension that is negative, or is "
                         "too large as a whole",
                         array.name);
    }
    if (array.data == NULL && count > 0) {
        return pen_error(PEN_INVALID_INPUT, "array '%s' has no data", array.name);
    }
    PEN_TRY(pen_arena_copy_text(arena, array.name, strlen(array.name), &out_array->name));
    return struct_npy_element(&array, &out_array->element);
}

pen_status pen_api_read_arrays(const pen_array *arrays, size_t count, pen_arena *arena,
                               pen_dataset_array **out_arrays) {
    pen_dataset_array *read;
    if (count > UINT32_MAX) return pen_error(PEN_INVALID_INPUT, "too many arrays");
    PEN_TRY(PEN_NEW(arena, count, &read));
    for (size_t i = 0; i < count; i++) { // as far apart as the program has them
        const void *at = (const char *)arrays + i * arrays->struct_size;
        PEN_TRY(struct_read_array(at, arena, &read[i]));
    }
    *out_arrays = read;
    return PEN_OK;
}

pen_status pen_api_open_job(const char *job_path, const pen_training_options *options,
                            pen_arena *arena, const pen_job **out_job) {
    pen_dataset_array *arrays;
    pen_job_origin origin = {
        .path = job_path, .text = options->job_text, .array_count = (uint32_t)options->array_count};
    PEN_TRY(pen_api_read_arrays(options->arrays, options->array_count, arena, &arrays));
    origin.arrays = arrays;
    if (options->job_text != NULL) {
        PEN_TRY(
            pen_arena_copy_text(arena, options->job_text, strlen(options->job_text), &origin.text));
    }
    return pen_job_open(&origin, arena, out_job);
}
