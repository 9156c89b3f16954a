// The curve of a search for a learning rate, for its page: the loss of each step over its rate.
//
// Threads: constants and pure functions.
#ifndef PEN_SCHEDULER_REPORT_RATE_CURVE_H
#define PEN_SCHEDULER_REPORT_RATE_CURVE_H

#include "base/format/json_writer.h"
#include "scheduler/train/find_rate.h"

// What was found, and what the job has.
typedef struct pen_rate_curve {
    const pen_found_rate *found;
    double job; // its own rate
} pen_rate_curve;

// "search": {"suggested": 0.01, "job": 0.1, "points": [[rate, loss, smoothed loss], …]}; nothing
// where there are no points, or `curve` is NULL. "suggested" only where a rate is.
void pen_rate_curve_write(const pen_rate_curve *curve, pen_json_writer *json);

#endif // PEN_SCHEDULER_REPORT_RATE_CURVE_H
