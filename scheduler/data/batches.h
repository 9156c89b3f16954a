// The loader: batches of a dataset, epoch after epoch, read ahead on a thread of its own.
//
// In epoch e, example order[i] comes i-th, where order is pen_batches_shuffle(seed, e) or, without
// shuffling, 0, 1, 2, …; or pen_balance_draw, where classes are balanced. Batch b of an epoch has
// the examples from b * batch_size on; the last one has what is left. So a batch is a function of
// (options, epoch, index) and nothing else, and resuming needs these two numbers only.
//
//       reader thread                     consumer
//   fill ─► fill ─► fill ─►  [ring]  ─► next ─► next ─► …
//   waits while no buffer is free        waits while none is filled
//
// Memory:   everything is allocated by pen_batches_create; after that only a dataset of images may
//           allocate, when a picture is larger than all before it.
// Lifetime: the dataset outlives the batches, and nobody else reads it meanwhile.
// Threads:  one consumer; pen_batches_stop may be called from any thread.
#ifndef PEN_SCHEDULER_DATA_BATCHES_H
#define PEN_SCHEDULER_DATA_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/data/dataset.h"

#define PEN_BATCHES_AHEAD_LIMIT 16

typedef struct pen_batches_position {
    uint64_t epoch; // from 0
    uint64_t index; // of the batch in its epoch
} pen_batches_position;

typedef struct pen_batches_options {
    uint64_t batch_size; // at least 1
    bool shuffle;        // false: the order of the files
    bool balances;       // shuffled: classes are equally likely (scheduler/data/balance.h)
    bool drop_last;      // leave out a last batch that is short
    uint64_t seed;
    uint64_t epoch_count;       // 0: no end
    uint32_t buffer_count;      // 2 to PEN_BATCHES_AHEAD_LIMIT, the consumer's included; 0: 3
    uint32_t held_count;        // batches that the consumer has at once, below buffer_count; 0: 1
    bool labels_only;           // inputs are read by pen_batches_complete alone
    bool is_training;           // pictures are changed by chance, and batches mixed, as
                                // the data's options say
    bool is_whole;              // targets are weighed over the whole dataset, not over a batch
    pen_batches_position start; // the first batch to come
} pen_batches_options;

// One batch. Elements beyond `count` examples are 0 or those of an earlier batch.
typedef struct pen_batch {
    pen_batches_position position; // of this batch
    pen_batches_position next;     // where to go on after it
    uint64_t count;                // examples, 1 to batch_size
    const uint64_t *indices;       // [count] of the dataset
    void *const *inputs;           // [input_count], each [batch_size][an example of the input]
    void *const *labels; // [label_count], each [batch_size][an example's labels]; NULL: none
    // What losses are scaled by, see pen_dataset_scale: of this batch or the whole dataset.
    const float *const *scales;    // [target_count], each [batch_size]; without weights of examples
                                   // all the same
    const uint64_t *target_counts; // [target_count] targets of this batch that count
} pen_batch;

typedef struct pen_batches pen_batches;

// Allocates the buffers and starts reading.
//   INVALID_INPUT  an option is wrong, there is no batch, or `start` is beyond the epoch's end
//   OUT_OF_MEMORY, UNAVAILABLE (no thread)
PEN_NODISCARD pen_status pen_batches_create(pen_dataset *dataset,
                                            const pen_batches_options *options,
                                            pen_batches **out_batches);

// The next batch, or NULL after the last epoch. It is the consumer's until held_count calls later.
// Errors of reading come in their place in the order, after the batches before them; then it is
// over.
//   CANCELLED  pen_batches_stop was called, or an error was returned before
//   else       see pen_dataset_read
PEN_NODISCARD pen_status pen_batches_next(pen_batches *batches, const pen_batch **out_batch);

// Ends the reading, and reads the inputs of a batch that the consumer has, for who read none of
// them. As pen_dataset_read; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_batches_complete(pen_batches *batches, const pen_batch *batch);

// Makes this and all further calls of pen_batches_next return CANCELLED. Does not wait.
void pen_batches_stop(pen_batches *batches);

// Stops, waits for the thread (for one batch to be read, at most), and frees. Accepts NULL.
void pen_batches_destroy(pen_batches *batches);

// Batches of one epoch.
uint64_t pen_batches_per_epoch(const pen_batches *batches);

// The same number before there is a loader, 0 if there is no batch. `batch_size` is at least 1.
uint64_t pen_batches_count(uint64_t example_count, uint64_t batch_size, bool drop_last);

// Writes the order of epoch `epoch`: a permutation of [0, count) by Fisher and Yates, drawn from
// the stream ("shuffle", epoch) of `seed`.
void pen_batches_shuffle(uint64_t seed, uint64_t epoch, uint64_t count, uint64_t *out_order);

#endif // PEN_SCHEDULER_DATA_BATCHES_H
