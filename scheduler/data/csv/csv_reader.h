// Tables of numbers as text: RFC 4180 with a free choice of delimiter.
//
// Lines end by "\n" or "\r\n"; empty ones are skipped. A field may be in double quotes, and then
// contain delimiters, line ends, and quotes written twice. Spaces around a field do not count.
// Fields are finite numbers, but those of the header. A label may also be a word, and a column of
// words become numbers where the options say how; so may empty fields.
//
// Threads: functions share nothing; a table is immutable.
#ifndef PEN_SCHEDULER_DATA_CSV_CSV_READER_H
#define PEN_SCHEDULER_DATA_CSV_CSV_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "scheduler/data/csv/csv_columns.h"
#include "scheduler/data/dataset.h"

// A file in memory.
typedef struct pen_csv_text {
    const uint8_t *bytes;
    size_t size;
    const char *path; // for messages
} pen_csv_text;

typedef struct pen_csv_table {
    uint64_t row_count;
    uint64_t column_count;          // without the label column; of words it may be several
    const char *const *names;       // [column_count], in the arena; NULL: no header
    float *values;                  // [row_count][column_count]
    double *labels;                 // [row_count]; NULL: no label column
    float *weights;                 // [row_count], at least 0; NULL: no weight column
    bool labels_are_whole;          // all of them whole numbers that double holds exactly
    const char *const *class_names; // [class_count] of labels that are words, in the arena; or NULL
    uint32_t class_count;
} pen_csv_table;

// Reads a whole file that is in memory; a long read says how far it is (base/system/long_read.h).
// From `options`: header, delimiter, label_column, weight_column, label_element, categories,
// missing. `known` are columns of another table, that of words_path, which says which words there
// are; NULL: this one. Errors have path, line and column. Free the table, which is empty after an
// error.
//   INVALID_INPUT  a field is not a finite number, lines differ in length, a quote is not closed,
//                  no rows or no columns, a bad label column index
//   NOT_FOUND      no column has the name; lists those there are
//   CANCELLED      the user wants the command to stop
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_csv_read(const pen_csv_text *text, const pen_dataset_options *options,
                                      const pen_csv_columns *known, pen_arena *arena,
                                      pen_csv_table *out_table);
// What its columns have, for another table. As pen_csv_read
PEN_NODISCARD pen_status pen_csv_read_columns(const pen_csv_text *text,
                                              const pen_dataset_options *options, pen_arena *arena,
                                              pen_csv_columns *out_columns);

// Accepts an empty table, and leaves one.
void pen_csv_table_free(pen_csv_table *table);

#endif // PEN_SCHEDULER_DATA_CSV_CSV_READER_H
