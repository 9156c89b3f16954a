#include "scheduler/train/find_rate.h"

#include <math.h>

#include "tests/support/check.h"

// A loss that falls from 2 to 1 around the step `middle`, and rises behind `end` by `rise` a step.
static pen_found_rate search(pen_rate_point points[60], double middle, uint32_t end, double rise) {
    pen_found_rate found = {.points = points};
    for (uint32_t i = 0; i < 60; i++) {
        double loss = 1 + 1 / (1 + exp(((double)i - middle) / 2));
        if (i > end) loss += rise * (i - end);
        const bool goes_on = pen_rate_add(points, i, pow(1.3, i), loss);
        found.count = i + 1;
        found.is_cut = !goes_on;
        if (!goes_on) break;
    }
    pen_rate_choose(&found);
    return found;
}

static void where_it_falls_fastest(void **state) {
    (void)state;
    pen_rate_point points[60];
    const pen_found_rate found = search(points, 20, 40, 1);
    assert_true(found.is_cut);
    CHECK(found.best >= 20 && found.best <= 24, "step %u", found.best);
    CHECK(found.least > 38 && found.least < 44, "step %u", found.least);
    CHECK(points[found.count - 1].smoothed > 4 * points[found.least].smoothed, "cut too early");
    CHECK(points[found.count - 2].smoothed <= 4 * points[found.least].smoothed, "cut too late");
}

static void a_loss_that_never_falls(void **state) {
    (void)state;
    pen_rate_point points[60];
    const pen_found_rate found = search(points, -100, 0, 0.01);
    assert_int_equal(found.best, found.count);
    assert_false(found.is_cut);
    pen_found_rate none = {.points = points};
    pen_rate_choose(&none);
    assert_int_equal(none.best, 0);
}

// The mean of the first ones is theirs, as if more had come before.
static void the_first_are_smoothed(void **state) {
    (void)state;
    pen_rate_point points[3];
    assert_true(pen_rate_add(points, 0, 1, 3));
    assert_true(pen_rate_add(points, 1, 2, 3));
    assert_true(pen_rate_add(points, 2, 4, 1));
    CHECK(points[0].smoothed == 3 && fabs(points[1].smoothed - 3) < 1e-15, "%g",
          points[1].smoothed);
    const double expected = (0.81 * 3 + 0.9 * 3 + 1) / (0.81 + 0.9 + 1);
    CHECK(fabs(points[2].smoothed - expected) < 1e-15, "%.17g", points[2].smoothed);
}

PEN_TEST_MAIN(cmocka_unit_test(where_it_falls_fastest), cmocka_unit_test(a_loss_that_never_falls),
              cmocka_unit_test(the_first_are_smoothed))
