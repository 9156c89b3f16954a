// Which tensors the shards of a checkpoint have, and where: whole ones, and ranges or slices that
// together are whole.
//
// Lifetime: in the arena they were read into.
// Threads:  immutable once read.
#ifndef PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_PARTS_H
#define PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_PARTS_H

#include "base/arena.h"
#include "scheduler/store/commit_log.h"
#include "scheduler/store/shard.h"

typedef struct pen_checkpoint_part {
    const char *name;     // of the tensor
    pen_tensor_type type; // of the whole tensor
    // Where in the tensor, in bytes, without name and shape. Of a range and of a whole tensor, the
    // stride is the tensor.
    pen_tensor_slice slice;
    uint64_t bytes;
    uint32_t shard;  // index in the manifest
    uint64_t offset; // in the shard
} pen_checkpoint_part;

typedef struct pen_checkpoint_parts {
    const pen_checkpoint_part *parts; // [count], by name and then by `slice.start`
    uint32_t count;
} pen_checkpoint_parts;

// Reads the headers of all shards. Of each tensor every byte is there once.
//   CORRUPT  a shard is damaged or not there, tensors overlap or have gaps: says which
//   IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_checkpoint_parts_read(const pen_shard_place *place,
                                                   const pen_commit_manifest *manifest,
                                                   pen_arena *arena,
                                                   pen_checkpoint_parts *out_parts);

// Whether the part is a range that may be written by itself: it begins and ends at multiples of 8
// bytes, or with its tensor.
bool pen_checkpoint_part_is_range(const pen_checkpoint_part *part);

// The parts that lie in one shard, as indices, by offset.
PEN_NODISCARD pen_status pen_checkpoint_parts_of_shard(const pen_checkpoint_parts *parts,
                                                       uint32_t shard, pen_arena *arena,
                                                       const uint32_t **out_order,
                                                       uint32_t *out_count);

#endif // PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_PARTS_H
