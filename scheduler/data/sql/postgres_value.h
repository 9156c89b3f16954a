// A value as PostgreSQL sends it in binary: big-endian numbers, and arrays of them.
//
//   array   dimensions (0 to 6), whether it has NULL, type; length and first index of each
//           dimension; for each element its length (-1: NULL) and bytes. All heads are int32.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_DATA_SQL_POSTGRES_VALUE_H
#define PEN_SCHEDULER_DATA_SQL_POSTGRES_VALUE_H

#include "scheduler/data/sql/sql_source.h"

typedef struct pen_postgres_type {
    uint32_t oid;
    uint32_t item; // of an array: the type of its elements; 0: it is none
    pen_sql_value_kind kind;
    pen_npy_element element;
    const char *cast; // "": it is read as it is; else: it is read as that
} pen_postgres_type;

// NULL: values of it are not read.
const pen_postgres_type *pen_postgres_type_find(uint32_t oid);

// Memory for the numbers of one value, which grows. All zero at first.
typedef struct pen_postgres_scratch {
    void *memory;
    uint64_t capacity;
} pen_postgres_scratch;

// Reads one value that is not NULL, of a type without a cast.
//   CORRUPT        it is not what its type says
//   INVALID_INPUT  an array with NULL in it
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_postgres_value_read(const pen_postgres_type *type, const void *bytes,
                                                 uint64_t length, pen_postgres_scratch *scratch,
                                                 pen_sql_value *out_value);

#endif // PEN_SCHEDULER_DATA_SQL_POSTGRES_VALUE_H
