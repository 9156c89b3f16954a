// What a training keeps: when checkpoints are taken, how they get into the log, and which one it
// goes on from. The trainer asks after every step; nothing here knows how a step is done.
//
// A checkpoint is begun between two steps, written by the processes that hold the tensors while
// training goes on, and named by a manifest once all of it is durable; then older ones are removed,
// by a thread of the keeper's, since that reads the new one back. What fails to be written costs a
// checkpoint and a warning, not the training.
//
// Lifetime: create to destroy; the options' job outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_TRAIN_TRAIN_KEEPER_H
#define PEN_SCHEDULER_TRAIN_TRAIN_KEEPER_H

#include "scheduler/checkpoint/checkpoint.h"
#include "scheduler/engine/engine.h"

typedef struct pen_train_keeper pen_train_keeper;

typedef struct pen_train_keeper_options {
    const pen_job *job;
    uint64_t example_count; // of the training data
    const char *folder;     // of checkpoints
    const char *mirror;     // that has each, too; NULL: none
    pen_interval every;     // unless mtbf_seconds
    double mtbf_seconds;    // 0: none; see pen_job_checkpoint
    bool continues;         // what is in the folder is gone on from, if there is something
    bool overwrites;        // it is forgotten
} pen_train_keeper_options;

// Opens the folder's log. INVALID_INPUT: there is a checkpoint, and neither `continues` nor
// `overwrites`; or it is of something else. IO, CORRUPT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_train_keeper_create(const pen_train_keeper_options *options,
                                                 pen_train_keeper **out_keeper);
// Accepts NULL. Waits for what is being written to the log.
void pen_train_keeper_destroy(pen_train_keeper *keeper);

// For the engine, whose generations are those of the log.
const pen_engine_log *pen_train_keeper_log(pen_train_keeper *keeper);

// Writes the newest checkpoint that is whole into the engine's tensors. *out_found false: there is
// none. Waits for what is being written to the log. As pen_checkpoint_store_load_newest
PEN_NODISCARD pen_status pen_train_keeper_load(pen_train_keeper *keeper, pen_engine *engine,
                                               pen_checkpoint *out_checkpoint, bool *out_found);

// Whether a checkpoint is to be taken after a step.
bool pen_train_keeper_is_due(const pen_train_keeper *keeper, uint64_t step, uint64_t epoch,
                             bool ends_epoch);

// Begins a checkpoint; waits for the one before. Where one of two folders takes nothing, in the
// other. Errors are the engine's: of peers.
PEN_NODISCARD pen_status pen_train_keeper_take(pen_train_keeper *keeper, pen_engine *engine,
                                               const pen_checkpoint *checkpoint);
// Goes on with the one that is under way; `waits`: until it is in the log or given up. CANCELLED:
// superseded by another coordinator
PEN_NODISCARD pen_status pen_train_keeper_go_on(pen_train_keeper *keeper, pen_engine *engine,
                                                bool waits);
// The last one, unless the newest is of that step. It must get into the log: any failure is told,
// where others cost a warning. NO_STORAGE: it cannot be written now.
PEN_NODISCARD pen_status pen_train_keeper_take_last(pen_train_keeper *keeper, pen_engine *engine,
                                                    const pen_checkpoint *checkpoint);
// What was under way is given up: the engine has lost somebody.
void pen_train_keeper_abandon(pen_train_keeper *keeper);
// The generation that this process has fenced; 0: none yet.
uint64_t pen_train_keeper_generation(const pen_train_keeper *keeper);
// The newest checkpoint in the log, and where it is.
typedef struct pen_train_kept {
    uint64_t step;       // 0: there is none
    uint32_t copies;     // 2: it is in the mirror, too
    const char *folder;  // that has it; NULL: there is none
    const char *without; // that should have it, too, and has not; NULL: none
} pen_train_kept;
const pen_train_kept *pen_train_keeper_kept(const pen_train_keeper *keeper);

// Writes the model's tensors of the checkpoint of a step to a safetensors file. The engine has
// nothing under way. NOT_FOUND: there is no such checkpoint. As pen_checkpoint_store_export
PEN_NODISCARD pen_status pen_train_keeper_export(pen_train_keeper *keeper, uint64_t step,
                                                 pen_checkpoint_export kind, const char *path);

// The kernel level of the newest checkpoint of a folder and its mirror (NULL: it has none); "":
// there is none, or it does not say. Lives in `arena`. As pen_checkpoint_store_open
PEN_NODISCARD pen_status pen_train_keeper_read_level(const char *folder, const char *mirror,
                                                     pen_arena *arena, const char **out_level);

// Sets tensors to the newest checkpoint of a folder that nothing is kept in. As
// pen_checkpoint_store_load_newest
PEN_NODISCARD pen_status pen_train_keeper_load_from(const char *folder,
                                                    const pen_checkpoint_subject *subject,
                                                    const pen_tensor_store *tensors,
                                                    pen_checkpoint *out_checkpoint);

#endif // PEN_SCHEDULER_TRAIN_TRAIN_KEEPER_H
