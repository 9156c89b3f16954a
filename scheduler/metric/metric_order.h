// The area under the ROC curve: how often an example of a class has a higher score for it than one
// that is not. Exact: pairs are counted, those of equal scores as half.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_METRIC_METRIC_ORDER_H
#define PEN_SCHEDULER_METRIC_METRIC_ORDER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pen_metric_scored {
    double score;
    bool is_of_class;
} pen_metric_scored;

// Sorts `items`. Not a number when all are of the class, or none is.
double pen_metric_area(pen_metric_scored *items, uint64_t count);

#endif // PEN_SCHEDULER_METRIC_METRIC_ORDER_H
