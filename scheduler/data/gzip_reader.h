// Reads gzip data from memory, so much at a time as asked for; a long read says how far it is
// (base/system/long_read.h). The one home of zlib.h.
//
// Lifetime: from pen_gzip_reader_open to pen_gzip_reader_close; the bytes are borrowed.
// Threads:  a reader belongs to one thread at a time.
#ifndef PEN_SCHEDULER_DATA_GZIP_READER_H
#define PEN_SCHEDULER_DATA_GZIP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// No data is compressed better than this by deflate (RFC 1951: 258 bytes from 2 bits).
#define PEN_GZIP_RATIO_LIMIT 1032

typedef struct pen_gzip_reader pen_gzip_reader;

// Whether the bytes begin as gzip files do.
bool pen_gzip_is(const uint8_t *bytes, size_t size);

// Whether a file of `size` bytes may become `unpacked` ones (base/format/unpack.h). Readers ask it
// of all that they read; whoever knows before what a file announces asks then. UNSUPPORTED
PEN_NODISCARD pen_status pen_gzip_check(const char *path, uint64_t size, uint64_t unpacked);

// Whether `unpacked` bytes of it have room in memory, before they are taken. DOES_NOT_FIT
PEN_NODISCARD pen_status pen_gzip_check_memory(const char *path, uint64_t unpacked);

// Messages name `path`, which is borrowed. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_gzip_reader_open(const uint8_t *bytes, size_t size, const char *path,
                                              pen_gzip_reader **out_reader);

// Reads up to `size` bytes; *out_count is less only at the end of the data.
//   CORRUPT      not gzip, cut short, or a checksum is wrong
//   UNSUPPORTED  the file is more, unpacked, than may be made of it
//   CANCELLED    the user wants the command to stop
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_gzip_reader_read(pen_gzip_reader *reader, void *out_bytes, size_t size,
                                              size_t *out_count);

// Accepts NULL.
void pen_gzip_reader_close(pen_gzip_reader *reader);

// The version of zlib.
const char *pen_zlib_version(void);

#endif // PEN_SCHEDULER_DATA_GZIP_READER_H
