// The zip archive that a `.pt2` file is, in mapped memory: entries by name, each with its place in
// the file.
//
// Entries are stored as they are, never compressed, so that weights can be borrowed from where they
// lie, and be written over where they lie. All entries are in one folder, which is left out of
// their names here: "models/model.json".
//
// The archive is not trusted: entries lie within it and not over one another, and what the central
// directory says of an entry is what stands before the entry's bytes.
//
// Lifetime: an archive borrows the file's bytes; what it points to is in the arena it was read
// with. Threads:  immutable once read.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_PT2_ARCHIVE_H
#define PEN_GRAPH_IMPORT_PYTORCH_PT2_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/name_map.h"
#include "base/status.h"

// A file within. All places are bytes from the beginning of the archive.
typedef struct pen_pt2_entry {
    const char *name;
    uint64_t offset; // of its contents
    uint64_t length; // of them
    uint32_t checksum;
    uint64_t header_offset;  // of its own header, in front of the contents
    uint64_t central_offset; // of its header in the central directory
} pen_pt2_entry;

typedef struct pen_pt2_archive {
    const uint8_t *bytes; // [length]
    size_t length;
    const char *folder; // "net"
    uint32_t count;
    const pen_pt2_entry *entries; // [count], in the order of the central directory
    pen_name_map index;           // of entries
} pen_pt2_archive;

// Reads the list of entries.
//   CORRUPT        it is no zip archive, or one that contradicts itself
//   UNSUPPORTED    an entry is compressed or encrypted
//   INVALID_INPUT  more than PEN_ZIP_MEMBERS_LIMIT entries
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_pt2_archive_read(const void *bytes, size_t length, pen_arena *arena,
                                              pen_pt2_archive *out_archive);

// NULL when there is none.
const pen_pt2_entry *pen_pt2_archive_find(const pen_pt2_archive *archive, const char *name);

// The contents of an entry that must be there, borrowed, their checksum being right.
//   NOT_FOUND, CORRUPT
PEN_NODISCARD pen_status pen_pt2_archive_open(const pen_pt2_archive *archive, const char *name,
                                              const pen_pt2_entry **out_entry);

// Where the checksum of an entry stands: in the list, and before or behind the contents. Returns
// how many places these are; the bytes of each are the four of the checksum.
#define PEN_PT2_CHECKSUM_PLACES 2
uint32_t pen_pt2_archive_checksum_places(const pen_pt2_archive *archive, const pen_pt2_entry *entry,
                                         uint64_t out_places[PEN_PT2_CHECKSUM_PLACES]);

// The checksum that zip archives have (CRC-32), of `length` bytes that follow those of `before`
// (0: none).
uint32_t pen_pt2_checksum(uint32_t before, const void *bytes, uint64_t length);

#endif // PEN_GRAPH_IMPORT_PYTORCH_PT2_ARCHIVE_H
