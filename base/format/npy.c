#include "base/format/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/integer.h"

#define NPY_MAGIC "\x93NUMPY"
#define NPY_MAGIC_BYTES 6
#define NPY_DESCR_BYTES_LIMIT 32

typedef struct npy_element_facts {
    const char *descr; // without the byte order
    const char *name;
    uint32_t bytes;
} npy_element_facts;

// [pen_npy_element]
static const npy_element_facts npy_elements[] = {
    {"b1", "bool", 1},    {"u1", "uint8", 1},   {"i1", "int8", 1},    {"u2", "uint16", 2},
    {"i2", "int16", 2},   {"u4", "uint32", 4},  {"i4", "int32", 4},   {"i8", "int64", 8},
    {"f4", "float32", 4}, {"f8", "float64", 8}, {"f2", "float16", 2}, {"V2", "bfloat16", 2},
};
#define NPY_ELEMENT_COUNT (sizeof npy_elements / sizeof npy_elements[0])

// What is left to read of the header's text.
typedef struct npy_cursor {
    const char *at;
    const char *end;
    const char *path;
} npy_cursor;

uint64_t pen_npy_element_bytes(pen_npy_element element) {
    return npy_elements[element].bytes;
}

const char *pen_npy_element_name(pen_npy_element element) {
    return npy_elements[element].name;
}

static pen_status npy_corrupt(const npy_cursor *cursor, const char *expected) {
    return pen_error(PEN_CORRUPT, "'%s': the .npy header is malformed, expected %s", cursor->path,
                     expected);
}

static void npy_skip_spaces(npy_cursor *cursor) {
    while (cursor->at < cursor->end && (*cursor->at == ' ' || *cursor->at == '\n'))
        cursor->at++;
}

// Takes `wanted`, and spaces before it, if it is next.
static bool npy_take(npy_cursor *cursor, const char *wanted) {
    const size_t length = strlen(wanted);
    npy_skip_spaces(cursor);
    if ((size_t)(cursor->end - cursor->at) < length) return false;
    if (memcmp(cursor->at, wanted, length) != 0) return false;
    cursor->at += length;
    return true;
}

// A quoted string without escapes.
static pen_status npy_take_string(npy_cursor *cursor, char *out_text, size_t size) {
    npy_skip_spaces(cursor);
    if (cursor->at == cursor->end || (*cursor->at != '\'' && *cursor->at != '"')) {
        return npy_corrupt(cursor, "a quoted string");
    }
    const char quote = *cursor->at++;
    const char *close = memchr(cursor->at, quote, (size_t)(cursor->end - cursor->at));
    if (close == NULL) return npy_corrupt(cursor, "the end of a quoted string");
    const size_t length = (size_t)(close - cursor->at);
    if (length >= size || memchr(cursor->at, '\\', length) != NULL) {
        return npy_corrupt(cursor, "a short string");
    }
    memcpy(out_text, cursor->at, length);
    out_text[length] = '\0';
    cursor->at = close + 1;
    return PEN_OK;
}

// The element type of `descr`, such as '<f4'. Byte order counts only where an element has several
// bytes.
static pen_status npy_take_element(npy_cursor *cursor, pen_npy_element *out_element) {
    char descr[NPY_DESCR_BYTES_LIMIT];
    npy_skip_spaces(cursor);
    if (cursor->at < cursor->end && *cursor->at == '[') {
        return pen_error(PEN_UNSUPPORTED, "'%s': arrays of structured types are not supported",
                         cursor->path);
    }
    PEN_TRY(npy_take_string(cursor, descr, sizeof descr));
    const char order = descr[0];
    const char *kind =
        order == '<' || order == '>' || order == '|' || order == '=' ? descr + 1 : descr;
    for (size_t i = 0; i < NPY_ELEMENT_COUNT; i++) {
        if (strcmp(kind, npy_elements[i].descr) != 0) continue;
        if (order == '>' && npy_elements[i].bytes > 1) {
            return pen_error(PEN_UNSUPPORTED,
                             "'%s': the elements are big-endian ('%s'); save as '<%s'",
                             cursor->path, descr, kind);
        }
        *out_element = (pen_npy_element)i;
        return PEN_OK;
    }
    return pen_error(PEN_UNSUPPORTED,
                     "'%s': element type '%s' is not supported; there are bool, uint8, int8, "
                     "uint16, int16, uint32, int32, int64, float16, bfloat16 (V2), float32 and "
                     "float64",
                     cursor->path, descr);
}

