// Counts what metrics are made of, batch after batch.
//
// Lifetime: create to destroy.
// Threads:  one.
#ifndef PEN_SCHEDULER_METRIC_METRIC_TALLY_H
#define PEN_SCHEDULER_METRIC_METRIC_TALLY_H

#include "graph/tensor_type.h"
#include "scheduler/metric/metric_choose.h"

// Scores that are kept to the end, of all examples and classes; two classes have one.
#define PEN_METRIC_SCORES_LIMIT (1ull << 26)

// What is seen of a program's outputs, in the order in which they come.
typedef enum pen_metric_seen {
    PEN_METRIC_SEEN_BEST,    // int64: the best classes, from the best on, in place of the scores
    PEN_METRIC_SEEN_SCORES,  // what the loss over classes is taken of
    PEN_METRIC_SEEN_MASK,    // bool, of its targets that count
    PEN_METRIC_SEEN_NUMBERS, // what the loss of numbers is taken of
    PEN_METRIC_SEEN_NUMBERS_MASK,
    PEN_METRIC_SEEN_COUNT,
} pen_metric_seen;

// An output that a loss is taken of.
typedef struct pen_metric_output {
    pen_loss_spec spec;
    pen_tensor_type type;   // of so many examples:
    uint64_t example_count; //
    uint32_t class_axis;
    bool is_probabilities; // of a softmax, or logarithms of such: of all classes they are 1
    uint64_t mask_count;   // elements that the mask has for them; 0: there is none
} pen_metric_output;

typedef struct pen_metric_setup {
    pen_metric_choice choice;
    pen_metric_output classes, numbers; // where they are chosen
    uint64_t example_count;             // to come
} pen_metric_setup;

typedef struct pen_metric_batch {
    uint64_t example_count;
    const void *class_labels;                // int64 for indices, else float32
    const void *number_labels;               // float32
    const void *seen[PEN_METRIC_SEEN_COUNT]; // NULL: not asked for
} pen_metric_batch;

typedef struct pen_metric_tally pen_metric_tally;

// DOES_NOT_FIT: of so many targets auc keeps more scores than it may
PEN_NODISCARD pen_status pen_metric_check_scores(uint64_t target_count, uint32_t class_count);

// DOES_NOT_FIT: more scores than are kept
PEN_NODISCARD pen_status pen_metric_tally_create(const pen_metric_setup *setup,
                                                 pen_metric_tally **out_tally);
// Accepts NULL.
void pen_metric_tally_destroy(pen_metric_tally *tally);
// INVALID_INPUT: a label that is no class
PEN_NODISCARD pen_status pen_metric_tally_add(pen_metric_tally *tally,
                                              const pen_metric_batch *batch);
// Of all so far; lives as long as the tally. `loss` and `entropy` are the caller's to fill.
PEN_NODISCARD pen_status pen_metric_tally_finish(pen_metric_tally *tally,
                                                 pen_metric_sums **out_sums);

#endif // PEN_SCHEDULER_METRIC_METRIC_TALLY_H
