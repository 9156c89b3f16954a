// The order in which lanes came, of every step of a training that takes it as it comes: what was
// done is known, and is done so again, after a loss or in another run.
//
// A book is kept in a folder of checkpoints, as DIR/order/order.000000000003: 3 is the generation
// in which the process that writes it began (scheduler/store/commit_log.h), so that no other writes
// the same file. Each has all steps from the first on (order_record.h): who takes over writes a new
// one before it adds to it, and removes those before. So the one with the highest number counts.
//
// Lines are appended as steps are done, and synced before a checkpoint names a step: an order that
// was told survives the end of its process, and one that a checkpoint builds on that of its
// machine. What fails to be written is written again, whole, with the next sync.
//
// Lifetime: create to destroy; the disk outlives it.
// Threads:  one.
#ifndef PEN_SCHEDULER_CHECKPOINT_ORDER_BOOK_H
#define PEN_SCHEDULER_CHECKPOINT_ORDER_BOOK_H

#include "scheduler/checkpoint/checkpoint.h"
#include "scheduler/checkpoint/order_record.h"

typedef struct pen_order_book pen_order_book;

// What a training is, as records of its order say it: what checkpoints go by, in one line. As
// reading the model; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_order_describe(const pen_checkpoint_subject *subject,
                                            char out_of[PEN_ORDER_OF_BYTES]);

// Of no step. `disk` NULL: that of this machine. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_order_book_create(pen_disk *disk, const char *of,
                                               pen_order_book **out_book);
// Accepts NULL. Syncs nothing.
void pen_order_book_destroy(pen_order_book *book);

// Adds the steps that a record has: a file, or the newest in a folder of checkpoints. Errors have
// the line in the record.
//   NOT_FOUND      there is none
//   CORRUPT        it cannot be read, up to step `least` at least; what is damaged behind that is
//                  left out, unless `least` is UINT64_MAX
//   INVALID_INPUT  it is of another training, or has a step in another order than is known
//   IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_order_book_read(pen_order_book *book, const char *path,
                                             uint64_t least);
// The same of a folder and its mirror (NULL: it has none): of the record that was written last, and
// of the other, with a warning, where that cannot be read.
PEN_NODISCARD pen_status pen_order_book_read_either(pen_order_book *book, const char *folder,
                                                    const char *mirror, uint64_t least);
// From now on it is kept in the folder, in a record of a generation that is this process's own:
// which is written, with what is known so far, before it returns. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_order_book_keep(pen_order_book *book, const char *folder,
                                             uint64_t generation);
// The same in a folder and its mirror (NULL: it has none). One that does not take it costs a
// warning, and is tried again with each sync.
PEN_NODISCARD pen_status pen_order_book_keep_both(pen_order_book *book, const char *folder,
                                                  const char *mirror, uint64_t generation);

// The steps that are known: from the first on.
uint64_t pen_order_book_count(const pen_order_book *book);
// The order of a step, counted from 1; NULL: it is not known.
const pen_step_order *pen_order_book_find(const pen_order_book *book, uint64_t step);
// The order in which a step was done. One that is known stays. CORRUPT: it is known, and another;
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_order_book_add(pen_order_book *book, uint64_t step,
                                            const pen_step_order *order);
// Returns when all that is known is durable in a folder that it is kept in; where it is kept in
// none, at once. That one of two has it not costs a warning. IO: it may be in none; the next call
// tries again
PEN_NODISCARD pen_status pen_order_book_sync(pen_order_book *book);

#endif // PEN_SCHEDULER_CHECKPOINT_ORDER_BOOK_H
