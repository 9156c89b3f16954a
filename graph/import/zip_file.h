// Zip archives in memory, read with libzip, which is loaded when one is opened: what `.keras`
// models and NPZ files are.
//
// Sizes that the archive states are checked before anything is allocated for them: a member is not
// larger than what deflate can make of the bytes it has, nor than who reads it says.
//
// Lifetime: an archive borrows its bytes until it is closed. What is read lives in the arena given.
// Threads:  one at a time.
#ifndef PEN_GRAPH_IMPORT_ZIP_FILE_H
#define PEN_GRAPH_IMPORT_ZIP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_zip pen_zip;

// `name` stands for the file in messages, and is borrowed.
//   CORRUPT        it is no zip archive, or a damaged one
//   NOT_FOUND      there is no libzip
//   INVALID_INPUT  it has more than PEN_ZIP_MEMBERS_LIMIT members
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_zip_open(const char *name, const void *bytes, size_t length,
                                      pen_zip **out_zip);
// Accepts NULL.
void pen_zip_close(pen_zip *zip);

uint32_t pen_zip_count(const pen_zip *zip);
// The name of a member, valid until the archive is closed; "" when it cannot be read.
const char *pen_zip_member_name(const pen_zip *zip, uint32_t index);

// How large a member is.
typedef struct pen_zip_size {
    uint64_t packed; // bytes that it has in the archive
    uint64_t bytes;
    bool is_stored; // as it is
} pen_zip_size;

//   NOT_FOUND      there is no member of that name
//   UNSUPPORTED    it is encrypted, or packed by another way than deflate
//   CORRUPT
PEN_NODISCARD pen_status pen_zip_measure(const pen_zip *zip, const char *member,
                                         pen_zip_size *out_size);

// Reads the first bytes of a member, `size` of them or fewer where it has fewer. As pen_zip_measure
PEN_NODISCARD pen_status pen_zip_read_start(const pen_zip *zip, const char *member, void *out_bytes,
                                            size_t size, size_t *out_count);

// Reads a member whole; its checksum is that of the archive. A 0 follows that does not count.
//   INVALID_INPUT  it has more than `bytes_limit` bytes
//   and as pen_zip_measure, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_zip_read(const pen_zip *zip, const char *member, uint64_t bytes_limit,
                                      pen_arena *arena, const uint8_t **out_bytes,
                                      size_t *out_length);

// The version of libzip, or "not found". Loads it.
const char *pen_zip_version(void);

#endif // PEN_GRAPH_IMPORT_ZIP_FILE_H
