// Which losses of a program metrics are of, and what of its outputs they must see.
//
// Threads: pure functions.
#ifndef PEN_SCHEDULER_METRIC_METRIC_CHOOSE_H
#define PEN_SCHEDULER_METRIC_METRIC_CHOOSE_H

#include "base/status.h"
#include "graph/passes/gradient/attach_loss.h"
#include "scheduler/metric/metric.h"

#define PEN_METRIC_NO_LOSS UINT32_MAX

// A loss, as metrics see it.
typedef struct pen_metric_loss {
    pen_loss_kind kind;
    uint32_t class_count; // along the dimension of the classes; 0: there is none
    bool is_plain;        // a cross-entropy of class indices without weights, smoothing or penalty
} pen_metric_loss;

pen_metric_loss pen_metric_loss_of(const pen_loss_spec *spec, uint32_t class_count,
                                   bool has_penalty);

typedef struct pen_metric_choice {
    pen_metric_set metrics; // without `loss`, and what is counted anyway
    uint32_t classes_loss;  // the first over classes, or of decisions; PEN_METRIC_NO_LOSS: none is
                            // asked for; likewise the next two
    uint32_t entropy_loss;  // the first cross-entropy of class indices
    uint32_t numbers_loss;  // the first that compares numbers
    uint32_t top;           // so many of the best classes are looked at
    bool takes_scores;      // all scores are
} pen_metric_choice;

// Whether each element of the output is a decision of its own: class 1, or class 0.
bool pen_metric_is_decision(pen_loss_kind kind);

// Whether numbers are compared with numbers.
bool pen_metric_is_of_numbers(pen_loss_kind kind);

// Whether metrics of this source are of such a loss; of several the first is chosen.
bool pen_metric_is_of(pen_metric_source source, pen_loss_kind kind);

// `counts_right`: right answers are counted anyway, so that `accuracy` needs nothing more.
//   INVALID_INPUT  no loss is such that a metric could be of it
PEN_NODISCARD pen_status pen_metric_choose(const pen_metric_loss *losses, uint32_t loss_count,
                                           bool counts_right, pen_metric_set metrics,
                                           pen_metric_choice *out_choice);

#endif // PEN_SCHEDULER_METRIC_METRIC_CHOOSE_H
