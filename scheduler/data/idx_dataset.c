#include "scheduler/data/idx_dataset.h"

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/system/file.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/gzip_reader.h"

#define IDX_HEADER_BYTES_LIMIT (4 + 4 * PEN_RANK_LIMIT)

typedef struct idx_file {
    pen_mapping file;
    void *inflated;
    pen_array_source source;
} idx_file;

typedef struct idx_state {
    idx_file images;
    idx_file labels;
} idx_state;

static pen_status idx_element(uint8_t type, const char *path, pen_npy_element *out_element) {
    static const struct {
        uint8_t type;
        pen_npy_element element;
    } elements[] = {
        {0x08, PEN_NPY_UINT8}, {0x09, PEN_NPY_INT8},    {0x0b, PEN_NPY_INT16},
        {0x0c, PEN_NPY_INT32}, {0x0d, PEN_NPY_FLOAT32}, {0x0e, PEN_NPY_FLOAT64},
    };
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        if (elements[i].type != type) continue;
        *out_element = elements[i].element;
        return PEN_OK;
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s': IDX element type 0x%02x, expected 0x08 (uint8), 0x09 (int8), 0x0b "
                     "(int16), 0x0c (int32), 0x0d (float32) or 0x0e (float64)",
                     path, type);
}

// The first four bytes: element type and rank.
static pen_status idx_read_start(const uint8_t start[4], const char *path,
                                 pen_array_source *source) {
    if (start[0] != 0 || start[1] != 0) {
        return pen_error(PEN_CORRUPT,
                         "'%s' is not an IDX file: it begins with bytes %02x %02x, expected 00 00",
                         path, start[0], start[1]);
    }
    PEN_TRY(idx_element(start[2], path, &source->element));
    source->rank = start[3];
    if (source->rank == 0 || source->rank > PEN_RANK_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "'%s': %" PRIu32 " dimensions, expected 1 to %d", path,
                         source->rank, PEN_RANK_LIMIT);
    }
    return PEN_OK;
}

