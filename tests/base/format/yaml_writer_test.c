#include "base/format/yaml_writer.h"

#include <math.h>

#include "base/format/yaml_reader.h"
#include "tests/support/check.h"

static const char *quantity(pen_arena *arena, double number, pen_unit unit) {
    pen_text text;
    const char *whole;
    pen_text_init(&text, arena);
    pen_yaml_add_quantity(&text, number, unit);
    CHECK_OK(pen_text_finish(&text, &whole));
    return whole;
}

static void quantities_take_a_unit_that_suits(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    assert_string_equal(quantity(arena, 0, PEN_UNIT_SECONDS), "0s");
    assert_string_equal(quantity(arena, 1.5, PEN_UNIT_SECONDS), "1.5s");
    assert_string_equal(quantity(arena, 90, PEN_UNIT_SECONDS), "90s");
    assert_string_equal(quantity(arena, 1.5e-3, PEN_UNIT_SECONDS), "1.5ms");
    assert_string_equal(quantity(arena, 0.99999999, PEN_UNIT_SECONDS), "1s");
    assert_string_equal(quantity(arena, 12.3456789e-6, PEN_UNIT_SECONDS), "12.346us");
    assert_string_equal(quantity(arena, 2e-12, PEN_UNIT_SECONDS), "0.002ns");
    assert_string_equal(quantity(arena, 80e9, PEN_UNIT_RATE), "80G");
    assert_string_equal(quantity(arena, 1.25e9, PEN_UNIT_BANDWIDTH), "1.25GB/s");
    assert_string_equal(quantity(arena, 123456789.0, PEN_UNIT_BYTES), "123456789B");
    pen_arena_destroy(arena);
}

// What is read back is written the same, and is near what it was.
static void quantities_come_back(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    static const pen_unit units[] = {PEN_UNIT_SECONDS, PEN_UNIT_RATE, PEN_UNIT_BANDWIDTH};
    for (size_t u = 0; u < 3; u++) {
        for (double number = 1.23456789e-9; number < 1e15; number *= 3.7) {
            const double value = units[u] == PEN_UNIT_SECONDS ? number : number + 1e5;
            double back;
            const char *text = quantity(arena, value, units[u]);
            CHECK(pen_quantity_parse(text, units[u], &back), "'%s'", text);
            CHECK(fabs(back - value) <= 5.1e-5 * value, "%g became %s", value, text);
            assert_string_equal(quantity(arena, back, units[u]), text);
        }
    }
    pen_arena_destroy(arena);
}

static void texts_come_back(void **state) {
    (void)state;
    static const char *const texts[] = {
        "plain", "a: b # c", "\"quoted\" \\ \n\t", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
        "-1",    "[x, {y}]", " blanks ",           "\x01\x7f\xc2\x85",
        "null",  "%&*!|>'",  "\xe2\x80\xa8",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pen_arena *arena = check_arena();
        pen_text text;
        const char *whole;
        const pen_yaml_node *root;
        pen_text_init(&text, arena);
        pen_text_add(&text, "key: ");
        pen_yaml_add_text(&text, texts[i]);
        CHECK_OK(pen_text_finish(&text, &whole));
        CHECK_OK(pen_yaml_parse("text", whole, strlen(whole), arena, &root));
        assert_string_equal(pen_yaml_find(root, "key")->text, texts[i]);
        pen_arena_destroy(arena);
    }
}

// Bytes that are not UTF-8 do not make a file that cannot be read.
static void broken_text_is_replaced(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    const char *whole;
    pen_text_init(&text, arena);
    pen_yaml_add_text(&text, "a\xff\xc3z\xed\xa0\x80");
    CHECK_OK(pen_text_finish(&text, &whole));
    const pen_yaml_node *root;
    CHECK_OK(pen_yaml_parse("text", whole, strlen(whole), arena, &root));
    CHECK(strncmp(root->text, "a\xef\xbf\xbd\xef\xbf\xbdz", 8) == 0, "'%s'", root->text);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(quantities_take_a_unit_that_suits),
              cmocka_unit_test(quantities_come_back), cmocka_unit_test(texts_come_back),
              cmocka_unit_test(broken_text_is_replaced))
