// A model's file with other weights: a copy of it, byte for byte, in which some stretches have
// other contents. In a zip archive, the checksums of the entries that these are in follow.
//
// One stretch at a time is in memory.
#ifndef PEN_GRAPH_IMPORT_FILE_PATCH_H
#define PEN_GRAPH_IMPORT_FILE_PATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/import/stored_zip.h"

typedef struct pen_file_patch {
    uint64_t offset; // in the file
    uint64_t length;
    const pen_stored_zip_entry *entry; // that it lies in; NULL: the file is no archive
} pen_file_patch;

typedef struct pen_file_patches {
    const uint8_t *bytes; // [length], the file as it is
    size_t length;
    const pen_stored_zip *zip;   // the same as an archive; NULL: it is none
    const pen_file_patch *items; // [count], in the order of the file, none over another
    uint32_t count;
    // Puts the contents of patch `index` into `contents`, of its length, which has those there are.
    // May be called twice for one.
    void (*fill)(void *context, uint32_t index, uint8_t *contents);
    void *context;
} pen_file_patches;

// Writes `path`, atomically. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_file_patch_save(const pen_file_patches *patches, const char *path);

#endif // PEN_GRAPH_IMPORT_FILE_PATCH_H
