// Tensors of a process copied aside at a step's end, and written as a shard while training goes on.
//
// take copies them into memory that was allocated, and touched, when the writer was made; then a
// thread of the writer's own writes, syncs and renames the shard, and calls `done`. Where there is
// no room for a copy (`direct`), take writes itself, and returns when the shard is durable.
//
// Lifetime: create to destroy, which waits for the shard that is being written.
// Threads:  take by one thread at a time, not before `done` of the one before; done on the
// writer's.
#ifndef PEN_SCHEDULER_RUNTIME_EXECUTOR_SNAPSHOT_H
#define PEN_SCHEDULER_RUNTIME_EXECUTOR_SNAPSHOT_H

#include "scheduler/store/commit_log.h"
#include "scheduler/store/shard.h"

typedef struct pen_snapshot_writer pen_snapshot_writer;

typedef struct pen_snapshot_options {
    const pen_shard_tensor *tensors; // [count] borrowed for the writer's life
    uint32_t count;
    pen_shard_read read; // from the device, in the plain layout
    void *context;
    bool direct;
    // The shard is durable, or why not. The summary is valid during the call.
    void (*done)(void *done_context, uint64_t step, pen_status take_status,
                 const pen_shard_summary *summary);
    void *done_context;
} pen_snapshot_options;

// Bytes of memory that a writer takes, for the plan: of its tensors' bytes.
uint64_t pen_snapshot_bytes(const pen_shard_tensor *tensors, uint32_t count, bool direct);

PEN_NODISCARD pen_status pen_snapshot_writer_create(const pen_snapshot_options *options,
                                                    pen_snapshot_writer **out_writer);
// Copies, and begins to write `name` at `place`, whose disk outlives the writing. An error of the
// copying is returned, and `done` is not called; else it is called once.
PEN_NODISCARD pen_status pen_snapshot_take(pen_snapshot_writer *writer, uint64_t step,
                                           pen_shard_place place, const char *name);
bool pen_snapshot_is_writing(pen_snapshot_writer *writer);
void pen_snapshot_writer_destroy(pen_snapshot_writer *writer); // accepts NULL

#endif // PEN_SCHEDULER_RUNTIME_EXECUTOR_SNAPSHOT_H
