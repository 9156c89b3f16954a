// What a training came to, step by step, for its page: losses, accuracy and other metrics, learning
// rate, and evaluations.
//
// However many steps there are, at most PEN_TRAINING_HISTORY_POINTS points are kept: when there
// would be more, neighbours become their mean. So all steps are in it, each with the same weight.
// Of evaluations no means are made: of more than that, each second is dropped, save the best and
// the last.
//
// Lifetime: in the arena it was made in.
// Threads:  one at a time.
#ifndef PEN_SCHEDULER_REPORT_TRAINING_HISTORY_H
#define PEN_SCHEDULER_REPORT_TRAINING_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/format/json_writer.h"
#include "base/limits.h"
#include "base/status.h"

#define PEN_TRAINING_HISTORY_POINTS 1024 // an even number
#define PEN_TRAINING_HISTORY_METRICS 32  // of an evaluation

typedef struct pen_training_history pen_training_history;

typedef struct pen_training_history_step {
    uint64_t step;
    double loss;
    const double *terms; // [count] of the several losses, and behind them of the metrics
    double learning_rate;
    uint64_t target_count;  // predictions judged; 0: the loss is not over classes
    uint64_t correct_count; // of those
} pen_training_history_step;

// An evaluation: every one has the same metrics in the same order.
typedef struct pen_training_history_evaluation {
    uint64_t step;            // after which it was
    const char *const *names; // [count], each borrowed as long as the history
    const double *values;     // [count]
    uint32_t count;           // past PEN_TRAINING_HISTORY_METRICS the rest is left out
    uint32_t deciding;        // the metric that says which is the best; past `count`: none does
    bool is_best;             // so far
} pen_training_history_evaluation;

// `names` [count] are borrowed: of several losses; none where there is one alone. The last
// `metric_count` of them are metrics of steps. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_training_history_new(const char *const *names, uint32_t count,
                                                  uint32_t metric_count, pen_arena *arena,
                                                  pen_training_history **out_history);
// As it is now. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_training_history_copy(const pen_training_history *history,
                                                   pen_arena *arena,
                                                   pen_training_history **out_history);

// Steps come in order. Allocates nothing. Of a `history` of NULL nothing is kept.
void pen_training_history_add(pen_training_history *history, const pen_training_history_step *step);
// Likewise. A second one after the same step takes the place of the first.
void pen_training_history_evaluate(pen_training_history *history,
                                   const pen_training_history_evaluation *evaluation);

// "losses": {"first_step": 1, "last_step": 9, "series": [{"name": "loss", "points": [[1, 2.3], …]},
// …]}: the loss that is trained first, each point with the mean of its steps' numbers.
// "accuracy": {"points": [[1, 0.25], …]}: the share that was right of what each point's steps
// judged; left out where none judged anything. "metrics": {"series": [{"name": "top_5", "points":
// [[1, 0.5], …]}, …]}: means over steps, left out where there are none. "rate": {"points": [[1,
// 0.1], …]}. "evaluations":
// {"best_step": 4, "deciding": "accuracy", "series": [{"name": "accuracy", "points": [[2, 0.7],
// …]}, …]}. Nothing where there are no steps, or `history` is NULL; "best_step" only where one is
// the best.
void pen_training_history_write(const pen_training_history *history, pen_json_writer *json);

#endif // PEN_SCHEDULER_REPORT_TRAINING_HISTORY_H
