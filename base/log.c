#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

#define LOG_LINE_BYTES 2048
#define LOG_ERASE "\r\x1b[K" // what stands in the terminal's line

static pen_log_level log_level = PEN_LOG_NOTE;
static pen_log_take log_take; // NULL: standard error
static void *log_context;
typedef enum log_rest {
    LOG_NOTHING,
    LOG_TO_ERASE, // a line that the next message is written over
    LOG_TO_END,   // one that it leaves where it is
} log_rest;
static atomic_int log_rest_now; // what stands unfinished on the terminal

void pen_log_set_level(pen_log_level level) {
    log_level = level;
}

bool pen_log_is_shown(pen_log_level level) {
    return level <= log_level;
}

const char *pen_log_level_name(pen_log_level level) {
    switch (level) {
    case PEN_LOG_ERROR:
        return "error";
    case PEN_LOG_WARNING:
        return "warning";
    case PEN_LOG_NOTE:
        return "note";
    case PEN_LOG_DEBUG:
        return "debug";
    }
    return "";
}

void pen_log_redirect(pen_log_take take, void *context) {
    log_take = take;
    log_context = context;
}

// What has to be written before a message.
static const char *log_erase(void) {
    const int rest = atomic_exchange(&log_rest_now, LOG_NOTHING);
    return rest == LOG_TO_ERASE ? LOG_ERASE : rest == LOG_TO_END ? "\n" : "";
}

void pen_log_leave_line(void) {
    atomic_store(&log_rest_now, LOG_TO_END);
}

void pen_log_end_line(void) {
    if (atomic_exchange(&log_rest_now, LOG_NOTHING) == LOG_TO_END) fputc('\n', stderr);
}

bool pen_log_has_colour(void) {
    const char *no = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    if (no != NULL && no[0] != '\0') return false;
    return terminal != NULL && strcmp(terminal, "dumb") != 0 && isatty(STDERR_FILENO) != 0;
}

// A copy of `text` where "error:" and "warning:" have colours, to be freed. NULL: no memory.
static char *log_paint(const char *text) {
    static const struct {
        const char *word, *painted;
    } words[] = {{"error: ", "\x1b[1;31merror:\x1b[0m "},
                 {"warning: ", "\x1b[1;35mwarning:\x1b[0m "}};
    const size_t size =
        3 * strlen(text) + 1; // the shorter word becomes less than three times as long
    char *painted = pen_memory_allocate(size, 1);
    size_t used = 0;
    if (painted == NULL) return NULL;
    while (*text != '\0') {
        const size_t which = strncmp(text, words[0].word, strlen(words[0].word)) == 0   ? 0
                             : strncmp(text, words[1].word, strlen(words[1].word)) == 0 ? 1
                                                                                        : 2;
        if (which < 2) {
            used += (size_t)snprintf(painted + used, size - used, "%s", words[which].painted);
            text += strlen(words[which].word);
        } else {
            painted[used++] = *text++;
        }
    }
    painted[used] = '\0';
    return painted;
}

// One write, so that messages of several processes do not mix within a line.
static void log_write(const char *text) {
    char *painted = pen_log_has_colour() ? log_paint(text) : NULL;
    fprintf(stderr, "%s%s", log_erase(), painted != NULL ? painted : text);
    pen_memory_free(painted);
}

void pen_log_line(const char *text) {
    char line[LOG_LINE_BYTES];
    if (text == NULL) {
        fputs(log_erase(), stderr);
        return;
    }
    if (log_take != NULL || !pen_log_is_shown(PEN_LOG_NOTE) || isatty(STDERR_FILENO) == 0) return;
    snprintf(line, sizeof line, "%s", text);
    pen_log_end_line();
    fprintf(stderr, LOG_ERASE "%s", pen_text_clean(line, false));
    atomic_store(&log_rest_now, LOG_TO_ERASE);
}

void pen_log(pen_log_level level, const char *format, ...) {
    if (!pen_log_is_shown(level)) return;
    char line[LOG_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pen_text_clean(line, true); // whoever it is from
    if (log_take != NULL) {
        log_take(log_context, level, line);
        return;
    }
    const bool has_word = level != PEN_LOG_NOTE;
    char whole[LOG_LINE_BYTES + 16];
    snprintf(whole, sizeof whole, "%s%s%s\n", has_word ? pen_log_level_name(level) : "",
             has_word ? ": " : "", line);
    log_write(whole);
}

void pen_log_lines(pen_log_level level, const char *text) {
    while (text != NULL && *text != '\0') {
        const size_t length = strcspn(text, "\n");
        pen_log(level, "%.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

void pen_log_status(pen_status status) {
    if (status == PEN_OK) return;
    char short_text[LOG_LINE_BYTES];
    const size_t length = pen_status_format(status, short_text, sizeof short_text);
    char *long_text = length < sizeof short_text ? NULL : pen_memory_allocate(length + 1, 1);
    if (long_text != NULL) pen_status_format(status, long_text, length + 1);
    log_write(pen_text_clean(long_text != NULL ? long_text : short_text, true));
    pen_memory_free(long_text);
}
