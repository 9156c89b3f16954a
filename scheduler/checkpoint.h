// Where a training stands, in a folder, so that it goes on from there as if it had never stopped,
// on whatever devices.
//
//   DIR/step-12.safetensors  parameters, running statistics, optimizer states, by name
//   DIR/checkpoint.yaml      the manifest: which step, where in the data, what it is a training of
//
// Each is written beside and renamed, the manifest last: what it names is there whole. Random
// numbers (order of the data, dropout) depend on seed, step and microbatch alone, so that no state
// of them is kept.
//
// Threads: one.
#ifndef PEN_SCHEDULER_CHECKPOINT_H
#define PEN_SCHEDULER_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/job.h"
#include "scheduler/tensor_store.h"
#include "scheduler/training/batches.h"

typedef struct pen_checkpoint {
    uint64_t step;             // that were done; at least 1
    pen_batches_position next; // the batch to come
    uint64_t rate_steps;       // over which the learning rate runs its course
    double loss;               // of the last step
} pen_checkpoint;

// What a checkpoint is of. Borrowed for the call.
typedef struct pen_checkpoint_subject {
    const pen_job *job;
    uint64_t example_count; // of the training data
    const pen_tensor_store *store;
} pen_checkpoint_subject;

// Makes the folder, writes, and removes the tensors of the checkpoint that was there.
//   IO, OUT_OF_MEMORY, and as the store's read; a checkpoint that was there is then still there
PEN_NODISCARD pen_status pen_checkpoint_save(const char *folder,
                                             const pen_checkpoint_subject *subject,
                                             const pen_checkpoint *checkpoint);

// Writes the tensors of the checkpoint into the store.
//   NOT_FOUND      there is none
//   INVALID_INPUT  it is of another model, other data, or a training with other batches: says which
//   CORRUPT        the tensors are not those that were written
//   IO, OUT_OF_MEMORY, and as the store's write
PEN_NODISCARD pen_status pen_checkpoint_load(const char *folder,
                                             const pen_checkpoint_subject *subject,
                                             pen_checkpoint *out_checkpoint);

// Which step a checkpoint in the folder is of; 0: there is none that can be read.
uint64_t pen_checkpoint_find(const char *folder);

#endif // PEN_SCHEDULER_CHECKPOINT_H
