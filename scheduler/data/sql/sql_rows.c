#include "scheduler/data/sql/sql_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "scheduler/data/image/image_decode.h"

// What the first row says of a field.
typedef struct rows_field {
    const pen_sql_field *field;
    pen_cache_field cache;
    uint32_t first_value; // of the row
    bool is_bytes;        // numbers that come as bytes
    uint64_t bytes;       // of an example of numbers
    uint8_t *numbers;     // [bytes] of several columns; NULL: one
} rows_field;

struct pen_sql_rows {
    const pen_sql_request *request;
    pen_arena *arena;
    rows_field *fields;    // [request->field_count]
    pen_sql_value *values; // [width]
    uint32_t width;
    int64_t before; // of the column that rows are ordered by, in the last row
};

// One array has the values of a row, field after field.
pen_status pen_sql_rows_new(const pen_sql_request *request, pen_arena *arena,
                            pen_sql_rows **out_rows) {
    pen_sql_rows *rows;
    uint32_t width = 0;
    PEN_TRY(PEN_NEW(arena, 1, &rows));
    PEN_TRY(PEN_NEW(arena, request->field_count, &rows->fields));
    for (uint32_t i = 0; i < request->field_count; i++) {
        rows->fields[i].field = &request->fields[i];
        rows->fields[i].first_value = width;
        width += request->fields[i].column_count;
    }
    if (request->partition != NULL) width += 1;
    if (width > PEN_SQL_COLUMNS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%" PRIu32 " columns are read, expected at most %d",
                         width, PEN_SQL_COLUMNS_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, width, &rows->values));
    rows->request = request;
    rows->arena = arena;
    rows->width = width;
    *out_rows = rows;
    return PEN_OK;
}

uint32_t pen_sql_rows_width(const pen_sql_rows *rows) {
    return rows->width;
}

pen_sql_value *pen_sql_rows_values(pen_sql_rows *rows) {
    return rows->values;
}

// ---- messages

// "an array of float32, 4 x 5": what a value is.
static void rows_describe(const pen_sql_value *value, char *text, size_t size) {
    int length;
    switch (value->kind) {
    case PEN_SQL_NULL:
        snprintf(text, size, "NULL");
        break;
    case PEN_SQL_OTHER:
        snprintf(text, size, "a value of type %s", value->type);
        break;
    case PEN_SQL_BYTES:
        snprintf(text, size, "%" PRIu64 " bytes", value->bytes);
        break;
    case PEN_SQL_NUMBERS:
        length = snprintf(text, size, "%s %s", value->rank == 0 ? "a number of" : "an array of",
                          pen_npy_element_name(value->element));
        for (uint32_t d = 0; d < value->rank && length > 0 && (size_t)length < size; d++) {
            length += snprintf(text + length, size - (size_t)length, "%s%" PRId64,
                               d == 0 ? ", " : " x ", value->shape[d]);
        }
        break;
    }
}

// Rows are counted from 1, as people count what a query gives.
static pen_status rows_refuse(const pen_sql_rows *rows, uint64_t row, const char *column,
                              const pen_sql_value *value, const char *expected) {
    char found[160];
    rows_describe(value, found, sizeof found);
    return pen_error(PEN_INVALID_INPUT,
                     "%s: row %" PRIu64 " has %s in the column '%s', expected %s",
                     rows->request->target->text, row + 1, found, column, expected);
}

// ---- the first row

static bool rows_is_integer(pen_npy_element element) {
    return element != PEN_NPY_FLOAT32 && element != PEN_NPY_FLOAT64;
}

// One column of numbers: they stay what they are.
static pen_status rows_begin_numbers(rows_field *field, const pen_sql_value *value) {
    pen_cache_field *cache = &field->cache;
    cache->element = value->element;
    cache->rank = value->rank;
    memcpy(cache->shape, value->shape, sizeof cache->shape);
    field->bytes = value->bytes;
    return PEN_OK;
}

// Several columns of numbers: of one type where all are; else whole numbers become int64, and all
// others float64.
static pen_status rows_begin_columns(pen_sql_rows *rows, rows_field *field,
                                     const pen_sql_value *values) {
    pen_cache_field *cache = &field->cache;
    const uint32_t count = field->field->column_count;
    bool are_whole = true, are_alike = true;
    for (uint32_t c = 0; c < count; c++) {
        if (values[c].kind != PEN_SQL_NUMBERS || values[c].rank != 0) {
            return rows_refuse(rows, 0, field->field->columns[c], &values[c],
                               "a number, as one of several columns");
        }
        are_whole = are_whole && rows_is_integer(values[c].element);
        are_alike = are_alike && values[c].element == values[0].element;
    }
    cache->element = are_alike ? values[0].element : are_whole ? PEN_NPY_INT64 : PEN_NPY_FLOAT64;
    cache->rank = 1;
    cache->shape[0] = count;
    field->bytes = count * pen_npy_element_bytes(cache->element);
    return PEN_NEW(rows->arena, field->bytes, &field->numbers);
}

