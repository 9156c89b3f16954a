// What a training that is done leaves: first its parameters, where the job and the command line
// want them, then the last checkpoint. Either is enough: where the other cannot be written, that is
// a warning. Where nothing can be written, or no parameters, the devices keep their state and all
// is tried again, for as long as `checkpoint: {retry: …}` of the job says, or until somebody wants
// the process to end.
//
// Threads: one, that of the trainer.
#ifndef PEN_SCHEDULER_TRAIN_TRAIN_END_H
#define PEN_SCHEDULER_TRAIN_TRAIN_END_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/job/job.h"
#include "scheduler/train/train.h"

// Borrowed: as long as the trainer.
typedef struct pen_train_outputs {
    const pen_job *job;     // whose outputs.export is written
    const char *save;       // file of parameters; NULL: none
    const char *parameters; // another, in outputs.dir; NULL: none
    const char *checkpoint; // the folder of checkpoints; NULL: none are kept
    const char *mirror;     // their second folder; NULL: there is none
} pen_train_outputs;

// What is asked of the trainer's engine after the last step, as often as somebody is lost over it.
PEN_NODISCARD pen_status pen_train_insist(pen_trainer *trainer, pen_status (*ask)(void *context),
                                          void *context);

//   NO_STORAGE  nothing that was wanted could be written, for as long as it was tried
//   else        as pen_trainer_recover, pen_model_export
PEN_NODISCARD pen_status pen_train_end(pen_trainer *trainer, const pen_train_outputs *outputs);

// Before the first step: whether the disks have room for the outputs, and for two checkpoints less
// those that are there. Of a folder of checkpoints and its mirror one is enough, with a warning.
// On a disk that is gone, or full meanwhile, the training fails all the same.
//   NO_STORAGE  names the folder, what its disk has left and what is needed
PEN_NODISCARD pen_status pen_train_check_room(pen_trainer *trainer,
                                              const pen_train_outputs *outputs, pen_arena *arena);

#endif // PEN_SCHEDULER_TRAIN_TRAIN_END_H
