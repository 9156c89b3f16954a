// Checkpoints of an engine whose tensors are all in this process: copied aside, and written by a
// thread as one shard.
//
// Lifetime: create to destroy; the tensors outlive it.
// Threads:  one.
#ifndef PEN_SCHEDULER_ENGINE_LOCAL_SAVE_H
#define PEN_SCHEDULER_ENGINE_LOCAL_SAVE_H

#include "scheduler/engine/engine.h"

typedef struct pen_local_save pen_local_save;

// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_local_save_create(const pen_tensor_store *tensors,
                                               pen_local_save **out_save);
// What it takes beside the tensors. Accepts NULL: nothing.
uint64_t pen_local_save_bytes(const pen_local_save *save);
// Accepts NULL.
void pen_local_save_destroy(pen_local_save *save);

// As the members of pen_engine_kind.
PEN_NODISCARD pen_status pen_local_save_begin(pen_local_save *save, uint64_t generation,
                                              uint64_t step, const char *folder);
void pen_local_save_poll(pen_local_save *save, pen_engine_saved *out_saved);

#endif // PEN_SCHEDULER_ENGINE_LOCAL_SAVE_H
