#include "base/format/markup_writer.h"

#include "tests/support/check.h"

static void check_markup(pen_text *text, const char *expected) {
    const char *whole;
    CHECK_OK(pen_text_finish(text, &whole));
    CHECK(strcmp(whole, expected) == 0, "%s\nexpected %s", whole, expected);
}

static void writes_elements(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_markup_writer markup;
    pen_text_init(&text, arena);
    pen_markup_init(&markup, &text);
    pen_markup_open(&markup, "svg");
    pen_markup_attribute_number(&markup, "width", 12.5);
    pen_markup_open(&markup, "rect");
    pen_markup_attribute(&markup, "fill", "red");
    pen_markup_close(&markup, "rect");
    pen_markup_line(&markup);
    pen_markup_element(&markup, "title", "a");
    pen_markup_open(&markup, "g");
    pen_markup_close(&markup, "g");
    pen_markup_close(&markup, "svg");
    check_markup(&text, "<svg width=\"12.5\"><rect fill=\"red\"/>\n<title>a</title><g></g></svg>");
    pen_arena_destroy(arena);
}

static void lets_no_text_out_of_its_element(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_markup_writer markup;
    pen_text_init(&text, arena);
    pen_markup_init(&markup, &text);
    pen_markup_open(&markup, "p");
    pen_markup_attribute(&markup, "title", "\" onclick='x' <&>");
    pen_markup_print(&markup, "%s %d", "</p><script>", 3);
    pen_markup_close(&markup, "p");
    check_markup(&text, "<p title=\"&quot; onclick=&#39;x&#39; &lt;&amp;&gt;\">"
                        "&lt;/p&gt;&lt;script&gt; 3</p>");
    pen_arena_destroy(arena);
}

static void writes_utf8_alone(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_markup_writer markup;
    pen_text_init(&text, arena);
    pen_markup_init(&markup, &text);
    pen_markup_text(&markup, "\xC3\xA9\xFFz\x01\xF0\x9F\x98\x80\xED\xA0\x80");
    check_markup(&text, "\xC3\xA9\xEF\xBF\xBDz\xEF\xBF\xBD\xF0\x9F\x98\x80"
                        "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    pen_arena_destroy(arena);
}

static void keeps_json_inside_its_script(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_markup_writer markup;
    pen_text_init(&text, arena);
    pen_markup_init(&markup, &text);
    pen_markup_open(&markup, "script");
    pen_markup_json(&markup, "[\"</script><!--<script>\",1]");
    pen_markup_close(&markup, "script");
    check_markup(&text, "<script>[\"\\u003c/script>\\u003c!--\\u003cscript>\",1]</script>");
    pen_arena_destroy(arena);
}

static void prints_long_texts(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_markup_writer markup;
    char name[1000];
    const char *whole;
    memset(name, '<', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    pen_text_init(&text, arena);
    pen_markup_init(&markup, &text);
    pen_markup_print(&markup, "%s", name);
    CHECK_OK(pen_text_finish(&text, &whole));
    CHECK(strlen(whole) == 4 * 999, "%zu", strlen(whole));
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(writes_elements), cmocka_unit_test(lets_no_text_out_of_its_element),
              cmocka_unit_test(writes_utf8_alone), cmocka_unit_test(keeps_json_inside_its_script),
              cmocka_unit_test(prints_long_texts))
