#include "device/kernel_choices.h"
#include "tests/support/check.h"

static void choices_survive_text(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_kernel_choices *a, *b;
    CHECK_OK(pen_kernel_choices_create(arena, &a));
    CHECK_OK(pen_kernel_choices_create(arena, &b));
    for (int i = 99; i >= 0; i--) {
        char key[32];
        snprintf(key, sizeof key, "matmul m=%03d: x", i);
        CHECK_OK(pen_kernel_choices_set(a, key, i % 2 == 0 ? "onednn" : "openblas"));
    }
    CHECK_OK(pen_kernel_choices_set(a, "matmul m=007: x", "own"));
    const char *text, *again;
    CHECK_OK(pen_kernel_choices_format(a, arena, &text));
    CHECK_OK(pen_kernel_choices_parse(b, "plan", text));
    CHECK_OK(pen_kernel_choices_format(b, arena, &again));
    assert_string_equal(text, again);
    assert_int_equal(pen_kernel_choices_count(b), 100);
    assert_string_equal(pen_kernel_choices_find(b, "matmul m=007: x"), "own");
    assert_string_equal(pen_kernel_choices_find(b, "matmul m=008: x"), "onednn");
    assert_null(pen_kernel_choices_find(b, "matmul m=100: x"));
    CHECK(strncmp(text, "matmul m=000: x: onednn\n", 24) == 0, "not sorted: %.40s", text);
    pen_arena_destroy(arena);
}

static void bad_lines_are_named(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_kernel_choices *choices;
    CHECK_OK(pen_kernel_choices_create(arena, &choices));
    CHECK_ERROR(pen_kernel_choices_parse(choices, "plan", "a: b\nnonsense\n"), PEN_INVALID_INPUT,
                "plan:2");
    CHECK_ERROR(pen_kernel_choices_parse(choices, "plan", ": b\n"), PEN_INVALID_INPUT,
                "key: kernel");
    CHECK_ERROR(pen_kernel_choices_parse(choices, "plan", "a:\n"), PEN_INVALID_INPUT,
                "key: kernel");
    CHECK_ERROR(pen_kernel_choices_parse(choices, NULL, "a: c\n"), PEN_INVALID_INPUT,
                "'b' was before");
    pen_arena_destroy(arena);
}

static void measuring_is_off_at_first(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_kernel_choices *choices;
    CHECK_OK(pen_kernel_choices_create(arena, &choices));
    assert_false(pen_kernel_choices_may_measure(choices));
    pen_kernel_choices_allow_measuring(choices, true);
    assert_true(pen_kernel_choices_may_measure(choices));
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(choices_survive_text), cmocka_unit_test(bad_lines_are_named),
              cmocka_unit_test(measuring_is_off_at_first))
