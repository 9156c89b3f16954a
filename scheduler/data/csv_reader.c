#include "scheduler/data/csv_reader.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/system/long_read.h"
#include "base/text.h"

#define CSV_NUMBER_BYTES_LIMIT 64                  // a longer field is no number that anyone means
#define CSV_FIELD_BYTES_LIMIT ((ptrdiff_t)1 << 20) // of one field; a name may be long
#define CSV_EXCERPT_BYTES 32                       // of a field, in a message
#define CSV_NAMES_SHOWN 12                         // of columns, in a message
#define CSV_NAMES_BYTES 200                        // a wrong delimiter makes one name of all
#define CSV_EXACT_DIGITS 15                        // decimal digits that a double holds exactly
#define CSV_EXACT_POWER 22 // largest power of ten that a double holds exactly
#define CSV_WHOLE_LIMIT 0x1p53

// Where in the text reading is.
typedef struct csv_cursor {
    const char *at;
    const char *end;
    const char *line_start;
    uint64_t line; // from 1
    char delimiter;
    const char *path;
    const char *start;
    uint64_t before;         // bytes of the pass before
    pen_long_read *progress; // of both
} csv_cursor;

typedef struct csv_field {
    const char *bytes; // between the quotes, if there are any
    size_t length;
    bool quoted;
    bool last; // in its line
    uint64_t line;
    uint64_t column; // from 1
} csv_field;

typedef struct csv_layout {
    uint64_t row_count;
    uint64_t field_count; // in each line
    uint64_t label_index; // UINT64_MAX: none
    bool header;
    locale_t locale; // the decimal point is a point, whatever the program's language
} csv_layout;

static pen_status csv_error_at(const csv_cursor *cursor, const csv_field *field,
                               pen_status status) {
    return pen_status_at_position(status, cursor->path,
                                  (uint32_t)pen_min_u64(field->line, UINT32_MAX),
                                  (uint32_t)pen_min_u64(field->column, UINT32_MAX));
}

static csv_cursor csv_cursor_start(const uint8_t *bytes, size_t size, const char *path,
                                   char delimiter, pen_long_read *progress) {
    const char *text = (const char *)bytes;
    const char *end = text + size;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3; // byte order mark
    return (csv_cursor){.at = text,
                        .end = end,
                        .line_start = text,
                        .line = 1,
                        .delimiter = delimiter == 0 ? ',' : delimiter,
                        .path = path,
                        .start = text,
                        .progress = progress};
}

// Skips empty lines. Whether a line is left.
static bool csv_has_line(csv_cursor *cursor) {
    while (cursor->at < cursor->end) {
        const bool carriage = *cursor->at == '\r' && cursor->end - cursor->at > 1;
        const char first = carriage ? cursor->at[1] : *cursor->at;
        if (first != '\n') return true;
        cursor->at += carriage ? 2 : 1;
        cursor->line++;
        cursor->line_start = cursor->at;
    }
    return false;
}

static bool csv_is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static void csv_skip_spaces(csv_cursor *cursor) {
    while (cursor->at < cursor->end && csv_is_space(*cursor->at) &&
           *cursor->at != cursor->delimiter) {
        cursor->at++;
    }
}

// No text has a zero byte. A file with a hole has very many, so the first one ends the reading.
static pen_status csv_check_text(const csv_cursor *cursor) {
    if (cursor->at == cursor->end || *cursor->at != '\0') return PEN_OK;
    const csv_field here = {.line = cursor->line,
                            .column = (uint64_t)(cursor->at - cursor->line_start) + 1};
    return csv_error_at(
        cursor, &here,
        pen_error(PEN_INVALID_INPUT, "a byte is zero: this is no text, or a file with a hole"));
}

// Where a field that begins here has to end: what has no delimiter for so long is no table, however
// long the file is.
static const char *csv_field_limit(const csv_cursor *cursor) {
    return cursor->end - cursor->at > CSV_FIELD_BYTES_LIMIT ? cursor->at + CSV_FIELD_BYTES_LIMIT
                                                            : cursor->end;
}

static pen_status csv_check_limit(const csv_cursor *cursor, const csv_field *field,
                                  const char *limit) {
    if (cursor->at < limit || limit == cursor->end) return PEN_OK;
    return csv_error_at(
        cursor, field,
        pen_error(PEN_INVALID_INPUT, "a field has more than %td bytes", CSV_FIELD_BYTES_LIMIT));
}

