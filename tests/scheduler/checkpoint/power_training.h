// A training's checkpoints, from the opening of the folder to the removal of old ones, on a disk in
// memory whose power goes at one of its calls; and the training that goes on from what is left.
//
// A training has lives. Each opens the folder, takes over, goes on from the newest checkpoint, and
// leaves one after each step, with the order of its lanes; all but the last end in the middle of a
// call. What a life was told is durable must be there for all that come after:
//
//   P1  the last two checkpoints that were told durable are whole, with the bytes they were made of
//   P2  each record of the log can be read, and each checkpoint it names is whole
//   P3  the generation is not below one that was told durable
//   P4  the order of the steps of the newest checkpoint is there
//   P5  the next life can take over, and leave checkpoints
//
// Threads: one.
#ifndef PEN_TESTS_SCHEDULER_CHECKPOINT_POWER_TRAINING_H
#define PEN_TESTS_SCHEDULER_CHECKPOINT_POWER_TRAINING_H

#include "scheduler/checkpoint/checkpoint.h"
#include "tests/support/faulty_disk.h"

// How a life ends.
typedef enum power_end {
    POWER_END_DONE,  // by itself
    POWER_END_DEATH, // of its process: what it did is there, and not all of it durable
    POWER_END_LOSS,  // of power: what was not durable is lost, torn, or there
} power_end;

#define POWER_LIVES 3

typedef struct power_case {
    uint64_t seed;
    struct {
        power_end end;
        uint64_t cut_at;  // the call in which it ends, counted from 1
    } lives[POWER_LIVES]; // the last ends by itself
    faulty_disk_lie lie;
} power_case;

typedef struct power_result {
    uint64_t first_calls; // of the first life
    bool was_cut;         // it ended in call cut_at
    char complaint[256];  // what promise was broken; "": none
} power_result;

// `subject` is what checkpoints are of; any will do.
void power_train(const power_case *the_case, const pen_checkpoint_subject *subject,
                 power_result *out_result);

#endif // PEN_TESTS_SCHEDULER_CHECKPOINT_POWER_TRAINING_H
