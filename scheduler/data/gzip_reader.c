#include "scheduler/data/gzip_reader.h"

#define ZLIB_CONST // next_in is const
#include <zlib.h>

#include "base/format/unpack.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/system/long_read.h"

#define GZIP_REMEDY "unpack it with gunzip, then it is mapped and takes no memory"
#define GZIP_STEP (16u << 20) // that zlib is given and asked for at once
#define GZIP_WINDOW (15 + 16) // largest window, gzip header expected

struct pen_gzip_reader {
    z_stream stream;
    const uint8_t *bytes; // not given to zlib yet
    size_t left;
    const char *path;
    uint64_t size; // of the file
    uint64_t made; // bytes so far
    bool ended;
    pen_long_read progress; // in the file
};

bool pen_gzip_is(const uint8_t *bytes, size_t size) {
    return size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

pen_status pen_gzip_check(const char *path, uint64_t size, uint64_t unpacked) {
    return pen_unpack_check(path, size, unpacked, GZIP_REMEDY);
}

pen_status pen_gzip_check_memory(const char *path, uint64_t unpacked) {
    return pen_unpack_check_memory(path, unpacked, GZIP_REMEDY);
}

static void *gzip_allocate(void *unused, unsigned count, unsigned size) {
    (void)unused;
    return pen_memory_allocate(count, size);
}

static void gzip_free(void *unused, void *memory) {
    (void)unused;
    pen_memory_free(memory);
}

pen_status pen_gzip_reader_open(const uint8_t *bytes, size_t size, const char *path,
                                pen_gzip_reader **out_reader) {
    pen_gzip_reader *reader = pen_memory_allocate(1, sizeof *reader);
    if (reader == NULL) return pen_error_out_of_memory();
    reader->bytes = bytes;
    reader->left = size;
    reader->path = path;
    reader->size = size;
    reader->stream.zalloc = gzip_allocate;
    reader->stream.zfree = gzip_free;
    if (inflateInit2(&reader->stream, GZIP_WINDOW) != Z_OK) {
        pen_memory_free(reader);
        return pen_error_out_of_memory();
    }
    pen_long_read_begin(&reader->progress, "unpacking", path, size);
    *out_reader = reader;
    return PEN_OK;
}

void pen_gzip_reader_close(pen_gzip_reader *reader) {
    if (reader == NULL) return;
    pen_long_read_end(&reader->progress);
    inflateEnd(&reader->stream);
    pen_memory_free(reader);
}

static void gzip_feed(pen_gzip_reader *reader) {
    z_stream *stream = &reader->stream;
    if (stream->avail_in > 0) return;
    const size_t step = pen_min_u64(reader->left, GZIP_STEP);
    stream->next_in = reader->bytes;
    stream->avail_in = (uInt)step;
    reader->bytes += step;
    reader->left -= step;
}

// One call of inflate. A file may be several gzip members, one after another.
static pen_status gzip_step(pen_gzip_reader *reader) {
    z_stream *stream = &reader->stream;
    gzip_feed(reader);
    const int result = inflate(stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
        reader->ended = stream->avail_in == 0 && reader->left == 0;
        if (!reader->ended) inflateReset(stream);
        return PEN_OK;
    }
    if (result == Z_OK) return PEN_OK;
    if (result == Z_MEM_ERROR) return pen_error_out_of_memory();
    if (result == Z_BUF_ERROR) {
        return pen_error(PEN_CORRUPT, "'%s': the gzip data is cut short", reader->path);
    }
    return pen_error(PEN_CORRUPT, "'%s': the gzip data is damaged: %s", reader->path,
                     stream->msg == NULL ? "unknown cause" : stream->msg);
}

pen_status pen_gzip_reader_read(pen_gzip_reader *reader, void *out_bytes, size_t size,
                                size_t *out_count) {
    size_t count = 0;
    while (count < size && !reader->ended) {
        const size_t step = pen_min_u64(size - count, GZIP_STEP);
        reader->stream.next_out = (Bytef *)out_bytes + count;
        reader->stream.avail_out = (uInt)step;
        PEN_TRY(gzip_step(reader));
        count += step - reader->stream.avail_out;
        reader->made += step - reader->stream.avail_out;
        PEN_TRY(pen_gzip_check(reader->path, reader->size, reader->made));
        const uint64_t left = reader->left + reader->stream.avail_in;
        PEN_TRY(pen_long_read_at(&reader->progress, reader->size - left));
    }
    *out_count = count;
    return PEN_OK;
}

const char *pen_zlib_version(void) {
    return zlibVersion();
}
