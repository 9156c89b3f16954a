#include "scheduler/data/sql/sql_fetch.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/format/quantity.h"
#include "base/log.h"
#include "base/system/failpoint.h"
#include "base/system/interrupt.h"
#include "base/text.h"
#include "scheduler/data/sql/sql_rows.h"

#define FETCH_TRIALS 6          // of which the last begins about half a minute after the first
#define FETCH_NOTE_SECONDS 5    // between two notes of how far it is
#define FETCH_CLOCK_ROWS 256    // between two looks at the clock
#define FETCH_PAUSE_SECONDS 0.1 // between two looks at whether the work is to stop

// ---- the query

// "name", so that a column is called as it is written.
static void fetch_add_quoted(pen_text *text, const char *name) {
    pen_text_add(text, "\"");
    for (; *name != '\0'; name++)
        pen_text_print(text, *name == '"' ? "\"%c" : "%c", *name);
    pen_text_add(text, "\"");
}

// The query within another, without the semicolon that may end it. The line's end closes a comment.
static void fetch_add_query(pen_text *text, const char *query) {
    size_t length = strlen(query);
    while (length > 0 && strchr("; \t\r\n", query[length - 1]) != NULL)
        length -= 1;
    pen_text_add(text, " FROM (\n");
    pen_text_append(text, query, length);
    pen_text_add(text, "\n) AS penstock_rows");
}

// Of a name that is not there, those that are near are told first.
static pen_status fetch_add_column(const pen_sql_request *request, const pen_sql_column *columns,
                                   uint32_t count, const char *name, pen_text *text) {
    uint32_t i = 0;
    while (i < count && strcmp(columns[i].name, name) != 0)
        i++;
    if (i == count) {
        pen_text message;
        const char **names;
        pen_text_init(&message, text->arena);
        PEN_TRY(PEN_NEW(text->arena, count, &names));
        for (uint32_t c = 0; c < count; c++)
            names[c] = columns[c].name;
        pen_text_print(&message, "%s: the query gives no column '%s', but ", request->target->text,
                       name);
        pen_text_add_names(&message, name, names, count, 32);
        return pen_text_error(&message, PEN_INVALID_INPUT);
    }
    if (columns[i].refused != NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: the column '%s' has the type %s, expected numbers, arrays of numbers "
                         "or bytes; a cast in the query may make such of it",
                         request->target->text, name, columns[i].refused);
    }
    fetch_add_quoted(text, name);
    pen_text_add(text, columns[i].cast);
    return PEN_OK;
}

// SELECT the columns of all fields, and, as the last, that which rows are ordered by.
static pen_status fetch_write_query(const pen_sql_request *request, pen_sql_source *source,
                                    pen_arena *arena, const char **out_query) {
    pen_text text;
    const char *whole;
    pen_sql_column *columns;
    uint32_t count;
    pen_text_init(&text, arena);
    pen_text_add(&text, "SELECT *");
    fetch_add_query(&text, request->query);
    PEN_TRY(pen_text_finish(&text, &whole));
    PEN_TRY(source->driver->describe(source, whole, arena, &columns, &count));
    pen_text_init(&text, arena);
    const char *before = "SELECT ";
    for (uint32_t f = 0; f < request->field_count; f++) {
        for (uint32_t c = 0; c < request->fields[f].column_count; c++) {
            pen_text_add(&text, before);
            PEN_TRY(
                fetch_add_column(request, columns, count, request->fields[f].columns[c], &text));
            before = ", ";
        }
    }
    if (request->partition != NULL) {
        pen_text_add(&text, before);
        PEN_TRY(fetch_add_column(request, columns, count, request->partition, &text));
    }
    fetch_add_query(&text, request->query);
    if (request->partition != NULL) {
        pen_text_add(&text, " ORDER BY ");
        fetch_add_quoted(&text, request->partition);
    }
    return pen_text_finish(&text, out_query);
}

// ---- rows

// One trial, and what is told of it.
typedef struct fetch_trial {
    const pen_sql_request *request;
    pen_cache_writer *writer;
    double started;
    double next_note;
    uint64_t row_count;
    bool was_connected;
} fetch_trial;

