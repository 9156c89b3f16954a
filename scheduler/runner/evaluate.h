// Inference over a dataset on one device: loss and accuracy.
#ifndef PEN_SCHEDULER_RUNNER_EVALUATE_H
#define PEN_SCHEDULER_RUNNER_EVALUATE_H

#include <stdint.h>

#include "base/status.h"
#include "scheduler/data/batches.h"
#include "scheduler/data/dataset.h"
#include "scheduler/runner/runner.h"

typedef struct pen_evaluation {
    uint64_t example_count;
    double loss;                    // mean over all examples, or what the loss says in its place
    double terms[PEN_LOSSES_LIMIT]; // [term_count of the program] likewise, of each loss by itself
    uint64_t target_count;          // predictions judged; 0 when the loss is not over classes
    uint64_t correct_count;
    double seconds;
} pen_evaluation;

// Runs every example of `dataset` once, `batch_size` at a time, in the order of its files. The
// last microbatch takes what is left.
//   NOT_FINITE  the loss is infinite or not a number; says which examples, and when it is the
//   data's
//               fault which value
//   else        as pen_runner_get, pen_batches_next and the device
PEN_NODISCARD pen_status pen_evaluate(pen_runner *runner, pen_dataset *dataset, uint64_t batch_size,
                                      pen_evaluation *out_evaluation);

// What evaluations of several devices share. Adds a batch, of which losses and counts are known:
// before a loss that is not finite is blamed on the model, the batch's examples are looked at.
//   NOT_FINITE
PEN_NODISCARD pen_status pen_evaluation_add(pen_evaluation *evaluation, const pen_dataset *dataset,
                                            const pen_batch *batch, const pen_evaluation *of_batch);
// Of all batches: the mean, and the time since `started` (pen_clock_seconds).
pen_evaluation pen_evaluation_finish(const pen_evaluation *evaluation, double started);

#endif // PEN_SCHEDULER_RUNNER_EVALUATE_H
