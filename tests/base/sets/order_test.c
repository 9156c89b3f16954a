// What is equal keeps the order of its ids, whichever way the rest is sorted.
#include "base/sets/order.h"

#include "tests/support/check.h"

static void ties_go_by_id(void **state) {
    (void)state;
    pen_ranked items[] = {{2.0, 3}, {1.0, 5}, {2.0, 1}, {-4.0, 2}, {1.0, 0}};
    const uint32_t up[] = {2, 0, 5, 1, 3}, down[] = {1, 3, 0, 5, 2};
    pen_ranked_sort_up(items, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(items[i].id, up[i]);
    pen_ranked_sort_down(items, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(items[i].id, down[i]);
}

static void ids_rise_and_numbers_fall(void **state) {
    (void)state;
    uint32_t ids[] = {7, 0, UINT32_MAX, 7};
    double numbers[] = {-1.0, 3.0, 0.5};
    pen_sort_ids(ids, 4);
    pen_sort_numbers_down(numbers, 3);
    assert_true(ids[0] == 0 && ids[1] == 7 && ids[2] == 7 && ids[3] == UINT32_MAX);
    assert_true(numbers[0] == 3.0 && numbers[1] == 0.5 && numbers[2] == -1.0);
    pen_sort_ids(NULL, 0);
}

PEN_TEST_MAIN(cmocka_unit_test(ties_go_by_id), cmocka_unit_test(ids_rise_and_numbers_fall))
