// Shards and the commit log of a simulated training, through the product's store.
#ifndef PEN_TESTS_SIMULATOR_CHECKPOINTS_H
#define PEN_TESTS_SIMULATOR_CHECKPOINTS_H

#include "scheduler/protocol/message.h"
#include "scheduler/store/commit_log.h"
#include "tests/simulator/world.h"

// The parameters that a worker has.
typedef struct checkpoint_part {
    uint32_t count;
    uint32_t stages[SHAPE_STAGES];
    uint64_t words[SHAPE_STAGES];
} checkpoint_part;

// Writes a shard; out_message gets its summary.
PEN_NODISCARD pen_status checkpoint_write_shard(process *p, const checkpoint_part *part,
                                                uint64_t generation, uint64_t step, uint32_t worker,
                                                pen_message *out_message);

// Reads the parameters of all stages from the shards of a manifest. out_words [SHAPE_STAGES]
PEN_NODISCARD pen_status checkpoint_read(pen_disk *disk, const pen_commit_record *record,
                                         uint32_t stage_count, uint64_t *out_words);

#endif // PEN_TESTS_SIMULATOR_CHECKPOINTS_H