static pen_status npy_take_dimension(npy_cursor *cursor, int64_t *out_dimension) {
    npy_skip_spaces(cursor);
    const char *start = cursor->at;
    int64_t dimension = 0;
    while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
        if (!pen_i64_mul(dimension, 10, &dimension) ||
            !pen_i64_add(dimension, *cursor->at - '0', &dimension)) {
            return npy_corrupt(cursor, "a dimension below 2^63");
        }
        cursor->at++;
    }
    if (cursor->at == start) return npy_corrupt(cursor, "a dimension or ')'");
    *out_dimension = dimension;
    return PEN_OK;
}

static pen_status npy_take_shape(npy_cursor *cursor, pen_npy_header *header) {
    if (!npy_take(cursor, "(")) return npy_corrupt(cursor, "'(' after 'shape':");
    while (!npy_take(cursor, ")")) {
        if (header->rank == PEN_RANK_LIMIT) {
            return pen_error(PEN_UNSUPPORTED, "'%s': the array has more than %d dimensions",
                             cursor->path, PEN_RANK_LIMIT);
        }
        PEN_TRY(npy_take_dimension(cursor, &header->shape[header->rank]));
        header->rank++;
        if (npy_take(cursor, ",")) continue;
        if (!npy_take(cursor, ")")) return npy_corrupt(cursor, "',' or ')' after a dimension");
        break;
    }
    return PEN_OK;
}

static pen_status npy_take_order(npy_cursor *cursor) {
    if (npy_take(cursor, "False")) return PEN_OK;
    if (!npy_take(cursor, "True")) return npy_corrupt(cursor, "True or False");
    return pen_error(PEN_UNSUPPORTED,
                     "'%s': the array is in Fortran order; save numpy.ascontiguousarray(it)",
                     cursor->path);
}

// {'descr': …, 'fortran_order': …, 'shape': …} in any order, each once.
static pen_status npy_take_dictionary(npy_cursor *cursor, pen_npy_header *header) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned seen = 0;
    if (!npy_take(cursor, "{")) return npy_corrupt(cursor, "'{'");
    while (!npy_take(cursor, "}")) {
        char key[NPY_DESCR_BYTES_LIMIT];
        PEN_TRY(npy_take_string(cursor, key, sizeof key));
        unsigned index = 0;
        while (index < 3 && strcmp(key, keys[index]) != 0)
            index++;
        if (index == 3 || (seen & 1u << index) != 0) {
            return npy_corrupt(cursor, "'descr', 'fortran_order' and 'shape', each once");
        }
        seen |= 1u << index;
        if (!npy_take(cursor, ":")) return npy_corrupt(cursor, "':' after a key");
        if (index == 0) PEN_TRY(npy_take_element(cursor, &header->element));
        if (index == 1) PEN_TRY(npy_take_order(cursor));
        if (index == 2) PEN_TRY(npy_take_shape(cursor, header));
        if (npy_take(cursor, ",")) continue;
        if (!npy_take(cursor, "}")) return npy_corrupt(cursor, "',' or '}' after a value");
        break;
    }
    if (seen != 7) return npy_corrupt(cursor, "'descr', 'fortran_order' and 'shape'");
    npy_skip_spaces(cursor);
    if (cursor->at != cursor->end) return npy_corrupt(cursor, "nothing after '}'");
    return PEN_OK;
}

// The bytes that the shape announces must be exactly those that follow the header: a file that was
// cut short, or has a wrong shape, is found before anything reads it.
static pen_status npy_measure(pen_npy_header *header, size_t size, const char *path) {
    uint64_t count = 1;
    bool empty = false;
    for (uint32_t i = 0; i < header->rank; i++) {
        if (header->shape[i] == 0) {
            empty = true;
        } else if (!pen_u64_mul(count, (uint64_t)header->shape[i], &count)) {
            return pen_error(PEN_CORRUPT, "'%s': the shape has more than 2^64 elements", path);
        }
    }
    header->element_count = empty ? 0 : count;
    const uint64_t there = size - header->data_offset;
    if (!pen_u64_mul(header->element_count, pen_npy_element_bytes(header->element),
                     &header->data_bytes) ||
        header->data_bytes != there) {
        return pen_error(PEN_CORRUPT,
                         "'%s': the header announces %" PRIu64 " elements of %s, but %" PRIu64
                         " bytes follow it",
                         path, header->element_count, pen_npy_element_name(header->element), there);
    }
    return PEN_OK;
}