// The inside of a quoted field; the cursor is behind the first quote.
static pen_status csv_take_quoted(csv_cursor *cursor, csv_field *field) {
    const char *limit = csv_field_limit(cursor);
    field->quoted = true;
    field->bytes = cursor->at;
    for (; cursor->at < limit && *cursor->at != '\0'; cursor->at++) {
        if (*cursor->at == '\n') {
            cursor->line++;
            cursor->line_start = cursor->at + 1;
        }
        if (*cursor->at != '"') continue;
        if (limit - cursor->at == 1 || cursor->at[1] != '"') break;
        cursor->at++;
    }
    PEN_TRY(csv_check_text(cursor));
    PEN_TRY(csv_check_limit(cursor, field, limit));
    if (cursor->at == cursor->end) {
        return csv_error_at(cursor, field,
                            pen_error(PEN_INVALID_INPUT, "a quoted field is not closed"));
    }
    field->length = (size_t)(cursor->at - field->bytes);
    cursor->at++;
    csv_skip_spaces(cursor);
    return PEN_OK;
}

static pen_status csv_take_plain(csv_cursor *cursor, csv_field *field) {
    const char *limit = csv_field_limit(cursor);
    field->bytes = cursor->at;
    while (cursor->at < limit && *cursor->at != cursor->delimiter && *cursor->at != '\n' &&
           *cursor->at != '\0') {
        cursor->at++;
    }
    field->length = (size_t)(cursor->at - field->bytes);
    while (field->length > 0 && csv_is_space(field->bytes[field->length - 1]))
        field->length--;
    PEN_TRY(csv_check_limit(cursor, field, limit));
    return csv_check_text(cursor);
}

// A field knows its line and column for messages. A quoted one may hold the delimiter and line
// ends.
static pen_status csv_take_field(csv_cursor *cursor, csv_field *field) {
    PEN_TRY(pen_long_read_at(cursor->progress,
                             cursor->before + (uint64_t)(cursor->at - cursor->start)));
    csv_skip_spaces(cursor);
    *field = (csv_field){.line = cursor->line,
                         .column = (uint64_t)(cursor->at - cursor->line_start) + 1};
    if (cursor->at < cursor->end && *cursor->at == '"') {
        cursor->at++;
        PEN_TRY(csv_take_quoted(cursor, field));
    } else {
        PEN_TRY(csv_take_plain(cursor, field));
    }
    if (cursor->at == cursor->end) {
        field->last = true;
    } else if (*cursor->at == '\n') {
        field->last = true;
        cursor->at++;
        cursor->line++;
        cursor->line_start = cursor->at;
    } else if (*cursor->at == cursor->delimiter) {
        cursor->at++;
    } else {
        return csv_error_at(cursor, field,
                            pen_error(PEN_INVALID_INPUT,
                                      "a quoted field is followed by more text, expected '%c'",
                                      cursor->delimiter));
    }
    return PEN_OK;
}

// Plain decimals of few digits: their value is the quotient of two exact doubles, so correctly
// rounded. Everything else is left to strtod.
static bool csv_parse_short(const char *text, size_t length, double *out_number) {
    static const double powers[CSV_EXACT_POWER + 1] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool negative = length > 0 && text[0] == '-';
    uint64_t digits = 0;
    size_t digit_count = 0, fraction_count = 0;
    bool point = false;
    for (size_t i = negative ? 1 : 0; i < length; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || digit_count == CSV_EXACT_DIGITS) return false;
        digits = digits * 10 + (uint64_t)(text[i] - '0');
        digit_count++;
        fraction_count += point;
    }
    if (digit_count == 0) return false;
    const double number = (double)digits / powers[fraction_count];
    *out_number = negative ? -number : number;
    return true;
}

static bool csv_parse_number(const csv_field *field, locale_t locale, double *out_number) {
    if (csv_parse_short(field->bytes, field->length, out_number)) return true;
    char text[CSV_NUMBER_BYTES_LIMIT];
    if (field->length == 0 || field->length >= sizeof text) return false;
    for (size_t i = 0; i < field->length; i++) {
        const char c = field->bytes[i];
        if (!(c >= '0' && c <= '9') && memchr("+-.eE", c, 5) == NULL) return false;
    }
    memcpy(text, field->bytes, field->length);
    text[field->length] = '\0';
    char *end;
    *out_number = strtod_l(text, &end, locale);
    return end == text + field->length;
}

static pen_status csv_not_a_number(const csv_cursor *cursor, const csv_field *field) {
    char excerpt[CSV_EXCERPT_BYTES + 1];
    const size_t length = pen_min_u64(field->length, CSV_EXCERPT_BYTES);
    for (size_t i = 0; i < length; i++) {
        excerpt[i] = field->bytes[i] < ' ' || field->bytes[i] == 127 ? '?' : field->bytes[i];
    }
    excerpt[length] = '\0';
    return csv_error_at(cursor, field,
                        field->length == 0
                            ? pen_error(PEN_INVALID_INPUT, "a field is empty, expected a number")
                            : pen_error(PEN_INVALID_INPUT, "'%s%s' is not a number", excerpt,
                                        length < field->length ? "..." : ""));
}

