#include "scheduler/training/metrics.h"

#include <math.h>

#include "tests/support/check.h"

static void weighs_by_examples(void **state) {
    (void)state;
    pen_metrics metrics;
    pen_metrics_start(&metrics, 100, 5);
    assert_true(isnan(pen_metrics_loss(&metrics)));
    assert_true(isnan(pen_metrics_accuracy(&metrics)));
    assert_true(isnan(pen_metrics_seconds_left(&metrics, 6)));
    pen_metrics_add(&metrics, 1, 30);
    pen_metrics_add_correct(&metrics, 15, 30);
    pen_metrics_add(&metrics, 2, 10);
    pen_metrics_add_correct(&metrics, 10, 10);
    CHECK(pen_metrics_loss(&metrics) == 1.25, "%g", pen_metrics_loss(&metrics));
    CHECK(pen_metrics_accuracy(&metrics) == 0.625, "%g", pen_metrics_accuracy(&metrics));
}

static void tells_speed_and_time_left(void **state) {
    (void)state;
    pen_metrics metrics;
    pen_metrics_start(&metrics, 100, 5);
    pen_metrics_add(&metrics, 1, 40);
    CHECK(pen_metrics_samples_per_second(&metrics, 5) == 0, "no time has passed");
    CHECK(pen_metrics_samples_per_second(&metrics, 7) == 20, "40 in 2 s");
    CHECK(pen_metrics_seconds_left(&metrics, 7) == 3, "60 at 20 a second");
    pen_metrics_add(&metrics, 1, 70);
    CHECK(pen_metrics_seconds_left(&metrics, 7) == 0, "nothing is left");
    pen_metrics_start(&metrics, 0, 5);
    pen_metrics_add(&metrics, 1, 40);
    assert_true(isnan(pen_metrics_seconds_left(&metrics, 7)));
}

static void counts_correct_rows(void **state) {
    (void)state;
    const float scores[] = {1, 3, 2, 5, 5, 4, NAN, 9, 1, -3, -2, -1, 0, 0, 0};
    const int64_t classes[] = {1, 0, 1, 2, -1};
    assert_int_equal(pen_metrics_count_correct(scores, classes, 5, 3), 3);
    const int64_t second[] = {0, 1, 0, 3, 0};
    assert_int_equal(pen_metrics_count_correct(scores, second, 5, 3), 1);
}

PEN_TEST_MAIN(cmocka_unit_test(weighs_by_examples), cmocka_unit_test(tells_speed_and_time_left),
              cmocka_unit_test(counts_correct_rows))
