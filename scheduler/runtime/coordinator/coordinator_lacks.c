// What devices of workers could not take into use is said here, since nobody may see what a worker
// of another machine writes.

#include <string.h>

#include "base/hash.h"
#include "base/integer.h"
#include "base/log.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

// Whether a line is new, and there is room to remember it.
static bool lacks_add(pen_coordinator *c, const char *line, size_t length) {
    pen_coordinator_told *told = c->setup.told == NULL ? &c->told : c->setup.told;
    const uint64_t hash = pen_hash_bytes(PEN_HASH_START, line, length);
    pen_mutex_lock(&c->lock);
    bool is_new = told->count < PEN_COORDINATOR_TOLD_LIMIT;
    for (uint32_t i = 0; i < told->count; i++) {
        is_new = is_new && told->lines[i] != hash;
    }
    if (is_new) told->lines[told->count++] = hash;
    pen_mutex_unlock(&c->lock);
    return is_new;
}

void pen_coordinator_tell_lacks(pen_coordinator *c, uint32_t peer, const char *text,
                                size_t length) {
    const bool is_own = peer == c->setup.local_worker; // its devices are the job's own
    const char *name = is_own ? "" : c->spec->workers[peer].name;
    const char *end = text + pen_min_u64(length, PEN_MESSAGE_TEXT_BYTES - 1);
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        const size_t line = (size_t)((line_end == NULL ? end : line_end) - text);
        if (line > 0 && lacks_add(c, text, line)) {
            pen_log(PEN_LOG_WARNING, "%s%s%.*s", name, is_own ? "" : ": ", (int)line, text);
        }
        text += line + 1;
    }
}
