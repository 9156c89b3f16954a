// Where a database is: "postgresql://user:password@host:5432/name?option=value", "sqlite:FILE".
//
// The password is parted from the rest here, before anything else sees the text: messages, caches
// and other processes get the address without it.
//
// Lifetime: texts live in the arena given.
// Threads:  any.
#ifndef PEN_SCHEDULER_DATA_SQL_SQL_TARGET_H
#define PEN_SCHEDULER_DATA_SQL_SQL_TARGET_H

#include "base/arena.h"
#include "base/status.h"

typedef enum pen_sql_kind { PEN_SQL_POSTGRES, PEN_SQL_SQLITE } pen_sql_kind;

typedef struct pen_sql_target {
    pen_sql_kind kind;
    const char *text;     // the whole, without a password; a file's path is absolute
    const char *password; // decoded; NULL: there was none
    const char *file;     // of SQLite
} pen_sql_target;

// Messages never have the text itself, which may hold a password at a place that it should not.
//   NOT_FOUND  no such file
//   INVALID_INPUT, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_sql_target_parse(const char *connection, pen_arena *arena,
                                              pen_sql_target *out_target);

#endif // PEN_SCHEDULER_DATA_SQL_SQL_TARGET_H
