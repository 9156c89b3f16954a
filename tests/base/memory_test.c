#include "base/memory.h"

#include <unistd.h>

#include "base/sanitizer.h"
#include "tests/support/check.h"

static void memory_is_zeroed_and_aligned(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes < 400; bytes += 7) {
        unsigned char *memory = pen_memory_allocate(bytes, 1);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t i = 0; i < bytes; i++) {
            assert_int_equal(memory[i], 0);
        }
        memset(memory, 0xff, bytes);
        pen_memory_free(memory);
    }
    pen_memory_free(NULL);
}

static uint64_t resident_bytes(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*s %llu", &pages), 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

// Of much memory that is announced only what is written to is resident.
static void lazy_memory_comes_as_it_is_used(void **state) {
    (void)state;
    if (PEN_HAS_TSAN) skip(); // its own memory comes with ours
    const size_t much = (size_t)256 << 20;
    const uint64_t before = resident_bytes();
    unsigned char *memory = pen_memory_allocate_lazily(much, 1);
    assert_non_null(memory);
    assert_int_equal(memory[0] + memory[much - 1], 0);
    memset(memory, 1, (size_t)1 << 20);
    assert_true(resident_bytes() < before + ((uint64_t)32 << 20));
    pen_memory_free(memory);
    assert_null(pen_memory_allocate_lazily(SIZE_MAX, 2));
    assert_null(pen_memory_allocate_lazily(SIZE_MAX, 1));
    const uint64_t calls = pen_memory_call_count(), live = pen_memory_live_count();
    memory = pen_memory_allocate_lazily(0, 1);
    assert_non_null(memory);
    assert_true(pen_memory_call_count() == calls + 1 && pen_memory_live_count() == live + 1);
    pen_memory_free(memory);
    pen_memory_fail_at(1, 0);
    assert_null(pen_memory_allocate_lazily(1, 1));
    pen_memory_fail_at(0, 0);
}

static void sizes_beyond_the_address_space_are_refused(void **state) {
    (void)state;
    assert_null(pen_memory_allocate(SIZE_MAX, 2));
    assert_null(pen_memory_allocate(SIZE_MAX / 2 + 1, 2));
    assert_null(pen_memory_allocate(SIZE_MAX, 1));
    assert_null(pen_memory_allocate(SIZE_MAX - 64, 1));
    assert_null(pen_memory_allocate(SIZE_MAX - 63, 1));
}

static void calls_are_counted(void **state) {
    (void)state;
    const uint64_t before = pen_memory_call_count();
    pen_memory_free(pen_memory_allocate(1, 1));
    pen_memory_free(pen_memory_allocate(3, 8));
    assert_null(pen_memory_allocate(SIZE_MAX, 2));
    assert_true(pen_memory_call_count() == before + 3);
}

// Which of ten calls fail, as bits.
static unsigned failures_of(uint64_t call, int persistent) {
    unsigned failed = 0;
    pen_memory_fail_at(call, persistent);
    for (unsigned i = 0; i < 10; i++) {
        void *memory = pen_memory_allocate(1, 1);
        if (memory == NULL) failed |= 1u << i;
        pen_memory_free(memory);
    }
    pen_memory_fail_at(0, 0);
    return failed;
}

static void a_chosen_call_fails(void **state) {
    (void)state;
    assert_int_equal(failures_of(0, 0), 0);
    assert_int_equal(failures_of(1, 0), 1u << 0);
    assert_int_equal(failures_of(4, 0), 1u << 3);
    assert_int_equal(failures_of(4, 1), 0x3f8);
    assert_int_equal(failures_of(11, 1), 0);
    assert_int_equal(failures_of(0, 1), 0);
}

PEN_TEST_MAIN(cmocka_unit_test(memory_is_zeroed_and_aligned),
              cmocka_unit_test(lazy_memory_comes_as_it_is_used),
              cmocka_unit_test(sizes_beyond_the_address_space_are_refused),
              cmocka_unit_test(calls_are_counted), cmocka_unit_test(a_chosen_call_fails))
