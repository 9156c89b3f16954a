#include "base/pattern.h"

#include "tests/support/check.h"

static bool matches(const char *text, const char *name) {
    pen_pattern *pattern = NULL;
    CHECK_OK(pen_pattern_create(text, &pattern));
    const bool result = pen_pattern_matches(pattern, name);
    pen_pattern_destroy(pattern);
    return result;
}

static void patterns_match_names(void **state) {
    (void)state;
    assert_true(matches("^conv1", "conv1.weight"));
    assert_false(matches("^conv1", "layer.conv1.weight"));
    assert_true(matches("fc|bias$", "conv1.bias"));
    assert_true(matches("^/layer[0-4]/", "/layer3/x"));
    assert_true(matches("a{2,3}b", "xaab"));
    assert_true(matches("[](){}]", "a{"));
    assert_true(matches("^[a-z]+(_[a-z]+)*/(conv|fc)[0-9]+/.+$", "net_a/conv12/w"));
    assert_true(matches("(a{11}){10}|y", "y"));
    assert_true(matches("[[:digit:]]{100}|x", "x"));
    assert_true(matches("\\(\\(\\(\\(\\(\\(\\(\\(\\(", "((((((((("));
}

static void wrong_patterns_are_refused(void **state) {
    (void)state;
    char long_text[PEN_PATTERN_BYTES_LIMIT + 2];
    memset(long_text, 'a', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"a(", "unmatched"},
        {"[a", "unmatched"},
        {"[[:x", "unmatched"},
        {"[[:nothing:]]", "invalid"},
        {"a{2,1}", "invalid"},
        {"a\\", "trailing backslash"},
        {"(a)\\1", "back references (\\1)"},
        {"(a{100}){100}", "written out without repetitions"},
        {"a{0,999999999999999999999}", "written out without repetitions"},
        {"a++++++++++++++++++++++++++++++++++++", "'+' repeats a repetition"},
        {"a+*+*+*+*+*+*+*+*+*+*+*+*+*+*+*+*+*+*+*", "'*' repeats a repetition"},
        {"((((((((a+)+b)+)+)+){3})+){99}", "written out without repetitions"},
        {"a{40}{40}{40}{40}{40}", "'{' repeats a repetition"},
        {"(((((a{4}){4}){4}){4}){4}){4}", "written out without repetitions"},
        // the C library takes seconds over this one
        {"[[ha:]] +++.\\\\\\\\*++++++++++:]]?$", "'+' repeats a repetition"},
        {"(((((((((a)))))))))", "more than 8 parentheses"},
        {long_text, "513 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_pattern *pattern = NULL;
        CHECK_ERROR(pen_pattern_create(cases[i].text, &pattern), PEN_INVALID_INPUT,
                    cases[i].message);
        assert_null(pattern);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(patterns_match_names), cmocka_unit_test(wrong_patterns_are_refused))
