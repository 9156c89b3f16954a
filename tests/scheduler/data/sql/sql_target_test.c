#include "scheduler/data/sql/sql_target.h"

#include <string.h>

#include "tests/support/check.h"
#include "tests/support/scratch.h"

// What is shown never has the password, wherever it stands and however it is written.
static void parts_passwords_from_the_rest(void **state) {
    (void)state;
    static const struct {
        const char *given, *shown, *password;
    } cases[] = {
        {"postgresql://u:p@h:5432/n", "postgresql://u@h:5432/n", "p"},
        {"postgres://u:p%2F%40%3a@h/n?a=1&b=2", "postgresql://u@h/n?a=1&b=2", "p/@:"},
        {"postgresql://u@h/n", "postgresql://u@h/n", NULL},
        {"postgresql:///n?host=/var/run", "postgresql:///n?host=/var/run", NULL},
        {"postgresql://h/n?password=p%20q&a=1", "postgresql://h/n?a=1", "p q"},
        {"postgresql://u:@h", "postgresql://u@h", ""},
        {"postgresql://u:a:b@h1:1,h2:2/n", "postgresql://u@h1:1,h2:2/n", "a:b"},
    };
    pen_arena *arena = check_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_sql_target target;
        CHECK_OK(pen_sql_target_parse(cases[i].given, arena, &target));
        assert_int_equal(target.kind, PEN_SQL_POSTGRES);
        assert_string_equal(target.text, cases[i].shown);
        if (cases[i].password == NULL) assert_null(target.password);
        if (cases[i].password != NULL) assert_string_equal(target.password, cases[i].password);
    }
    pen_arena_destroy(arena);
}

static void refuses_without_repeating(void **state) {
    (void)state;
    static const struct {
        const char *given, *error;
    } cases[] = {
        {"postgresql://u:secret/@h/n", "'@' behind '/'"},
        {"postgresql://u:sec@ret@h/n", "'@' behind '/', '@'"},
        {"postgresql://u:secret?@h/n", "or '?'"},
        {"postgresql://u:secret%zz@h/n", "no two digits follow"},
        {"postgresql://u:secret%00@h/n", "no two digits follow"},
        {"postgresql://h/n?sslpassword=secret", "found sslpassword"},
        {"postgresql://h/n?%70assword=secret", "in the name of an option"},
        {"postgresql://h/n?x=1&%73slpassword=secret", "in the name of an option"},
        {"host=h password=secret", "another kind of address"},
        {"sqlite:", "another kind of address"},
        {"mysql://u:secret@h/n", "another kind of address"},
    };
    pen_arena *arena = check_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_sql_target target;
        const pen_status status = pen_sql_target_parse(cases[i].given, arena, &target);
        assert_null(strstr(pen_status_message(status), "secret"));
        CHECK_ERROR(status, PEN_INVALID_INPUT, cases[i].error);
    }
    pen_sql_target target;
    CHECK_ERROR(pen_sql_target_parse("sqlite:/nowhere/x.db", arena, &target), PEN_NOT_FOUND,
                "'/nowhere/x.db': No such file");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(parts_passwords_from_the_rest),
              cmocka_unit_test(refuses_without_repeating))
