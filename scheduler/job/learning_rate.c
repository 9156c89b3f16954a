#include "scheduler/job/learning_rate.h"

#include <math.h>

#include "base/integer.h"

#define RATE_PI 3.14159265358979323846

static pen_status rate_refuse(const char *what, double found, const char *expected) {
    return pen_error(PEN_INVALID_INPUT, "the learning rate's %s is %g, expected %s", what, found,
                     expected);
}

static bool rate_is_positive(double value) {
    return value > 0 && isfinite(value);
}

static pen_status rate_check_cycle(const pen_learning_rate_cycle *cycle) {
    if (!(cycle->pct_start >= 0 && cycle->pct_start <= (cycle->three_phase ? 0.5 : 1))) {
        return rate_refuse("pct_start", cycle->pct_start,
                           cycle->three_phase ? "0 to 0.5 in three phases" : "0 to 1");
    }
    if (!rate_is_positive(cycle->div_factor)) {
        return rate_refuse("div_factor", cycle->div_factor, "a positive number");
    }
    if (!rate_is_positive(cycle->final_div_factor)) {
        return rate_refuse("final_div_factor", cycle->final_div_factor, "a positive number");
    }
    return PEN_OK;
}

// What each kind asks of its own members.
static pen_status rate_check_curve(const pen_learning_rate_curve *curve) {
    if (!rate_is_positive(curve->base)) {
        return pen_error(PEN_INVALID_INPUT, "the learning rate is %g, expected a positive number",
                         curve->base);
    }
    if (!(curve->final >= 0 && isfinite(curve->final))) {
        return pen_error(PEN_INVALID_INPUT, "the final learning rate is %g, expected at least 0",
                         curve->final);
    }
    switch (curve->kind) {
    case PEN_LEARNING_RATE_STEP:
        if (curve->every == 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "the learning rate decays every 0 steps, expected at least 1");
        }
        if (rate_is_positive(curve->factor)) return PEN_OK;
        return rate_refuse("factor", curve->factor, "a positive number");
    case PEN_LEARNING_RATE_POLYNOMIAL:
        if (rate_is_positive(curve->power)) return PEN_OK;
        return rate_refuse("power", curve->power, "a positive number");
    case PEN_LEARNING_RATE_ONE_CYCLE:
        return rate_check_cycle(&curve->cycle);
    case PEN_LEARNING_RATE_CONSTANT:
    case PEN_LEARNING_RATE_COSINE:
    case PEN_LEARNING_RATE_LINEAR:
    case PEN_LEARNING_RATE_CHAINED:
    case PEN_LEARNING_RATE_PLATEAU:
        break;
    }
    return PEN_OK;
}

// Values of the C interface come here without the job's table having looked at them.
pen_status pen_learning_rate_check(const pen_learning_rate_options *options) {
    for (uint32_t i = 0; i < options->count; i++)
        PEN_TRY(rate_check_curve(&options->curves[i]));
    return PEN_OK;
}

// Between two rates, `from` at `first` and `to` at `last`.
static double rate_between(pen_learning_rate_anneal anneal, double step, double first, double last,
                           double from, double to) {
    const double share = last > first ? fmin(1, fmax(0, (step - first) / (last - first))) : 1;
    if (anneal == PEN_LEARNING_RATE_ANNEAL_LINEAR) return from + (to - from) * share;
    return to + (from - to) / 2 * (1 + cos(RATE_PI * share));
}

// Phases end a step before their share of the steps is done, as torch.optim's OneCycleLR has it.
static double rate_of_cycle(const pen_learning_rate_curve *curve, double done, double length) {
    const pen_learning_rate_cycle *cycle = &curve->cycle;
    const pen_learning_rate_anneal anneal = cycle->anneal_strategy;
    const double highest = curve->base, lowest = highest / cycle->div_factor;
    const double end = lowest / cycle->final_div_factor;
    const double top = cycle->pct_start * length - 1;
    if (done <= top) return rate_between(anneal, done, 0, top, lowest, highest);
    if (!cycle->three_phase) return rate_between(anneal, done, top, length - 1, highest, end);
    const double down = 2 * cycle->pct_start * length - 2;
    if (done <= down) return rate_between(anneal, done, top, down, highest, lowest);
    return rate_between(anneal, done, down, length - 1, lowest, end);
}

// Beyond its length, a curve stays where it ended; steps of a fixed size go on.
static double rate_of_curve(const pen_learning_rate_curve *curve, uint64_t done, uint64_t length) {
    const double base = curve->base;
    const double progress = length > 0 ? fmin(1, (double)done / (double)length) : 0;
    uint64_t drops;
    switch (curve->kind) {
    case PEN_LEARNING_RATE_CONSTANT:
    case PEN_LEARNING_RATE_CHAINED:
    case PEN_LEARNING_RATE_PLATEAU:
        break;
    case PEN_LEARNING_RATE_STEP:
        drops = done / curve->every;
        return base * pow(curve->factor, (double)drops);
    case PEN_LEARNING_RATE_COSINE:
        return curve->final + (base - curve->final) * (1 + cos(RATE_PI * progress)) / 2;
    case PEN_LEARNING_RATE_LINEAR:
        return base + (curve->final - base) * progress;
    case PEN_LEARNING_RATE_POLYNOMIAL:
        return base * pow(1 - progress, curve->power);
    case PEN_LEARNING_RATE_ONE_CYCLE:
        return rate_of_cycle(curve, (double)done, (double)length);
    }
    return base;
}

// A function of the step alone: nothing has to be kept in a checkpoint. Warm-up rises linearly and
// reaches the full rate at its last step.
double pen_learning_rate_at(const pen_learning_rate_options *options, uint64_t step,
                            uint64_t total_steps) {
    const uint64_t warmup = options->warmup;
    const pen_learning_rate_curve *curve = options->curves;
    if (step < warmup) return curve->base * (double)(step + 1) / (double)warmup;
    uint64_t done = step - warmup, left = total_steps > warmup ? total_steps - warmup : 0;
    const pen_learning_rate_curve *last = curve + (options->count - 1);
    for (; curve < last && done >= curve->length; curve++) {
        done -= curve->length;
        left -= pen_min_u64(left, curve->length);
    }
    return rate_of_curve(curve, done, curve->length > 0 ? curve->length : left);
}
