#include "base/system/rotating_log.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define LINE "0123456789abcde\n"
#define LINE_BYTES (sizeof LINE - 1)

static const pen_rotating_log_options options = {.bytes_limit = 4 * LINE_BYTES, .kept_count = 2};

static void add(pen_rotating_log *log, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        pen_rotating_log_add(log, LINE, LINE_BYTES);
    }
}

// -1: there is none.
static int64_t size_of(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 ? (int64_t)about.st_size : -1;
}

static void keeps_some_files_of_a_size(void **unused) {
    (void)unused;
    pen_rotating_log *log;
    const char *path = scratch_file("kept.log", LINE, LINE_BYTES);
    CHECK_OK(pen_rotating_log_open(path, &options, &log));
    add(log, 3); // with that which was there
    assert_int_equal(size_of(path), 4 * LINE_BYTES);
    assert_int_equal(size_of(scratch_path("kept.log.1")), -1);
    add(log, 1);
    assert_int_equal(size_of(path), LINE_BYTES);
    assert_int_equal(size_of(scratch_path("kept.log.1")), 4 * LINE_BYTES);
    add(log, 100);
    assert_int_equal(size_of(path), LINE_BYTES);
    assert_int_equal(size_of(scratch_path("kept.log.1")), 4 * LINE_BYTES);
    assert_int_equal(size_of(scratch_path("kept.log.2")), 4 * LINE_BYTES);
    assert_int_equal(size_of(scratch_path("kept.log.3")), -1);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    pen_rotating_log_close(log);
}

static void follows_who_moves_the_file(void **unused) {
    (void)unused;
    pen_rotating_log *log;
    const char *path = scratch_path("moved.log");
    (void)scratch_file("moved.log", "", 0);
    CHECK_OK(pen_rotating_log_open(path, &options, &log));
    add(log, 1);
    assert_int_equal(rename(path, scratch_path("moved.away")), 0);
    add(log, 2);
    assert_int_equal(size_of(path), 2 * LINE_BYTES);
    assert_int_equal(size_of(scratch_path("moved.away")), LINE_BYTES);
    assert_int_equal(unlink(path), 0);
    add(log, 1);
    assert_int_equal(size_of(path), LINE_BYTES);
    pen_rotating_log_close(log);
}

// A file that may not grow stands for a full disk: of a line nothing is left, lines are counted,
// and it goes on when there is room.
static void leaves_lines_out_on_a_full_disk(void **unused) {
    (void)unused;
    pen_rotating_log *log;
    const char *path = scratch_file("full.log", "", 0);
    struct rlimit before, limit;
    CHECK_OK(pen_rotating_log_open(path, &options, &log));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(signal(SIGXFSZ, SIG_IGN) == SIG_ERR, 0);
    limit = before;
    limit.rlim_cur = 2 * LINE_BYTES + 5;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    add(log, 4);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(size_of(path), 2 * LINE_BYTES);
    assert_int_equal(pen_rotating_log_lost(log), 2);
    add(log, 1);
    assert_int_equal(size_of(path), 3 * LINE_BYTES);
    assert_int_equal(pen_rotating_log_lost(log), 0);
    pen_rotating_log_close(log);
    CHECK_OK(pen_rotating_log_open("/dev/full", &options, &log));
    add(log, 3);
    assert_int_equal(pen_rotating_log_lost(log), 3);
    pen_rotating_log_close(log);
    CHECK_ERROR(pen_rotating_log_open(scratch_path("no/folder"), &options, &log), PEN_NOT_FOUND,
                "no/folder");
}

PEN_TEST_MAIN(cmocka_unit_test(keeps_some_files_of_a_size),
              cmocka_unit_test(follows_who_moves_the_file),
              cmocka_unit_test(leaves_lines_out_on_a_full_disk))
