// The contract of checkpoint_*.c among themselves.
//
// The inside of a checkpoint store, for the files that make it up, and what order_book.c asks of
// it.
#ifndef PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_STATE_H
#define PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_STATE_H

#include "scheduler/checkpoint/checkpoint.h"
#include "scheduler/store/commit_log.h"

#define PEN_CHECKPOINT_HASH_BYTES 17

struct pen_checkpoint_store {
    pen_disk *disk;
    pen_arena *arena;
    pen_arena *scratch;                    // of one call
    const pen_checkpoint_subject *subject; // NULL: only to be looked at
    const char *folder;
    const char *commit_folder;
    const char *shard_folder;
    pen_commit_log *log; // NULL: the folder has none
    uint64_t generation; // that was fenced here; 0: none
    uint64_t incarnation;
    char model_hash[PEN_CHECKPOINT_HASH_BYTES]; // "": not computed yet
};

// The hash of the model in a file. As pen_model_open
PEN_NODISCARD pen_status pen_checkpoint_hash_model(const char *path,
                                                   const pen_import_options *options,
                                                   char out_text[PEN_CHECKPOINT_HASH_BYTES]);

#endif // PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_STATE_H
