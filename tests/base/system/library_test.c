// Libraries that are loaded when something needs them.

#include "base/system/library.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"

typedef struct library_functions {
    double (*cosine)(double);
    double (*root)(double);
} library_functions;

static const char *const names[] = {"libnone.so.7", "libm.so.6", NULL};

static void the_first_that_is_there_is_taken(void **state) {
    (void)state;
    static const char *const symbols[] = {"cos", "sqrt"};
    const pen_library library = {"libm, which computes", names, symbols, 2};
    library_functions functions;
    CHECK_OK(pen_library_load(&library, &functions));
    CHECK(functions.cosine(0) == 1 && functions.root(9) == 3, "other functions");
}

static void what_is_not_there_is_named(void **state) {
    (void)state;
    static const char *const none[] = {"libnone.so.7", NULL};
    static const char *const symbols[] = {"cos", "no_such_function"};
    library_functions functions;
    const pen_library absent = {"libnone, which does nothing", none, symbols, 2};
    CHECK_ERROR(pen_library_load(&absent, &functions), PEN_NOT_FOUND,
                "libnone, which does nothing, cannot be loaded: libnone.so.7: cannot open shared "
                "object file");
    const pen_library other = {"libm, which computes", names, symbols, 2};
    CHECK_ERROR(pen_library_load(&other, &functions), PEN_NOT_FOUND,
                "libm, which computes, is of a version without 'no_such_function'");
}

// Of several files, one that is there but is none says more than those that are not there.
static void a_broken_one_is_named_first(void **state) {
    (void)state;
    char path[] = "/tmp/libbrokenXXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0 && write(file, "none\n", 5) == 5 && close(file) == 0, "%s", path);
    const char *const broken[] = {"libnone.so.7", path, "libnone.so.6", NULL};
    static const char *const symbols[] = {"cos", "sqrt"};
    library_functions functions;
    const pen_library wanted = {"libnone", broken, symbols, 2};
    const pen_status status = pen_library_load(&wanted, &functions);
    CHECK(strstr(pen_status_message(status), path) != NULL, "%s", pen_status_message(status));
    pen_status_ignore(status, "compared");
    CHECK(unlink(path) == 0, "%s", path);
}

static void all_get_what_the_first_got(void **state) {
    (void)state;
    static const char *const symbols[] = {"cos", "no_such_function"};
    const pen_library whole = {"libm, which computes", names, (const char *[]){"cos", "sqrt"}, 2};
    const pen_library lacking = {"libm, which computes", names, symbols, 2};
    library_functions functions = {0};
    pen_library_once good = {0}, bad = {0};
    CHECK_OK(pen_library_load_once(&good, &whole, &functions));
    CHECK_OK(pen_library_load_once(&good, &lacking, &functions)); // which is not tried
    CHECK(functions.cosine(0) == 1 && functions.root(9) == 3, "other functions");
    for (int i = 0; i < 2; i++) {
        CHECK_ERROR(pen_library_load_once(&bad, i == 0 ? &lacking : &whole, &functions),
                    PEN_NOT_FOUND,
                    "libm, which computes, is of a version without 'no_such_function'");
    }
    pen_status_ignore(bad.status, "compared");
}

PEN_TEST_MAIN(cmocka_unit_test(all_get_what_the_first_got),
              cmocka_unit_test(the_first_that_is_there_is_taken),
              cmocka_unit_test(what_is_not_there_is_named),
              cmocka_unit_test(a_broken_one_is_named_first))