static void fetch_note(fetch_trial *trial, const char *what) {
    char bytes[PEN_QUANTITY_TEXT_BYTES], seconds[PEN_QUANTITY_TEXT_BYTES];
    const double passed = pen_clock_seconds() - trial->started;
    pen_log(PEN_LOG_NOTE, "%s %" PRIu64 " rows, %s, from %s in %s (%.0f rows/s)", what,
            trial->row_count, pen_bytes_format(pen_cache_writer_bytes(trial->writer), bytes),
            trial->request->target->text, pen_seconds_format(passed, seconds),
            passed > 0 ? (double)trial->row_count / passed : 0);
}

static pen_status fetch_rows(fetch_trial *trial, pen_sql_source *source, pen_sql_rows *rows) {
    for (;;) {
        bool is_row;
        PEN_TRY(
            pen_status_add_context(source->driver->next(source, pen_sql_rows_values(rows), &is_row),
                                   "after %" PRIu64 " rows", trial->row_count));
        if (!is_row) break;
        PEN_TRY(pen_sql_rows_take(rows, trial->writer, trial->row_count));
        trial->row_count += 1;
        (void)PEN_FAILPOINT("sql.row_taken");
        if (trial->row_count % FETCH_CLOCK_ROWS != 0) continue;
        if (pen_clock_seconds() < trial->next_note) continue;
        fetch_note(trial, "read");
        trial->next_note = pen_clock_seconds() + FETCH_NOTE_SECONDS;
    }
    if (trial->row_count > 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "%s: the query gives no rows",
                     trial->request->target->text);
}

static pen_status fetch_read(fetch_trial *trial, pen_sql_source *source, pen_arena *arena) {
    const char *query;
    pen_sql_rows *rows;
    trial->was_connected = true;
    trial->row_count = 0;
    PEN_TRY(fetch_write_query(trial->request, source, arena, &query));
    PEN_TRY(pen_sql_rows_new(trial->request, arena, &rows));
    PEN_TRY(source->driver->start(source, query, pen_sql_rows_width(rows)));
    PEN_TRY(fetch_rows(trial, source, rows));
    PEN_TRY(pen_cache_writer_commit(trial->writer, trial->row_count));
    fetch_note(trial, "read all");
    return PEN_OK;
}

static pen_status fetch_try(fetch_trial *trial) {
    pen_sql_source *source = NULL;
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    trial->started = pen_clock_seconds();
    trial->next_note = trial->started + FETCH_NOTE_SECONDS;
    pen_status status = pen_sql_source_open(trial->request->target, &source);
    if (status == PEN_OK) status = fetch_read(trial, source, arena);
    pen_sql_source_close(source);
    pen_arena_destroy(arena);
    return status;
}

// Between two trials; the user may stop it.
static pen_status fetch_pause(double seconds) {
    const double end = pen_clock_seconds() + seconds;
    while (pen_clock_seconds() < end) {
        if (pen_interrupt_requested()) return pen_error(PEN_CANCELLED, "stopped, as was wished");
        pen_clock_pause(FETCH_PAUSE_SECONDS);
    }
    return PEN_OK;
}

// A database that never answered is told at once: its address may be wrong. One that was lost is
// waited for, twice as long each time.
pen_status pen_sql_fetch(const pen_sql_request *request, pen_cache_writer *writer) {
    fetch_trial trial = {.request = request, .writer = writer};
    double seconds = 1;
    for (uint32_t t = 1;; t++, seconds *= 2) {
        const pen_status status = fetch_try(&trial);
        if (pen_status_get_code(status) != PEN_UNAVAILABLE || !trial.was_connected ||
            t == FETCH_TRIALS) {
            return status;
        }
        pen_log(PEN_LOG_WARNING, "%s; beginning anew in %.0f s", pen_status_message(status),
                seconds);
        pen_status_ignore(status, "it was told, and is tried again");
        PEN_TRY(fetch_pause(seconds));
    }
}
