// The learning rate of each step.
//
// With base rate B, final rate F, W warm-up steps, and T steps in all, step s (from 0) has
//
//   s < W         B * (s + 1) / W
//   s >= W, with t = s - W and p = min(1, t / (T - W)), or p = 0 where T <= W:
//     constant    B
//     step        B * factor ^ floor(t / every)
//     cosine      F + (B - F) * (1 + cos(pi * p)) / 2
//     linear      B + (F - B) * p
//
// so decay begins where the warm-up ends, and F would be reached at step T, one after the last.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_JOB_LEARNING_RATE_H
#define PEN_SCHEDULER_JOB_LEARNING_RATE_H

#include <stdint.h>

#include "base/status.h"

typedef enum pen_learning_rate_kind {
    PEN_LEARNING_RATE_CONSTANT,
    PEN_LEARNING_RATE_STEP,
    PEN_LEARNING_RATE_COSINE,
    PEN_LEARNING_RATE_LINEAR,
} pen_learning_rate_kind;

typedef struct pen_learning_rate_options {
    pen_learning_rate_kind kind;
    double base;     // positive
    double final;    // cosine, linear; at least 0
    uint64_t warmup; // steps
    uint64_t every;  // step: steps between two decays, at least 1
    double factor;   // step: positive
} pen_learning_rate_options;

// INVALID_INPUT: an option is out of its range.
PEN_NODISCARD pen_status pen_learning_rate_check(const pen_learning_rate_options *options);

// The rate of `step`, from 0. The options have been checked.
double pen_learning_rate_at(const pen_learning_rate_options *options, uint64_t step,
                            uint64_t total_steps);

#endif // PEN_SCHEDULER_JOB_LEARNING_RATE_H
