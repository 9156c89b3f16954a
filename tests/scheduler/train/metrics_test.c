#include "scheduler/train/metrics.h"

#include <math.h>

#include "tests/support/check.h"

static void weighs_by_examples(void **state) {
    (void)state;
    pen_metrics metrics;
    pen_metrics_start(&metrics, 5);
    assert_true(isnan(pen_metrics_loss(&metrics)));
    assert_true(isnan(pen_metrics_accuracy(&metrics)));
    pen_metrics_add(&metrics, 1, 30);
    pen_metrics_add_correct(&metrics, 15, 30);
    pen_metrics_add(&metrics, 2, 10);
    pen_metrics_add_correct(&metrics, 10, 10);
    CHECK(pen_metrics_loss(&metrics) == 1.25, "%g", pen_metrics_loss(&metrics));
    CHECK(pen_metrics_accuracy(&metrics) == 0.625, "%g", pen_metrics_accuracy(&metrics));
}

static void tells_speed(void **state) {
    (void)state;
    pen_metrics metrics;
    pen_metrics_start(&metrics, 5);
    pen_metrics_add(&metrics, 1, 40);
    CHECK(pen_metrics_samples_per_second(&metrics, 5) == 0, "no time has passed");
    CHECK(pen_metrics_samples_per_second(&metrics, 7) == 20, "40 in 2 s");
}

// A step that was skipped counts for the speed alone.
static void losses_that_are_not_finite_are_left_out(void **state) {
    (void)state;
    const double first[PEN_TERMS_LIMIT] = {1, (double)NAN}, second[PEN_TERMS_LIMIT] = {3, 5};
    double terms[PEN_TERMS_LIMIT];
    pen_metrics metrics;
    pen_metrics_start(&metrics, 5);
    pen_metrics_add(&metrics, (double)NAN, 30);
    pen_metrics_add_terms(&metrics, first, 30);
    assert_true(isnan(pen_metrics_loss(&metrics)));
    pen_metrics_add(&metrics, 2, 10);
    pen_metrics_add_terms(&metrics, second, 10);
    CHECK(pen_metrics_loss(&metrics) == 2, "%g", pen_metrics_loss(&metrics));
    pen_metrics_terms(&metrics, terms);
    CHECK(terms[0] == 1.5 && terms[1] == 5, "%g and %g", terms[0], terms[1]);
    CHECK(pen_metrics_samples_per_second(&metrics, 7) == 20, "40 in 2 s");
}

PEN_TEST_MAIN(cmocka_unit_test(weighs_by_examples), cmocka_unit_test(tells_speed),
              cmocka_unit_test(losses_that_are_not_finite_are_left_out))
