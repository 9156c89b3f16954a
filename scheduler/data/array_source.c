#include "scheduler/data/array_source.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/element.h"
#include "scheduler/data/dataset_format.h"

#define ARRAY_WHOLE_LIMIT 0x1p53 // beyond, not every double is a whole number of its own

static bool array_source_is_real(pen_npy_element element) {
    return element >= PEN_NPY_FLOAT32 && element <= PEN_NPY_BFLOAT16;
}

static bool array_source_is_byte(pen_npy_element element) {
    return element == PEN_NPY_UINT8 || element == PEN_NPY_BOOL;
}

// The field of one example, from the array's shape and the element type chosen.
static pen_status array_source_measure(pen_array_source *source, pen_dataset_element wanted,
                                       pen_dataset_field *field) {
    if (source->rank == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' is a single number, expected one entry for each example",
                         source->path);
    }
    source->wanted = wanted;
    field->element = wanted;
    field->rank = source->rank - 1;
    for (uint32_t i = 0; i < field->rank; i++)
        field->shape[i] = source->shape[i + 1];
    PEN_TRY(pen_dataset_field_measure(field, source->path));
    source->example_elements = field->element_count;
    source->example_bytes = field->element_count * pen_npy_element_bytes(source->element);
    return PEN_OK;
}

// Integers become int64, which embeddings take, but bytes become float32: they are pictures far
// more often. `wanted` says otherwise.
pen_status pen_array_source_open_inputs(pen_array_source *source,
                                        const pen_dataset_options *options,
                                        pen_dataset_element wanted, bool pictures, pen_arena *arena,
                                        pen_dataset_field *field) {
    const bool byte = array_source_is_byte(source->element);
    if (wanted == PEN_DATASET_AUTO) {
        wanted =
            byte || array_source_is_real(source->element) ? PEN_DATASET_FLOAT32 : PEN_DATASET_INT64;
    }
    if (wanted == PEN_DATASET_INT64 && array_source_is_real(source->element)) {
        return pen_error(PEN_UNSUPPORTED, "'%s' has elements of %s, but int64 is wanted",
                         source->path, pen_npy_element_name(source->element));
    }
    PEN_TRY(array_source_measure(source, wanted, field));
    if (pictures && field->rank == 2) {
        field->rank = 3;
        field->shape[2] = field->shape[1];
        field->shape[1] = field->shape[0];
        field->shape[0] = 1;
    }
    if (wanted == PEN_DATASET_FLOAT32) {
        const double scale = pictures && source->element == PEN_NPY_UINT8 ? 1.0 / 255 : 1;
        source->normalized = options->scale != 0 || scale != 1 || options->mean_count > 0 ||
                             options->deviation_count > 0;
        // without normalisation the table is the plain conversion of bytes
        const bool table = source->element == PEN_NPY_UINT8;
        PEN_TRY(
            pen_normalization_init(&source->normalization, options, field, scale, table, arena));
    }
    pen_dataset_field_flatten(field, options);
    return PEN_OK;
}

// Element `index`, as the bits of an unsigned number of its size.
static uint64_t array_source_load(const uint8_t *data, uint64_t index, uint64_t bytes,
                                  bool big_endian) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (bytes) {
    case 1:
        return data[index];
    case 2:
        memcpy(&two, data + index * 2, 2);
        return big_endian ? __builtin_bswap16(two) : two;
    case 4:
        memcpy(&four, data + index * 4, 4);
        return big_endian ? __builtin_bswap32(four) : four;
    default:
        memcpy(&eight, data + index * 8, 8);
        return big_endian ? __builtin_bswap64(eight) : eight;
    }
}

