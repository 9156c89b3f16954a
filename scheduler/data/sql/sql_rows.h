// From the values of rows to the files of an array cache.
//
// Lifetime: in the arena given; the request outlives it.
// Threads:  one thread.
#ifndef PEN_SCHEDULER_DATA_SQL_SQL_ROWS_H
#define PEN_SCHEDULER_DATA_SQL_SQL_ROWS_H

#include "scheduler/data/cache/array_cache_writer.h"
#include "scheduler/data/sql/sql_request.h"
#include "scheduler/data/sql/sql_source.h"

typedef struct pen_sql_rows pen_sql_rows;

// OUT_OF_MEMORY; INVALID_INPUT: too many columns
PEN_NODISCARD pen_status pen_sql_rows_new(const pen_sql_request *request, pen_arena *arena,
                                          pen_sql_rows **out_rows);

// Values of a row: the columns of all fields in order, then the one that rows are ordered by.
uint32_t pen_sql_rows_width(const pen_sql_rows *rows);

// Where the values of the next row go. [pen_sql_rows_width]
pen_sql_value *pen_sql_rows_values(pen_sql_rows *rows);

// Adds them as row `row`. The first says what all must be, and begins the writer.
//   INVALID_INPUT  a value is not as it must be; names the row, the column, what was found and what
//                  is expected
//   IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_sql_rows_take(pen_sql_rows *rows, pen_cache_writer *writer,
                                           uint64_t row);

#endif // PEN_SCHEDULER_DATA_SQL_SQL_ROWS_H
