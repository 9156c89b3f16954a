// The variables of a SavedModel: an index in the form of LevelDB's sorted tables, which says where
// in the shards beside it each tensor lies.
//
// Every block of the index and every tensor has a checksum (CRC32C, masked), and all are checked.
// Compressed blocks are refused; TensorFlow writes none here.
//
// Lifetime: a bundle lives in the arena, tensors borrow the mapped shards.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_BUNDLE_TABLE_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_BUNDLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/name_map.h"
#include "base/status.h"
#include "graph/import/external_files.h"
#include "graph/tensor_type.h"

typedef struct pen_bundle_entry {
    const char *name;
    int64_t data_type;    // as in the file
    pen_tensor_type type; // checked; element PEN_ELEMENT_UNKNOWN when Penstock has no such type
    bool is_sliced;       // in parts under other names
    uint32_t shard;
    uint64_t offset, size; // bytes within the shard
    uint32_t checksum;     // masked
} pen_bundle_entry;

typedef struct pen_bundle {
    uint32_t shard_count;
    uint32_t count;
    pen_bundle_entry *entries; // [count]
    pen_name_map names;        // of entries
} pen_bundle;

// Reads an index.
//   CORRUPT        it contradicts itself, or a checksum is another
//   UNSUPPORTED    compressed blocks, or numbers in big-endian order
//   INVALID_INPUT  too many entries
PEN_NODISCARD pen_status pen_bundle_read(const uint8_t *bytes, size_t length, pen_arena *arena,
                                         pen_bundle *out_bundle);

// NULL when there is none of that name.
const pen_bundle_entry *pen_bundle_find(const pen_bundle *bundle, const char *name);

// Opens every shard, so that one that is missing is said at once.
//   NOT_FOUND, IO, INVALID_INPUT
PEN_NODISCARD pen_status pen_bundle_open_shards(const pen_bundle *bundle, pen_external_files *files,
                                                const char *prefix);

// The contents of a tensor, from the shard "<prefix>.data-0000i-of-0000n" of `files`.
//   NOT_FOUND      the shard is not there
//   CORRUPT, UNSUPPORTED, INVALID_INPUT, IO
PEN_NODISCARD pen_status pen_bundle_contents(const pen_bundle *bundle,
                                             const pen_bundle_entry *entry,
                                             pen_external_files *files, const char *prefix,
                                             const void **out_data);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_BUNDLE_TABLE_H
