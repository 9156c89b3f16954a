#include "scheduler/job/plateau_rate.h"

#include <math.h>

#define PLATEAU_LEAST 1e-8 // a rate that would fall by less stays, as PyTorch's `eps` says

static bool plateau_is_better(const pen_plateau_rate *options, bool is_larger_better, double value,
                              double best) {
    const double threshold = options->threshold;
    if (options->threshold_mode == PEN_PLATEAU_REL) {
        return is_larger_better ? value > best * (1 + threshold) : value < best * (1 - threshold);
    }
    return is_larger_better ? value > best + threshold : value < best - threshold;
}

// In the order of PyTorch's step(): what counts as bad, the cooldown, then the fall.
void pen_plateau_rate_add(const pen_plateau_rate *options, double base, bool is_larger_better,
                          double value, pen_plateau_state *state) {
    const bool is_first = state->rate == 0;
    if (is_first) state->rate = base;
    if (is_first || plateau_is_better(options, is_larger_better, value, state->best)) {
        state->best = value;
        state->bad = 0;
    } else {
        state->bad += 1;
    }
    if (state->cooldown > 0) {
        state->cooldown -= 1;
        state->bad = 0;
    }
    if (state->bad <= (uint64_t)options->patience) return;
    const double rate = fmax(state->rate * options->factor, options->min_lr);
    if (state->rate - rate > PLATEAU_LEAST) state->rate = rate;
    state->cooldown = (uint64_t)options->cooldown;
    state->bad = 0;
}
