#include "base/machine.h"

#include "tests/support/check.h"

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

PEN_TEST_MAIN(cmocka_unit_test(this_machine_makes_sense))
