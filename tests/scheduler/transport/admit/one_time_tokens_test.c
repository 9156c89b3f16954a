// Tokens for one link each.
#include <string.h>

#include "scheduler/transport/admit/one_time_tokens.h"
#include "tests/support/check.h"

static pen_one_time_tokens tokens;

static int set_up(void **state) {
    (void)state;
    pen_one_time_init(&tokens);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    pen_one_time_deinit(&tokens);
    return 0;
}

static void each_admits_once(void **state) {
    (void)state;
    uint8_t first[PEN_ONE_TIME_BYTES], second[PEN_ONE_TIME_BYTES];
    assert_true(pen_one_time_give(&tokens, 100, first));
    assert_true(pen_one_time_give(&tokens, 100, second));
    assert_memory_not_equal(first, second, sizeof first);
    assert_true(pen_one_time_take(&tokens, 101, second));
    assert_false(pen_one_time_take(&tokens, 101, second));
    assert_true(pen_one_time_take(&tokens, 101, first));
    assert_false(pen_one_time_take(&tokens, 101, first));
}

static void others_do_not(void **state) {
    (void)state;
    uint8_t token[PEN_ONE_TIME_BYTES] = {0};
    assert_false(pen_one_time_take(&tokens, 1, token)); // what was never given
    assert_true(pen_one_time_give(&tokens, 1, token));
    for (uint32_t bit = 0; bit < 8 * sizeof token; bit++) {
        token[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(pen_one_time_take(&tokens, 2, token));
        token[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_true(pen_one_time_take(&tokens, 2, token));
}

static void they_grow_old(void **state) {
    (void)state;
    uint8_t token[PEN_ONE_TIME_BYTES];
    assert_true(pen_one_time_give(&tokens, 10, token));
    assert_false(pen_one_time_take(&tokens, 10 + PEN_ONE_TIME_SECONDS, token));
    assert_true(pen_one_time_give(&tokens, 10, token));
    assert_true(pen_one_time_take(&tokens, 9.9 + PEN_ONE_TIME_SECONDS, token));
}

static void the_oldest_gives_way(void **state) {
    (void)state;
    static uint8_t given[PEN_ONE_TIME_LIMIT + 1][PEN_ONE_TIME_BYTES];
    for (uint32_t i = 0; i <= PEN_ONE_TIME_LIMIT; i++)
        assert_true(pen_one_time_give(&tokens, 100 + i * 1e-3, given[i]));
    assert_false(pen_one_time_take(&tokens, 110, given[0]));
    for (uint32_t i = 1; i <= PEN_ONE_TIME_LIMIT; i++)
        assert_true(pen_one_time_take(&tokens, 110, given[i]));
}

PEN_TEST_MAIN(cmocka_unit_test_setup_teardown(each_admits_once, set_up, tear_down),
              cmocka_unit_test_setup_teardown(others_do_not, set_up, tear_down),
              cmocka_unit_test_setup_teardown(they_grow_old, set_up, tear_down),
              cmocka_unit_test_setup_teardown(the_oldest_gives_way, set_up, tear_down))
