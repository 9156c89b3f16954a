// Metrics: their names, which value is better, and how it comes of what was counted.
//
// Threads: constants and pure functions.
#ifndef PEN_SCHEDULER_METRIC_METRIC_H
#define PEN_SCHEDULER_METRIC_METRIC_H

#include <stdbool.h>
#include <stdint.h>

// The table of metrics: all that there is to know of each. Their names stand in checkpoints.
//   X(constant, name, better, source, number, value)
// better: LARGER or SMALLER. source: what it is counted from (pen_metric_source). number: what its
// value takes besides the counts. value: the function of metric.c, without `value_of_`.
#define PEN_METRIC_LIST(X)                                                                         \
    X(LOSS, "loss", SMALLER, LOSS, 0, loss)                                                        \
    X(ACCURACY, "accuracy", LARGER, CLASSES, 1, top)                                               \
    X(TOP_2, "top_2", LARGER, CLASSES, 2, top)                                                     \
    X(TOP_3, "top_3", LARGER, CLASSES, 3, top)                                                     \
    X(TOP_5, "top_5", LARGER, CLASSES, 5, top)                                                     \
    X(TOP_10, "top_10", LARGER, CLASSES, 10, top)                                                  \
    X(PRECISION, "precision", LARGER, CLASSES, PEN_METRIC_BINARY, precision)                       \
    X(PRECISION_MACRO, "precision_macro", LARGER, CLASSES, PEN_METRIC_MACRO, precision)            \
    X(PRECISION_MICRO, "precision_micro", LARGER, CLASSES, PEN_METRIC_MICRO, precision)            \
    X(PRECISION_WEIGHTED, "precision_weighted", LARGER, CLASSES, PEN_METRIC_WEIGHTED, precision)   \
    X(RECALL, "recall", LARGER, CLASSES, PEN_METRIC_BINARY, recall)                                \
    X(RECALL_MACRO, "recall_macro", LARGER, CLASSES, PEN_METRIC_MACRO, recall)                     \
    X(RECALL_MICRO, "recall_micro", LARGER, CLASSES, PEN_METRIC_MICRO, recall)                     \
    X(RECALL_WEIGHTED, "recall_weighted", LARGER, CLASSES, PEN_METRIC_WEIGHTED, recall)            \
    X(F1, "f1", LARGER, CLASSES, PEN_METRIC_BINARY, f1)                                            \
    X(F1_MACRO, "f1_macro", LARGER, CLASSES, PEN_METRIC_MACRO, f1)                                 \
    X(F1_MICRO, "f1_micro", LARGER, CLASSES, PEN_METRIC_MICRO, f1)                                 \
    X(F1_WEIGHTED, "f1_weighted", LARGER, CLASSES, PEN_METRIC_WEIGHTED, f1)                        \
    X(MEAN_IOU, "mean_iou", LARGER, CLASSES, PEN_METRIC_MACRO, iou)                                \
    X(AUC, "auc", LARGER, SCORES, 0, auc)                                                          \
    X(PERPLEXITY, "perplexity", SMALLER, ENTROPY, 0, perplexity)                                   \
    X(MEAN_ABSOLUTE_ERROR, "mean_absolute_error", SMALLER, NUMBERS, 0, absolute)                   \
    X(MEAN_SQUARED_ERROR, "mean_squared_error", SMALLER, NUMBERS, 0, square)                       \
    X(ROOT_MEAN_SQUARED_ERROR, "root_mean_squared_error", SMALLER, NUMBERS, 0, root)

#define METRIC_CONSTANT(constant, name, better, source, number, value) PEN_METRIC_##constant,
typedef enum pen_metric { PEN_METRIC_LIST(METRIC_CONSTANT) PEN_METRIC_COUNT } pen_metric;
#undef METRIC_CONSTANT

// A set of metrics: bit `pen_metric`.
typedef uint64_t pen_metric_set;
#define PEN_METRIC_BIT(metric) ((pen_metric_set)1 << (metric))
static inline bool pen_metric_is_in(pen_metric metric, pen_metric_set set) {
    return (set & PEN_METRIC_BIT(metric)) != 0;
}

typedef enum pen_metric_source {
    PEN_METRIC_FROM_LOSS,    // the sum of the losses
    PEN_METRIC_FROM_CLASSES, // the classes that have the best scores
    PEN_METRIC_FROM_SCORES,  // the scores of all classes
    PEN_METRIC_FROM_ENTROPY, // a cross-entropy
    PEN_METRIC_FROM_NUMBERS, // numbers, compared with numbers
} pen_metric_source;

// How values of classes become one, as scikit-learn has it (`average`).
typedef enum pen_metric_average {
    PEN_METRIC_BINARY,   // of two classes that of class 1; of more, as MACRO
    PEN_METRIC_MACRO,    // the mean over those that are the label, or the answer, of some target
    PEN_METRIC_MICRO,    // of the counts of all
    PEN_METRIC_WEIGHTED, // the mean, weighed by their targets
} pen_metric_average;

#define PEN_METRIC_TOP_LIMIT 10 // of the `top` metrics

// What was counted. Zero where nothing asks for it.
typedef struct pen_metric_sums {
    double loss;
    double entropy;  // mean cross-entropy
    double area;     // mean, under the curves
    uint64_t judged; // targets that count
    uint64_t
        at_place[PEN_METRIC_TOP_LIMIT]; // whose label was the class at that place, from best on
    uint32_t class_count;
    uint64_t *right;    // [class_count] targets of a class whose answer was right
    uint64_t *answered; // [class_count] of which it was the answer
    uint64_t *actual;   // [class_count] that are of it
    uint64_t number_count;
    double absolute; // sums of distances, and of their squares
    double square;
} pen_metric_sums;

typedef struct pen_metric_kind {
    const char *name;
    bool is_larger_better;
    pen_metric_source source;
    int number; // of the `top` metrics how many; of others a pen_metric_average
    double (*value)(const pen_metric_sums *sums, int number);
} pen_metric_kind;

// By pen_metric. Names end with NULL.
extern const pen_metric_kind pen_metric_kinds[PEN_METRIC_COUNT];
extern const char *const pen_metric_names[PEN_METRIC_COUNT + 1];

// PEN_METRIC_COUNT: there is none of that name.
pen_metric pen_metric_find(const char *name);

// Of what counts nothing, 0; where classes cannot be told apart because there is one, not a number.
double pen_metric_value(pen_metric metric, const pen_metric_sums *sums);

#endif // PEN_SCHEDULER_METRIC_METRIC_H
