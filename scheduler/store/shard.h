// A file with tensors of a checkpoint, or ranges of them, in the safetensors layout, under the
// tensors' own names. Any number of shards make up the set; who wrote them does not matter.
//
// A range of a tensor is a tensor of one dimension, called "NAME@FIRST+BYTES[32,512]": from byte
// FIRST on, of a tensor NAME of that shape. A slice of one has any shape, and is called
// "NAME@FIRST+RUN/STRIDE[32,512]": of each STRIDE bytes of the tensor, RUN from byte FIRST on.
//
// Written beside (NAME.partial), synced, renamed, and its folder synced: then it is durable.
// Checksums (CRC32C) of its chunks go into the manifest, not into the file.
//
// Threads: a shard is written by one; functions share nothing.
#ifndef PEN_SCHEDULER_STORE_SHARD_H
#define PEN_SCHEDULER_STORE_SHARD_H

#include <inttypes.h>

#include "base/checksum.h"
#include "graph/tensor_type.h"
#include "scheduler/store/commit.h"
#include "scheduler/store/disk.h"
#include "scheduler/store/tensor_store.h"

#define PEN_SHARD_CHUNK_BYTES PEN_CHECKSUM_CHUNK_BYTES

typedef struct pen_shard_tensor {
    const char *name;
    pen_tensor_type type; // of the whole tensor
    uint64_t first;       // byte of it that the shard's part begins with, a multiple of 8
    uint64_t bytes;       // of the part, likewise unless it ends the tensor
} pen_shard_tensor;

// Under which name it is written: its own, or that of the tensor that it is a slice of, and where
// it lies there. PEN_NAME_BYTES_LIMIT is not looked at.
PEN_NODISCARD pen_status pen_shard_tensor_name(const pen_stored_tensor *tensor, pen_arena *arena,
                                               const char **out_name);

// Gives `bytes` of tensor `index` of the list from byte `first` of its part on: at most
// PEN_SHARD_CHUNK_BYTES, and `first` is a multiple of them.
typedef pen_status (*pen_shard_read)(void *context, uint32_t index, uint64_t first, void *out,
                                     uint64_t bytes);

// What is written: from memory as it lies there, or as it is read.
typedef struct pen_shard_source {
    const pen_shard_tensor *tensors; // [count], at most PEN_SHARD_TENSOR_LIMIT
    uint32_t count;
    const void *data; // all parts, one behind the other; NULL: `read` is asked for them
    pen_shard_read read;
    void *context;
} pen_shard_source;

// Of generation, step (uint64_t) and worker (uint32_t).
#define PEN_SHARD_NAME_FORMAT "g%" PRIu64 "-s%" PRIu64 "-w%" PRIu32 ".safetensors"
// "g3-s120-w2.safetensors": what worker `worker` wrote of step `step` in that generation.
PEN_NODISCARD pen_status pen_shard_name(uint64_t generation, uint64_t step, uint32_t worker,
                                        pen_arena *arena, const char **out_name);
// Whether `name` is such a name, or that of one being written, and of which generation and step.
bool pen_shard_name_parse(const char *name, uint64_t *out_generation, uint64_t *out_step);

// Writes folder/name; the folder is there. The summary is in `arena`, with `file` = name and no
// holders.
//   INVALID_INPUT  a tensor's name or range cannot be written
//   IO, OUT_OF_MEMORY, and as `read`: nothing durable was left under the name
PEN_NODISCARD pen_status pen_shard_write(pen_disk *disk, const pen_shard_source *source,
                                         const char *folder, const char *name, pen_arena *arena,
                                         pen_shard_summary *out_summary);

// Gives `bytes` of a shard that is elsewhere, from byte `first` on: at most PEN_SHARD_CHUNK_BYTES.
typedef pen_status (*pen_shard_fetch)(void *context, uint64_t first, void *out, uint64_t bytes);

// Writes a copy of the shard that the summary describes, as pen_shard_write. CORRUPT: what came is
// not what was written
PEN_NODISCARD pen_status pen_shard_copy(pen_disk *disk, const char *folder,
                                        const pen_shard_summary *summary, pen_shard_fetch fetch,
                                        void *context);

// Reads from a shard, whose chunks are compared before a byte of them is given.
typedef struct pen_shard_reader {
    pen_disk *disk;
    const char *folder;
    const pen_shard_summary *summary;
    uint8_t *chunk; // the one read last
    uint32_t chunk_index;
    bool has_chunk;
    char path[4096];
} pen_shard_reader;

// Borrows all; deinit in any case.
//   CORRUPT  it has not the bytes that were written. IO, NOT_FOUND, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_shard_reader_init(pen_shard_reader *reader, pen_disk *disk,
                                               const char *folder,
                                               const pen_shard_summary *summary);
void pen_shard_reader_deinit(pen_shard_reader *reader);
// `bytes` of the file from byte `first` on, which are in it. CORRUPT says where; IO, NOT_FOUND
PEN_NODISCARD pen_status pen_shard_reader_read(pen_shard_reader *reader, uint64_t first, void *out,
                                               uint64_t bytes);

// Compares a whole shard with its summary: CORRUPT names each damaged chunk (16 at most); IO,
// NOT_FOUND, OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_shard_verify(pen_disk *disk, const char *folder,
                                          const pen_shard_summary *summary);

#endif // PEN_SCHEDULER_STORE_SHARD_H
