// The contract of the coordinator_ sources about checkpoints: where workers write, what they say of
// their shards, and copies of these. The state is that of coordinator_link.h.
#ifndef PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_SHARDS_H
#define PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_SHARDS_H

#include "scheduler/protocol/message.h"
#include "scheduler/runtime/coordinator/coordinator.h"

// ---- checkpoints (coordinator_save.c)
PEN_NODISCARD pen_status pen_coordinator_prepare_save(pen_coordinator *c);

// ---- where workers write (coordinator_store.c)

// Notes where the folder is that is saved to.
void pen_coordinator_resolve_store(pen_coordinator *c, const char *folder);
// What a worker is told of it.
void pen_coordinator_name_store(pen_coordinator *c, uint32_t worker,
                                char out_name[PEN_MESSAGE_TEXT_BYTES]);
// Whether a worker can write there. Holds the lock. INVALID_INPUT, with what can be done
PEN_NODISCARD pen_status pen_coordinator_check_store(const pen_coordinator *c, uint32_t worker);

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
