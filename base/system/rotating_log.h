// A file that lines are added to, which never grows over a size: when it is full it becomes FILE.1,
// the one before FILE.2, and so on; the oldest goes.
//
// A line is written whole, or not at all: on a full disk it is left out and counted, and the next
// one is tried as usual. A file that was moved or removed meanwhile, as logrotate does, is made
// anew.
//
// Threads: any.
#ifndef PEN_BASE_SYSTEM_ROTATING_LOG_H
#define PEN_BASE_SYSTEM_ROTATING_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct pen_rotating_log pen_rotating_log;

typedef struct pen_rotating_log_options {
    uint64_t bytes_limit; // of a file
    uint32_t kept_count;  // files before the newest that stay; at least 1
} pen_rotating_log_options;

// Opens `path`, which may be there, and may be no regular file: then it is never full. Only its
// owner can read what is made. NOT_FOUND, NO_STORAGE, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_rotating_log_open(const char *path,
                                               const pen_rotating_log_options *options,
                                               pen_rotating_log **out_log);
// Adds a line, which has its end of line. Warns of the first that is left out.
void pen_rotating_log_add(pen_rotating_log *log, const char *line, size_t length);
// How many lines were left out since the last one that was written.
uint64_t pen_rotating_log_lost(pen_rotating_log *log);
void pen_rotating_log_close(pen_rotating_log *log); // accepts NULL

#endif // PEN_BASE_SYSTEM_ROTATING_LOG_H
