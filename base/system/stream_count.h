// Counts the streams that a client of HTTP/2 opens, in the bytes that come from it: frames of type
// HEADERS. What they hold is not looked at.
#ifndef PEN_BASE_SYSTEM_STREAM_COUNT_H
#define PEN_BASE_SYSTEM_STREAM_COUNT_H

#include <stddef.h>
#include <stdint.h>

#include "base/sanitizer.h"

typedef struct pen_stream_count {
    uint32_t skipped; // bytes that are left of a frame, or of the client's preface
    uint32_t head_bytes;
    uint8_t head[9]; // of the next frame, as far as it has come
} pen_stream_count;

pen_stream_count pen_stream_count_begin(void);
// How many begin in the next bytes of the connection.
PEN_UNSEEN_BY_TSAN uint32_t pen_stream_count_add(pen_stream_count *at, const void *bytes,
                                                 size_t count);

#endif // PEN_BASE_SYSTEM_STREAM_COUNT_H
