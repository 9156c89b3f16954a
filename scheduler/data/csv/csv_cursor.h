// Where the reading of a table is: lines and their fields, as RFC 4180 has them.
//
// Lifetime: fields point into the text.
// Threads:  a cursor belongs to one thread at a time.
#ifndef PEN_SCHEDULER_DATA_CSV_CSV_CURSOR_H
#define PEN_SCHEDULER_DATA_CSV_CSV_CURSOR_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/system/long_read.h"

#define PEN_CSV_EXCERPT_BYTES 36 // of a field in a message, and of what ends it

typedef struct pen_csv_cursor {
    const char *at;
    const char *end;
    const char *line_start;
    uint64_t line; // from 1
    char delimiter;
    const char *path;
    const char *start;
    uint64_t before;         // bytes of the passes before
    pen_long_read *progress; // of all passes
} pen_csv_cursor;

typedef struct pen_csv_field {
    const char *bytes; // between the quotes, if there are any
    size_t length;
    bool quoted;
    bool last; // in its line
    uint64_t line;
    uint64_t column; // from 1
} pen_csv_field;

// At the beginning, behind a mark of byte order. A delimiter of 0 is a comma.
pen_csv_cursor pen_csv_cursor_start(const uint8_t *bytes, size_t size, const char *path,
                                    char delimiter, pen_long_read *progress);
// Skips empty lines. Whether a line is left.
bool pen_csv_has_line(pen_csv_cursor *cursor);
// The next field. INVALID_INPUT: a quote is not closed, a zero byte, a field without end; CANCELLED
PEN_NODISCARD pen_status pen_csv_take_field(pen_csv_cursor *cursor, pen_csv_field *field);

// Gives an error the place of a field.
pen_status pen_csv_error_at(const pen_csv_cursor *cursor, const pen_csv_field *field,
                            pen_status status);
// Whether it is a number; the decimal point is that of `locale`.
bool pen_csv_parse_number(const pen_csv_field *field, locale_t locale, double *out_number);
// Its beginning, fit to be shown.
void pen_csv_excerpt(const pen_csv_field *field, char out_text[PEN_CSV_EXCERPT_BYTES]);
// Its text, quotes written twice made one: length + 1 bytes at most.
void pen_csv_unquote(const pen_csv_field *field, char *out_text);

#endif // PEN_SCHEDULER_DATA_CSV_CSV_CURSOR_H
