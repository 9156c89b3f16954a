#include "scheduler/train/find_rate.h"

#include <math.h>

#include "base/system/interrupt.h"
#include "scheduler/train/train.h"

#define RATE_KEPT 0.9 // of the mean so far, in the next
#define RATE_WORST 4  // times the least smoothed loss: it will not come back

// As with Adam's means, the first ones weigh as if there had been others before.
bool pen_rate_add(pen_rate_point *points, uint32_t count, double rate, double loss) {
    const pen_rate_point none = {.least = INFINITY};
    const pen_rate_point *last = count == 0 ? &none : &points[count - 1];
    pen_rate_point *point = &points[count];
    *point = (pen_rate_point){.rate = rate,
                              .loss = loss,
                              .sum = RATE_KEPT * last->sum + loss,
                              .weight = RATE_KEPT * last->weight + 1};
    point->smoothed = point->sum / point->weight;
    point->least = fmin(last->least, point->smoothed);
    // a loss may be below 0: then four times it is no bound
    return count == 0 || last->least <= 0 || point->smoothed <= RATE_WORST * last->least;
}

// The slope at a point is taken between its neighbours. Rates are as far apart as their logarithms,
// which is the same everywhere.
void pen_rate_choose(pen_found_rate *found) {
    double steepest = 0;
    found->least = 0;
    found->best = found->count;
    for (uint32_t i = 1; i < found->count; i++) {
        if (found->points[i].smoothed < found->points[found->least].smoothed) found->least = i;
    }
    for (uint32_t i = 1; i + 1 < found->count && i <= found->least; i++) {
        const double slope = found->points[i + 1].smoothed - found->points[i - 1].smoothed;
        if (slope >= steepest) continue;
        steepest = slope;
        found->best = i;
    }
}

// A loss that is not finite is what the search ends with.
static pen_status rate_step(pen_trainer *trainer, pen_step_report *out_report, bool *out_more) {
    const pen_status status = pen_trainer_step(trainer, out_report, out_more);
    if (pen_status_get_code(status) != PEN_NOT_FINITE) return status;
    pen_status_ignore(status, "the rate is too large, which is what is looked for");
    *out_more = false;
    return PEN_OK;
}

static pen_status rate_run(pen_trainer *trainer, uint32_t step_count, pen_rate_point *points,
                           pen_found_rate *found) {
    while (found->count < step_count) {
        pen_step_report report;
        bool more;
        if (pen_interrupt_requested()) {
            return pen_error(PEN_CANCELLED, "stopped after %u steps", found->count);
        }
        PEN_TRY(rate_step(trainer, &report, &more));
        found->is_cut = !more;
        if (!more) return PEN_OK;
        found->is_cut = !pen_rate_add(points, found->count, report.learning_rate, report.loss);
        found->count += 1;
        if (found->is_cut) return PEN_OK;
    }
    return PEN_OK;
}

// The job's own rate, its warm-up and its schedule are set aside; all else is as it is trained.
pen_status pen_find_rate(const pen_job *job, const pen_find_rate_options *options, pen_arena *arena,
                         pen_found_rate *out_found) {
    const double factor = pow(options->to / options->from, 1 / ((double)options->step_count - 1));
    const pen_learning_rate_options rates = {
        .count = 1,
        .curves = {
            {.kind = PEN_LEARNING_RATE_STEP, .base = options->from, .every = 1, .factor = factor}}};
    const pen_trainer_options trainer_options = {.step_limit = options->step_count,
                                                 .rates = &rates,
                                                 .no_memory_check = options->no_memory_check,
                                                 .insecure = options->insecure,
                                                 .plan = options->plan};
    pen_trainer *trainer;
    pen_rate_point *points;
    *out_found = (pen_found_rate){0};
    PEN_TRY(PEN_NEW(arena, options->step_count, &points));
    out_found->points = points;
    PEN_TRY(pen_trainer_create(job, &trainer_options, &trainer));
    pen_status status = rate_run(trainer, options->step_count, points, out_found);
    pen_rate_choose(out_found);
    if (status == PEN_OK && options->look != NULL) {
        status = options->look(options->context, pen_trainer_engine(trainer), out_found);
    }
    pen_trainer_destroy(trainer);
    return status;
}
