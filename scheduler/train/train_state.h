// The contract of train_loop.c and train_start.c: the inside of a trainer.
#ifndef PEN_SCHEDULER_TRAIN_TRAIN_STATE_H
#define PEN_SCHEDULER_TRAIN_TRAIN_STATE_H

#include "scheduler/data/batches.h"
#include "scheduler/job/learning_rate.h"
#include "scheduler/train/train.h"
#include "scheduler/train/train_judge.h"
#include "scheduler/train/train_keeper.h"
#include "scheduler/train/train_losses.h"
#include "scheduler/train/train_order.h"

// The step that comes next, where its batch is at hand already.
typedef struct train_ahead {
    const pen_batch *batch; // NULL: it is not
    double wait_seconds;    // that it took to come
    pen_status error;       // why it is not, to be told in its turn
} train_ahead;

struct pen_trainer {
    const pen_job *job;
    pen_arena *arena;
    pen_dataset *dataset;
    const pen_dataset_info *info;
    pen_batches *batches;
    pen_engine *engine;
    pen_learning_rate_options learning_rate;
    uint64_t rate_steps;        // over which the learning rate runs its course
    uint64_t rate_steps_before; // that, in the checkpoint that it goes on from; 0: there is none
    double rate_before;         // of its last step; 0: there is none, or it does not say
    uint64_t epoch_steps;
    uint64_t step_count;       // after which it is over
    uint64_t steps_done;       // in this generation or a checkpoint that it began with
    uint64_t steps_reported;   // those up to it are done again silently
    uint64_t steps_begun;      // with which the generation began
    pen_batches_position next; // of the batch to come
    double loss;               // of the last step that has a finite one; NaN: none has
    pen_loss_scale scale;      // of the next; all zero: the loss is not scaled
    pen_train_losses losses;   // of the steps so far
    char arithmetic[PEN_COMMIT_ARITHMETIC_BYTES]; // of the engine; "": not known yet
    uint64_t changed_step;                        // after which it became another; 0: never
    pen_train_keeper *keeper;                     // NULL: nothing is kept
    pen_train_order order;                        // of lanes
    const char *parameters;                       // that it started from; NULL: the model's
    const char *resume;
    train_ahead ahead;
    bool runs_ahead;
    uint64_t recovery_count;
    char lost[256];      // what failed before the step that is tried again; "": nothing did
    uint64_t lost_after; // steps that were done then
    const pen_train_watch *watch; // NULL: nobody
    bool is_due;                  // a checkpoint, after the step that is under way
    bool is_judged;               // likewise: an evaluation
    pen_train_judge judge;
};

// Sets tensors, step and data to the newest checkpoint, or to the start where there is none. As
// pen_train_keeper_load
PEN_NODISCARD pen_status pen_trainer_load(pen_trainer *trainer);
// What an engine says of cpu devices alone, for which checkpoints have no word.
#define TRAIN_ARITHMETIC_OF_CPU "cpu"
// The learning rate of the step that follows `steps_before`.
double pen_trainer_rate(const pen_trainer *trainer, uint64_t steps_before);
// Begins to read batches, from the next step's on. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_trainer_read_ahead(pen_trainer *trainer);

#endif // PEN_SCHEDULER_TRAIN_TRAIN_STATE_H
