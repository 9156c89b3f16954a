// Judges a training while it runs, as `evaluation` of a job says: when the evaluation data are gone
// through, which step was best so far, and when the training ends because none was better for long.
//
// What it has found out is a few numbers, the verdict, which go into each checkpoint. They follow
// from the parameters of the steps alone, so that a training that goes on from a checkpoint decides
// as one that was never stopped.
//
// Lifetime: in one place, as long as the job and the dataset.
// Threads:  one.
#ifndef PEN_SCHEDULER_TRAIN_TRAIN_JUDGE_H
#define PEN_SCHEDULER_TRAIN_TRAIN_JUDGE_H

#include "scheduler/checkpoint/checkpoint.h"
#include "scheduler/engine/engine.h"

typedef struct pen_train_judge {
    const pen_job *job;
    pen_dataset *dataset;             // NULL: nothing is evaluated while it runs
    uint64_t step_count;              // of the job, after which it is evaluated once more
    pen_checkpoint_evaluated verdict; // so far
} pen_train_judge;

// `dataset` is that of the job's evaluations, `step_count` as the job has it, `has_folder` whether
// checkpoints are kept. Errors have a position.
//   INVALID_INPUT  what the job asks for needs a folder of checkpoints, or a loss over classes
PEN_NODISCARD pen_status pen_train_judge_init(pen_train_judge *judge, const pen_job *job,
                                              pen_dataset *dataset, const pen_program *program,
                                              uint64_t step_count, bool has_folder);

// Goes back to what a checkpoint says, or all zero, to the beginning.
void pen_train_judge_stand_at(pen_train_judge *judge, const pen_checkpoint_evaluated *verdict);

// Whether there is an evaluation after a step. A step that it comes after does not begin the next.
bool pen_train_judge_is_due(const pen_train_judge *judge, uint64_t step, uint64_t epoch,
                            bool ends_epoch);

// Takes an evaluation after `step` into account. True: it is the best so far.
bool pen_train_judge_add(pen_train_judge *judge, uint64_t step, const pen_evaluation *evaluation);

// The learning rate of the next step, which has `scheduled` by the schedule: less, where
// evaluations have decided so. In a warm-up as much less as behind it.
double pen_train_judge_rate(const pen_train_judge *judge, double scheduled);

// Whether so many evaluations in a row were no better that the training ends.
bool pen_train_judge_is_over(const pen_train_judge *judge);

#endif // PEN_SCHEDULER_TRAIN_TRAIN_JUDGE_H
