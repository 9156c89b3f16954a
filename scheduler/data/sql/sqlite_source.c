// SQLite, by libsqlite3: a file, opened for reading only.

#include <inttypes.h>
#include <sqlite3.h>
#include <string.h>

#include "base/system/interrupt.h"
#include "base/system/library.h"
#include "scheduler/data/sql/sql_source.h"

#define SQLITE_BUSY_MILLISECONDS 10000 // how long to wait for somebody who writes

// ---- libsqlite3, loaded when it is needed

#define SQLITE_FUNCTIONS(X)                                                                        \
    X(busy_timeout)                                                                                \
    X(close)                                                                                       \
    X(column_blob)                                                                                 \
    X(column_bytes)                                                                                \
    X(column_count)                                                                                \
    X(column_double)                                                                               \
    X(column_int64)                                                                                \
    X(column_name)                                                                                 \
    X(column_type)                                                                                 \
    X(errmsg)                                                                                      \
    X(finalize)                                                                                    \
    X(libversion)                                                                                  \
    X(open_v2)                                                                                     \
    X(prepare_v2)                                                                                  \
    X(step)

#define SQLITE_MEMBER(name) __typeof__(&sqlite3_##name) name;
#define SQLITE_SYMBOL(name) "sqlite3_" #name,
typedef struct sqlite_functions {
    SQLITE_FUNCTIONS(SQLITE_MEMBER)
} sqlite_functions;
static const char *const sqlite_symbols[] = {SQLITE_FUNCTIONS(SQLITE_SYMBOL)};
static const char *const sqlite_library_names[] = {"libsqlite3.so.0", NULL};

// Made once, and only read then.
static sqlite_functions libsqlite;

static pen_status sqlite_load(void) {
    static pen_library_once once;
    const pen_library wanted = {
        .purpose = "libsqlite3, which reads SQLite files (Debian's package libsqlite3-0)",
        .names = sqlite_library_names,
        .symbols = sqlite_symbols,
        .symbol_count = sizeof sqlite_symbols / sizeof *sqlite_symbols};
    return pen_library_load_once(&once, &wanted, &libsqlite);
}

// ---- files

typedef union sqlite_number {
    int64_t integer;
    double real;
} sqlite_number;

typedef struct sqlite_source {
    pen_sql_source base;
    sqlite3 *file;
    sqlite3_stmt *statement;
    uint32_t column_count;
    sqlite_number numbers[PEN_SQL_COLUMNS_LIMIT]; // of the row
} sqlite_source;

static pen_status sqlite_refused(const sqlite_source *source, pen_status_code code) {
    return pen_error(code, "%s: %.500s", source->base.target->text,
                     source->file == NULL ? "out of memory" : libsqlite.errmsg(source->file));
}

static pen_status sqlite_open(pen_sql_source *base) {
    sqlite_source *source = (sqlite_source *)base;
    PEN_TRY(sqlite_load());
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;
    const int code = libsqlite.open_v2(base->target->file, &source->file, flags, NULL);
    if (code == SQLITE_CANTOPEN) return sqlite_refused(source, PEN_NOT_FOUND);
    if (code != SQLITE_OK) return sqlite_refused(source, PEN_IO);
    (void)libsqlite.busy_timeout(source->file, SQLITE_BUSY_MILLISECONDS);
    return PEN_OK;
}

static void sqlite_close(pen_sql_source *base) {
    sqlite_source *source = (sqlite_source *)base;
    if (source->file == NULL) return;
    (void)libsqlite.finalize(source->statement);
    (void)libsqlite.close(source->file);
}

static pen_status sqlite_prepare(sqlite_source *source, const char *query) {
    (void)libsqlite.finalize(source->statement);
    source->statement = NULL;
    const int code = libsqlite.prepare_v2(source->file, query, -1, &source->statement, NULL);
    if (code == SQLITE_NOTADB) return sqlite_refused(source, PEN_CORRUPT);
    if (code != SQLITE_OK) return sqlite_refused(source, PEN_INVALID_INPUT);
    source->column_count = (uint32_t)libsqlite.column_count(source->statement);
    if (source->column_count >= 1 && source->column_count <= PEN_SQL_COLUMNS_LIMIT) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "%s: the query gives %" PRIu32 " columns, expected 1 to %d",
                     source->base.target->text, source->column_count, PEN_SQL_COLUMNS_LIMIT);
}