// The elements of a tensor that comes as bytes.
static pen_status rows_begin_tensor(pen_sql_rows *rows, rows_field *field,
                                    const pen_sql_value *value) {
    const pen_sql_request *request = rows->request;
    const char *column = field->field->columns[0];
    pen_cache_field *cache = &field->cache;
    char expected[96];
    cache->element = (pen_npy_element)(request->element - 1);
    const uint64_t size = pen_npy_element_bytes(cache->element);
    uint64_t count = value->bytes / size;
    cache->rank = 1;
    if (request->shape_rank > 0 && !field->field->is_label) {
        cache->rank = request->shape_rank;
        count = 1;
        for (uint32_t d = 0; d < request->shape_rank; d++) {
            cache->shape[d] = request->shape[d];
            if (!pen_u64_mul(count, (uint64_t)request->shape[d], &count)) count = UINT64_MAX;
        }
    } else {
        cache->shape[0] = (int64_t)count;
    }
    field->is_bytes = true;
    field->bytes = value->bytes;
    if (count > 0 && count <= value->bytes && count * size == value->bytes) return PEN_OK;
    snprintf(expected, sizeof expected, "%" PRIu64 " numbers of %s, %" PRIu64 " bytes each",
             count == 0 ? 1 : count, pen_npy_element_name(cache->element), size);
    return rows_refuse(rows, 0, column, value, expected);
}

static pen_status rows_begin_field(pen_sql_rows *rows, rows_field *field) {
    const pen_sql_value *value = &rows->values[field->first_value];
    const char *column = field->field->columns[0];
    field->cache.name = field->field->name;
    field->cache.is_label = field->field->is_label;
    if (field->field->column_count > 1) return rows_begin_columns(rows, field, value);
    if (value->kind == PEN_SQL_NUMBERS && value->bytes > 0) return rows_begin_numbers(field, value);
    if (value->kind != PEN_SQL_BYTES) {
        return rows_refuse(rows, 0, column, value, "numbers, or bytes");
    }
    if (rows->request->element != 0) {
        return rows_begin_tensor(rows, field, value);
    }
    field->cache.is_pictures = pen_image_is(value->data, value->bytes);
    if (field->cache.is_pictures && !field->field->is_label) return PEN_OK;
    return rows_refuse(rows, 0, column, value,
                       "a " PEN_IMAGE_KINDS
                       " file; or say with 'element' what numbers the bytes are");
}

static pen_status rows_begin(pen_sql_rows *rows, pen_cache_writer *writer) {
    pen_cache_field fields[PEN_CACHE_FIELDS_LIMIT];
    for (uint32_t i = 0; i < rows->request->field_count; i++) {
        PEN_TRY(rows_begin_field(rows, &rows->fields[i]));
        fields[i] = rows->fields[i].cache;
    }
    return pen_cache_writer_begin(writer, fields, rows->request->field_count);
}

// ---- all rows

// A number, as a double or an integer, into the place of one of `element`.
static void rows_convert(const pen_sql_value *value, pen_npy_element element, uint8_t *out) {
    int64_t whole = 0;
    double real;
    switch (value->element) {
    case PEN_NPY_FLOAT64:
        memcpy(&real, value->data, sizeof real);
        break;
    case PEN_NPY_FLOAT32: {
        float number;
        memcpy(&number, value->data, sizeof number);
        real = (double)number;
        break;
    }
    default: // whole numbers, little-endian, signed but for bool
        memcpy(&whole, value->data, value->bytes);
        if (value->element != PEN_NPY_BOOL && value->bytes < 8) {
            const int shift = 64 - 8 * (int)value->bytes;
            whole = (int64_t)((uint64_t)whole << shift) >> shift;
        }
        real = (double)whole;
        break;
    }
    if (element == PEN_NPY_FLOAT64) {
        memcpy(out, &real, sizeof real);
    } else {
        memcpy(out, &whole, sizeof whole);
    }
}

