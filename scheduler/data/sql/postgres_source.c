// PostgreSQL, by libpq: rows come one by one, in binary, while the query still runs.

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system/interrupt.h"
#include "base/system/library.h"
#include "scheduler/data/sql/postgres_value.h"

#define POSTGRES_CONNECT_SECONDS 30
#define POSTGRES_POLL_MILLISECONDS 200 // between two looks at whether the work is to stop

// ---- libpq, loaded when it is needed

#define POSTGRES_FUNCTIONS(X)                                                                      \
    X(clear)                                                                                       \
    X(connectPoll)                                                                                 \
    X(connectStartParams)                                                                          \
    X(consumeInput)                                                                                \
    X(errorMessage)                                                                                \
    X(finish)                                                                                      \
    X(fname)                                                                                       \
    X(ftype)                                                                                       \
    X(getResult)                                                                                   \
    X(getisnull)                                                                                   \
    X(getlength)                                                                                   \
    X(getvalue)                                                                                    \
    X(isBusy)                                                                                      \
    X(libVersion)                                                                                  \
    X(nfields)                                                                                     \
    X(ntuples)                                                                                     \
    X(resultErrorField)                                                                            \
    X(resultErrorMessage)                                                                          \
    X(resultStatus)                                                                                \
    X(sendDescribePrepared)                                                                        \
    X(sendPrepare)                                                                                 \
    X(sendQueryParams)                                                                             \
    X(sendQueryPrepared)                                                                           \
    X(setSingleRowMode)                                                                            \
    X(socket)                                                                                      \
    X(status)

#define POSTGRES_MEMBER(name) __typeof__(&PQ##name) name;
#define POSTGRES_SYMBOL(name) "PQ" #name,
typedef struct postgres_functions {
    POSTGRES_FUNCTIONS(POSTGRES_MEMBER)
} postgres_functions;
static const char *const postgres_symbols[] = {POSTGRES_FUNCTIONS(POSTGRES_SYMBOL)};
static const char *const postgres_library_names[] = {"libpq.so.5", NULL};

// Made once, and only read then.
static postgres_functions libpq;

static pen_status postgres_load(void) {
    static pen_library_once once;
    const pen_library wanted = {.purpose =
                                    "libpq, which reads from PostgreSQL (Debian's package libpq5)",
                                .names = postgres_library_names,
                                .symbols = postgres_symbols,
                                .symbol_count = sizeof postgres_symbols / sizeof *postgres_symbols};
    return pen_library_load_once(&once, &wanted, &libpq);
}

// ---- connections

typedef struct postgres_source {
    pen_sql_source base;
    PGconn *connection;
    PGresult *row; // what values point into; NULL: none
    uint32_t column_count;
    const pen_postgres_type *types[PEN_SQL_COLUMNS_LIMIT]; // of started columns
    pen_postgres_scratch scratch[PEN_SQL_COLUMNS_LIMIT];
} postgres_source;

// One line of what libpq says in several.
static pen_status postgres_error(const postgres_source *source, pen_status_code code,
                                 const char *message) {
    char line[768];
    size_t length = 0;
    for (const char *c = message; *c != '\0' && length + 1 < sizeof line; c++) {
        const bool is_gap = *c == '\n' || *c == '\t' || *c == ' ';
        if (is_gap && (length == 0 || line[length - 1] == ' ')) continue;
        line[length++] = is_gap ? ' ' : *c;
    }
    while (length > 0 && line[length - 1] == ' ')
        length -= 1;
    line[length] = '\0';
    return pen_error(code, "%s: %s", source->base.target->text, line);
}

static pen_status postgres_lost(const postgres_source *source) {
    return postgres_error(source, PEN_UNAVAILABLE, libpq.errorMessage(source->connection));
}

// Waits for the socket, for a moment at most, so that the user may stop it.
static pen_status postgres_wait(const postgres_source *source, short events, bool *out_is_ready) {
    struct pollfd wait = {.fd = libpq.socket(source->connection), .events = events};
    if (pen_interrupt_requested()) return pen_error(PEN_CANCELLED, "stopped, as was wished");
    const int count = poll(&wait, 1, POSTGRES_POLL_MILLISECONDS);
    *out_is_ready = count > 0;
    if (count >= 0 || errno == EINTR) return PEN_OK;
    return pen_error(PEN_IO, "cannot wait for a database: %s", strerror(errno));
}

// In steps of our own, so that a server that takes the connection and says nothing holds nobody up.
static pen_status postgres_connect(postgres_source *source) {
    // later ones count: what the address says stands above the first three, below the others
    const char *const keys[] = {
        "keepalives_idle", "keepalives_interval",       "tcp_user_timeout", "dbname",
        "client_encoding", "fallback_application_name", "password",         NULL};
    const char *const values[] = {
        "15",
        "5",
        "30000",
        source->base.target->text,
        "UTF8",
        "penstock",
        source->base.target->password, // NULL: that of PGPASSWORD, or of ~/.pgpass
        NULL};
    const double deadline = pen_clock_seconds() + POSTGRES_CONNECT_SECONDS;
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    source->connection = libpq.connectStartParams(keys, values, 1);
    if (source->connection == NULL) return pen_error_out_of_memory();
    while (state != PGRES_POLLING_OK) {
        if (libpq.status(source->connection) == CONNECTION_BAD || state == PGRES_POLLING_FAILED) {
            return postgres_lost(source);
        }
        if (pen_clock_seconds() > deadline) {
            return pen_error(PEN_UNAVAILABLE, "%s: no connection within %d s",
                             source->base.target->text, POSTGRES_CONNECT_SECONDS);
        }
        bool is_ready; // before that, a connection under way would be taken for one that is made
        PEN_TRY(
            postgres_wait(source, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, &is_ready));
        if (is_ready) state = libpq.connectPoll(source->connection);
    }
    return PEN_OK;
}

