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
// With a mirror there are two disks. One of them may be faulty from its first call on, or become
// so; and between lives a disk that is not the only one to have the last checkpoint may be replaced
// by an empty one. All promises hold of the two together, and
//
//   P6  of two checkpoints that follow each other, one at least is kept
//   P7  what is told durable is on the disk that is not faulty
//
// Threads: one.
#ifndef PEN_TESTS_SCHEDULER_CHECKPOINT_POWER_TRAINING_H
#define PEN_TESTS_SCHEDULER_CHECKPOINT_POWER_TRAINING_H

#include "scheduler/checkpoint/checkpoint.h"
#include "tests/support/faulty_disk.h"

#define POWER_DISKS 2

// How a life ends.
typedef enum power_end {
    POWER_END_DONE,  // by itself
    POWER_END_DEATH, // of its process: what it did is there, and not all of it durable
    POWER_END_LOSS,  // of power: what was not durable is lost, torn, or there
} power_end;

#define POWER_LIVES 3

// What is wrong with one of two disks.
typedef enum power_fault {
    POWER_FAULT_NONE,
    POWER_FAULT_SOME, // calls fail by chance, and bits are read wrong
    POWER_FAULT_FULL,
    POWER_FAULT_DEAD, // from a call of each life on
} power_fault;

typedef struct power_case {
    uint64_t seed;
    struct {
        power_end end;
        uint64_t cut_at;  // the call in which it ends, counted from 1
    } lives[POWER_LIVES]; // the last ends by itself
    faulty_disk_lie lie;
    bool is_mirrored;
    power_fault fault; // of disk `faulty`
    uint32_t faulty;
    uint64_t dead_from; // the call
    bool is_replaced;   // a disk between two lives, and behind the last
} power_case;

typedef struct power_result {
    bool was_cut;        // the first life ended in call cut_at
    char complaint[256]; // what promise was broken; "": none
} power_result;

// `subject` is what checkpoints are of; any will do.
void power_train(const power_case *the_case, const pen_checkpoint_subject *subject,
                 power_result *out_result);

#endif // PEN_TESTS_SCHEDULER_CHECKPOINT_POWER_TRAINING_H
