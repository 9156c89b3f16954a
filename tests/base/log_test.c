// Messages beside a line that is being rewritten.
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/check.h"

// Standard error goes into this file until log_read, which gives what was written.
static char log_path[32];
static int log_before = -1;

static void log_take_away(void) {
    snprintf(log_path, sizeof log_path, "/tmp/pen_log_test.XXXXXX");
    const int file = mkstemp(log_path);
    assert_true(file >= 0);
    fflush(stderr);
    log_before = dup(STDERR_FILENO);
    assert_true(log_before >= 0 && dup2(file, STDERR_FILENO) >= 0);
    close(file);
}

static void log_read(char *out_text, size_t bytes) {
    fflush(stderr);
    assert_true(dup2(log_before, STDERR_FILENO) >= 0);
    close(log_before);
    FILE *file = fopen(log_path, "r");
    assert_non_null(file);
    out_text[fread(out_text, 1, bytes - 1, file)] = '\0';
    fclose(file);
    unlink(log_path);
}

static void messages_begin_below_a_line(void **state) {
    (void)state;
    char text[256];
    log_take_away();
    fputs("step 1", stderr);
    pen_log_leave_line();
    pen_log(PEN_LOG_WARNING, "lost worker %d", 2);
    pen_log(PEN_LOG_NOTE, "next");
    pen_log_end_line(); // a message did
    fputs("step 2", stderr);
    pen_log_leave_line();
    pen_log_end_line();
    pen_log_end_line();
    log_read(text, sizeof text);
    assert_string_equal(text, "step 1\nwarning: lost worker 2\nnext\nstep 2\n");
}

// What stands in it is no format.
static void each_line_is_a_message(void **state) {
    (void)state;
    char text[256];
    log_take_away();
    pen_log_lines(PEN_LOG_WARNING, "100%s of it\nthe rest\n");
    pen_log_lines(PEN_LOG_WARNING, "");
    pen_log_lines(PEN_LOG_WARNING, NULL);
    log_read(text, sizeof text);
    assert_string_equal(text, "warning: 100%s of it\nwarning: the rest\n");
}

PEN_TEST_MAIN(cmocka_unit_test(messages_begin_below_a_line),
              cmocka_unit_test(each_line_is_a_message))
