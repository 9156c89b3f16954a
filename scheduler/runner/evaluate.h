// Inference over a dataset on one device: loss, accuracy and what metrics are asked for.
#ifndef PEN_SCHEDULER_RUNNER_EVALUATE_H
#define PEN_SCHEDULER_RUNNER_EVALUATE_H

#include <stdint.h>

#include "base/status.h"
#include "scheduler/data/batches.h"
#include "scheduler/data/dataset.h"
#include "scheduler/runner/runner.h"

typedef struct pen_evaluation {
    uint64_t example_count;
    double loss;                   // mean over all examples, or what the loss says in its place
    double terms[PEN_TERMS_LIMIT]; // [pen_program_term_count] likewise, of each loss by itself,
                                   // and of metrics that the program tells
    uint64_t target_count;         // predictions judged; 0 when the loss is not over classes
    uint64_t correct_count;
    double seconds;
    pen_metric_set metrics; // that are told besides loss and right answers
    double values[PEN_METRIC_COUNT];
} pen_evaluation;

// Of one that was asked for, or counted anyway.
double pen_evaluation_value(const pen_evaluation *evaluation, pen_metric metric);

// Runs every example of `dataset` once, `batch_size` at a time, in the order of its files. The
// last microbatch takes what is left.
//   NOT_FINITE  the loss is infinite or not a number; says which examples, and when it is the
//   data's
//               fault which value
//   else        as pen_runner_get, pen_batches_next and the device
PEN_NODISCARD pen_status pen_evaluate(pen_runner *runner, pen_dataset *dataset, uint64_t batch_size,
                                      pen_evaluation *out_evaluation);

// ---- what evaluations of one device and of several share

// What is summed up so far. All zero but the dataset, and the clock's seconds when it started.
typedef struct pen_evaluation_sums {
    const pen_dataset *dataset;
    double started_seconds;
    pen_evaluation so_far; // sums, where the end result has means
    pen_metric_tally *tally;
    const pen_program *program; // of the batches so far
} pen_evaluation_sums;

// A batch that has passed, in the order of the data.
typedef struct pen_evaluation_batch {
    const pen_program *program; // that it has passed
    const pen_batch *batch;
    double loss;
    double terms[PEN_TERMS_LIMIT];
    uint64_t target_count, correct_count;
    const void *seen[PEN_METRIC_SEEN_COUNT]; // values of program->metrics
} pen_evaluation_batch;

// Before a loss that is not finite is blamed on the model, the batch's examples are looked at.
//   NOT_FINITE; DOES_NOT_FIT: more scores than are kept
PEN_NODISCARD pen_status pen_evaluation_add(pen_evaluation_sums *sums,
                                            const pen_evaluation_batch *batch);
// The means over all batches, unless `take_status` is an error, which is returned. Releases what
// the sums have.
PEN_NODISCARD pen_status pen_evaluation_finish(pen_evaluation_sums *sums, pen_status take_status,
                                               pen_evaluation *out_evaluation);

#endif // PEN_SCHEDULER_RUNNER_EVALUATE_H