// Each number is put at the place of its column, as the type that the first row gave the array.
static pen_status rows_take_columns(const pen_sql_rows *rows, const rows_field *field,
                                    uint64_t row) {
    const pen_cache_field *cache = &field->cache;
    const uint64_t size = pen_npy_element_bytes(cache->element);
    for (uint32_t c = 0; c < field->field->column_count; c++) {
        const pen_sql_value *value = &rows->values[field->first_value + c];
        const bool is_number = value->kind == PEN_SQL_NUMBERS && value->rank == 0;
        const bool is_same = is_number && value->element == cache->element;
        const bool fits =
            is_number && (cache->element == PEN_NPY_FLOAT64 ||
                          (cache->element == PEN_NPY_INT64 && rows_is_integer(value->element)));
        if (!is_same && !fits) {
            char expected[64];
            snprintf(expected, sizeof expected, "a number of %s, as in the first row",
                     pen_npy_element_name(cache->element));
            return rows_refuse(rows, row, field->field->columns[c], value, expected);
        }
        uint8_t *out = field->numbers + c * size;
        if (is_same) {
            memcpy(out, value->data, size);
        } else {
            rows_convert(value, cache->element, out);
        }
    }
    return PEN_OK;
}

// What stands in the first row, for a message about another.
static pen_status rows_refuse_other(const pen_sql_rows *rows, const rows_field *field,
                                    uint64_t row) {
    const pen_cache_field *cache = &field->cache;
    const pen_sql_value first = {.kind = field->is_bytes ? PEN_SQL_BYTES : PEN_SQL_NUMBERS,
                                 .element = cache->element,
                                 .rank = cache->rank,
                                 .bytes = field->bytes};
    pen_sql_value copy = first;
    char text[160], expected[200];
    memcpy(copy.shape, cache->shape, sizeof copy.shape);
    rows_describe(&copy, text, sizeof text);
    snprintf(expected, sizeof expected, "%s, as in the first row",
             cache->is_pictures ? "a " PEN_IMAGE_KINDS " file" : text);
    return rows_refuse(rows, row, field->field->columns[0], &rows->values[field->first_value],
                       expected);
}

// What is not as in the first row is refused, but for whole numbers among real ones of SQLite.
static pen_status rows_take_field(pen_sql_rows *rows, uint32_t index, pen_cache_writer *writer,
                                  uint64_t row) {
    const rows_field *field = &rows->fields[index];
    const pen_cache_field *cache = &field->cache;
    const pen_sql_value *value = &rows->values[field->first_value];
    if (field->numbers != NULL) {
        PEN_TRY(rows_take_columns(rows, field, row));
        return pen_cache_writer_add(writer, index, field->numbers, field->bytes);
    }
    uint8_t number[sizeof(double)];
    const void *data = value->data;
    bool fits;
    if (cache->is_pictures) {
        fits = value->kind == PEN_SQL_BYTES && pen_image_is(value->data, value->bytes);
    } else if (field->is_bytes) {
        fits = value->kind == PEN_SQL_BYTES && value->bytes == field->bytes;
    } else {
        fits = value->kind == PEN_SQL_NUMBERS && value->rank == cache->rank &&
               memcmp(value->shape, cache->shape, cache->rank * sizeof *cache->shape) == 0;
        if (fits && value->element != cache->element) { // SQLite has a type for each value
            fits = cache->element == PEN_NPY_FLOAT64 && value->rank == 0;
            if (fits) rows_convert(value, cache->element, number);
            data = number;
        }
    }
    if (!fits) return rows_refuse_other(rows, field, row);
    return pen_cache_writer_add(writer, index, data,
                                cache->is_pictures ? value->bytes : field->bytes);
}

// The order is whole only where no two rows have one number.
static pen_status rows_check_order(pen_sql_rows *rows, uint64_t row) {
    const pen_sql_value *value = &rows->values[rows->width - 1];
    const char *column = rows->request->partition;
    int64_t number = 0;
    if (column == NULL) return PEN_OK;
    if (value->kind != PEN_SQL_NUMBERS || value->rank != 0 || !rows_is_integer(value->element)) {
        return rows_refuse(rows, row, column, value, "a whole number, as rows are ordered by it");
    }
    rows_convert(value, PEN_NPY_INT64, (uint8_t *)&number);
    const bool is_behind = row == 0 || number > rows->before;
    rows->before = number;
    if (is_behind) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "%s: two rows have %" PRId64 " in the column '%s', expected a number for each "
                     "row, as they are ordered by it",
                     rows->request->target->text, number, column);
}

pen_status pen_sql_rows_take(pen_sql_rows *rows, pen_cache_writer *writer, uint64_t row) {
    if (row == 0) PEN_TRY(rows_begin(rows, writer));
    PEN_TRY(rows_check_order(rows, row));
    for (uint32_t i = 0; i < rows->request->field_count; i++) {
        PEN_TRY(rows_take_field(rows, i, writer, row));
    }
    return PEN_OK;
}
