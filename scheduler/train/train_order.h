// The order in which lanes come, where a training takes it as it comes: where it is recorded, and
// which steps are done in an order that is known: those of a record that is replayed, of what is
// gone on from, and of steps that are done again.
//
// Lifetime: begin to end; the options outlive it.
// Threads:  one.
#ifndef PEN_SCHEDULER_TRAIN_TRAIN_ORDER_H
#define PEN_SCHEDULER_TRAIN_TRAIN_ORDER_H

#include "graph/lanes.h"
#include "scheduler/checkpoint/order_book.h"
#include "scheduler/train/train_keeper.h"

typedef struct pen_train_order_options {
    const pen_job *job;
    uint64_t example_count; // of the training data
    uint64_t step_count;    // that the training has
    const char *replay;     // a record, or a folder of checkpoints with one; NULL: none
    pen_order_book *book;   // that is shared with others; NULL: one of its own
    bool is_kept;           // there is a folder for checkpoints
} pen_train_order_options;

typedef struct pen_train_order {
    pen_order_book *book; // NULL: the order is not free
    bool is_own;
    pen_lanes lanes;
    uint64_t microbatch_size; // examples
} pen_train_order;

// Where the job's order is free: reads what is replayed.
//   INVALID_INPUT  the order is not free, and there is a record to replay; or it would be recorded
//                  nowhere
//   CORRUPT        the record is too short for the training. As pen_order_book_read
PEN_NODISCARD pen_status pen_train_order_begin(const pen_train_order_options *options,
                                               pen_arena *arena, pen_train_order *out_order);
// Accepts one that is all zero.
void pen_train_order_end(pen_train_order *order);

// A folder of checkpoints, and its mirror; NULL: there is none.
typedef struct pen_train_order_folders {
    const char *folder;
    const char *mirror;
} pen_train_order_folders;

// Behind the start of the engine: reads the order of what is gone on from, which has done
// `steps_done`, and keeps all in the folders of the keeper, if there is one. One of two that fails
// costs a warning.
PEN_NODISCARD pen_status pen_train_order_go_on(pen_train_order *order,
                                               const pen_train_order_folders *from,
                                               uint64_t steps_done,
                                               const pen_train_order_folders *to,
                                               const pen_train_keeper *keeper);

// For the engine; 0: it is free, or not asked for.
pen_arrivals_order pen_train_order_find(const pen_train_order *order, uint64_t step);
// How the lanes of a step of so many examples came. As pen_order_book_add
PEN_NODISCARD pen_status pen_train_order_note(pen_train_order *order, uint64_t step,
                                              uint64_t examples, pen_arrivals_order lanes);
// Before a checkpoint. As pen_order_book_sync
PEN_NODISCARD pen_status pen_train_order_sync(pen_train_order *order);

#endif // PEN_SCHEDULER_TRAIN_TRAIN_ORDER_H