static pen_status sqlite_describe(pen_sql_source *base, const char *query, pen_arena *arena,
                                  pen_sql_column **out_columns, uint32_t *out_count) {
    sqlite_source *source = (sqlite_source *)base;
    pen_sql_column *columns;
    PEN_TRY(sqlite_prepare(source, query));
    PEN_TRY(PEN_NEW(arena, source->column_count, &columns));
    for (uint32_t i = 0; i < source->column_count; i++) {
        const char *name = libsqlite.column_name(source->statement, (int)i);
        if (name == NULL) return pen_error_out_of_memory();
        PEN_TRY(pen_arena_copy_text(arena, name, strlen(name), &columns[i].name));
        columns[i].cast = "";
    }
    *out_columns = columns;
    *out_count = source->column_count;
    return PEN_OK;
}

static pen_status sqlite_start(pen_sql_source *base, const char *query, uint32_t column_count) {
    sqlite_source *source = (sqlite_source *)base;
    PEN_TRY(sqlite_prepare(source, query));
    if (source->column_count == column_count) return PEN_OK;
    return pen_error(PEN_CORRUPT, "%s: the columns changed while they were read",
                     base->target->text);
}

// Each value has a type of its own here, whatever the column says.
static void sqlite_read_value(sqlite_source *source, uint32_t column, pen_sql_value *value) {
    sqlite_number *number = &source->numbers[column];
    const int i = (int)column;
    switch (libsqlite.column_type(source->statement, i)) {
    case SQLITE_INTEGER:
        number->integer = libsqlite.column_int64(source->statement, i);
        *value = (pen_sql_value){PEN_SQL_NUMBERS, PEN_NPY_INT64, .data = number, .bytes = 8};
        break;
    case SQLITE_FLOAT:
        number->real = libsqlite.column_double(source->statement, i);
        *value = (pen_sql_value){PEN_SQL_NUMBERS, PEN_NPY_FLOAT64, .data = number, .bytes = 8};
        break;
    case SQLITE_BLOB:
        *value = (pen_sql_value){.kind = PEN_SQL_BYTES,
                                 .data = libsqlite.column_blob(source->statement, i)};
        value->bytes = (uint64_t)libsqlite.column_bytes(source->statement, i);
        break;
    case SQLITE_NULL:
        *value = (pen_sql_value){.kind = PEN_SQL_NULL};
        break;
    default:
        *value = (pen_sql_value){.kind = PEN_SQL_OTHER, .type = "text"};
        break;
    }
}

static pen_status sqlite_next(pen_sql_source *base, pen_sql_value *out_values, bool *out_is_row) {
    sqlite_source *source = (sqlite_source *)base;
    *out_is_row = false;
    if (pen_interrupt_requested()) return pen_error(PEN_CANCELLED, "stopped, as was wished");
    const int code = libsqlite.step(source->statement);
    if (code == SQLITE_DONE) return PEN_OK;
    if (code == SQLITE_NOMEM) return pen_error_out_of_memory();
    if (code == SQLITE_BUSY) return sqlite_refused(source, PEN_UNAVAILABLE);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) return sqlite_refused(source, PEN_CORRUPT);
    if (code != SQLITE_ROW) return sqlite_refused(source, PEN_INVALID_INPUT);
    *out_is_row = true;
    for (uint32_t i = 0; i < source->column_count; i++)
        sqlite_read_value(source, i, &out_values[i]);
    return PEN_OK;
}

const pen_sql_driver pen_sql_driver_sqlite = {
    .state_bytes = sizeof(sqlite_source),
    .open = sqlite_open,
    .describe = sqlite_describe,
    .start = sqlite_start,
    .next = sqlite_next,
    .close = sqlite_close,
};

const char *pen_sqlite_version(void) {
    const pen_status status = sqlite_load();
    if (status == PEN_OK) return libsqlite.libversion();
    pen_status_ignore(status, "which is what is asked");
    return "not found";
}
