// The loop looks as often as it is told, cools, keeps and refuses, and ends for each of its
// reasons.
#include "base/annealing.h"

#include <math.h>

#include "tests/support/check.h"

// A walk on whole numbers to the lowest place, (x - 30)^2 with a bump of every fourth number.
typedef struct walk {
    pen_annealing annealing;
    int at, step, best_at;
    double best;
    uint64_t looks, kept, refused;
} walk;

static double walk_value(int x) {
    return (x - 30.0) * (x - 30.0) + (x % 4 == 0 ? 25.0 : 0.0);
}

static bool walk_look(void *search, uint64_t step) {
    walk *w = search;
    w->looks += 1;
    return pen_annealing_cool(&w->annealing,
                              (double)step / (double)w->annealing.options->step_count, w->best);
}

static bool walk_propose(void *search) {
    walk *w = search;
    w->step = pen_random_next_below(&w->annealing.random, 2) == 0 ? -1 : 1;
    return true;
}

static double walk_weigh(void *search, double bearable) {
    walk *w = search;
    assert_true(bearable >= 0.0);
    w->at += w->step;
    return walk_value(w->at) - walk_value(w->at - w->step);
}

static void walk_keep(void *search) {
    walk *w = search;
    w->kept += 1;
    if (walk_value(w->at) >= w->best) return;
    w->best = walk_value(w->at);
    w->best_at = w->at;
}

static void walk_refuse(void *search) {
    walk *w = search;
    w->refused += 1;
    w->at -= w->step;
}

static const pen_annealing_objective walk_objective = {.look_steps = 8,
                                                       .look = walk_look,
                                                       .propose = walk_propose,
                                                       .weigh = walk_weigh,
                                                       .keep = walk_keep,
                                                       .refuse = walk_refuse};

static walk walk_run(const pen_annealing_options *options) {
    walk w = {.at = 0, .best = INFINITY};
    pen_annealing_begin(&w.annealing, "walk", options);
    pen_annealing_run(&w.annealing, &walk_objective, &w);
    return w;
}

static void a_warm_walk_crosses_bumps(void **state) {
    (void)state;
    const pen_annealing_options warm = {.seed = 1,
                                        .step_count = 4000,
                                        .deadline = INFINITY,
                                        .warmth_first = 30.0,
                                        .warmth_last = 0.1,
                                        .enough = -1.0};
    const walk found = walk_run(&warm), again = walk_run(&warm);
    assert_int_equal(found.best_at, 30);
    assert_int_equal(found.kept + found.refused, 4000);
    assert_int_equal(found.looks, 4000 / 8 + 1);
    assert_true(found.at == again.at && found.kept == again.kept);
    pen_annealing_options cold = warm;
    cold.warmth_first = cold.warmth_last = 1e-9;
    assert_true(walk_run(&cold).best > 0.0); // held up by the first bump
}

static void a_walk_ends_early(void **state) {
    (void)state;
    atomic_bool stop = true;
    pen_annealing_options options = {.seed = 2,
                                     .step_count = 4000,
                                     .deadline = INFINITY,
                                     .warmth_first = 30.0,
                                     .warmth_last = 0.1,
                                     .enough = 400.0};
    const walk enough = walk_run(&options);
    assert_true(enough.best <= 400.0 && enough.kept + enough.refused < 4000);
    options.stop = &stop;
    assert_int_equal(walk_run(&options).kept, 0);
    options.stop = NULL;
    options.deadline = 0.0; // long ago
    assert_int_equal(walk_run(&options).kept, 0);
}

PEN_TEST_MAIN(cmocka_unit_test(a_warm_walk_crosses_bumps), cmocka_unit_test(a_walk_ends_early))
