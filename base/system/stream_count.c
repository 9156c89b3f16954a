#include "base/system/stream_count.h"

#define STREAM_PREFACE_BYTES 24u
#define STREAM_HEAD_BYTES 9u
#define STREAM_TYPE_HEADERS 1u

pen_stream_count pen_stream_count_begin(void) {
    return (pen_stream_count){.skipped = STREAM_PREFACE_BYTES};
}

// RFC 9113, 4.1: length (24 bits), type (8), flags (8), stream (32), then so many bytes. gRPC reads
// a connection in one thread at a time, and hands it from thread to thread.
uint32_t pen_stream_count_add(pen_stream_count *at, const void *bytes, size_t count) {
    const uint8_t *from = bytes;
    uint32_t opened = 0;
    while (count > 0) {
        if (at->skipped > 0) {
            const size_t here = at->skipped < count ? at->skipped : count;
            at->skipped -= (uint32_t)here;
            from += here;
            count -= here;
            continue;
        }
        at->head[at->head_bytes++] = *from++;
        count -= 1;
        if (at->head_bytes < STREAM_HEAD_BYTES) continue;
        at->head_bytes = 0;
        at->skipped = (uint32_t)at->head[0] << 16 | (uint32_t)at->head[1] << 8 | at->head[2];
        opened += at->head[3] == STREAM_TYPE_HEADERS;
    }
    return opened;
}
