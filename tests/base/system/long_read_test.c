// What a long read shows on a terminal, what it costs where there is none, and how it ends.

#include "base/system/long_read.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/interrupt.h"
#include "tests/support/check.h"

#define MEBIBYTE ((uint64_t)1 << 20)

// Makes standard error a terminal, and returns what writes there come out of.
static int open_terminal(int *out_before) {
    setenv("NO_COLOR", "1", 1);
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "a terminal");
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    *out_before = dup(STDERR_FILENO);
    CHECK(slave >= 0 && dup2(slave, STDERR_FILENO) == STDERR_FILENO, "a terminal");
    close(slave);
    return master;
}

// All that comes until nothing has come for a fifth of a second: the system passes on what was
// written when it has time.
static void take_text(int master, char *text, size_t size) {
    struct pollfd ready = {.fd = master, .events = POLLIN};
    size_t count = 0;
    fflush(stderr);
    while (count < size - 1 && poll(&ready, 1, 200) == 1) {
        const ssize_t found = read(master, text + count, size - 1 - count);
        if (found <= 0) break;
        count += (size_t)found;
    }
    text[count] = '\0';
}

static void long_reads_say_how_far_they_are(void **state) {
    (void)state;
    char text[1024];
    int before;
    pen_long_read progress;
    const int master = open_terminal(&before);
    pen_long_read_begin(&progress, "unpacking", "/some/folder/images.gz", 100 * MEBIBYTE);
    CHECK_OK(pen_long_read_at(&progress, 20 * MEBIBYTE));
    take_text(master, text, sizeof text);
    assert_string_equal(text, ""); // it may be over soon
    while (!progress.has_said) {
        CHECK_OK(pen_long_read_at(&progress, 41 * MEBIBYTE));
        progress.next = 0;
        usleep(10000);
    }
    take_text(master, text, sizeof text);
    assert_string_equal(text, "\r\x1b[Kunpacking 'images.gz': 41 %");
    pen_log(PEN_LOG_WARNING, "a message");
    pen_long_read_end(&progress);
    take_text(master, text, sizeof text);
    assert_string_equal(text, "\r\x1b[Kwarning: a message\r\n");
    pen_log_line("left");
    pen_log_line(NULL);
    pen_log_line(NULL);
    take_text(master, text, sizeof text);
    assert_string_equal(text, "\r\x1b[Kleft\r\x1b[K");
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    close(before);
    close(master);
}

static void elsewhere_nothing_is_said(void **state) {
    (void)state;
    char text[64];
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    const int before = dup(STDERR_FILENO);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    pen_log_line("unpacking");
    pen_log_line(NULL);
    fflush(stderr);
    const ssize_t count = read(ends[0], text, sizeof text);
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    CHECK(count < 0, "%zd bytes", count);
    close(ends[0]);
    close(ends[1]);
    close(before);
}

static void a_wish_to_stop_ends_it(void **state) {
    (void)state;
    pen_long_read progress;
    pen_interrupt_install(NULL);
    pen_long_read_begin(&progress, "reading", "table.csv", 100 * MEBIBYTE);
    CHECK_OK(pen_long_read_at(&progress, 8 * MEBIBYTE));
    assert_int_equal(raise(SIGTERM), 0);
    CHECK_OK(pen_long_read_at(&progress, 8 * MEBIBYTE + 1)); // it is asked now and then
    CHECK_ERROR(pen_long_read_at(&progress, 16 * MEBIBYTE), PEN_CANCELLED, "as was wished");
    pen_long_read_end(&progress);
}

PEN_TEST_MAIN(cmocka_unit_test(long_reads_say_how_far_they_are),
              cmocka_unit_test(elsewhere_nothing_is_said), cmocka_unit_test(a_wish_to_stop_ends_it))
