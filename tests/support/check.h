// The test harness: cmocka, with what nearly every test needs.
//
// A test file defines `static void name(void **state)` functions and ends with
//     PEN_TEST_MAIN(cmocka_unit_test(name), ...)
// Tests run from the top of the source tree. PEN_TEST_FILTER='name*' in the environment runs some.
#ifndef PEN_TESTS_SUPPORT_CHECK_H
#define PEN_TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/status.h"

// Fails the test, printing the error, unless `expression` is PEN_OK.
#define CHECK_OK(expression) check_ok((expression), #expression, __FILE__, __LINE__)
// Fails the test unless `expression` is an error of `code` whose whole text contains `text`.
#define CHECK_ERROR(expression, code, text)                                                        \
    check_error((expression), (code), (text), #expression, __FILE__, __LINE__)
// Fails the test, with a printf message, unless `claim` holds.
#define CHECK(claim, ...) check_claim((claim), #claim, __FILE__, __LINE__, __VA_ARGS__)

#define PEN_TEST_MAIN(...)                                                                         \
    int main(void) {                                                                               \
        const struct CMUnitTest check_tests[] = {__VA_ARGS__};                                     \
        cmocka_set_test_filter(getenv("PEN_TEST_FILTER"));                                         \
        return cmocka_run_group_tests(check_tests, NULL, NULL);                                    \
    }

void check_ok(pen_status status, const char *expression, const char *file, int line);
void check_error(pen_status status, pen_status_code code, const char *text, const char *expression,
                 const char *file, int line);
void check_claim(bool holds, const char *claim, const char *file, int line, const char *format, ...)
    PEN_PRINTF(5, 6);

// An arena for one test. Fails the test when there is none.
pen_arena *check_arena(void);

#endif // PEN_TESTS_SUPPORT_CHECK_H
