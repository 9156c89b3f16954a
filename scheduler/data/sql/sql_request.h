// What is read of a database: a query, and which of its columns are inputs and labels.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_DATA_SQL_SQL_REQUEST_H
#define PEN_SCHEDULER_DATA_SQL_SQL_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/data/sql/sql_target.h"

// What is read: an input or labels, of some columns.
typedef struct pen_sql_field {
    const char *name;
    bool is_label;
    const char *const *columns; // [column_count] names
    uint32_t column_count;
} pen_sql_field;

typedef struct pen_sql_request {
    const pen_sql_target *target;
    const char *query;
    const char *partition; // column that rows are ordered by; NULL: none
    uint32_t element;      // of numbers in bytes: a pen_npy_element and 1; 0: bytes are pictures
    const int64_t *shape;  // [shape_rank] of inputs that are numbers in bytes
    uint32_t shape_rank;   // 0: one dimension
    const pen_sql_field *fields; // [field_count]
    uint32_t field_count;
} pen_sql_request;

// A text that has all of the request, and, of a file, its size and time: requests of one text have
// one result, as far as that can be known. NOT_FOUND, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_sql_request_describe(const pen_sql_request *request, pen_arena *arena,
                                                  const char **out_text);

#endif // PEN_SCHEDULER_DATA_SQL_SQL_REQUEST_H
