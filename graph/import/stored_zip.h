// Zip archives whose files are stored as they are, in mapped memory: entries by name, each with its
// place in the file, so that weights can be borrowed from where they lie, and be written over
// there.
// `.pt2` files are such archives, and `.keras` files as Keras writes them.
//
// Where all entries are in one folder, as in `.pt2` files, it is left out of their names here:
// "models/model.json".
//
// The archive is not trusted: entries lie within it and not over one another, and what the central
// directory says of an entry is what stands before the entry's bytes.
//
// Lifetime: an archive borrows the file's bytes; what it points to is in the arena it was read
// with. Threads:  immutable once read.
#ifndef PEN_GRAPH_IMPORT_STORED_ZIP_H
#define PEN_GRAPH_IMPORT_STORED_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/name_map.h"
#include "base/status.h"

// A file within. All places are bytes from the beginning of the archive.
typedef struct pen_stored_zip_entry {
    const char *name;
    uint64_t offset; // of its contents
    uint64_t length; // of them
    uint32_t checksum;
    bool is_inside;          // of the folder, which its name is without
    uint64_t header_offset;  // of its own header, in front of the contents
    uint64_t central_offset; // of its header in the central directory
} pen_stored_zip_entry;

typedef struct pen_stored_zip {
    const uint8_t *bytes; // [length]
    size_t length;
    const char *folder; // "net"
    uint32_t count;
    const pen_stored_zip_entry *entries; // [count], in the order of the central directory
    pen_name_map index;                  // of entries
} pen_stored_zip;

// Reads the list of entries.
//   CORRUPT        it is no zip archive, or one that contradicts itself
//   UNSUPPORTED    an entry is compressed or encrypted
//   INVALID_INPUT  more than PEN_ZIP_MEMBERS_LIMIT entries
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_stored_zip_read(const void *bytes, size_t length, pen_arena *arena,
                                             pen_stored_zip *out_archive);

// NULL when there is none.
const pen_stored_zip_entry *pen_stored_zip_find(const pen_stored_zip *archive, const char *name);

// The name of an entry with the folder.
const char *pen_stored_zip_whole_name(const pen_stored_zip *archive,
                                      const pen_stored_zip_entry *entry);

// The contents of an entry that must be there, borrowed, their checksum being right.
//   NOT_FOUND, CORRUPT; CANCELLED: the user wants the command to stop
PEN_NODISCARD pen_status pen_stored_zip_open(const pen_stored_zip *archive, const char *name,
                                             const pen_stored_zip_entry **out_entry);

// Where the checksum of an entry stands: in the list, and before or behind the contents. Returns
// how many places these are; the bytes of each are the four of the checksum.
#define PEN_STORED_ZIP_CHECKSUM_PLACES 2
uint32_t pen_stored_zip_checksum_places(const pen_stored_zip *archive,
                                        const pen_stored_zip_entry *entry,
                                        uint64_t out_places[PEN_STORED_ZIP_CHECKSUM_PLACES]);

// The checksum that zip archives have (CRC-32), of `length` bytes that follow those of `before`
// (0: none).
uint32_t pen_stored_zip_checksum(uint32_t before, const void *bytes, uint64_t length);

#endif // PEN_GRAPH_IMPORT_STORED_ZIP_H
