#include "base/system/machine.h"

#include "tests/support/check.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void this_machine_makes_sense(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_machine machine;
    CHECK_OK(pen_machine_detect(arena, &machine));
    assert_true(strncmp(machine.system, "Linux ", 6) == 0);
    assert_true(machine.core_count_allowed >= 1);
    assert_true(machine.core_count_allowed <= machine.core_count);
    const uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    CHECK(machine.memory_bytes > bytes / 10 * 9 && machine.memory_bytes < bytes / 9 * 10,
          "%llu of %llu", (unsigned long long)machine.memory_bytes, (unsigned long long)bytes);
    assert_true(machine.memory_bytes_allowed <= machine.memory_bytes);
    assert_true(machine.memory_bytes_free <= machine.memory_bytes_allowed);
    assert_true(machine.memory_bytes_free > 0);
    pen_arena_destroy(arena);
}

// The peak stays, what is resident falls.
static void what_is_given_back_is_not_resident(void **state) {
    (void)state;
    const size_t bytes = (size_t)256 << 20;
    char *large = malloc(bytes);
    assert_non_null(large);
    memset(large, 1, bytes);
    assert_true(pen_machine_resident() >=
                bytes); // it is there: the compiler leaves it out otherwise
    free(large);
    const uint64_t resident = pen_machine_resident();
    assert_true(resident > 0);
    assert_true(pen_machine_resident_peak() >= resident + bytes / 2);
}

// A small process that a large one starts is small.
static void a_peak_is_of_this_process(void **state) {
    (void)state;
    const size_t bytes = (size_t)64 << 20;
    char *large = malloc(bytes);
    assert_non_null(large);
    memset(large, 1, bytes);
    assert_true(pen_machine_resident_peak() >= bytes);
    assert_true(pen_machine_resident() >= bytes);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)setenv("PEN_TEST_PRINT_PEAK", "1", 1);
        (void)execl("/proc/self/exe", "machine_test", (char *)NULL);
        _exit(1);
    }
    (void)close(ends[1]);
    char text[64] = "";
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    const unsigned long long peak = strtoull(text, NULL, 10);
    CHECK(peak > 0 && peak < bytes, "%llu bytes", peak);
    free(large);
}

// Two threads on one core get one.
static void cores_are_those_that_a_process_gets(void **state) {
    (void)state;
    cpu_set_t all, one;
    double cores;
    CHECK_OK(pen_machine_measure_cores(1, &cores));
    CHECK(cores > 0 && cores <= 1, "%g", cores);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; c++) {
        if (CPU_ISSET(c, &all)) CPU_SET(c, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_OK(pen_machine_measure_cores(2, &cores));
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    CHECK(cores > 0 && cores < 1.2, "%g", cores);
}

int main(void) {
    if (getenv("PEN_TEST_PRINT_PEAK") != NULL) {
        printf("%llu\n", (unsigned long long)pen_machine_resident_peak());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_makes_sense),
        cmocka_unit_test(a_peak_is_of_this_process),
        cmocka_unit_test(what_is_given_back_is_not_resident),
        cmocka_unit_test(cores_are_those_that_a_process_gets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
