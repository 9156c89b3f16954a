// How training is going: mean loss and accuracy so far, and speed. No clock and no output:
// the caller says what time it is, in seconds from any fixed moment.
//
// Threads: a pen_metrics belongs to one thread at a time.
#ifndef PEN_SCHEDULER_TRAIN_METRICS_H
#define PEN_SCHEDULER_TRAIN_METRICS_H

#include <stdint.h>

#include "base/limits.h"

typedef struct pen_metrics {
    double loss_sum;                   // of batch losses times their examples
    uint64_t summed_count;             // examples of those
    double term_sums[PEN_TERMS_LIMIT]; // likewise, of each of several losses
    uint64_t term_counts[PEN_TERMS_LIMIT];
    uint64_t correct_count;
    uint64_t judged_count;  // predictions compared with class indices
    uint64_t example_count; // done so far
    double started_seconds;
} pen_metrics;

// Begins an epoch, or an evaluation.
void pen_metrics_start(pen_metrics *metrics, double now_seconds);

// One batch of `example_count` examples with their mean loss. Batches weigh by their examples, so
// a short last one does not count too much. A loss that is not finite, of a step that was skipped,
// is left out.
void pen_metrics_add(pen_metrics *metrics, double mean_loss, uint64_t example_count);

// The same of each loss by itself.
void pen_metrics_add_terms(pen_metrics *metrics, const double terms[PEN_TERMS_LIMIT],
                           uint64_t example_count);

// Of `judged_count` predictions `correct_count` were right. Those of one image each: as many as
// examples; of one token each: more.
void pen_metrics_add_correct(pen_metrics *metrics, uint64_t correct_count, uint64_t judged_count);

// Mean loss of the examples so far; not a number before the first.
double pen_metrics_loss(const pen_metrics *metrics);
// Those of the losses by themselves.
void pen_metrics_terms(const pen_metrics *metrics, double out_terms[PEN_TERMS_LIMIT]);

// Fraction of right predictions, 0 to 1; not a number if there were none.
double pen_metrics_accuracy(const pen_metrics *metrics);

// Examples a second since the start; 0 if no time has passed.
double pen_metrics_samples_per_second(const pen_metrics *metrics, double now_seconds);

#endif // PEN_SCHEDULER_TRAIN_METRICS_H