static double array_source_real(pen_npy_element element, uint64_t bits) {
    if (element == PEN_NPY_FLOAT16 || element == PEN_NPY_BFLOAT16) {
        const uint16_t half = (uint16_t)bits;
        return pen_element_read(element == PEN_NPY_FLOAT16 ? PEN_FLOAT16 : PEN_BFLOAT16, &half, 0);
    }
    if (element == PEN_NPY_FLOAT32) {
        const uint32_t low = (uint32_t)bits;
        float value;
        memcpy(&value, &low, sizeof value);
        return (double)value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// From the bits of one element, sign extended where its type has a sign.
static int64_t array_source_integer(pen_npy_element element, uint64_t bits) {
    switch (element) {
    case PEN_NPY_BOOL:
        return bits != 0;
    case PEN_NPY_UINT8:
    case PEN_NPY_UINT16:
    case PEN_NPY_UINT32:
        return (int64_t)bits;
    case PEN_NPY_INT8:
        return (int8_t)bits;
    case PEN_NPY_INT16:
        return (int16_t)bits;
    case PEN_NPY_INT32:
        return (int32_t)bits;
    case PEN_NPY_INT64:
        return (int64_t)bits;
    case PEN_NPY_FLOAT32:
    case PEN_NPY_FLOAT64:
    case PEN_NPY_FLOAT16:
    case PEN_NPY_BFLOAT16:
        break;
    }
    return (int64_t)array_source_real(element, bits); // whole: looked at when opened
}

static float array_source_float(pen_npy_element element, uint64_t bits) {
    if (array_source_is_real(element)) return (float)array_source_real(element, bits);
    return (float)array_source_integer(element, bits);
}

// One example. float32 in the machine's order, the common case, is copied.
static void array_source_convert(const pen_array_source *source, const uint8_t *data,
                                 void *out_elements) {
    const uint64_t count = source->example_elements;
    const uint64_t bytes = pen_npy_element_bytes(source->element);
    const bool big = source->big_endian;
    if (source->wanted == PEN_DATASET_INT64) {
        int64_t *integers = out_elements;
        for (uint64_t i = 0; i < count; i++) {
            integers[i] =
                array_source_integer(source->element, array_source_load(data, i, bytes, big));
        }
        return;
    }
    float *floats = out_elements;
    if (source->element == PEN_NPY_FLOAT32 && !big) {
        memcpy(floats, data, count * sizeof *floats);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        floats[i] = array_source_float(source->element, array_source_load(data, i, bytes, big));
    }
}

void pen_array_source_read(const pen_array_source *source, const uint64_t *indices, uint64_t count,
                           void *out_elements) {
    const uint64_t bytes = source->example_elements *
                           (source->wanted == PEN_DATASET_INT64 ? sizeof(int64_t) : sizeof(float));
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *data = source->data + indices[i] * source->example_bytes;
        void *out = (char *)out_elements + i * bytes;
        if (source->element == PEN_NPY_UINT8 && source->normalization.table != NULL) {
            pen_normalization_convert_bytes(&source->normalization, data, out);
            continue;
        }
        array_source_convert(source, data, out);
        if (source->normalized) pen_normalization_apply(&source->normalization, out);
    }
}

// Class indices that were saved as real numbers must be whole.
static pen_status array_source_check_whole(const pen_array_source *source) {
    const uint64_t bytes = pen_npy_element_bytes(source->element);
    const uint64_t count = (uint64_t)source->shape[0] * source->example_elements;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = array_source_load(source->data, i, bytes, source->big_endian);
        const double value = array_source_real(source->element, bits);
        if (value == trunc(value) && fabs(value) <= ARRAY_WHOLE_LIMIT) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': example %" PRIu64
                         " has the label %g, expected the index of a class",
                         source->path, i / source->example_elements, value);
    }
    return PEN_OK;
}

pen_status pen_array_source_open_labels(pen_array_source *source, pen_dataset_element wanted,
                                        pen_dataset_field *field) {
    const bool is_real = array_source_is_real(source->element);
    if (wanted == PEN_DATASET_AUTO) wanted = is_real ? PEN_DATASET_FLOAT32 : PEN_DATASET_INT64;
    PEN_TRY(array_source_measure(source, wanted, field));
    return is_real && wanted == PEN_DATASET_INT64 ? array_source_check_whole(source) : PEN_OK;
}