// ---- answers

// What the server says against a query. A connection that goes is UNAVAILABLE, which may be tried
// again; so is a server that ends, starts, or has no place.
static pen_status postgres_refused(const postgres_source *source, const PGresult *result) {
    static const char *const passing[] = {"08", "57P", "40", "53300"};
    const char *state = libpq.resultErrorField(result, PG_DIAG_SQLSTATE);
    pen_status_code code = PEN_INVALID_INPUT;
    if (libpq.status(source->connection) == CONNECTION_BAD || state == NULL)
        return postgres_lost(source);
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        if (strncmp(state, passing[i], strlen(passing[i])) == 0) code = PEN_UNAVAILABLE;
    }
    return postgres_error(source, code, libpq.resultErrorMessage(result));
}

// The next part of the answer, NULL behind its end. There is no deadline here: a query may take its
// time. A server that is gone is noticed by keepalives.
static pen_status postgres_receive(postgres_source *source, PGresult **out_result) {
    *out_result = NULL;
    while (libpq.isBusy(source->connection)) {
        bool is_ready;
        PEN_TRY(postgres_wait(source, POLLIN, &is_ready));
        if (is_ready && !libpq.consumeInput(source->connection)) return postgres_lost(source);
    }
    *out_result = libpq.getResult(source->connection);
    if (*out_result != NULL || libpq.status(source->connection) == CONNECTION_OK) return PEN_OK;
    return postgres_lost(source);
}

// Takes what comes up to the end of an answer: of its results the last, or why there is none.
static pen_status postgres_finish(postgres_source *source, int is_sent, PGresult **out_result) {
    PGresult *result, *last = NULL;
    if (!is_sent) return postgres_lost(source);
    pen_status status;
    for (;;) {
        status = postgres_receive(source, &result);
        if (result == NULL) break;
        libpq.clear(last);
        last = result;
    }
    if (status == PEN_OK && last == NULL) status = postgres_lost(source);
    if (status == PEN_OK && libpq.resultStatus(last) != PGRES_COMMAND_OK &&
        libpq.resultStatus(last) != PGRES_TUPLES_OK) {
        status = postgres_refused(source, last);
    }
    if (status != PEN_OK || out_result == NULL) {
        libpq.clear(last);
    } else {
        *out_result = last;
    }
    return status;
}

static pen_status postgres_run(postgres_source *source, const char *command) {
    const int is_sent =
        libpq.sendQueryParams(source->connection, command, 0, NULL, NULL, NULL, NULL, 1);
    return postgres_finish(source, is_sent, NULL);
}

// One transaction sees one state of the database, and cannot write.
static pen_status postgres_open(pen_sql_source *base) {
    postgres_source *source = (postgres_source *)base;
    PEN_TRY(postgres_load());
    PEN_TRY(postgres_connect(source));
    return postgres_run(source, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
}

static void postgres_close(pen_sql_source *base) {
    postgres_source *source = (postgres_source *)base;
    if (source->connection == NULL) return;
    libpq.clear(source->row);
    libpq.finish(source->connection);
    for (uint32_t i = 0; i < PEN_SQL_COLUMNS_LIMIT; i++)
        pen_memory_free(source->scratch[i].memory);
}

// ---- queries

// What the server calls a type.
static pen_status postgres_name_type(postgres_source *source, uint32_t oid, pen_arena *arena,
                                     const char **out_name) {
    char text[96];
    PGresult *result = NULL;
    snprintf(text, sizeof text, "SELECT format_type(%" PRIu32 ", NULL)", oid);
    const int is_sent =
        libpq.sendQueryParams(source->connection, text, 0, NULL, NULL, NULL, NULL, 0);
    PEN_TRY(postgres_finish(source, is_sent, &result));
    const char *name = libpq.ntuples(result) == 1 ? libpq.getvalue(result, 0, 0) : "unknown";
    const pen_status status = pen_arena_copy_text(arena, name, strlen(name), out_name);
    libpq.clear(result);
    return status;
}

// The server is asked for the columns of `query` without running it.
static pen_status postgres_prepare(postgres_source *source, const char *query,
                                   PGresult **out_result) {
    PEN_TRY(
        postgres_finish(source, libpq.sendPrepare(source->connection, "", query, 0, NULL), NULL));
    return postgres_finish(source, libpq.sendDescribePrepared(source->connection, ""), out_result);
}

static pen_status postgres_copy_columns(const PGresult *result, pen_arena *arena,
                                        pen_sql_column *columns, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const char *name = libpq.fname(result, (int)i);
        const pen_postgres_type *type = pen_postgres_type_find(libpq.ftype(result, (int)i));
        PEN_TRY(pen_arena_copy_text(arena, name, strlen(name), &columns[i].name));
        columns[i].cast = type == NULL ? "" : type->cast;
    }
    return PEN_OK;
}

