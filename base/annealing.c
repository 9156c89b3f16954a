#include "base/annealing.h"

#include <math.h>
#include <stddef.h>

#include "base/clock.h"

void pen_annealing_begin(pen_annealing *annealing, const char *name,
                         const pen_annealing_options *options) {
    annealing->options = options;
    annealing->random = pen_random_sequence_of(pen_random_stream(name, options->seed, 0));
    annealing->begin = options->deadline < INFINITY ? pen_clock_seconds() : 0.0;
    annealing->decay = log(options->warmth_last / options->warmth_first);
    annealing->progress = 0.0;
    annealing->warmth = options->warmth_first;
    for (uint32_t i = 0; i < PEN_ANNEALING_LUCKS; i++)
        annealing->luck[i] = -log((i + 0.5) / PEN_ANNEALING_LUCKS);
}

bool pen_annealing_cool(pen_annealing *annealing, double done, double best) {
    const pen_annealing_options *options = annealing->options;
    double progress = done;
    if (options->deadline < INFINITY) {
        const double span = options->deadline - annealing->begin;
        const double spent = span > 0.0 ? (pen_clock_seconds() - annealing->begin) / span : 1.0;
        if (!options->is_counted || spent >= 1.0) progress = fmax(progress, spent);
    }
    if (progress >= 1.0 || best <= options->enough) return false;
    if (options->stop != NULL && atomic_load_explicit(options->stop, memory_order_relaxed)) {
        return false;
    }
    annealing->progress = progress;
    annealing->warmth = options->warmth_first * exp(annealing->decay * progress);
    return true;
}