size_t pen_npy_header_bytes(const void *bytes, size_t size) {
    const uint8_t *start = bytes;
    if (size < 12 || memcmp(start, NPY_MAGIC, NPY_MAGIC_BYTES) != 0) return 0;
    const size_t length = (size_t)start[8] | (size_t)start[9] << 8;
    if (start[NPY_MAGIC_BYTES] == 1) return 10 + length;
    return 12 + (length | (size_t)start[10] << 16 | (size_t)start[11] << 24);
}

// Versions 1, 2 and 3 differ in the size of the length field and in the header's text encoding
// only.
pen_status pen_npy_read_header(const void *bytes, size_t size, const char *path,
                               pen_npy_header *out_header) {
    const uint8_t *start = bytes;
    if (size < 10 || memcmp(start, NPY_MAGIC, NPY_MAGIC_BYTES) != 0) {
        return pen_error(PEN_CORRUPT,
                         "'%s' is not an .npy file: it does not begin with "
                         "\\x93NUMPY and a header",
                         path);
    }
    const unsigned version = start[NPY_MAGIC_BYTES];
    if (version < 1 || version > 3) {
        return pen_error(PEN_UNSUPPORTED, "'%s': .npy version %u, expected 1, 2 or 3", path,
                         version);
    }
    size_t text_offset = 10;
    size_t length = (size_t)start[8] | (size_t)start[9] << 8;
    if (version > 1) {
        if (size < 12) return pen_error(PEN_CORRUPT, "'%s': the .npy header is cut short", path);
        text_offset = 12;
        length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    if (length > size - text_offset) {
        return pen_error(PEN_CORRUPT,
                         "'%s': the .npy header has %zu bytes, but the file ends after %zu", path,
                         length, size - text_offset);
    }
    const char *text = (const char *)start + text_offset;
    npy_cursor cursor = {.at = text, .end = text + length, .path = path};
    pen_npy_header header = {.data_offset = text_offset + length};
    PEN_TRY(npy_take_dictionary(&cursor, &header));
    PEN_TRY(npy_measure(&header, size, path));
    *out_header = header;
    return PEN_OK;
}

// Version 1, padded with spaces to a multiple of 64 bytes as NumPy does, so that the data can be
// mapped aligned.
pen_status pen_npy_write_header(FILE *file, pen_npy_element element, uint32_t rank,
                                const int64_t *shape) {
    // the longest: 10 fixed bytes, 60 of keys, 8 dimensions of 19 digits and a comma
    char text[320];
    const char *order = npy_elements[element].bytes == 1 ? "|" : "<";
    PEN_ASSERT(rank <= PEN_RANK_LIMIT);
    int length = snprintf(text, sizeof text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                          order, npy_elements[element].descr);
    for (uint32_t i = 0; i < rank; i++) {
        PEN_ASSERT(shape[i] >= 0);
        length += snprintf(text + length, sizeof text - (size_t)length, "%" PRId64 "%s", shape[i],
                           rank == 1      ? ","
                           : i + 1 < rank ? ", "
                                          : "");
    }
    length += snprintf(text + length, sizeof text - (size_t)length, "), }");
    const size_t padded = pen_align_up(10 + (size_t)length + 1, 64) - 10;
    memset(text + length, ' ', padded - (size_t)length);
    text[padded - 1] = '\n';
    const uint8_t start[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)padded, (uint8_t)(padded >> 8)};
    if (fwrite(start, 1, sizeof start, file) != sizeof start ||
        fwrite(text, 1, padded, file) != padded) {
        return pen_error(PEN_IO, "cannot write an .npy header: %s", strerror(errno));
    }
    return PEN_OK;
}

pen_status pen_npy_write(FILE *file, pen_npy_element element, uint32_t rank, const int64_t *shape,
                         const void *data) {
    PEN_TRY(pen_npy_write_header(file, element, rank, shape));
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= (uint64_t)shape[i];
    const size_t bytes = pen_npy_element_bytes(element);
    if (fwrite(data, bytes, count, file) != count) {
        return pen_error(PEN_IO, "cannot write an .npy array: %s", strerror(errno));
    }
    return PEN_OK;
}