static pen_status postgres_count_columns(const postgres_source *source, const PGresult *result,
                                         uint32_t *out_count) {
    const int count = libpq.nfields(result);
    if (count >= 1 && count <= PEN_SQL_COLUMNS_LIMIT) {
        *out_count = (uint32_t)count;
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT, "%s: the query gives %d columns, expected 1 to %d",
                     source->base.target->text, count, PEN_SQL_COLUMNS_LIMIT);
}

// Types without a row in our table are asked for by name: for the message, should such be read.
static pen_status postgres_describe(pen_sql_source *base, const char *query, pen_arena *arena,
                                    pen_sql_column **out_columns, uint32_t *out_count) {
    postgres_source *source = (postgres_source *)base;
    PGresult *result = NULL;
    PEN_TRY(postgres_prepare(source, query, &result));
    uint32_t types[PEN_SQL_COLUMNS_LIMIT];
    pen_status status = postgres_count_columns(source, result, out_count);
    if (status == PEN_OK) status = PEN_NEW(arena, *out_count, out_columns);
    if (status == PEN_OK) {
        for (uint32_t i = 0; i < *out_count; i++)
            types[i] = libpq.ftype(result, (int)i);
        status = postgres_copy_columns(result, arena, *out_columns, *out_count);
    }
    libpq.clear(result);
    for (uint32_t i = 0; status == PEN_OK && i < *out_count; i++) {
        if (pen_postgres_type_find(types[i]) != NULL) continue;
        status = postgres_name_type(source, types[i], arena, &(*out_columns)[i].refused);
    }
    return status;
}

// What was described may be another table by now, unless all columns are still of kinds that are
// read.
static pen_status postgres_start(pen_sql_source *base, const char *query, uint32_t column_count) {
    postgres_source *source = (postgres_source *)base;
    PGresult *result = NULL;
    PEN_TRY(postgres_prepare(source, query, &result));
    source->column_count = (uint32_t)libpq.nfields(result);
    bool is_read = source->column_count == column_count;
    for (uint32_t i = 0; is_read && i < column_count; i++) {
        source->types[i] = pen_postgres_type_find(libpq.ftype(result, (int)i));
        is_read = source->types[i] != NULL && source->types[i]->cast[0] == '\0';
    }
    libpq.clear(result);
    if (!is_read) {
        return pen_error(PEN_CORRUPT, "%s: the columns changed while they were read",
                         base->target->text);
    }
    if (!libpq.sendQueryPrepared(source->connection, "", 0, NULL, NULL, NULL, 1) ||
        !libpq.setSingleRowMode(source->connection)) {
        return postgres_lost(source);
    }
    return PEN_OK;
}

static pen_status postgres_read_row(postgres_source *source, pen_sql_value *values) {
    for (uint32_t i = 0; i < source->column_count; i++) {
        values[i] = (pen_sql_value){.kind = PEN_SQL_NULL};
        if (libpq.getisnull(source->row, 0, (int)i)) continue;
        const int length = libpq.getlength(source->row, 0, (int)i);
        PEN_TRY(pen_status_add_context(
            pen_postgres_value_read(source->types[i], libpq.getvalue(source->row, 0, (int)i),
                                    (uint64_t)length, &source->scratch[i], &values[i]),
            "in the column '%s'", libpq.fname(source->row, (int)i)));
    }
    return PEN_OK;
}

// Each row is a result of its own; behind them comes an empty one, or the error that ended them.
static pen_status postgres_next(pen_sql_source *base, pen_sql_value *out_values, bool *out_is_row) {
    postgres_source *source = (postgres_source *)base;
    *out_is_row = false;
    libpq.clear(source->row);
    source->row = NULL;
    PEN_TRY(postgres_receive(source, &source->row));
    if (source->row == NULL) return PEN_OK;
    const ExecStatusType kind = libpq.resultStatus(source->row);
    if (kind == PGRES_TUPLES_OK) return PEN_OK;
    if (kind != PGRES_SINGLE_TUPLE) return postgres_refused(source, source->row);
    *out_is_row = true;
    return postgres_read_row(source, out_values);
}

const pen_sql_driver pen_sql_driver_postgres = {
    .state_bytes = sizeof(postgres_source),
    .open = postgres_open,
    .describe = postgres_describe,
    .start = postgres_start,
    .next = postgres_next,
    .close = postgres_close,
};

const char *pen_libpq_version(void) {
    static _Thread_local char text[24];
    const pen_status status = postgres_load();
    pen_status_ignore(status, "which is what is asked");
    if (status != PEN_OK) return "not found";
    const int version = libpq.libVersion(); // 150018 is 15.18
    snprintf(text, sizeof text, "%d.%d", version / 10000, version % 10000);
    return text;
}
