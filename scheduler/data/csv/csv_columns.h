// What the columns of a table have: their names, and of those that hold words, which.
//
// Words are numbered in the order of their bytes, so that the numbers follow from which words there
// are, and not from their order in the file.
//
// Lifetime: lives in the arena given.
// Threads:  immutable once made.
#ifndef PEN_SCHEDULER_DATA_CSV_CSV_COLUMNS_H
#define PEN_SCHEDULER_DATA_CSV_CSV_COLUMNS_H

#include <locale.h>

#include "base/arena.h"
#include "base/name_map.h"
#include "scheduler/data/csv/csv_cursor.h"
#include "scheduler/data/dataset_options.h"

#define PEN_CSV_WORDS_LIMIT 65536     // of one column
#define PEN_CSV_WORD_BYTES 1024       // and its end
#define PEN_CSV_LOOKED_AT_LIMIT 65536 // columns that may have words, or a mean

typedef struct pen_csv_column {
    bool has_words; // else numbers
    uint32_t word_count;
    const char **words;  // [word_count], ascending
    pen_name_map places; // of words in these
    double mean;         // of numbers; 0 where there is none
} pen_csv_column;

typedef struct pen_csv_columns {
    uint64_t row_count;
    uint64_t count;           // fields in each line
    uint64_t label_index;     // UINT64_MAX: none
    uint64_t weight_index;    // that has weights of rows; UINT64_MAX: none
    const char *const *names; // [count]; NULL: no header
    pen_csv_column label;     // all zero where labels are numbers
    pen_csv_column *features; // [count], that of the labels unused; NULL: not looked at
} pen_csv_columns;

// Reads all of a table from its beginning, and leaves the cursor at the first row. Fields of
// columns are looked at where the options have a use for it.
//   INVALID_INPUT  lines differ in length; no rows; a bad label column; a column has words and
//                  numbers, or too many words; too many columns
//   NOT_FOUND      no column has the name; lists those there are
//   CANCELLED, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_csv_columns_read(pen_csv_cursor *cursor,
                                              const pen_dataset_options *options, locale_t locale,
                                              pen_arena *arena, pen_csv_columns *out_columns);

// Whether a column is a feature: neither labels nor weights.
bool pen_csv_columns_has(const pen_csv_columns *columns, uint64_t index);

// Takes away the column of the labels, so that the columns are those of a table without them. What
// is known of the labels stays.
void pen_csv_columns_drop_label(pen_csv_columns *columns);

// The number of the word in a field; word_count: it has none.
uint32_t pen_csv_column_find(const pen_csv_column *column, const pen_csv_field *field);

#endif // PEN_SCHEDULER_DATA_CSV_CSV_COLUMNS_H
