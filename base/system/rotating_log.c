#include "base/system/rotating_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/system/file.h"
#include "base/thread.h"

#define ROTATING_MODE 0600
#define ROTATING_PATH_BYTES 4096

struct pen_rotating_log {
    pen_rotating_log_options options;
    pen_mutex lock;
    // guarded by lock
    int handle; // -1: it could not be opened
    uint64_t lost_count;
    char path[ROTATING_PATH_BYTES - 16]; // with ".4294967295" it is still a path
};

static bool rotating_open(pen_rotating_log *log) {
    do {
        log->handle =
            open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, ROTATING_MODE);
    } while (log->handle < 0 && errno == EINTR);
    return log->handle >= 0;
}

// A path that cannot be opened is told of now, and not with the first line.
pen_status pen_rotating_log_open(const char *path, const pen_rotating_log_options *options,
                                 pen_rotating_log **out_log) {
    PEN_ASSERT(options->kept_count > 0);
    pen_rotating_log *log = pen_memory_allocate(1, sizeof *log);
    if (log == NULL) return pen_error_out_of_memory();
    log->options = *options;
    pen_mutex_init(&log->lock);
    if (strlen(path) >= sizeof log->path) {
        pen_rotating_log_close(log);
        return pen_error(PEN_INVALID_INPUT, "the path '%.60s…' is too long", path);
    }
    memcpy(log->path, path, strlen(path) + 1);
    if (!rotating_open(log)) {
        const pen_status status =
            pen_error(pen_file_error_code(errno), "cannot open '%s': %s", path, strerror(errno));
        pen_rotating_log_close(log);
        return status;
    }
    *out_log = log;
    return PEN_OK;
}

// FILE.2 becomes FILE.3, FILE.1 FILE.2, FILE FILE.1. What cannot be moved is written over or on.
static void rotating_turn(pen_rotating_log *log) {
    char from[ROTATING_PATH_BYTES], to[ROTATING_PATH_BYTES];
    for (uint32_t i = log->options.kept_count; i > 0; i--) {
        snprintf(to, sizeof to, "%s.%u", log->path, i);
        snprintf(from, sizeof from, "%s", log->path);
        if (i > 1) snprintf(from, sizeof from, "%s.%u", log->path, i - 1);
        (void)rename(from, to);
    }
    close(log->handle);
    (void)rotating_open(log);
}

// Somebody else may have moved the file; what is not a file has no size.
static void rotating_prepare(pen_rotating_log *log, size_t length) {
    struct stat ours, named;
    if (log->handle < 0 && !rotating_open(log)) return;
    if (fstat(log->handle, &ours) != 0 || !S_ISREG(ours.st_mode)) return;
    if (stat(log->path, &named) != 0 || named.st_ino != ours.st_ino ||
        named.st_dev != ours.st_dev) {
        close(log->handle);
        if (!rotating_open(log) || fstat(log->handle, &ours) != 0) return;
    }
    const uint64_t size = (uint64_t)ours.st_size;
    if (size > 0 && size + length > log->options.bytes_limit) rotating_turn(log);
}

// In one call, so that lines of several processes do not mix. Part of a line is taken back.
static bool rotating_write(pen_rotating_log *log, const char *line, size_t length) {
    struct stat before, now;
    const bool is_file = fstat(log->handle, &before) == 0 && S_ISREG(before.st_mode);
    ssize_t written;
    do {
        written = write(log->handle, line, length);
    } while (written < 0 && errno == EINTR);
    if (written == (ssize_t)length) return true;
    const int reason = written < 0 ? errno : ENOSPC;
    if (written > 0 && is_file && fstat(log->handle, &now) == 0 &&
        now.st_size == before.st_size + written && ftruncate(log->handle, before.st_size) != 0) {
        pen_log(PEN_LOG_DEBUG, "'%s' has part of a line", log->path);
    }
    errno = reason;
    return false;
}

void pen_rotating_log_add(pen_rotating_log *log, const char *line, size_t length) {
    pen_mutex_lock(&log->lock);
    rotating_prepare(log, length);
    const bool is_written = log->handle >= 0 && rotating_write(log, line, length);
    const int reason = errno;
    log->lost_count = is_written ? 0 : log->lost_count + 1;
    const bool is_told = log->lost_count == 1;
    pen_mutex_unlock(&log->lock);
    if (is_told) {
        pen_log(PEN_LOG_WARNING, "cannot write to '%s': %s; lines are left out until it takes some",
                log->path, strerror(reason));
    }
}

uint64_t pen_rotating_log_lost(pen_rotating_log *log) {
    pen_mutex_lock(&log->lock);
    const uint64_t count = log->lost_count;
    pen_mutex_unlock(&log->lock);
    return count;
}

void pen_rotating_log_close(pen_rotating_log *log) {
    if (log == NULL) return;
    if (log->handle >= 0) close(log->handle);
    pen_mutex_deinit(&log->lock);
    pen_memory_free(log);
}
