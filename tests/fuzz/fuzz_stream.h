// A process that reads an HDF5 file, played by bytes: what it says is what is left of them.
#ifndef PEN_TESTS_FUZZ_FUZZ_STREAM_H
#define PEN_TESTS_FUZZ_FUZZ_STREAM_H

#include <string.h>

#include "graph/import/keras/hdf5_stream.h"

typedef struct fuzz_stream {
    const uint8_t *at;
    size_t length;
} fuzz_stream;

static inline pen_status fuzz_stream_read(void *context, void *bytes, size_t length) {
    fuzz_stream *stream = context;
    if (length > stream->length) return pen_error(PEN_CORRUPT, "the process ended");
    memcpy(bytes, stream->at, length);
    stream->at += length;
    stream->length -= length;
    return PEN_OK;
}

static inline pen_status fuzz_stream_ask(void *context, uint32_t object) {
    (void)context;
    (void)object;
    return PEN_OK;
}

static inline pen_hdf5_source fuzz_stream_source(fuzz_stream *stream) {
    return (pen_hdf5_source){.context = stream,
                             .read = fuzz_stream_read,
                             .ask = fuzz_stream_ask,
                             .catalogue_bytes = stream->length,
                             .contents_bytes = stream->length};
}

#endif // PEN_TESTS_FUZZ_FUZZ_STREAM_H
