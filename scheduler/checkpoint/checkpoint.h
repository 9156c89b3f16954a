// The contract of this folder, defined in checkpoint_*.c.
//
// Where a training stands, in a folder, so that it goes on from there as if it had never stopped,
// on whatever devices, in whatever number.
//
//   DIR/commit/  which checkpoints there are, and who coordinates (scheduler/store/commit_log.h)
//   DIR/shards/  parameters, running statistics, optimizer states, by name; see
//                scheduler/store/shard.h
//
// A second folder, its mirror, may have the same, on another disk: each is whole by itself, and
// each checkpoint is brought to both before it counts. Where one of the two fails, the training
// goes on with the other; what is read is the newest that is whole, wherever it is.
//
// A checkpoint exists when its manifest is in the log; what that names is there whole. Random
// numbers (order of the data, dropout) depend on seed, step and microbatch alone, so that no state
// of them is kept.
//
// Lifetime: a store lives in the arena it was opened with, and holds nothing else.
// Threads:  one.
#ifndef PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_H
#define PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/data/batches.h"
#include "scheduler/job/job.h"
#include "scheduler/store/commit_log.h"
#include "scheduler/store/shard.h"
#include "scheduler/store/tensor_store.h"

// What the evaluations of a training have come to.
typedef struct pen_checkpoint_evaluated {
    uint64_t count;            // evaluations; 0: none, and nothing of the rest
    uint64_t best_step;        // after which the best was
    double best;               // its metric
    uint64_t since_best;       // evaluations since
    bool keeps_best;           // the checkpoint of the best stays
    pen_metric metric;         // that one, and the plateau's
    pen_plateau_state plateau; // of a learning rate that they decide
} pen_checkpoint_evaluated;

typedef struct pen_checkpoint {
    uint64_t step;             // that were done; at least 1
    pen_batches_position next; // the batch to come
    uint64_t rate_steps;       // over which the learning rate runs its course
    double loss;               // of the last step that has a finite one; NaN: none has
    double rate;               // the learning rate of the last step; 0: not known
    pen_loss_scale scale;      // of the step to come; all zero: the loss is not scaled
    uint64_t losses_hash;      // of the losses of all steps so far; 0: not known
    pen_checkpoint_evaluated evaluated;
    char arithmetic[PEN_COMMIT_ARITHMETIC_BYTES]; // as an engine says; "": "cpu"
    uint64_t changed_step;                        // after which that became another; 0: never
    uint64_t generation; // in which it was written; ignored when one is published
} pen_checkpoint;

// What a checkpoint is of. Borrowed: as long as the store.
typedef struct pen_checkpoint_subject {
    const pen_job *job;
    uint64_t example_count; // of the training data
} pen_checkpoint_subject;

typedef struct pen_checkpoint_folders {
    const char *folder;
    const char *mirror; // NULL: there is none
    pen_disk *disk;     // that they are on; NULL: that of this machine
} pen_checkpoint_folders;

typedef struct pen_checkpoint_store pen_checkpoint_store;

// Opens the folders; nothing is made in them, and they need not be there. Without a subject,
// checkpoints can be looked at, but none is written. One that cannot be read costs a warning, if
// the other has a log.
//   INVALID_INPUT  the two are of different trainings. IO, CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_checkpoint_store_open(const pen_checkpoint_folders *folders,
                                                   const pen_checkpoint_subject *subject,
                                                   pen_arena *arena,
                                                   pen_checkpoint_store **out_store);

// Takes the training over as a new generation, which it returns when that is durable; the folder is
// made. `incarnation` of this process is not 0. `begins`: the training starts at its first step,
// and checkpoints that are there are of another; they stay until there are new ones.
//   CANCELLED  another was quicker. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_checkpoint_store_fence(pen_checkpoint_store *store,
                                                    uint64_t incarnation, bool begins,
                                                    uint64_t *out_generation);

// The generation in force, 0: none yet. The name of the training: "penstock-" and 16 hexadecimal
// digits, drawn at the first fence; "" before. Where shards go next: DIR/shards, or that of the
// mirror. Where they go in copy 0, the folder, or 1, the mirror; NULL: there is no such copy.
uint64_t pen_checkpoint_store_generation(const pen_checkpoint_store *store);
const char *pen_checkpoint_store_job(const pen_checkpoint_store *store);
const char *pen_checkpoint_store_shard_folder(const pen_checkpoint_store *store);
const char *pen_checkpoint_store_copy_folder(const pen_checkpoint_store *store, uint32_t copy);

