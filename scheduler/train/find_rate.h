// Looks for a learning rate: a training for a few steps, whose rate grows from step to step by the
// same factor, until the loss grows, too (L. Smith, Cyclical Learning Rates, 2017). Nothing of it
// is kept.
//
// Threads: one.
#ifndef PEN_SCHEDULER_TRAIN_FIND_RATE_H
#define PEN_SCHEDULER_TRAIN_FIND_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "partition/plan/plan.h"
#include "scheduler/engine/engine.h"
#include "scheduler/job/job.h"

typedef struct pen_found_rate pen_found_rate;

typedef struct pen_find_rate_options {
    uint32_t step_count; // at least 2
    double from, to;     // rates of the first and of the last step; 0 < from < to
    bool no_memory_check;
    bool insecure;
    const pen_plan *plan; // that the job's devices run; NULL: one is made
    // Looks at what was trained, once all is found and before it is gone; NULL: nobody does.
    pen_status (*look)(void *context, pen_engine *engine, const pen_found_rate *found);
    void *context;
} pen_find_rate_options;

typedef struct pen_rate_point {
    double rate;
    double loss;
    double smoothed;    // mean of it and of those before, each a tenth less
    double sum, weight; // of that mean
    double least;       // smoothed loss so far
} pen_rate_point;

struct pen_found_rate {
    uint32_t count; // steps that were done
    const pen_rate_point *points;
    bool is_cut;   // the loss became four times the least, or no number: the steps after that were
                   // left out
    uint32_t best; // where the smoothed loss falls fastest; the count: it never falls
    uint32_t least;
};

// As pen_trainer_create and pen_trainer_step; a loss that is not finite is no error. CANCELLED
PEN_NODISCARD pen_status pen_find_rate(const pen_job *job, const pen_find_rate_options *options,
                                       pen_arena *arena, pen_found_rate *out_found);

// Fills the point behind `count` others, which were filled so. False: the search is over.
bool pen_rate_add(pen_rate_point *points, uint32_t count, double rate, double loss);
// Which of the points it is.
void pen_rate_choose(pen_found_rate *found);

#endif // PEN_SCHEDULER_TRAIN_FIND_RATE_H
