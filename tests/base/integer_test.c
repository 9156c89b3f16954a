#include "base/integer.h"

#include "tests/support/check.h"

static void products_and_sums_are_checked(void **state) {
    (void)state;
    size_t size = 0;
    assert_true(pen_size_mul(SIZE_MAX / 3, 3, &size));
    assert_true(size == SIZE_MAX / 3 * 3);
    assert_false(pen_size_mul(SIZE_MAX / 2 + 1, 2, &size));
    assert_true(pen_size_add(SIZE_MAX - 1, 1, &size));
    assert_false(pen_size_add(SIZE_MAX, 1, &size));
    uint64_t number = 0;
    assert_true(pen_u64_mul(UINT32_MAX, UINT32_MAX, &number));
    assert_true(number == 0xfffffffe00000001u);
    assert_false(pen_u64_mul(1ull << 32, 1ull << 32, &number));
    assert_true(pen_u64_add(UINT64_MAX, 0, &number));
    assert_false(pen_u64_add(UINT64_MAX, 1, &number));
    int64_t integer = 0;
    assert_true(pen_i64_mul(INT64_MIN, 1, &integer));
    assert_false(pen_i64_mul(INT64_MIN, -1, &integer));
    assert_false(pen_i64_mul(INT64_MAX, 2, &integer));
    assert_true(pen_i64_add(INT64_MIN, INT64_MAX, &integer));
    assert_true(integer == -1);
    assert_false(pen_i64_add(INT64_MIN, -1, &integer));
    assert_false(pen_i64_add(INT64_MAX, 1, &integer));
}

static void extremes_compare_by_value(void **state) {
    (void)state;
    assert_true(pen_min_u64(1, UINT64_MAX) == 1);
    assert_true(pen_max_u64(1, UINT64_MAX) == UINT64_MAX);
    assert_true(pen_min_i64(-1, 1) == -1);
    assert_true(pen_max_i64(-1, INT64_MIN) == -1);
}

static void rounding_up_reaches_the_next_multiple(void **state) {
    (void)state;
    for (uint64_t value = 0; value < 300; value++) {
        const uint64_t rounded = pen_align_up(value, 64);
        CHECK(rounded % 64 == 0 && rounded >= value && rounded - value < 64, "%llu became %llu",
              (unsigned long long)value, (unsigned long long)rounded);
        assert_true(pen_align_up(value, 1) == value);
    }
    assert_true(pen_align_up(UINT64_MAX - 63, 64) == UINT64_MAX - 63);
}

PEN_TEST_MAIN(cmocka_unit_test(products_and_sums_are_checked),
              cmocka_unit_test(extremes_compare_by_value),
              cmocka_unit_test(rounding_up_reaches_the_next_multiple))
