// The contract of postgres_source.c and sqlite_source.c: what a database must be able to do. It
// names the columns of a query, and gives its rows one after another.
//
// A source is open, described, started, and then read. It reads in one transaction, which changes
// nothing.
//
// Lifetime: from pen_sql_source_open to pen_sql_source_close; the target outlives it.
// Threads:  one thread at a time.
#ifndef PEN_SCHEDULER_DATA_SQL_SQL_SOURCE_H
#define PEN_SCHEDULER_DATA_SQL_SQL_SOURCE_H

#include <stdbool.h>

#include "base/format/npy.h"
#include "scheduler/data/sql/sql_target.h"

#define PEN_SQL_COLUMNS_LIMIT 2048           // of a query
#define PEN_SQL_QUERY_BYTES_LIMIT (64 << 10) // of a query

typedef enum pen_sql_value_kind {
    PEN_SQL_NULL,
    PEN_SQL_NUMBERS, // one, or an array of them
    PEN_SQL_BYTES,
    PEN_SQL_OTHER,
} pen_sql_value_kind;

// A value of a row, until the next row is asked for.
typedef struct pen_sql_value {
    pen_sql_value_kind kind;
    pen_npy_element element; // NUMBERS
    uint32_t rank;           // NUMBERS: 0 for one
    int64_t shape[PEN_RANK_LIMIT];
    const void *data; // NUMBERS, as the machine has them; BYTES
    uint64_t bytes;
    const char *type; // OTHER: what it is: "text"
} pen_sql_value;

// A column that a query gives.
typedef struct pen_sql_column {
    const char *name;
    const char *cast;    // what is written behind it, so that it is a kind that is read: "::float8"
    const char *refused; // its type, where it cannot be read; NULL: it can
} pen_sql_column;

typedef struct pen_sql_source pen_sql_source;

typedef struct pen_sql_driver {
    size_t state_bytes; // of what begins with a pen_sql_source

    // Connects, and begins. UNAVAILABLE: it cannot be reached; NOT_FOUND: no such file, or the
    // library is not installed.
    PEN_NODISCARD pen_status (*open)(pen_sql_source *source);
    // The columns of a query. INVALID_INPUT: the database refuses it.
    PEN_NODISCARD pen_status (*describe)(pen_sql_source *source, const char *query,
                                         pen_arena *arena, pen_sql_column **out_columns,
                                         uint32_t *out_count);
    PEN_NODISCARD pen_status (*start)(pen_sql_source *source, const char *query,
                                      uint32_t column_count);
    // The next row, to out_values [column_count]; *out_is_row is false behind the last.
    // UNAVAILABLE: the connection was lost.
    PEN_NODISCARD pen_status (*next)(pen_sql_source *source, pen_sql_value *out_values,
                                     bool *out_is_row);
    // Also after an error of `open`.
    void (*close)(pen_sql_source *source);
} pen_sql_driver;

struct pen_sql_source {
    const pen_sql_driver *driver;
    const pen_sql_target *target;
};

extern const pen_sql_driver pen_sql_driver_postgres;
extern const pen_sql_driver pen_sql_driver_sqlite;

// The version of the library that a driver loads, "3.40.1", or "not found". Loads it. Good until
// the thread asks again. Threads: any.
const char *pen_libpq_version(void);
const char *pen_sqlite_version(void);

PEN_NODISCARD pen_status pen_sql_source_open(const pen_sql_target *target,
                                             pen_sql_source **out_source);
// Accepts NULL.
void pen_sql_source_close(pen_sql_source *source);

#endif // PEN_SCHEDULER_DATA_SQL_SQL_SOURCE_H
