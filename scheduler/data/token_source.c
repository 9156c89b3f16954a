#include "scheduler/data/token_source.h"

#include <inttypes.h>
#include <string.h>

#include "base/format/npy.h"
#include "base/limits.h"
#include "base/memory.h"
#include "scheduler/data/gzip_reader.h"

#define TOKEN_SCRATCH_BYTES 16384

static uint64_t token_bytes(pen_token_element element) {
    switch (element) {
    case PEN_TOKEN_UINT8:
    case PEN_TOKEN_INT8:
        return 1;
    case PEN_TOKEN_AUTO:
    case PEN_TOKEN_UINT16:
    case PEN_TOKEN_INT16:
        return 2;
    case PEN_TOKEN_UINT32:
    case PEN_TOKEN_INT32:
        return 4;
    case PEN_TOKEN_INT64:
        return 8;
    }
    return 1;
}

// How many bytes are inside.
static pen_status token_inflated_size(const uint8_t *bytes, size_t size, const char *path,
                                      uint64_t *out_size) {
    static const uint64_t limit = PEN_TEXT_BYTES_LIMIT;
    uint8_t scratch[TOKEN_SCRATCH_BYTES];
    pen_gzip_reader *reader;
    PEN_TRY(pen_gzip_reader_open(bytes, size, path, &reader));
    pen_status status = PEN_OK;
    uint64_t total = 0;
    for (size_t count = sizeof scratch; count == sizeof scratch && total <= limit;) {
        status = pen_gzip_reader_read(reader, scratch, sizeof scratch, &count);
        if (status != PEN_OK) break;
        total += count;
    }
    pen_gzip_reader_close(reader);
    PEN_TRY(status);
    if (total > limit) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s' has more than %" PRIu64 " bytes inside, the most "
                         "that are inflated",
                         path, limit);
    }
    *out_size = total;
    return PEN_OK;
}

// It is inflated twice, which costs time and never more memory than what is inside.
static pen_status token_inflate(const uint8_t *bytes, size_t size, const char *path,
                                pen_token_source *source, void **out_inflated) {
    uint64_t length;
    pen_gzip_reader *reader;
    size_t count = 0;
    PEN_TRY(token_inflated_size(bytes, size, path, &length));
    PEN_TRY(pen_gzip_check_memory(path, length));
    uint8_t *inflated = pen_memory_allocate(length + 1, 1);
    if (inflated == NULL) return pen_error_out_of_memory();
    pen_status status = pen_gzip_reader_open(bytes, size, path, &reader);
    if (status == PEN_OK) {
        status = pen_gzip_reader_read(reader, inflated, length, &count);
        pen_gzip_reader_close(reader);
    }
    if (status != PEN_OK) {
        pen_memory_free(inflated);
        return status;
    }
    source->data = inflated;
    source->count = count;
    *out_inflated = inflated;
    return PEN_OK;
}

pen_status pen_token_source_read_text(const uint8_t *bytes, size_t size, const char *path,
                                      pen_token_source *out_source, void **out_inflated) {
    *out_inflated = NULL;
    *out_source =
        (pen_token_source){.path = path, .element = PEN_TOKEN_UINT8, .count = size, .data = bytes};
    if (!pen_gzip_is(bytes, size)) return PEN_OK;
    return token_inflate(bytes, size, path, out_source, out_inflated);
}

// The element type of an NPY file as tokens have it; numbers with a fraction are none.
static pen_status token_npy_element(pen_npy_element element, const char *path,
                                    pen_token_element *out_element) {
    switch (element) {
    case PEN_NPY_BOOL:
    case PEN_NPY_UINT8:
        *out_element = PEN_TOKEN_UINT8;
        return PEN_OK;
    case PEN_NPY_INT8:
        *out_element = PEN_TOKEN_INT8;
        return PEN_OK;
    case PEN_NPY_UINT16:
        *out_element = PEN_TOKEN_UINT16;
        return PEN_OK;
    case PEN_NPY_UINT32:
        *out_element = PEN_TOKEN_UINT32;
        return PEN_OK;
    case PEN_NPY_INT16:
        *out_element = PEN_TOKEN_INT16;
        return PEN_OK;
    case PEN_NPY_INT32:
        *out_element = PEN_TOKEN_INT32;
        return PEN_OK;
    case PEN_NPY_INT64:
        *out_element = PEN_TOKEN_INT64;
        return PEN_OK;
    case PEN_NPY_FLOAT32:
    case PEN_NPY_FLOAT64:
    case PEN_NPY_FLOAT16:
    case PEN_NPY_BFLOAT16:
        break;
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s' has elements of %s, expected tokens, which are whole "
                     "numbers",
                     path, pen_npy_element_name(element));
}