// Counts the fields of a line; `out_numbers` says whether all are numbers.
static pen_status csv_scan_line(csv_cursor *cursor, locale_t locale, uint64_t *out_count,
                                bool *out_numbers) {
    csv_field field = {0};
    uint64_t count = 0;
    bool numbers = true;
    do {
        double number;
        PEN_TRY(csv_take_field(cursor, &field));
        if (out_numbers != NULL) numbers = numbers && csv_parse_number(&field, locale, &number);
        count++;
    } while (!field.last);
    *out_count = count;
    if (out_numbers != NULL) *out_numbers = numbers;
    return PEN_OK;
}

// First pass: how many rows of how many fields, so that memory is taken once.
static pen_status csv_measure(csv_cursor cursor, pen_dataset_header header, csv_layout *layout) {
    bool numbers;
    if (!csv_has_line(&cursor)) return pen_error(PEN_INVALID_INPUT, "'%s' is empty", cursor.path);
    PEN_TRY(csv_scan_line(&cursor, layout->locale, &layout->field_count, &numbers));
    layout->header =
        header == PEN_DATASET_HEADER_YES || (header == PEN_DATASET_HEADER_AUTO && !numbers);
    layout->row_count = layout->header ? 0 : 1;
    while (csv_has_line(&cursor)) {
        const csv_field start = {.line = cursor.line, .column = 1};
        uint64_t count;
        PEN_TRY(csv_scan_line(&cursor, layout->locale, &count, NULL));
        if (count != layout->field_count) {
            return csv_error_at(&cursor, &start,
                                pen_error(PEN_INVALID_INPUT,
                                          "the line has %" PRIu64 " fields, expected %" PRIu64
                                          " as in the first",
                                          count, layout->field_count));
        }
        layout->row_count++;
    }
    if (layout->row_count > 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "'%s' has a header, but no rows", cursor.path);
}

// The text of a field, quotes written twice made one.
static pen_status csv_copy_name(const csv_field *field, pen_arena *arena, const char **out_name) {
    char *name;
    size_t length = 0;
    PEN_TRY(PEN_NEW(arena, field->length + 1, &name));
    for (size_t i = 0; i < field->length; i++) {
        name[length++] = field->bytes[i];
        if (field->quoted && field->bytes[i] == '"') i++;
    }
    *out_name = name;
    return PEN_OK;
}

static pen_status csv_read_names(csv_cursor *cursor, const csv_layout *layout, pen_arena *arena,
                                 const char ***out_names) {
    const char **names;
    PEN_TRY(PEN_NEW(arena, layout->field_count, &names));
    for (uint64_t i = 0; i < layout->field_count; i++) {
        csv_field field;
        PEN_TRY(csv_take_field(cursor, &field));
        PEN_TRY(csv_copy_name(&field, arena, &names[i]));
    }
    *out_names = names;
    return PEN_OK;
}

static pen_status csv_no_column(const char *path, const char *wanted, const char *const *names,
                                uint64_t count, pen_arena *arena) {
    pen_text text;
    const char *list;
    pen_text_init(&text, arena);
    pen_text_add_names(&text, wanted, names, count, CSV_NAMES_SHOWN);
    PEN_TRY(pen_text_finish(&text, &list));
    return pen_error(PEN_NOT_FOUND, "'%s': no column is called '%s'; there are %.*s%s", path,
                     wanted, CSV_NAMES_BYTES, list, strlen(list) > CSV_NAMES_BYTES ? "…" : "");
}

// `wanted` is a name, else an index from the start or, negative, from the end.
static pen_status csv_find_label(const char *path, const char *wanted, const char *const *names,
                                 csv_layout *layout, pen_arena *arena) {
    const uint64_t count = layout->field_count;
    for (uint64_t i = 0; names != NULL && i < count; i++) {
        if (strcmp(names[i], wanted) != 0) continue;
        layout->label_index = i;
        return PEN_OK;
    }
    const bool negative = wanted[0] == '-';
    const char *digits = wanted + (negative ? 1 : 0);
    const size_t length = strlen(digits);
    if (length == 0 || length > 9 || strspn(digits, "0123456789") != length) {
        if (names != NULL) return csv_no_column(path, wanted, names, count, arena);
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' has no header, so the label column must be an index, not '%s'", path,
                         wanted);
    }
    const uint64_t index = strtoull(digits, NULL, 10);
    if (negative ? index == 0 || index > count : index >= count) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': the label column is %s, expected 0 to %" PRIu64
                         ", or -1 to -%" PRIu64,
                         path, wanted, count - 1, count);
    }
    layout->label_index = negative ? count - index : index;
    return PEN_OK;
}

