#include "graph/element.h"

#include <math.h>
#include <string.h>

#include "tests/support/check.h"

// Every bit pattern of the 16-bit types, but those of what is not a number, comes back.
static void halves_come_back(void **state) {
    (void)state;
    static const pen_element_type halves[] = {PEN_FLOAT16, PEN_BFLOAT16};
    for (size_t e = 0; e < 2; e++) {
        for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
            const uint16_t from = (uint16_t)bits;
            uint16_t to = 0;
            const double number = pen_element_read(halves[e], &from, 0);
            pen_element_write(halves[e], &to, 0, number);
            if (isnan(number)) {
                assert_true(isnan(pen_element_read(halves[e], &to, 0)));
            } else {
                assert_int_equal(from, to);
            }
        }
    }
}

static void halves_round_to_even(void **state) {
    (void)state;
    static const struct {
        pen_element_type element;
        double number;
        uint16_t bits;
    } cases[] = {
        {PEN_FLOAT16, 1, 0x3c00},     {PEN_FLOAT16, -0.0, 0x8000}, {PEN_FLOAT16, 65519, 0x7bff},
        {PEN_FLOAT16, 65520, 0x7c00}, {PEN_FLOAT16, 0x1p-25, 0},   {PEN_FLOAT16, 0x1.8p-25, 1},
        {PEN_FLOAT16, 2049, 0x6800},  {PEN_FLOAT16, 2051, 0x6802}, {PEN_BFLOAT16, 1, 0x3f80},
        {PEN_BFLOAT16, 257, 0x4380},  {PEN_BFLOAT16, 259, 0x4382}, {PEN_BFLOAT16, -2, 0xc000},
        {PEN_BFLOAT16, 1e39, 0x7f80},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint16_t bits = 0;
        pen_element_write(cases[i].element, &bits, 0, cases[i].number);
        assert_int_equal(bits, cases[i].bits);
    }
}

// Numbers go through memory that is not aligned, next to bytes that stay.
static void numbers_come_back(void **state) {
    (void)state;
    for (int e = PEN_FLOAT32; e < PEN_ELEMENT_TYPE_COUNT; e++) {
        const pen_element_type element = (pen_element_type)e;
        const int64_t least = pen_element_is_signed(element) ? -1 : 0;
        char bytes[40];
        memset(bytes, 0x5a, sizeof bytes);
        for (int64_t number = least; number <= 1; number++) {
            pen_element_write(element, bytes + 1, 2, (double)number);
            assert_true(pen_element_read(element, bytes + 1, 2) == (double)number);
            pen_element_write_int(element, bytes + 1, 2, number);
            assert_int_equal(pen_element_read_int(element, bytes + 1, 2), number);
        }
        const size_t size = pen_element_bytes(element);
        assert_int_equal(bytes[2 * size], 0x5a);
        assert_int_equal(bytes[3 * size + 1], 0x5a);
    }
}

static void integers_are_held_and_wrap(void **state) {
    (void)state;
    int64_t wide = 0;
    pen_element_write(PEN_INT64, &wide, 0, 1e30);
    assert_true(wide == INT64_MAX);
    pen_element_write(PEN_INT64, &wide, 0, -1e30);
    assert_true(wide == INT64_MIN);
    pen_element_write(PEN_INT64, &wide, 0, (double)NAN);
    assert_true(wide == 0);
    pen_element_write(PEN_UINT64, &wide, 0, 0x1.8p63);
    assert_true(pen_element_read(PEN_UINT64, &wide, 0) == 0x1.8p63);
    int8_t narrow = 0;
    pen_element_write_int(PEN_INT8, &narrow, 0, 300);
    assert_int_equal(narrow, 44);
    pen_element_write(PEN_BOOL, &narrow, 0, 0.5);
    assert_int_equal(narrow, 1);
    pen_element_write_int(PEN_BOOL, &narrow, 0, 256);
    assert_int_equal(narrow, 1);
}

static void elements_have_names_and_sizes(void **state) {
    (void)state;
    assert_string_equal(pen_element_name(PEN_ELEMENT_UNKNOWN), "unknown");
    assert_int_equal(pen_element_bytes(PEN_ELEMENT_UNKNOWN), 0);
    for (int i = PEN_FLOAT32; i < PEN_ELEMENT_TYPE_COUNT; i++) {
        const pen_element_type element = (pen_element_type)i;
        pen_element_type found;
        CHECK_OK(pen_element_find(pen_element_name(element), &found));
        assert_int_equal(found, element);
        const size_t bytes = pen_element_bytes(element);
        CHECK(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8, "%zu", bytes);
        CHECK(!pen_element_is_float(element) || !pen_element_is_integer(element), "%d", i);
    }
    pen_element_type none;
    CHECK_ERROR(pen_element_find("unknown", &none), PEN_NOT_FOUND, "float32, float64");
    CHECK_ERROR(pen_element_find("", &none), PEN_NOT_FOUND, "''");
}

static void kinds_of_elements(void **state) {
    (void)state;
    assert_true(pen_element_is_float(PEN_BFLOAT16) && pen_element_is_float(PEN_FLOAT64));
    assert_false(pen_element_is_float(PEN_INT8) || pen_element_is_float(PEN_BOOL));
    assert_true(pen_element_is_integer(PEN_UINT64) && pen_element_is_integer(PEN_INT8));
    assert_false(pen_element_is_integer(PEN_BOOL) || pen_element_is_integer(PEN_FLOAT16));
    assert_true(pen_element_is_signed(PEN_FLOAT32) && pen_element_is_signed(PEN_INT64));
    assert_false(pen_element_is_signed(PEN_UINT8) || pen_element_is_signed(PEN_BOOL));
}

PEN_TEST_MAIN(cmocka_unit_test(halves_come_back), cmocka_unit_test(halves_round_to_even),
              cmocka_unit_test(numbers_come_back), cmocka_unit_test(integers_are_held_and_wrap),
              cmocka_unit_test(elements_have_names_and_sizes), cmocka_unit_test(kinds_of_elements))
