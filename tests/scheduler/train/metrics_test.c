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

PEN_TEST_MAIN(cmocka_unit_test(weighs_by_examples), cmocka_unit_test(tells_speed))
