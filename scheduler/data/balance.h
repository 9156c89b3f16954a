// An order of examples in which each class is as likely as any other: drawn with replacement, as
// PyTorch's WeightedRandomSampler does with weights of 1 / examples of the class.
//
// Place i of epoch e has a class that element 2 i of the stream ("balance", e) chooses, and an
// example of this class that element 2 i + 1 does (base/random.h). So it depends on the seed and on
// the labels alone, and a training that goes on needs nothing but its place.
//
// Lifetime: from create to destroy; the dataset is not needed any more.
// Threads:  once made, it may be read by any.
#ifndef PEN_SCHEDULER_DATA_BALANCE_H
#define PEN_SCHEDULER_DATA_BALANCE_H

#include <stdint.h>

#include "base/status.h"
#include "scheduler/data/dataset.h"

typedef struct pen_balance pen_balance;

// Reads the labels of all examples. Those that no loss counts (ignore_index) are of no class.
//   INVALID_INPUT  there is not one class index an example, or none counts. As pen_dataset_read
PEN_NODISCARD pen_status pen_balance_create(pen_dataset *dataset, pen_balance **out_balance);
// Accepts NULL.
void pen_balance_destroy(pen_balance *balance);

// Writes the order of an epoch: `count` examples.
void pen_balance_draw(const pen_balance *balance, uint64_t seed, uint64_t epoch, uint64_t count,
                      uint64_t *out_order);

#endif // PEN_SCHEDULER_DATA_BALANCE_H
