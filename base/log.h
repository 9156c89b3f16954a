// Messages on standard error, for the command and the drivers. Library code that computes never
// prints: it returns a status.
//
// The words "error" and "warning" have colours on a terminal. None where NO_COLOR is set and not
// empty (no-color.org), or TERM is "dumb" or not set.
//
// Threads: any; a message is one write, so messages never mix within a line.
#ifndef PEN_BASE_LOG_H
#define PEN_BASE_LOG_H

#include <stdbool.h>

#include "base/status.h"

typedef enum pen_log_level {
    PEN_LOG_ERROR,
    PEN_LOG_WARNING,
    PEN_LOG_NOTE, // what a user wants to see; the default
    PEN_LOG_DEBUG,
} pen_log_level;

// Messages above `level` are not written. Call before threads are started.
void pen_log_set_level(pen_log_level level);
bool pen_log_is_shown(pen_log_level level);

// The word for a level: "error", "warning", "note", "debug".
const char *pen_log_level_name(pen_log_level level);

// Takes a message, without the end of its line, in place of standard error. On any thread; may not
// log.
typedef void (*pen_log_take)(void *context, pen_log_level level, const char *text);
// NULL: standard error again. Call before threads are started.
void pen_log_redirect(pen_log_take take, void *context);

// Writes one line: "warning: …"; notes have no word before them.
void pen_log(pen_log_level level, const char *format, ...) PEN_PRINTF(2, 3);

// The same for each line of a text as it is; NULL: none.
void pen_log_lines(pen_log_level level, const char *text);

// Shows a short text on a terminal, where the next one or the next message will be written over it.
// NULL takes it away. Elsewhere, and where notes are not shown, nothing is written.
void pen_log_line(const char *text);

// Somebody else has written an unfinished line to the terminal and may write over it: the next
// message begins below it. The other ends it now, if no message has.
void pen_log_leave_line(void);
void pen_log_end_line(void);

// Whether colours are wanted: by a terminal that has them, and no user who said no (no-color.org).
bool pen_log_has_colour(void);

// Writes the whole text of an error, at PEN_LOG_ERROR. `status` stays the caller's.
void pen_log_status(pen_status status);

#endif // PEN_BASE_LOG_H