// `element` may say again what the file says itself.
static pen_status token_read_npy(const uint8_t *bytes, size_t size, const char *path,
                                 pen_token_element element, pen_token_source *out_source) {
    pen_npy_header header;
    PEN_TRY(pen_npy_read_header(bytes, size, path, &header));
    if (header.rank != 1) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has %" PRIu32 " dimensions, expected one: all tokens in a row", path,
                         header.rank);
    }
    *out_source = (pen_token_source){
        .path = path, .count = header.element_count, .data = bytes + header.data_offset};
    PEN_TRY(token_npy_element(header.element, path, &out_source->element));
    if (element == PEN_TOKEN_AUTO || element == out_source->element) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "'%s' is an NPY file of %s, but 'element' says otherwise; leave it out", path,
                     pen_npy_element_name(header.element));
}

// A file that begins as NPY says its own type; any other is little-endian numbers without a header.
pen_status pen_token_source_read_tokens(const uint8_t *bytes, size_t size, const char *path,
                                        pen_token_element element, pen_token_source *out_source) {
    static const uint8_t npy[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    if (size >= sizeof npy && memcmp(bytes, npy, sizeof npy) == 0) {
        return token_read_npy(bytes, size, path, element, out_source);
    }
    const uint64_t each = token_bytes(element);
    if (size % each != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has %zu bytes, which is no whole number of tokens of %" PRIu64
                         " bytes each; 'element' says how large they are",
                         path, size, each);
    }
    *out_source = (pen_token_source){
        .path = path,
        .element = element == PEN_TOKEN_AUTO ? PEN_TOKEN_UINT16 : element,
        .count = size / each,
        .data = bytes,
    };
    return PEN_OK;
}

// By memcpy: the data of a mapped file need not be aligned.
static int64_t token_load(const pen_token_source *source, uint64_t index) {
    const uint8_t *data = source->data;
    uint16_t two;
    uint32_t four;
    int64_t eight;
    switch (source->element) {
    case PEN_TOKEN_UINT8:
        return data[index];
    case PEN_TOKEN_INT8:
        return (int8_t)data[index];
    case PEN_TOKEN_AUTO:
    case PEN_TOKEN_UINT16:
    case PEN_TOKEN_INT16:
        memcpy(&two, data + index * sizeof two, sizeof two);
        return source->element == PEN_TOKEN_INT16 ? (int64_t)(int16_t)two : (int64_t)two;
    case PEN_TOKEN_UINT32:
    case PEN_TOKEN_INT32:
        memcpy(&four, data + index * sizeof four, sizeof four);
        return source->element == PEN_TOKEN_INT32 ? (int64_t)(int32_t)four : (int64_t)four;
    case PEN_TOKEN_INT64:
        memcpy(&eight, data + index * sizeof eight, sizeof eight);
        return eight;
    }
    return 0;
}

pen_status pen_token_source_copy(const pen_token_source *source, uint64_t first, uint64_t count,
                                 int64_t *out_tokens) {
    PEN_ASSERT(first <= source->count && count <= source->count - first);
    for (uint64_t i = 0; i < count; i++) {
        const int64_t token = token_load(source, first + i);
        if (token < 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "'%s': token %" PRIu64 " (counted from 0) is %" PRId64
                             ", expected none below 0",
                             source->path, first + i, token);
        }
        out_tokens[i] = token;
    }
    return PEN_OK;
}
