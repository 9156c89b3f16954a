#include "base/order.h"

#include "tests/support/check.h"

static void medians_are_in_the_middle(void **state) {
    (void)state;
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};
    assert_true(pen_median(odd, 3) == 2);
    assert_true(pen_median(even, 4) == 2.5);
    assert_true(pen_median(one, 1) == 7);
    assert_true(pen_median(NULL, 0) == 0);
}

PEN_TEST_MAIN(cmocka_unit_test(medians_are_in_the_middle))
