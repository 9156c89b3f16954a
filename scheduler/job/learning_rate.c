#include "scheduler/job/learning_rate.h"

#include <math.h>

// Values of the C interface come here without the job's table having looked at them.
pen_status pen_learning_rate_check(const pen_learning_rate_options *options) {
    if (!(options->base > 0 && isfinite(options->base))) {
        return pen_error(PEN_INVALID_INPUT, "the learning rate is %g, expected a positive number",
                         options->base);
    }
    if (!(options->final >= 0 && isfinite(options->final))) {
        return pen_error(PEN_INVALID_INPUT, "the final learning rate is %g, expected at least 0",
                         options->final);
    }
    if (options->kind != PEN_LEARNING_RATE_STEP) return PEN_OK;
    if (options->every == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "the learning rate decays every 0 steps, expected at least 1");
    }
    if (!(options->factor > 0 && isfinite(options->factor))) {
        return pen_error(PEN_INVALID_INPUT,
                         "the learning rate's factor is %g, expected a positive number",
                         options->factor);
    }
    return PEN_OK;
}

// A function of the step alone: nothing has to be kept in a checkpoint. Warm-up rises linearly and
// reaches the full rate at its last step.
double pen_learning_rate_at(const pen_learning_rate_options *options, uint64_t step,
                            uint64_t total_steps) {
    const double base = options->base;
    const uint64_t warmup = options->warmup;
    if (step < warmup) return base * (double)(step + 1) / (double)warmup;
    const uint64_t done = step - warmup;
    uint64_t drops;
    double progress = 0;
    if (total_steps > warmup) progress = fmin(1, (double)done / (double)(total_steps - warmup));
    switch (options->kind) {
    case PEN_LEARNING_RATE_CONSTANT:
        break;
    case PEN_LEARNING_RATE_STEP:
        drops = done / options->every;
        return base * pow(options->factor, (double)drops);
    case PEN_LEARNING_RATE_COSINE:
        return options->final +
               (base - options->final) * (1 + cos(3.14159265358979323846 * progress)) / 2;
    case PEN_LEARNING_RATE_LINEAR:
        return base + (options->final - base) * progress;
    }
    return base;
}