// How many checkpoints there are, and the record of one, newest first; valid until the store is
// changed. Index below count. The first folder that has it.
uint32_t pen_checkpoint_store_count(const pen_checkpoint_store *store);
const pen_commit_record *pen_checkpoint_store_record(const pen_checkpoint_store *store,
                                                     uint32_t index);
const char *pen_checkpoint_store_folder(const pen_checkpoint_store *store, uint32_t index);
// How many folders have it, whole or not; 0 where there is no such checkpoint.
uint32_t pen_checkpoint_store_copies(const pen_checkpoint_store *store, uint32_t index);

// What checkpoint `index`, from the newest 0 on, says.
//   NOT_FOUND      there is none; says what there is instead
//   INVALID_INPUT  it is of another model, other data, or a training with other batches: says which
//   IO, OUT_OF_MEMORY, and as reading the model
PEN_NODISCARD pen_status pen_checkpoint_store_newest(pen_checkpoint_store *store, uint32_t index,
                                                     pen_checkpoint *out_checkpoint);

// Sets all tensors, from whatever shards have them; where the folder's are damaged, from the
// mirror's, with a warning.
//   CORRUPT        a shard is damaged (which, and at which byte), or not there. Some tensors may
//                  have been set
//   INVALID_INPUT  lists the tensors that are missing, too many, or of another type; none was set
//   IO, OUT_OF_MEMORY, and as the store's write
PEN_NODISCARD pen_status pen_checkpoint_store_load(pen_checkpoint_store *store, uint32_t index,
                                                   const pen_tensor_store *tensors);
// The newest that is whole: one that is damaged is passed over with a warning. As newest and load.
PEN_NODISCARD pen_status pen_checkpoint_store_load_newest(pen_checkpoint_store *store,
                                                          const pen_tensor_store *tensors,
                                                          pen_checkpoint *out_checkpoint);

// Makes a checkpoint of shards that are durable in the folder of shards, and brings all of it to
// the mirror. The generation is that of the fence. That one of the two does not take it costs a
// warning; where it is the folder of shards, that of the other is used from now on.
//   CANCELLED      superseded by a higher generation
//   IO             it may be there or not. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_checkpoint_store_publish(pen_checkpoint_store *store,
                                                      const pen_checkpoint *checkpoint,
                                                      const pen_shard_summary *shards,
                                                      uint32_t shard_count);

// Has shards go to the other folder next, where there is one.
void pen_checkpoint_store_turn(pen_checkpoint_store *store);
// Shards could not be written to the folder of shards. `turns`: the other one is used next.
void pen_checkpoint_store_give_up(pen_checkpoint_store *store, bool turns);

// Removes all but the newest `keep` (at least 2) checkpoints, when the newest was read back and is
// whole, and shards that are part of none. As pen_commit_log_prune.
PEN_NODISCARD pen_status pen_checkpoint_store_prune(pen_checkpoint_store *store, uint32_t keep);

// Compares all that the checkpoint names with its checksums, and that its tensors are whole; in
// each folder that has it.
//   CORRUPT  each damage, with file and byte. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_checkpoint_store_verify(pen_checkpoint_store *store, uint32_t index);
// The least that can be seen without reading: in how many folders all its shards are there, as long
// as they were.
uint32_t pen_checkpoint_store_complete_count(pen_checkpoint_store *store, uint32_t index);
// Manifests and fences that are there and cannot be read.
uint32_t pen_checkpoint_store_damaged_count(const pen_checkpoint_store *store);

// Which tensors are exported.
typedef enum pen_checkpoint_export_what {
    PEN_CHECKPOINT_EXPORT_MODEL,    // the model's, low-rank adapters added to their weights
    PEN_CHECKPOINT_EXPORT_ADAPTERS, // these alone
    PEN_CHECKPOINT_EXPORT_ALL,      // all, with the optimizer's states ("PARAMETER/velocity", …)
} pen_checkpoint_export_what;

typedef struct pen_checkpoint_export {
    pen_checkpoint_export_what what;
    bool averages; // in place of parameters, where there are some; not for ALL
} pen_checkpoint_export;

// Writes the checkpoint's tensors into one safetensors file, under their names. As load, and
// pen_safetensors_save.
PEN_NODISCARD pen_status pen_checkpoint_store_export(pen_checkpoint_store *store, uint32_t index,
                                                     pen_checkpoint_export kind, const char *path);

#endif // PEN_SCHEDULER_CHECKPOINT_CHECKPOINT_H