// Numbers are parsed in a locale of their own, since the process's may have a decimal comma.
static pen_status csv_read_row(csv_cursor *cursor, const csv_layout *layout, float *out_values,
                               double *out_label) {
    for (uint64_t i = 0; i < layout->field_count; i++) {
        csv_field field;
        double number;
        PEN_TRY(csv_take_field(cursor, &field));
        if (!csv_parse_number(&field, layout->locale, &number)) {
            return csv_not_a_number(cursor, &field);
        }
        if (!isfinite((float)number)) {
            return csv_error_at(
                cursor, &field,
                pen_error(PEN_INVALID_INPUT, "%g is beyond the range of float32", number));
        }
        if (i == layout->label_index) {
            *out_label = number;
        } else {
            *out_values++ = (float)number;
        }
    }
    return PEN_OK;
}

// Second pass.
static pen_status csv_read_rows(csv_cursor *cursor, const csv_layout *layout,
                                pen_csv_table *table) {
    size_t value_count;
    if (!pen_size_mul(table->row_count, table->column_count, &value_count)) {
        return pen_error_out_of_memory();
    }
    table->values = pen_memory_allocate(value_count, sizeof *table->values);
    if (table->values == NULL) return pen_error_out_of_memory();
    if (layout->label_index != UINT64_MAX) {
        table->labels = pen_memory_allocate(table->row_count, sizeof *table->labels);
        if (table->labels == NULL) return pen_error_out_of_memory();
    }
    table->labels_are_whole = true;
    for (uint64_t i = 0; i < table->row_count && csv_has_line(cursor); i++) {
        double label = 0;
        PEN_TRY(csv_read_row(cursor, layout, table->values + i * table->column_count, &label));
        if (table->labels != NULL) table->labels[i] = label;
        if (label != trunc(label) || fabs(label) > CSV_WHOLE_LIMIT) {
            table->labels_are_whole = false;
        }
    }
    return PEN_OK;
}

// Measured first, then read into memory of the right size. The label column is taken out of the
// others.
static pen_status csv_read(csv_cursor cursor, const pen_dataset_options *options,
                           csv_layout *layout, pen_arena *arena, pen_csv_table *table) {
    const char **names = NULL;
    PEN_TRY(csv_measure(cursor, options->header, layout));
    cursor.before = (uint64_t)(cursor.end - cursor.start);
    if (layout->header && csv_has_line(&cursor)) {
        PEN_TRY(csv_read_names(&cursor, layout, arena, &names));
    }
    if (options->label_column != NULL) {
        PEN_TRY(csv_find_label(cursor.path, options->label_column, (const char *const *)names,
                               layout, arena));
    }
    const bool labels = layout->label_index != UINT64_MAX;
    table->row_count = layout->row_count;
    table->column_count = layout->field_count - labels;
    if (table->column_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "'%s' has no column but the labels", cursor.path);
    }
    PEN_TRY(csv_read_rows(&cursor, layout, table));
    if (labels && names != NULL) { // the names of the other columns close up
        memmove(&names[layout->label_index], &names[layout->label_index + 1],
                (table->column_count - layout->label_index) * sizeof *names);
    }
    table->names = names;
    return PEN_OK;
}

pen_status pen_csv_read(const uint8_t *bytes, size_t size, const char *path,
                        const pen_dataset_options *options, pen_arena *arena,
                        pen_csv_table *out_table) {
    csv_layout layout = {.label_index = UINT64_MAX};
    *out_table = (pen_csv_table){0};
    if (options->delimiter != 0 && strchr("\"\r\n0123456789+-.eE", options->delimiter) != NULL) {
        return pen_error(PEN_INVALID_INPUT, "the delimiter cannot be '%c'", options->delimiter);
    }
    layout.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (layout.locale == (locale_t)0) return pen_error_out_of_memory();
    pen_long_read progress;
    pen_long_read_begin(&progress, "reading", path, 2 * (uint64_t)size);
    const csv_cursor cursor = csv_cursor_start(bytes, size, path, options->delimiter, &progress);
    const pen_status status = csv_read(cursor, options, &layout, arena, out_table);
    pen_long_read_end(&progress);
    freelocale(layout.locale);
    if (status != PEN_OK) pen_csv_table_free(out_table);
    return status;
}

void pen_csv_table_free(pen_csv_table *table) {
    pen_memory_free(table->values);
    pen_memory_free(table->labels);
    *table = (pen_csv_table){0};
}
