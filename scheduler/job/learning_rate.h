// The learning rate of each step.
//
// With W warm-up steps, and T steps in all, step s (from 0) has
//
//   s < W         B * (s + 1) / W, with B of the first curve
//   s >= W        of the curve that step s - W falls into, counted from where the curve begins: t
//
// A curve has a base rate B, a final rate F, and a length of n steps; the last one has all that is
// left when it says 0. With p = min(1, t / n), or p = 0 where n is 0:
//
//   constant    B
//   step        B * factor ^ floor(t / every)
//   cosine      F + (B - F) * (1 + cos(pi * p)) / 2
//   linear      B + (F - B) * p
//   polynomial  B * (1 - p) ^ power
//   one_cycle   from B / div_factor up to B, reached at t = pct_start * n - 1; then down to
//               B / div_factor / final_div_factor, reached at t = n - 1. In three phases it comes
//               down to B / div_factor first, at t = 2 * pct_start * n - 2. Along half cosines or
//               lines
//
// so decay begins where the warm-up ends, and F would be reached at step T, one after the last.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_JOB_LEARNING_RATE_H
#define PEN_SCHEDULER_JOB_LEARNING_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define PEN_LEARNING_RATE_CURVE_LIMIT 16

typedef enum pen_learning_rate_kind {
    PEN_LEARNING_RATE_CONSTANT,
    PEN_LEARNING_RATE_STEP,
    PEN_LEARNING_RATE_COSINE,
    PEN_LEARNING_RATE_LINEAR,
    PEN_LEARNING_RATE_POLYNOMIAL,
    PEN_LEARNING_RATE_ONE_CYCLE,
    PEN_LEARNING_RATE_CHAINED, // of a job; no curve has it
    PEN_LEARNING_RATE_PLATEAU, // as CONSTANT, but for what evaluations say (plateau_rate.h)
} pen_learning_rate_kind;

typedef enum pen_learning_rate_anneal {
    PEN_LEARNING_RATE_ANNEAL_COS,
    PEN_LEARNING_RATE_ANNEAL_LINEAR,
} pen_learning_rate_anneal;

// Their names are those of PyTorch's OneCycleLR.
typedef struct pen_learning_rate_cycle {
    double pct_start; // 0 to 1; to 0.5 in three phases
    pen_learning_rate_anneal anneal_strategy;
    double div_factor;       // positive
    double final_div_factor; // positive
    bool three_phase;
} pen_learning_rate_cycle;

typedef struct pen_learning_rate_curve {
    pen_learning_rate_kind kind;
    double base;                   // positive
    double final;                  // cosine, linear; at least 0
    uint64_t every;                // step: steps between two decays, at least 1
    double factor;                 // step: positive
    double power;                  // polynomial: positive
    pen_learning_rate_cycle cycle; // one_cycle
    uint64_t length;               // steps; 0: of the last curve, all that is left
} pen_learning_rate_curve;

typedef struct pen_learning_rate_options {
    uint64_t warmup; // steps
    uint32_t count;  // of curves, one after the other; at least 1
    pen_learning_rate_curve curves[PEN_LEARNING_RATE_CURVE_LIMIT];
} pen_learning_rate_options;

// INVALID_INPUT: an option is out of its range.
PEN_NODISCARD pen_status pen_learning_rate_check(const pen_learning_rate_options *options);

// The rate of `step`, from 0. The options have been checked.
double pen_learning_rate_at(const pen_learning_rate_options *options, uint64_t step,
                            uint64_t total_steps);

#endif // PEN_SCHEDULER_JOB_LEARNING_RATE_H
