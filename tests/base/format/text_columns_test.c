#include "base/format/text_columns.h"

#include "tests/support/check.h"

static void columns_are_those_of_a_terminal(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t columns;
    } cases[] = {{"", 0},
                 {"gpu0", 4},
                 {"Gr\xc3\xb6\xc3\x9f"
                  "e",
                  5},
                 {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 6},
                 {"e\xcc\x81", 1},
                 {"\xf0\x9f\x9a\x80", 2},
                 {"\xff\xc3", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(pen_text_columns(cases[i].text) == cases[i].columns, "'%s' takes %zu columns",
              cases[i].text, pen_text_columns(cases[i].text));
    }
}

static void columns_are_filled(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    const char *whole;
    pen_text_init(&text, arena);
    pen_text_add_column(&text, "\xe6\x97\xa5", 4);
    pen_text_add_column(&text, "longer", 4);
    pen_text_add(&text, "|");
    CHECK_OK(pen_text_finish(&text, &whole));
    assert_string_equal(whole, "\xe6\x97\xa5  longer|");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(columns_are_those_of_a_terminal),
              cmocka_unit_test(columns_are_filled))
