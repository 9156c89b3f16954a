#include "base/system/long_read.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/system/interrupt.h"

#define LONG_READ_STEP ((uint64_t)4 << 20) // bytes between two looks at the clock
#define LONG_READ_SECONDS_FIRST 1.0        // before anything is said
#define LONG_READ_SECONDS 0.2              // between two texts
#define LONG_READ_PATH_BYTES 40            // the end of a long path is shown

void pen_long_read_begin(pen_long_read *read, const char *verb, const char *path, uint64_t total) {
    *read = (pen_long_read){.verb = verb, .path = path, .total = total, .next = LONG_READ_STEP};
    read->said_at = pen_clock_seconds();
}

static void long_read_say(const pen_long_read *read, uint64_t done) {
    char line[LONG_READ_PATH_BYTES + 64];
    const char *name = pen_path_name(read->path);
    const double part = read->total == 0 ? 1 : fmin((double)done / (double)read->total, 1);
    snprintf(line, sizeof line, "%.16s '%.*s': %.0f %%", read->verb, LONG_READ_PATH_BYTES, name,
             floor(100 * part));
    pen_log_line(line);
}

pen_status pen_long_read_look(pen_long_read *read, uint64_t done) {
    const double now = pen_clock_seconds();
    read->next = done + LONG_READ_STEP;
    if (pen_interrupt_requested()) return pen_error(PEN_CANCELLED, "stopped, as was wished");
    if (now < read->said_at + (read->has_said ? LONG_READ_SECONDS : LONG_READ_SECONDS_FIRST)) {
        return PEN_OK;
    }
    long_read_say(read, done);
    read->said_at = now;
    read->has_said = true;
    return PEN_OK;
}

void pen_long_read_end(pen_long_read *read) {
    if (read->has_said) pen_log_line(NULL);
    read->has_said = false;
}
