// What a worker that reads examples by itself is told of them.
//
// Of a round it is told an epoch and a place in the epoch's order; the order it makes itself, from
// the seed (pen_batches_shuffle), so that any worker has the same examples in the same place.
//
// Threads: plain data.
#ifndef PEN_SCHEDULER_RUNTIME_RUN_RUN_DATA_H
#define PEN_SCHEDULER_RUNTIME_RUN_RUN_DATA_H

#include "base/record/record.h"
#include "scheduler/data/dataset.h"

typedef struct pen_run_data {
    pen_dataset_options options; // with absolute paths, without arrays and targets
    uint32_t delimiter;          // of csv: that of the options, as it travels
    bool shuffle;
    uint64_t seed;        // of the order
    uint64_t count;       // examples that the coordinator has,
    uint64_t fingerprint; // and what tells them from others (pen_dataset_fingerprint)
} pen_run_data;

// What a channel carries of an example, where the target's worker reads it: 1 + input i of the
// dataset, or PEN_RUN_FIELD_LABELS + labels i.
#define PEN_RUN_FIELD_NONE 0u
#define PEN_RUN_FIELD_LABELS ((uint32_t)1 << 16)

extern const pen_record pen_run_data_record; // "RunData" of run_spec.proto

#endif // PEN_SCHEDULER_RUNTIME_RUN_RUN_DATA_H
