// Reads a query once, into an array cache.
//
//   inputs   a column of numbers, of arrays, or of bytes; or several columns of numbers, which
//            become one array
//   bytes    a picture file, or, where the options say what their numbers are, those numbers,
//            little-endian
//
// The first row says what each input is and how long: all others must be alike. A connection that
// is lost in the middle is made anew some seconds later, and the query is read from its beginning:
// rows that were written are forgotten.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_DATA_SQL_SQL_FETCH_H
#define PEN_SCHEDULER_DATA_SQL_SQL_FETCH_H

#include "scheduler/data/cache/array_cache_writer.h"
#include "scheduler/data/sql/sql_request.h"

// Reads all rows, and commits them.
//   INVALID_INPUT  the query or a column is wrong; names what there is. A value is NULL, or of
//                  another type or length than the first; names the row
//   UNAVAILABLE    the database cannot be reached, after several trials once it was
//   NOT_FOUND, CORRUPT, IO, CANCELLED, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_sql_fetch(const pen_sql_request *request, pen_cache_writer *writer);

#endif // PEN_SCHEDULER_DATA_SQL_SQL_FETCH_H
