// A long read of a file: on a terminal it says how far it is, and a user's wish ends it.
//
//   unpacking 'images.gz': 34 %
//
// stands there from the second second on, and is taken away at the end. Whoever reads tells now and
// then how many bytes are done; that costs a comparison.
//
// Threads: one reads at a time.
#ifndef PEN_BASE_SYSTEM_LONG_READ_H
#define PEN_BASE_SYSTEM_LONG_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct pen_long_read {
    const char *verb; // "reading", "unpacking"
    const char *path;
    uint64_t total; // bytes, or whatever is counted
    uint64_t next;  // of these: when there is something to say or to ask
    double said_at; // seconds; when it was begun, then when something was said
    bool has_said;
} pen_long_read;

// Texts are borrowed until the end. A `total` of 0 is one of nothing.
void pen_long_read_begin(pen_long_read *read, const char *verb, const char *path, uint64_t total);
// Takes away what was said. Accepts one that has ended, or is all zero.
void pen_long_read_end(pen_long_read *read);

// What pen_long_read_at does when it is time.
PEN_NODISCARD pen_status pen_long_read_look(pen_long_read *read, uint64_t done);

// `done` of the total are read. CANCELLED: the user wants the command to stop
PEN_NODISCARD static inline pen_status pen_long_read_at(pen_long_read *read, uint64_t done) {
    return done < read->next ? PEN_OK : pen_long_read_look(read, done);
}

#endif // PEN_BASE_SYSTEM_LONG_READ_H
