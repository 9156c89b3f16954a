// Reads tensors of a checkpoint, from front to end, wherever their parts lie.
//
// Lifetime: as long as what it was made with.
// Threads:  one.
#ifndef PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_READ_H
#define PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_READ_H

#include "scheduler/checkpoint/checkpoint_parts.h"

typedef struct pen_checkpoint_reader {
    const pen_shard_place *place;
    const pen_commit_manifest *manifest;
    pen_shard_reader reader; // of shard `shard`
    uint32_t shard;
    bool is_open;
    char *scratch; // [limit]
    uint64_t limit;
} pen_checkpoint_reader;

// `limit` bytes are read at once at most. All is borrowed; deinit in any case. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_checkpoint_reader_init(pen_checkpoint_reader *reader,
                                                    const pen_shard_place *place,
                                                    const pen_commit_manifest *manifest,
                                                    uint64_t limit);
void pen_checkpoint_reader_deinit(pen_checkpoint_reader *reader);

// `bytes` of a tensor from byte `first` on, of which `parts` [count] are all the parts.
//   CORRUPT says where; IO, NOT_FOUND, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_checkpoint_reader_read(pen_checkpoint_reader *reader,
                                                    const pen_checkpoint_part *parts,
                                                    uint32_t count, const pen_tensor_range *range,
                                                    void *out);

#endif // PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_READ_H
