#include "base/status.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define STATUS_TEXT_BYTES_LIMIT 65536 // an error text is cut here: some list many nodes
#define STATUS_CONTEXT_BYTES 1024     // all context lines of an error together

typedef struct pen_error_record {
    pen_status_code code;
    const char *c_file;
    int c_line;
    char *file; // the user's, or NULL
    uint32_t line;
    uint32_t column;
    char *message;
    char context[STATUS_CONTEXT_BYTES]; // lines, each "  while …\n"
    pen_status next;                    // joined errors, in order
} pen_error_record;

static char status_no_memory_message[] = "out of memory";
static pen_error_record status_no_memory = {
    .code = PEN_OUT_OF_MEMORY, .c_file = __FILE__, .message = status_no_memory_message};

static bool status_is_static(pen_status status) {
    return status == &status_no_memory;
}

static void status_free(pen_status status) {
    while (status != PEN_OK && !status_is_static(status)) {
        const pen_status next = status->next;
        pen_memory_free(status->file);
        pen_memory_free(status->message);
        pen_memory_free(status);
        status = next;
    }
}

static char *status_format_new(const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) return NULL;
    size_t bytes = (size_t)length + 1;
    if (bytes > STATUS_TEXT_BYTES_LIMIT) bytes = STATUS_TEXT_BYTES_LIMIT;
    char *text = pen_memory_allocate(bytes, 1);
    if (text != NULL) vsnprintf(text, bytes, format, arguments);
    return text;
}

pen_status pen_error_at(const char *file, int line, pen_status_code code, const char *format, ...) {
    pen_error_record *error = pen_memory_allocate(1, sizeof *error);
    if (error == NULL) return &status_no_memory;
    va_list arguments;
    va_start(arguments, format);
    error->message = status_format_new(format, arguments);
    va_end(arguments);
    if (error->message == NULL) {
        pen_memory_free(error);
        return &status_no_memory;
    }
    error->code = code;
    error->c_file = file;
    error->c_line = line;
    return error;
}

pen_status pen_error_get_out_of_memory(void) {
    return &status_no_memory;
}

pen_status pen_status_at_position(pen_status status, const char *file, uint32_t line,
                                  uint32_t column) {
    if (status == PEN_OK || status_is_static(status) || status->file != NULL) return status;
    const size_t bytes = strlen(file) + 1;
    status->file = pen_memory_allocate(bytes, 1);
    if (status->file == NULL) return status; // the message still stands
    memcpy(status->file, file, bytes);
    status->line = line;
    status->column = column;
    return status;
}

pen_status pen_status_add_context(pen_status status, const char *format, ...) {
    if (status == PEN_OK || status_is_static(status)) return status;
    const size_t used = strlen(status->context);
    const size_t room = sizeof status->context - used;
    if (room < 8) return status;
    va_list arguments;
    va_start(arguments, format);
    char line[256];
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    snprintf(status->context + used, room, "  %s\n", line);
    return status;
}

pen_status pen_status_join(pen_status first, pen_status second) {
    if (first == PEN_OK) return second;
    if (second == PEN_OK || status_is_static(second)) return first;
    if (status_is_static(first)) {
        status_free(second);
        return first;
    }
    pen_status last = first;
    while (last->next != PEN_OK) {
        last = last->next;
    }
    last->next = second;
    return first;
}

void pen_status_ignore(pen_status status, const char *reason) {
    (void)reason;
    status_free(status);
}

pen_status_code pen_status_get_code(pen_status status) {
    return status == PEN_OK ? PEN_CODE_OK : status->code;
}

