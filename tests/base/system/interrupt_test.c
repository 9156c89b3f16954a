#include "base/system/interrupt.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/check.h"

static volatile sig_atomic_t asked;

static void also(void) {
    asked++;
}

// In a child: code 10 + what it saw; a signal that is not taken ends it otherwise.
static int run_child(int (*work)(void)) {
    const pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) _exit(work());
    int how;
    CHECK(waitpid(child, &how, 0) == child && WIFEXITED(how), "it ends by itself");
    return WEXITSTATUS(how);
}

static int one_request(void) {
    pen_interrupt_install(NULL);
    if (pen_interrupt_requested()) return 1;
    raise(SIGTERM);
    return pen_interrupt_requested() ? 10 : 2;
}

static int two_requests(void) {
    pen_interrupt_install(NULL);
    raise(SIGINT);
    raise(SIGTERM);
    return 1;
}

static int a_question(void) {
    pen_interrupt_install_question(also);
    if (pen_interrupt_take_question()) return 1;
    raise(SIGUSR1);
    raise(SIGUSR1);
    if (!pen_interrupt_take_question() || pen_interrupt_take_question()) return 2;
    return asked == 2 && !pen_interrupt_requested() ? 10 : 3;
}

static void the_first_is_a_wish(void **state) {
    (void)state;
    CHECK(run_child(one_request) == 10, "it goes on, and knows");
}

static void the_second_ends_at_once(void **state) {
    (void)state;
    CHECK(run_child(two_requests) == 130, "as shells have it");
}

static void questions_are_taken_once(void **state) {
    (void)state;
    CHECK(run_child(a_question) == 10, "taken once, told each time");
}

PEN_TEST_MAIN(cmocka_unit_test(the_first_is_a_wish), cmocka_unit_test(the_second_ends_at_once),
              cmocka_unit_test(questions_are_taken_once))
