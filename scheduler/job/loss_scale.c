#include "scheduler/job/loss_scale.h"

#include <math.h>

pen_loss_scale pen_loss_scale_start(const pen_loss_scale_options *options) {
    return (pen_loss_scale){.scale = (float)options->initial};
}

double pen_loss_scale_factor(const pen_loss_scale *scale) {
    return scale->scale == 0 ? 1 : scale->scale;
}

double pen_loss_scale_inverse(const pen_loss_scale *scale) {
    return scale->scale == 0 ? 1 : (float)(1 / scale->scale);
}

// The rules at the top of the header, in their order; a scale is rounded to float32 each time.
pen_loss_scale_verdict pen_loss_scale_advance(pen_loss_scale *scale,
                                              const pen_loss_scale_options *options,
                                              const pen_loss_scale_step *step) {
    if (step->is_skipped) {
        const uint64_t bad = step->is_loss_finite ? 0 : scale->bad + 1;
        const float fallen = (float)(scale->scale * options->backoff);
        if (bad >= PEN_LOSS_SCALE_BAD_LIMIT) return PEN_LOSS_SCALE_LOST;
        if (fallen < options->floor) return PEN_LOSS_SCALE_SUNK;
        scale->scale = fallen;
        scale->good = 0;
        scale->skipped += 1;
        scale->bad = bad;
        return PEN_LOSS_SCALE_GOES_ON;
    }
    scale->bad = 0;
    if (++scale->good < (uint64_t)options->every) return PEN_LOSS_SCALE_GOES_ON;
    const float grown = (float)(scale->scale * options->growth);
    if (isfinite(grown)) scale->scale = grown;
    scale->good = 0;
    return PEN_LOSS_SCALE_GOES_ON;
}
