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

bool pen_loss_scale_advance(pen_loss_scale *scale, const pen_loss_scale_options *options,
                            bool is_skipped) {
    if (is_skipped) {
        scale->scale = (float)(scale->scale * options->backoff);
        scale->good = 0;
        scale->skipped += 1;
        return scale->scale > 0 && isfinite(pen_loss_scale_inverse(scale));
    }
    if (++scale->good < (uint64_t)options->every) return true;
    const float grown = (float)(scale->scale * options->growth);
    if (isfinite(grown)) scale->scale = grown;
    scale->good = 0;
    return true;
}
