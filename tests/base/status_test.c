#include "base/status.h"

#include "tests/support/check.h"

static void formats_position_message_and_context(void **state) {
    (void)state;
    pen_status status = pen_error(PEN_INVALID_INPUT, "inner dimensions differ, %d x %d", 512, 256);
    status = pen_status_at_position(status, "mlp.yaml", 14, 5);
    status = pen_status_at_position(status, "other.yaml", 1, 1);
    status = pen_status_add_context(status, "while inferring shapes");
    char text[256];
    const size_t length = pen_status_format(status, text, sizeof text);
    assert_string_equal(text, "mlp.yaml:14:5: error: inner dimensions differ, 512 x 256\n"
                              "  while inferring shapes\n");
    assert_int_equal(length, strlen(text));
    pen_status_ignore(status, "the test is over");
}

static void join_keeps_both(void **state) {
    (void)state;
    assert_null(pen_status_join(PEN_OK, PEN_OK));
    CHECK_ERROR(pen_status_join(pen_error(PEN_IO, "first"), pen_error(PEN_CORRUPT, "second")),
                PEN_IO, "second");
    CHECK_ERROR(pen_status_join(PEN_OK, pen_error(PEN_CORRUPT, "second")), PEN_CORRUPT, "second");
    CHECK_ERROR(pen_status_join(pen_error_out_of_memory(), pen_error(PEN_IO, "second")),
                PEN_OUT_OF_MEMORY, "out of memory");
}

static void text_is_cut_at_the_buffer(void **state) {
    (void)state;
    pen_status status = pen_error(PEN_NOT_FOUND, "a long message");
    char text[8];
    assert_int_equal(pen_status_format(status, text, sizeof text),
                     strlen("error: a long message\n"));
    assert_string_equal(text, "error: ");
    pen_status_ignore(status, "the test is over");
}

PEN_TEST_MAIN(cmocka_unit_test(formats_position_message_and_context),
              cmocka_unit_test(join_keeps_both), cmocka_unit_test(text_is_cut_at_the_buffer))
