// A file with tensors of a checkpoint, or ranges of them, in the safetensors layout, under the
// tensors' own names; a range of NAME is called "NAME@FIRST+BYTES". Any number of shards make up
// the set; who wrote them does not matter.
//
// Written beside, synced, renamed, and its folder synced: then it is durable. Checksums (CRC32C)
// of its chunks go into the manifest, not into the file.
//
// Threads: a writer belongs to one.
#ifndef PEN_SCHEDULER_STORE_SHARD_H
#define PEN_SCHEDULER_STORE_SHARD_H

#include "graph/tensor_type.h"
#include "scheduler/store/commit_log.h"

#define PEN_SHARD_CHUNK_BYTES ((uint64_t)1 << 20)
#define PEN_SHARD_TENSOR_LIMIT 65536u

typedef struct pen_shard_tensor {
    const char *name;
    pen_tensor_type type; // of the whole tensor
    uint64_t first;       // byte of it that the shard's part begins with
    uint64_t bytes;       // of the part; with first 0 and all bytes: the whole
} pen_shard_tensor;

// Gives `bytes` of tensor `index` of the list from byte `first` of its part on.
typedef pen_status (*pen_shard_read)(void *context, uint32_t index, uint64_t first, void *out,
                                     uint64_t bytes);

// Writes folder/name. The summary is in `arena`, with `file` = name and no holders.
//   IO: nothing durable was left under the name
PEN_NODISCARD pen_status pen_shard_write(pen_disk *disk, const char *folder, const char *name,
                                         const pen_shard_tensor *tensors, uint32_t count,
                                         pen_shard_read read, void *context, pen_arena *arena,
                                         pen_shard_summary *out_summary);

// Compares a shard with its summary: CORRUPT says at which byte, IO, NOT_FOUND.
PEN_NODISCARD pen_status pen_shard_verify(pen_disk *disk, const char *folder,
                                          const pen_shard_summary *summary);

#endif // PEN_SCHEDULER_STORE_SHARD_H