// For logs and dumps; messages for people have their own words.
const char *pen_status_code_name(pen_status_code code) {
    switch (code) {
    case PEN_CODE_OK:
        return "ok";
    case PEN_INVALID_INPUT:
        return "invalid input";
    case PEN_NOT_FOUND:
        return "not found";
    case PEN_UNSUPPORTED:
        return "unsupported";
    case PEN_DOES_NOT_FIT:
        return "does not fit";
    case PEN_OUT_OF_MEMORY:
        return "out of memory";
    case PEN_IO:
        return "input or output failed";
    case PEN_NO_STORAGE:
        return "no storage";
    case PEN_CORRUPT:
        return "corrupt";
    case PEN_UNAVAILABLE:
        return "unavailable";
    case PEN_DEADLINE:
        return "deadline exceeded";
    case PEN_CANCELLED:
        return "cancelled";
    case PEN_NOT_FINITE:
        return "not finite";
    case PEN_INTERNAL:
        return "internal error";
    }
    return "unknown";
}

// Appends to `text` as snprintf would, counting beyond its end.
static size_t status_append(char *text, size_t size, size_t used, const char *format, ...)
    PEN_PRINTF(4, 5);
static size_t status_append(char *text, size_t size, size_t used, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char nothing[1];
    const bool room = used < size;
    const int length =
        vsnprintf(room ? text + used : nothing, room ? size - used : 0, format, arguments);
    va_end(arguments);
    return used + (length > 0 ? (size_t)length : 0);
}

size_t pen_status_format(pen_status status, char *out_text, size_t size) {
    size_t used = 0;
    if (size > 0) out_text[0] = '\0';
    for (const pen_error_record *error = status; error != NULL; error = error->next) {
        if (error->file != NULL) {
            used = status_append(out_text, size, used, "%s:", error->file);
            if (error->line > 0) used = status_append(out_text, size, used, "%u:", error->line);
            if (error->column > 0) used = status_append(out_text, size, used, "%u:", error->column);
            used = status_append(out_text, size, used, " ");
        }
        used = status_append(out_text, size, used, "error: %s\n%s", error->message, error->context);
        if (error->code == PEN_INTERNAL) {
            used =
                status_append(out_text, size, used, "  at %s:%d\n", error->c_file, error->c_line);
        }
    }
    return used;
}

const char *pen_status_message(pen_status status) {
    return status == PEN_OK ? "" : status->message;
}

const char *pen_status_position(pen_status status, uint32_t *out_line, uint32_t *out_column) {
    *out_line = status == PEN_OK ? 0 : status->line;
    *out_column = status == PEN_OK ? 0 : status->column;
    return status == PEN_OK ? NULL : status->file;
}

// Exit codes are documented and scripts depend on them. An input error with a line in it is one of
// the job file (3), whatever the verb was given.
int pen_status_exit_code(pen_status status, int input_exit_code) {
    switch (pen_status_get_code(status)) {
    case PEN_CODE_OK:
        return 0;
    case PEN_INVALID_INPUT:
    case PEN_NOT_FOUND:
    case PEN_UNSUPPORTED:
    case PEN_CORRUPT:
    case PEN_IO:
        return status->line > 0 ? 3 : input_exit_code;
    case PEN_DOES_NOT_FIT:
    case PEN_OUT_OF_MEMORY:
        return 5;
    case PEN_UNAVAILABLE:
    case PEN_DEADLINE:
    case PEN_CANCELLED: // superseded, or stopped with nothing kept
        return 6;
    case PEN_NOT_FINITE:
        return 8;
    case PEN_NO_STORAGE:
        return 9;
    case PEN_INTERNAL:
        return 1;
    }
    return 1;
}

static _Atomic(void (*)(const char *)) status_assert_hook;

void pen_assert_set_hook(void (*hook)(const char *claim)) {
    atomic_store(&status_assert_hook, hook);
}

void pen_assert_failed(const char *file, int line, const char *claim) {
    fprintf(stderr, "%s:%d: internal error: assertion '%s' does not hold\n", file, line, claim);
    void (*const hook)(const char *) = atomic_exchange(&status_assert_hook, NULL);
    if (hook != NULL) hook(claim);
    abort();
}
