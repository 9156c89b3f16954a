// The contract of the coordinator_ sources about checkpoints: where workers write, what they say of
// their shards, and copies of these. The rest of the state is that of coordinator_link.h.
#ifndef PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_SHARDS_H
#define PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_SHARDS_H

#include "base/thread.h"
#include "scheduler/protocol/message.h"
#include "scheduler/runtime/coordinator/coordinator.h"
#include "scheduler/store/shared_folder.h"

// The last save. Guarded by the lock, but for what the caller's thread alone sets.
typedef struct coordinator_save {
    pen_arena *arena; // of the summaries
    pen_coordinator_saved saved;
    pen_shard_summary *summaries; // [worker_count + 1]
    pen_shard_summary *listed;    // those there are, one behind the other
    bool *has_summary;            // [worker_count + 1]
    uint64_t number;              // of the order to save; 0: none was given yet
    bool has_snapped;
    bool is_told;   // the caller, that all shards are durable
    double held_at; // when the deadline of the manifest last began anew, since it was not told
    char folder[PEN_MESSAGE_TEXT_BYTES];
    char resolved[PEN_MESSAGE_TEXT_BYTES]; // the same, as the system sees it; "": not known
    uint64_t mark;                         // that is in it
    char failure[PEN_MESSAGE_TEXT_BYTES];
} coordinator_save;

// The folders that will be saved to, of which workers say whether they see them.
typedef struct coordinator_sought {
    // set before workers are assigned
    const char *given[PEN_SHARED_FOLDER_LIMIT]; // NULL: there is none
    char resolved[PEN_SHARED_FOLDER_LIMIT][PEN_MESSAGE_TEXT_BYTES];
    uint64_t mark;   // of the first; that of the second is one more
    uint32_t marked; // bits, of those that have it: the others were away
    // guarded by lock
    uint32_t open;                             // bits, of those that all workers see, or may see
    uint32_t without[PEN_SHARED_FOLDER_LIMIT]; // a worker that does not; 0: none
} coordinator_sought;

// Shards on their way to this process, where workers have disks of their own.
typedef struct coordinator_copy {
    pen_thread *thread; // of one save
    uint8_t *part;      // [PEN_MESSAGE_PART_LIMIT]; guarded by lock while it is asked for
    // guarded by lock
    bool is_wanted; // all shards of the save are durable
    bool is_asking, is_answered;
    uint32_t worker;
    uint64_t offset;
    uint64_t part_length;
} coordinator_copy;

// ---- checkpoints (coordinator_save.c)
PEN_NODISCARD pen_status pen_coordinator_prepare_save(pen_coordinator *c);

// ---- where workers write (coordinator_store.c)

// Finds the folders that will be saved to.
void pen_coordinator_seek_folders(pen_coordinator *c);
// When they are there: marks them, so that workers can say whether they see them; and takes the
// marks back.
void pen_coordinator_mark_folders(pen_coordinator *c);
void pen_coordinator_unmark_folders(pen_coordinator *c);
// What workers that are assigned are told of them.
void pen_coordinator_name_folders(const pen_coordinator *c, pen_message *assign);
// Which of them a worker that is ready sees. INVALID_INPUT: there is none that all see, with what
// can be done
PEN_NODISCARD pen_status pen_coordinator_take_seen(pen_coordinator *c, uint32_t worker,
                                                   uint32_t seen);
// When all are ready: says which of two folders one of them does not see.
void pen_coordinator_say_unseen(pen_coordinator *c);
// Whether a worker can write at all where it should. Holds the lock. INVALID_INPUT likewise
PEN_NODISCARD pen_status pen_coordinator_check_store(const pen_coordinator *c, uint32_t worker);

// Marks the folder that is saved to now. As pen_shared_folder_mark
PEN_NODISCARD pen_status pen_coordinator_mark_save(pen_coordinator *c, const char *folder);
void pen_coordinator_unmark_save(pen_coordinator *c);
// What a worker is told of it.
void pen_coordinator_name_store(pen_coordinator *c, uint32_t worker, pen_message *snapshot);

// ---- what workers say of a save (coordinator_link.c)

// What a worker says of its shard; *out_code is what the core is told.
void pen_coordinator_read_shard(pen_coordinator *c, uint32_t peer, const pen_message *message,
                                uint32_t *out_code);
// What the core says of the save. Hold the lock.
void pen_coordinator_note_durable(pen_coordinator *c);
void pen_coordinator_hold_publishing(pen_coordinator *c); // with each tick, before it
void pen_coordinator_note_save_failed(pen_coordinator *c);

// ---- shards from workers' own disks (coordinator_copy.c). Without is_local_store they do nothing.
PEN_NODISCARD pen_status pen_coordinator_prepare_copy(pen_coordinator *c);
// Before the save is asked for: a thread that copies when all shards are durable.
PEN_NODISCARD pen_status pen_coordinator_begin_copy(pen_coordinator *c);
// Waits for it; the save is over, or the run is.
void pen_coordinator_end_copy(pen_coordinator *c);
void pen_coordinator_take_shard_part(pen_coordinator *c, uint32_t peer, const pen_message *message);

#endif // PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_SHARDS_H
