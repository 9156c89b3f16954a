// The contract of checkpoint_*.c among themselves.
//
// The inside of a checkpoint store, for the files that make it up, and what order_book.c asks of
// it.
#ifndef PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_STATE_H
#define PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_STATE_H

#include "scheduler/checkpoint/checkpoint.h"
#include "scheduler/store/commit_log.h"

#define PEN_CHECKPOINT_HASH_BYTES 17
#define PEN_CHECKPOINT_FOLDER_LIMIT 4096u // files that a folder of checkpoints may have

#define PEN_CHECKPOINT_COPIES 2 // the folder, and its mirror

// One of the folders that a training's checkpoints are kept in. Each is whole by itself.
typedef struct pen_checkpoint_copy {
    pen_disk *disk;
    const char *folder;
    const char *commit_folder;
    const char *shard_folder;
    pen_arena *arena;    // of the log, which is opened anew after the folder was away
    pen_commit_log *log; // NULL: the folder has none, or is away
    uint64_t fenced;     // the generation that was fenced here; 0: none
    bool is_away;        // a call to it failed: said, and tried again with the next checkpoint
} pen_checkpoint_copy;

// A checkpoint, as each of the copies has it.
typedef struct pen_checkpoint_entry {
    const pen_commit_record *records[PEN_CHECKPOINT_COPIES]; // NULL: that one has it not
} pen_checkpoint_entry;

struct pen_checkpoint_store {
    pen_arena *arena;
    pen_arena *scratch;                    // of one call
    const pen_checkpoint_subject *subject; // NULL: only to be looked at
    pen_checkpoint_copy copies[PEN_CHECKPOINT_COPIES];
    uint32_t copy_count;
    uint32_t source;               // the copy to whose folder shards are written
    pen_checkpoint_entry *entries; // [entry_count], newest first, [entry_room]
    uint32_t entry_count;
    uint32_t entry_room;
    char job[PEN_COMMIT_TEXT_BYTES]; // "": there is none yet
    uint64_t begun;                  // generation from which on checkpoints are of this training
    uint64_t generation;             // that was fenced here; 0: none
    uint64_t incarnation;
    char model_hash[PEN_CHECKPOINT_HASH_BYTES]; // "": not computed yet
};

// ---- copies (checkpoint_copies.c)

// What is done to a copy.
typedef pen_status (*pen_checkpoint_deed)(pen_checkpoint_store *store, pen_checkpoint_copy *copy,
                                          void *context);

// Does it to each copy, beginning with the source, and lists the checkpoints anew. What fails by
// one folder's fault costs a warning that says `what` the folder has not got, where the other does
// it; what fails in all is the error. Other errors end it at once.
PEN_NODISCARD pen_status pen_checkpoint_copies_do(pen_checkpoint_store *store, const char *what,
                                                  pen_checkpoint_deed deed, void *context);
// Reads the log of a folder that has one.
PEN_NODISCARD pen_status pen_checkpoint_copy_open(pen_checkpoint_store *store,
                                                  pen_checkpoint_copy *copy, void *context);
// Makes sure that the generation of the store is fenced in the copy, with its folders there.
PEN_NODISCARD pen_status pen_checkpoint_copy_fence(pen_checkpoint_store *store,
                                                   pen_checkpoint_copy *copy, void *context);

// The record of a checkpoint, whose shards are in the source's folder.
typedef struct pen_checkpoint_publication {
    pen_commit_record record; // its number is that of the copy that had it last
    pen_status failure;       // why the shards are not in the other copy, too
} pen_checkpoint_publication;
// Brings the shards to the other copy. A failure to do so is in the publication; one to read them
// back is the error, and the source's fault: then there is no such checkpoint.
PEN_NODISCARD pen_status pen_checkpoint_copies_carry(pen_checkpoint_store *store,
                                                     pen_checkpoint_publication *publication);
// Brings the record. `context` is a publication.
PEN_NODISCARD pen_status pen_checkpoint_copy_publish(pen_checkpoint_store *store,
                                                     pen_checkpoint_copy *copy, void *context);

// Lists anew what checkpoints the copies' logs have. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_checkpoint_copies_list(pen_checkpoint_store *store);

// Turns from the folder of shards when that is away, and the other is not.
void pen_checkpoint_store_leave(pen_checkpoint_store *store);

// Where a copy's shards are.
pen_shard_place pen_checkpoint_copy_place(const pen_checkpoint_copy *copy);

// The hash of the model in a file. As pen_model_open
PEN_NODISCARD pen_status pen_checkpoint_hash_model(const char *path,
                                                   const pen_import_options *options,
                                                   char out_text[PEN_CHECKPOINT_HASH_BYTES]);

#endif // PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_STATE_H
