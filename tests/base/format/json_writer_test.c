#include "base/format/json_writer.h"

#include "tests/support/check.h"

#include <math.h>

static void writes_nested_values(pen_json_writer *json) {
    pen_json_begin_object(json);
    pen_json_key_text(json, "schema", "penstock/train/1");
    pen_json_key(json, "steps");
    pen_json_begin_array(json);
    pen_json_integer(json, INT64_MIN);
    pen_json_unsigned(json, UINT64_MAX);
    pen_json_begin_object(json);
    pen_json_end_object(json);
    pen_json_null(json);
    pen_json_end_array(json);
    pen_json_key_bool(json, "done", true);
    pen_json_key_number(json, "loss", 0.1);
    pen_json_end_object(json);
}

static void one_line(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_json_writer json;
    pen_text_init(&text, arena);
    pen_json_init_text(&json, &text, 0);
    writes_nested_values(&json);
    CHECK_OK(pen_json_finish(&json));
    assert_string_equal(text.bytes, "{\"schema\": \"penstock/train/1\", \"steps\": "
                                    "[-9223372036854775808, 18446744073709551615, "
                                    "{}, null], \"done\": true, \"loss\": 0.10000000000000001}\n");
    pen_arena_destroy(arena);
}

static void indented(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_json_writer json;
    pen_text_init(&text, arena);
    pen_json_init_text(&json, &text, 2);
    writes_nested_values(&json);
    CHECK_OK(pen_json_finish(&json));
    assert_string_equal(text.bytes, "{\n  \"schema\": \"penstock/train/1\",\n  \"steps\": [\n"
                                    "    -9223372036854775808,\n    18446744073709551615,\n"
                                    "    {},\n    null\n  ],\n  \"done\": true,\n"
                                    "  \"loss\": 0.10000000000000001\n}\n");
    pen_arena_destroy(arena);
}

static void strings_are_escaped(void **state) {
    (void)state;
    static const struct {
        const char *found;
        const char *expected;
    } cases[] = {
        {"a\"b\\c\n\t\x01\x7f", "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\"\n"},
        {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"\n"},
        {"x\xC3", "\"x\\ufffd\"\n"},                     // cut
        {"\xC0\xAF", "\"\\ufffd\\ufffd\"\n"},            // overlong
        {"\xED\xA0\x80", "\"\\ufffd\\ufffd\\ufffd\"\n"}, // surrogate
        {"\xF4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"\n"},
    };
    pen_arena *arena = check_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_text text;
        pen_json_writer json;
        pen_text_init(&text, arena);
        pen_json_init_text(&json, &text, 0);
        pen_json_text(&json, cases[i].found);
        CHECK_OK(pen_json_finish(&json));
        assert_string_equal(text.bytes, cases[i].expected);
    }
    pen_arena_destroy(arena);
}

static void numbers_read_back(void **state) {
    (void)state;
    static const double numbers[] = {
        0.1, 1.0 / 3.0, 1e300, 5e-324, -0.0, 2.416497, 1.7976931348623157e308};
    pen_arena *arena = check_arena();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        pen_text text;
        pen_json_writer json;
        pen_text_init(&text, arena);
        pen_json_init_text(&json, &text, 0);
        pen_json_number(&json, numbers[i]);
        CHECK_OK(pen_json_finish(&json));
        const double read = strtod(text.bytes, NULL);
        assert_memory_equal(&read, &numbers[i], sizeof read);
    }
    pen_text text;
    pen_json_writer json;
    pen_text_init(&text, arena);
    pen_json_init_text(&json, &text, 0);
    pen_json_begin_array(&json);
    pen_json_number(&json, (double)NAN);
    pen_json_number(&json, (double)-INFINITY);
    pen_json_end_array(&json);
    CHECK_OK(pen_json_finish(&json));
    assert_string_equal(text.bytes, "[null, null]\n");
    pen_arena_destroy(arena);
}

static void a_full_device_is_noticed(void **state) {
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    pen_json_writer json;
    pen_json_init_file(&json, full, 0);
    writes_nested_values(&json);
    CHECK_ERROR(pen_json_finish(&json), PEN_IO, "refuses");
    fclose(full);
}

static void what_is_open_is_ended(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_json_writer json;
    const char *whole;
    pen_text_init(&text, arena);
    pen_json_init_text(&json, &text, 0);
    pen_json_begin_object(&json);
    pen_json_key(&json, "steps");
    pen_json_begin_array(&json);
    pen_json_begin_object(&json);
    pen_json_key(&json, "loss");
    pen_json_end_to(&json, 1);
    pen_json_key_text(&json, "error", "x");
    pen_json_end_to(&json, 0);
    CHECK_OK(pen_json_finish(&json));
    CHECK_OK(pen_text_finish(&text, &whole));
    assert_string_equal(whole, "{\"steps\": [{\"loss\": null}], \"error\": \"x\"}\n");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(one_line), cmocka_unit_test(indented),
              cmocka_unit_test(strings_are_escaped), cmocka_unit_test(numbers_read_back),
              cmocka_unit_test(a_full_device_is_noticed), cmocka_unit_test(what_is_open_is_ended))
