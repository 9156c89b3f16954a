// A learning rate that falls when evaluations are no better: torch.optim.lr_scheduler's
// ReduceLROnPlateau, number by number.
//
// Threads: functions share nothing.
#ifndef PEN_SCHEDULER_JOB_PLATEAU_RATE_H
#define PEN_SCHEDULER_JOB_PLATEAU_RATE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum pen_plateau_mode { PEN_PLATEAU_REL, PEN_PLATEAU_ABS } pen_plateau_mode;

// Keys of job_rate_table.c, called as in PyTorch.
typedef struct pen_plateau_rate {
    double factor;    // by which the rate is multiplied, between 0 and 1
    int64_t patience; // evaluations in a row that may be no better; the one after makes it fall
    double threshold; // by how much one must be better, times the best, or as it is
    pen_plateau_mode threshold_mode;
    int64_t cooldown; // evaluations after it fell that do not count
    double min_lr;    // it falls no further
} pen_plateau_rate;

// What is known so far. All zero: nothing, and then `rate` is not used.
typedef struct pen_plateau_state {
    double rate;       // of the steps to come
    double best;       // of the evaluations
    uint64_t bad;      // evaluations since that were no better
    uint64_t cooldown; // evaluations to come that do not count
} pen_plateau_state;

// Takes an evaluation into account. `base` is the rate to begin with; `is_larger_better` says what
// better is.
void pen_plateau_rate_add(const pen_plateau_rate *options, double base, bool is_larger_better,
                          double value, pen_plateau_state *state);

#endif // PEN_SCHEDULER_JOB_PLATEAU_RATE_H
