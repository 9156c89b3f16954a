// Annealing, for any search that changes what it has step by step: one loop, one way to cool and
// one way to accept.
//
// A step proposes a change and weighs it: what it loses, in the unit of the search's warmth. A loss
// x is accepted with the probability exp(-x / warmth), a gain always, so a warm search crosses
// valleys and a cool one descends.
//
//   search   what the functions below are given: the solution at hand, and the best
//   look     every `look_steps` steps, first of all: cools, and says whether to go on
//   propose  chooses a change; false: there is none in this step
//   weigh    what it loses; more than `bearable` is refused, so it may stop there and say INFINITY
//   keep     the change was accepted
//   refuse   it was not: what `propose` and `weigh` changed is undone
//
// The objective is a constant of its file, and the loop is inlined there with it, so that no step
// goes through a pointer: one step may take less than 100 ns.
//
// Threads: a run belongs to one thread at a time; `stop` may be set by another.
#ifndef PEN_BASE_ANNEALING_H
#define PEN_BASE_ANNEALING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

typedef struct pen_annealing_options {
    uint64_t seed;
    uint64_t step_count;
    double deadline;     // by pen_clock_seconds: as it comes near, cooling is as if steps had run
                         // out; INFINITY: the result depends on the other options alone
    bool is_counted;     // steps alone cool; the deadline only ends the run
    double warmth_first; // largest relative loss that is commonly accepted, at the start
    double warmth_last;  // at the end
    double enough;       // stops at this value
    const atomic_bool *stop; // stops when it becomes true; NULL: never
} pen_annealing_options;

#define PEN_ANNEALING_LUCKS 4096

typedef struct pen_annealing {
    const pen_annealing_options *options;
    pen_random_sequence random;
    double begin;                     // by pen_clock_seconds, where there is a deadline
    double decay;                     // ln(warmth_last / warmth_first)
    double progress;                  // from 0 to 1, at the last look
    double warmth;                    // likewise
    double luck[PEN_ANNEALING_LUCKS]; // numbers drawn from the exponential distribution
} pen_annealing;

typedef struct pen_annealing_objective {
    uint64_t look_steps;
    bool (*look)(void *search, uint64_t step);
    bool (*propose)(void *search);
    double (*weigh)(void *search, double bearable);
    void (*keep)(void *search);
    void (*refuse)(void *search);
} pen_annealing_objective;

// Begins a run of `options`, which are borrowed; `name` is that of the random stream.
void pen_annealing_begin(pen_annealing *annealing, const char *name,
                         const pen_annealing_options *options);

// For `look`: cools to where a run is whose own share of the work, from 0 to 1, is done, or to
// where the clock says it is. False when the run is over: all is done, `best` is enough, or it is
// stopped.
bool pen_annealing_cool(pen_annealing *annealing, double done, double best);

// Steps until `look` is false.
__attribute__((always_inline)) static inline void
pen_annealing_run(pen_annealing *annealing, const pen_annealing_objective *objective,
                  void *search) {
    for (uint64_t step = 0;; step++) {
        if (step % objective->look_steps == 0 && !objective->look(search, step)) return;
        if (!objective->propose(search)) continue;
        const uint32_t draw = pen_random_next_below(&annealing->random, PEN_ANNEALING_LUCKS);
        const double bearable = annealing->warmth * annealing->luck[draw];
        if (objective->weigh(search, bearable) <= bearable) {
            objective->keep(search);
        } else {
            objective->refuse(search);
        }
    }
}

#endif // PEN_BASE_ANNEALING_H
