#include "partition/spec/name_range.h"

#include "tests/support/check.h"

static void ranges_are_counted_and_written(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t total;
        uint32_t index;
        const char *name;
    } cases[] = {
        {"a", 1, 0, "a"},
        {"", 1, 0, ""},
        {"n[1-16]/cpu0", 16, 9, "n10/cpu0"},
        {"n[01-16]", 16, 0, "n01"},
        {"n[001-160]", 160, 99, "n100"},
        {"n[8-12]", 5, 2, "n10"},
        {"n[0-1]", 2, 0, "n0"},
        {"n[1-2]/g[0-3]", 8, 5, "n2/g1"},
        {"[1-2][1-2][1-2][1-2]", 16, 10, "2121"},
        {"[::1]:[7070-7071]", 2, 1, "[::1]:7071"},
        {"a[]b", 1, 0, "a[]b"},
        {"a[x][3-3]]", 1, 0, "a[x]3]"},
        {"[999999999-999999999]", 1, 0, "999999999"},
        {"[0-65535]", 65536, 65535, "65535"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_arena *arena = check_arena();
        pen_name_ranges ranges;
        const char *name;
        CHECK_OK(pen_name_ranges_parse(cases[i].text, &ranges));
        CHECK(ranges.total == cases[i].total, "%s: %u", cases[i].text, ranges.total);
        CHECK_OK(pen_name_ranges_format(&ranges, &ranges, cases[i].index, arena, &name));
        CHECK(strcmp(name, cases[i].name) == 0, "%s: %s", cases[i].text, name);
        pen_arena_destroy(arena);
    }
}

static void ranges_go_along_with_others(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_name_ranges name;
    pen_name_ranges host;
    const char *text;
    CHECK_OK(pen_name_ranges_parse("n[1-16]/cpu[0-1]", &name));
    CHECK_OK(pen_name_ranges_parse("10.0.0.[101-116]:7070", &host));
    CHECK_OK(pen_name_ranges_format(&host, &name, 5, arena, &text));
    assert_string_equal(text, "10.0.0.103:7070");
    pen_arena_destroy(arena);
}

static void what_is_meant_as_a_range_must_be_one(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"n[1-]", "found \"n[1-]\", expected ranges like [1-16]"},
        {"n[-3]", "expected ranges like [1-16]"},
        {"n[1-4", "expected a \"]\" that ends the range"},
        {"n[7]", "expected ranges like [1-16]"},
        {"n[1-2-3]", "expected ranges like [1-16]"},
        {"n[-]", "expected ranges like [1-16]"},
        {"n[1-1234567890]", "of at most 9 digits"},
        {"n[3-1]", "a range that begins with its smaller number"},
        {"n[0-65536]", "at most 65536 names"},
        {"[1-300][1-300]", "at most 65536 names"},
        {"[1-2][1-2][1-2][1-2][1-2]", "at most 4 ranges"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_name_ranges ranges;
        CHECK_ERROR(pen_name_ranges_parse(cases[i].text, &ranges), PEN_INVALID_INPUT,
                    cases[i].message);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(ranges_are_counted_and_written),
              cmocka_unit_test(ranges_go_along_with_others),
              cmocka_unit_test(what_is_meant_as_a_range_must_be_one))
