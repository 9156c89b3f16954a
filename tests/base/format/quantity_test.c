#include "base/format/quantity.h"

#include "tests/support/check.h"

#include <regex.h>

static void numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_number;
        double number;
        bool is_integer;
        int64_t integer;
    } cases[] = {
        {"0", true, 0, true, 0},
        {"-12", true, -12, true, -12},
        {"+3", true, 3, true, 3},
        {"007", true, 7, true, 7},
        {"1.5", true, 1.5, false, 0},
        {".5", true, 0.5, false, 0},
        {"5.", true, 5, false, 0},
        {"1e3", true, 1000, false, 0},
        {"1E-3", true, 0.001, false, 0},
        {"9223372036854775807", true, 9223372036854775807.0, true, INT64_MAX},
        {"-9223372036854775808", true, -9223372036854775808.0, true, INT64_MIN},
        {"9223372036854775808", true, 9223372036854775808.0, false, 0},
        {"", false, 0, false, 0},
        {"-", false, 0, false, 0},
        {".", false, 0, false, 0},
        {"e5", false, 0, false, 0},
        {"1e", false, 0, false, 0},
        {"1e999", false, 0, false, 0},
        {"0x10", false, 0, false, 0},
        {"inf", false, 0, false, 0},
        {"nan", false, 0, false, 0},
        {" 1", false, 0, false, 0},
        {"1 ", false, 0, false, 0},
        {"1_000", false, 0, false, 0},
        {"1,5", false, 0, false, 0},
        {"--1", false, 0, false, 0},
        {"1111111111111111111111111111111111111111111111111111111111111111111", false, 0, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double number = -77;
        int64_t integer = -77;
        CHECK(pen_number_parse(cases[i].text, &number) == cases[i].is_number, "%s", cases[i].text);
        CHECK(number == (cases[i].is_number ? cases[i].number : -77), "%s: %g", cases[i].text,
              number);
        CHECK(pen_integer_parse(cases[i].text, &integer) == cases[i].is_integer, "%s",
              cases[i].text);
        CHECK(integer == (cases[i].is_integer ? cases[i].integer : -77), "%s", cases[i].text);
    }
}

static void quantities(void **state) {
    (void)state;
    static const struct {
        const char *text;
        pen_unit unit;
        double number; // negative: none
    } cases[] = {
        {"12GiB", PEN_UNIT_BYTES, 12884901888.0},
        {"1.5 KiB", PEN_UNIT_BYTES, 1536},
        {"500MB", PEN_UNIT_BYTES, 500e6},
        {"7 B", PEN_UNIT_BYTES, 7},
        {"12", PEN_UNIT_BYTES, -1},
        {"12G", PEN_UNIT_BYTES, -1},
        {"12gib", PEN_UNIT_BYTES, -1},
        {"GiB", PEN_UNIT_BYTES, -1},
        {"-1GiB", PEN_UNIT_BYTES, -1},
        {"1GiB ", PEN_UNIT_BYTES, -1},
        {"50us", PEN_UNIT_SECONDS, 50e-6},
        {"5s", PEN_UNIT_SECONDS, 5},
        {"1.5min", PEN_UNIT_SECONDS, 90},
        {"2 h", PEN_UNIT_SECONDS, 7200},
        {"5", PEN_UNIT_SECONDS, -1},
        {"5 sec", PEN_UNIT_SECONDS, -1},
        {"80G", PEN_UNIT_RATE, 80e9},
        {"1.2 Tflop/s", PEN_UNIT_RATE, 1.2e12},
        {"80", PEN_UNIT_RATE, -1},
        {"10Gbit/s", PEN_UNIT_BANDWIDTH, 1.25e9},
        {"1 GB/s", PEN_UNIT_BANDWIDTH, 1e9},
        {"1e308 TB/s", PEN_UNIT_BANDWIDTH, -1},
        {"10Gbit", PEN_UNIT_BANDWIDTH, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double number = -1;
        const bool parsed = pen_quantity_parse(cases[i].text, cases[i].unit, &number);
        CHECK(parsed == (cases[i].number >= 0), "%s", cases[i].text);
        CHECK(number == cases[i].number, "%s: %.17g", cases[i].text, number);
        // the pattern of the schema says the same, but for numbers out of range
        regex_t pattern;
        assert_int_equal(regcomp(&pattern, pen_unit_pattern(cases[i].unit), REG_EXTENDED), 0);
        const bool matches = regexec(&pattern, cases[i].text, 0, NULL, 0) == 0;
        regfree(&pattern);
        CHECK(matches == parsed || strncmp(cases[i].text, "1e308", 5) == 0, "%s", cases[i].text);
    }
}

static void intervals(void **state) {
    (void)state;
    pen_interval interval = {.count = 0};
    assert_true(pen_interval_parse("100 steps", &interval));
    assert_true(interval.count == 100 && interval.unit == PEN_INTERVAL_STEPS);
    assert_true(pen_interval_parse("1epoch", &interval));
    assert_true(interval.count == 1 && interval.unit == PEN_INTERVAL_EPOCHS);
    static const char *const wrong[] = {"",         "steps",      "100",
                                        "-1 steps", "1.5 epochs", "99999999999999999999 steps"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!pen_interval_parse(wrong[i], &interval), "%s", wrong[i]);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(numbers), cmocka_unit_test(quantities), cmocka_unit_test(intervals))