static pen_status idx_read_shape(const uint8_t *bytes, const char *path, pen_array_source *source,
                                 uint64_t *out_bytes) {
    uint64_t count = pen_npy_element_bytes(source->element);
    for (uint32_t i = 0; i < source->rank; i++) {
        const uint8_t *at = bytes + (size_t)i * 4;
        const uint32_t dimension =
            (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
        source->shape[i] = dimension;
        if (!pen_u64_mul(count, dimension, &count) || count > PEN_TENSOR_BYTES_LIMIT) {
            return pen_error(PEN_CORRUPT,
                             "'%s': the dimensions announce more than %" PRIu64 " bytes", path,
                             (uint64_t)PEN_TENSOR_BYTES_LIMIT);
        }
    }
    *out_bytes = count;
    return PEN_OK;
}

static pen_status idx_cut_short(const char *path, const char *what, uint64_t expected,
                                uint64_t found) {
    return pen_error(PEN_CORRUPT, "'%s': %s: expected %" PRIu64 " bytes, found %" PRIu64, path,
                     what, expected, found);
}

static pen_status idx_read_plain(const uint8_t *bytes, size_t size, const char *path,
                                 pen_array_source *source) {
    if (size < 4) return idx_cut_short(path, "the IDX header is cut short", 4, size);
    PEN_TRY(idx_read_start(bytes, path, source));
    const size_t header = 4 + (size_t)source->rank * 4;
    if (size < header) return idx_cut_short(path, "the IDX header is cut short", header, size);
    uint64_t expected = 0;
    PEN_TRY(idx_read_shape(bytes + 4, path, source, &expected));
    if (size - header != expected) {
        return idx_cut_short(path, "the dimensions and the length of the file differ", expected,
                             size - header);
    }
    source->data = bytes + header;
    return PEN_OK;
}

static pen_status idx_inflate_header(pen_gzip_reader *reader, const char *path,
                                     pen_array_source *source, uint64_t *out_bytes) {
    uint8_t header[IDX_HEADER_BYTES_LIMIT];
    size_t count;
    PEN_TRY(pen_gzip_reader_read(reader, header, 4, &count));
    if (count < 4) return idx_cut_short(path, "the IDX header is cut short", 4, count);
    PEN_TRY(idx_read_start(header, path, source));
    const size_t rest = (size_t)source->rank * 4;
    PEN_TRY(pen_gzip_reader_read(reader, header + 4, rest, &count));
    if (count < rest) return idx_cut_short(path, "the IDX header is cut short", rest, count);
    return idx_read_shape(header + 4, path, source, out_bytes);
}

// The header says how much memory to take, but only as much as may be made of `size` compressed
// bytes. It becomes resident as they are read.
static pen_status idx_inflate(pen_gzip_reader *reader, size_t size, const char *path,
                              pen_array_source *source, uint8_t **inflated) {
    uint64_t expected = 0;
    size_t count;
    uint8_t beyond;
    PEN_TRY(idx_inflate_header(reader, path, source, &expected));
    if (expected / PEN_GZIP_RATIO_LIMIT > size) {
        return pen_error(PEN_CORRUPT,
                         "'%s': the dimensions announce %" PRIu64
                         " bytes, more than %zu compressed bytes can hold",
                         path, expected, size);
    }
    PEN_TRY(pen_gzip_check(path, size, expected));
    PEN_TRY(pen_gzip_check_memory(path, expected));
    *inflated = pen_memory_allocate_lazily(expected, 1);
    if (*inflated == NULL) return pen_error_out_of_memory();
    PEN_TRY(pen_gzip_reader_read(reader, *inflated, expected, &count));
    if (count < expected) return idx_cut_short(path, "the data is cut short", expected, count);
    PEN_TRY(pen_gzip_reader_read(reader, &beyond, 1, &count)); // checks the checksum, too
    if (count > 0) {
        return pen_error(PEN_CORRUPT,
                         "'%s': bytes are left over after the %" PRIu64
                         " that the dimensions announce",
                         path, expected);
    }
    source->data = *inflated;
    return PEN_OK;
}

pen_status pen_idx_read(const uint8_t *bytes, size_t size, const char *path,
                        pen_array_source *out_source, void **out_inflated) {
    *out_inflated = NULL;
    *out_source = (pen_array_source){.path = path, .big_endian = true};
    if (!pen_gzip_is(bytes, size)) return idx_read_plain(bytes, size, path, out_source);
    pen_gzip_reader *reader = NULL;
    uint8_t *inflated = NULL;
    PEN_TRY(pen_gzip_reader_open(bytes, size, path, &reader));
    const pen_status status = idx_inflate(reader, size, path, out_source, &inflated);
    pen_gzip_reader_close(reader);
    if (status != PEN_OK) {
        pen_memory_free(inflated);
        return status;
    }
    *out_inflated = inflated;
    return PEN_OK;
}

static pen_status idx_file_open(const char *path, pen_dataset *dataset, idx_file *file) {
    const char *kept;
    PEN_TRY(pen_arena_copy_text(dataset->arena, path, strlen(path), &kept));
    PEN_TRY(pen_mapping_open(kept, &file->file));
    PEN_TRY(
        pen_idx_read(file->file.bytes, file->file.length, kept, &file->source, &file->inflated));
    if (file->inflated == NULL) return PEN_OK;
    pen_mapping_close(&file->file);
    uint64_t bytes = pen_npy_element_bytes(file->source.element);
    for (uint32_t i = 0; i < file->source.rank; i++) {
        bytes *= (uint64_t)file->source.shape[i];
    }
    dataset->info.held_bytes += bytes;
    return PEN_OK;
}

static pen_status idx_open_labels(pen_dataset *dataset, const pen_dataset_options *options,
                                  idx_state *state) {
    pen_dataset_field *labels;
    PEN_TRY(PEN_NEW(dataset->arena, 1, &labels));
    labels->name = "labels";
    PEN_TRY(idx_file_open(options->labels, dataset, &state->labels));
    pen_array_source *source = &state->labels.source;
    PEN_TRY(pen_array_source_open_labels(source, options->label_element, labels));
    if (source->shape[0] != state->images.source.shape[0]) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has %" PRId64 " labels, but '%s' has %" PRId64 " examples",
                         source->path, source->shape[0], state->images.source.path,
                         state->images.source.shape[0]);
    }
    pen_dataset_set_labels(dataset, labels, source->path);
    return PEN_OK;
}

static pen_status idx_open(pen_dataset *dataset, const pen_dataset_options *options) {
    idx_state *state;
    pen_dataset_field *input;
    if (options->path == NULL) {
        return pen_error(PEN_INVALID_INPUT, "format idx needs the file of the images");
    }
    PEN_TRY(PEN_NEW(dataset->arena, 1, &state));
    dataset->state = state;
    PEN_TRY(pen_dataset_add_single_input(dataset, options, &input));
    PEN_TRY(idx_file_open(options->path, dataset, &state->images));
    pen_array_source *source = &state->images.source;
    PEN_TRY(pen_array_source_open_inputs(source, options, PEN_DATASET_FLOAT32, true, dataset->arena,
                                         input));
    dataset->info.example_count = (uint64_t)source->shape[0];
    return options->labels == NULL ? PEN_OK : idx_open_labels(dataset, options, state);
}

static pen_status idx_dataset_read(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                                   void *const *out_inputs, void *const *out_labels) {
    const idx_state *state = dataset->state;
    if (out_inputs[0] != NULL) {
        pen_array_source_read(&state->images.source, indices, count, out_inputs[0]);
    }
    if (out_labels[0] != NULL) {
        pen_array_source_read(&state->labels.source, indices, count, out_labels[0]);
    }
    return PEN_OK;
}

static void idx_file_close(idx_file *file) {
    pen_mapping_close(&file->file);
    pen_memory_free(file->inflated);
}

static void idx_close(pen_dataset *dataset) {
    idx_state *state = dataset->state;
    if (state == NULL) return;
    idx_file_close(&state->images);
    idx_file_close(&state->labels);
}

const pen_dataset_format pen_dataset_format_idx = {
    .name = "idx",
    .open = idx_open,
    .read = idx_dataset_read,
    .close = idx_close,
};
