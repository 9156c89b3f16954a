// The contract of the records of a training: what commit_log.c keeps in order, commit_record.c
// writes as bytes, and shard.c has a summary of. Plain data.
#ifndef PEN_SCHEDULER_STORE_COMMIT_H
#define PEN_SCHEDULER_STORE_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_COMMIT_TEXT_BYTES 128
#define PEN_COMMIT_ARITHMETIC_BYTES 384 // names of GPUs and their drivers are long

typedef struct pen_shard_summary {
    const char *file;    // its name in the folder of shards
    const char *holders; // where it lies, when that is not the folder of the log: addresses of
                         // workers, separated by spaces; "" else
    uint64_t bytes;
    uint32_t chunk_count;      // of PEN_SHARD_CHUNK_BYTES; the last is shorter
    const uint32_t *checksums; // [chunk_count] CRC32C
} pen_shard_summary;

// What a checkpoint is of; texts are cut at their arrays. Losses and rates as bits of doubles.
typedef struct pen_commit_manifest {
    uint64_t step; // that were done
    uint64_t epoch;
    uint64_t batch_index; // of the batch to come in its epoch
    uint64_t rate_steps;  // over which the learning rate runs its course
    uint64_t loss;        // of the last step that has a finite one; NaN: none has
    uint64_t losses_hash; // of the losses of all steps so far
    uint64_t seed;
    uint64_t examples; // in the training data
    uint64_t batch;
    uint64_t microbatches;
    uint64_t lanes;                          // 0: one, and not in the record
    char consistency[PEN_COMMIT_TEXT_BYTES]; // of the lanes; "": sync, and not in the record
    bool shuffle;
    bool drop_last;
    char model_hash[PEN_COMMIT_TEXT_BYTES];
    char build[PEN_COMMIT_TEXT_BYTES];
    char level[PEN_COMMIT_TEXT_BYTES]; // of the kernels; "": not known, and not in the record
    char arithmetic[PEN_COMMIT_ARITHMETIC_BYTES]; // what the last bits depend on besides, as an
                                                  // engine says; "": cpu, and not in the record
    uint64_t changed_step; // after which that became another; 0: never, and not in the record
    char precision[PEN_COMMIT_TEXT_BYTES]; // of products; "": float32, and not in the record
    uint64_t evaluations; // while it ran; 0: none, and this and the next are not in the record
    uint64_t best_step;   // after which the best of them was
    uint64_t best;        // its metric
    uint64_t since_best;  // evaluations since
    bool keeps_best;      // the manifest of that step stays
    char best_metric[PEN_COMMIT_TEXT_BYTES]; // its name; "": the loss, and not in the record
    uint64_t plateau_rate; // the learning rate that they have decided; 0: none, and this and the
                           // next are not in the record
    uint64_t plateau_best; // what they are compared with
    uint64_t plateau_bad;  // since then
    uint64_t plateau_cooldown; // of those to come that do not count
    uint64_t rate;       // the learning rate of the last step; 0: not known, and not in the record
    uint64_t loss_scale; // of the step to come; 0: none, and this and the next three are not in the
                         // record (scheduler/job/loss_scale.h)
    uint64_t scale_good; // steps since it changed
    uint64_t scale_skipped; // steps in all
    uint64_t scale_bad;     // steps in a row, the last of those, without a finite loss
    uint32_t shard_count;
    const pen_shard_summary *shards; // [shard_count]
} pen_commit_manifest;

typedef enum pen_commit_kind {
    PEN_COMMIT_FENCE,
    PEN_COMMIT_MANIFEST,
} pen_commit_kind;

typedef struct pen_commit_record {
    pen_commit_kind kind;
    uint64_t number; // its place in the log, from 1
    uint64_t generation;
    char job[PEN_COMMIT_TEXT_BYTES]; // the same in all records
    uint64_t coordinator;            // FENCE: incarnation of the process
    bool begins;                     // FENCE: a training from its first step: manifests before it
                                     // are of another
    pen_commit_manifest manifest;    // MANIFEST
} pen_commit_record;

#endif // PEN_SCHEDULER_STORE_COMMIT_H
