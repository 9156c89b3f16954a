#include "scheduler/data/csv/csv_cursor.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

#define CSV_NUMBER_BYTES_LIMIT 64                  // a longer field is no number that anyone means
#define CSV_FIELD_BYTES_LIMIT ((ptrdiff_t)1 << 20) // of one field; a name may be long
#define CSV_EXACT_DIGITS 15                        // decimal digits that a double holds exactly
#define CSV_EXACT_POWER 22                         // largest power of ten of which that is so

pen_status pen_csv_error_at(const pen_csv_cursor *cursor, const pen_csv_field *field,
                            pen_status status) {
    return pen_status_at_position(status, cursor->path,
                                  (uint32_t)pen_min_u64(field->line, UINT32_MAX),
                                  (uint32_t)pen_min_u64(field->column, UINT32_MAX));
}

pen_csv_cursor pen_csv_cursor_start(const uint8_t *bytes, size_t size, const char *path,
                                    char delimiter, pen_long_read *progress) {
    const char *text = (const char *)bytes;
    const char *end = text + size;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3; // byte order mark
    return (pen_csv_cursor){.at = text,
                            .end = end,
                            .line_start = text,
                            .line = 1,
                            .delimiter = delimiter == 0 ? ',' : delimiter,
                            .path = path,
                            .start = text,
                            .progress = progress};
}

bool pen_csv_has_line(pen_csv_cursor *cursor) {
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

static void csv_skip_spaces(pen_csv_cursor *cursor) {
    while (cursor->at < cursor->end && csv_is_space(*cursor->at) &&
           *cursor->at != cursor->delimiter) {
        cursor->at++;
    }
}

// No text has a zero byte. A file with a hole has very many, so the first one ends the reading.
static pen_status csv_check_text(const pen_csv_cursor *cursor) {
    if (cursor->at == cursor->end || *cursor->at != '\0') return PEN_OK;
    const pen_csv_field here = {.line = cursor->line,
                                .column = (uint64_t)(cursor->at - cursor->line_start) + 1};
    return pen_csv_error_at(
        cursor, &here,
        pen_error(PEN_INVALID_INPUT, "a byte is zero: this is no text, or a file with a hole"));
}

// Where a field that begins here has to end: what has no delimiter for so long is no table, however
// long the file is.
static const char *csv_field_limit(const pen_csv_cursor *cursor) {
    return cursor->end - cursor->at > CSV_FIELD_BYTES_LIMIT ? cursor->at + CSV_FIELD_BYTES_LIMIT
                                                            : cursor->end;
}

static pen_status csv_check_limit(const pen_csv_cursor *cursor, const pen_csv_field *field,
                                  const char *limit) {
    if (cursor->at < limit || limit == cursor->end) return PEN_OK;
    return pen_csv_error_at(
        cursor, field,
        pen_error(PEN_INVALID_INPUT, "a field has more than %td bytes", CSV_FIELD_BYTES_LIMIT));
}

// The inside of a quoted field; the cursor is behind the first quote.
static pen_status csv_take_quoted(pen_csv_cursor *cursor, pen_csv_field *field) {
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
        return pen_csv_error_at(cursor, field,
                                pen_error(PEN_INVALID_INPUT, "a quoted field is not closed"));
    }
    field->length = (size_t)(cursor->at - field->bytes);
    cursor->at++;
    csv_skip_spaces(cursor);
    return PEN_OK;
}

static pen_status csv_take_plain(pen_csv_cursor *cursor, pen_csv_field *field) {
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
pen_status pen_csv_take_field(pen_csv_cursor *cursor, pen_csv_field *field) {
    PEN_TRY(pen_long_read_at(cursor->progress,
                             cursor->before + (uint64_t)(cursor->at - cursor->start)));
    csv_skip_spaces(cursor);
    *field = (pen_csv_field){.line = cursor->line,
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
        return pen_csv_error_at(cursor, field,
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

bool pen_csv_parse_number(const pen_csv_field *field, locale_t locale, double *out_number) {
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

void pen_csv_excerpt(const pen_csv_field *field, char out_text[PEN_CSV_EXCERPT_BYTES]) {
    const size_t room = PEN_CSV_EXCERPT_BYTES - sizeof "...";
    const size_t length = pen_min_u64(field->length, room);
    for (size_t i = 0; i < length; i++) {
        out_text[i] = field->bytes[i] < ' ' || field->bytes[i] == 127 ? '?' : field->bytes[i];
    }
    memcpy(out_text + length, length < field->length ? "..." : "", length < field->length ? 4 : 1);
}

void pen_csv_unquote(const pen_csv_field *field, char *out_text) {
    for (size_t i = 0; i < field->length; i++) {
        *out_text++ = field->bytes[i];
        if (field->quoted && field->bytes[i] == '"') i++;
    }
    *out_text = '\0';
}
