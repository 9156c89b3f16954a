#include "base/arena.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/sanitizer.h"
#include "tests/support/check.h"

#if PEN_HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

typedef struct piece {
    unsigned char *bytes;
    size_t size;
    unsigned char fill;
} piece;

static void pieces_are_zeroed_aligned_and_apart(void **state) {
    (void)state;
    static const size_t alignments[] = {1, 2, 4, 8, 16, 32, 64};
    static piece pieces[3000];
    const pen_random_key key = {1, pen_random_stream("arena_test", 0, 0)};
    pen_arena *arena = check_arena();
    for (uint32_t i = 0; i < 3000; i++) {
        const size_t limit = i % 100 == 0 ? 100000 : 300; // now and then larger than a block
        const size_t size = pen_random_below(key, 2 * i, limit);
        const size_t alignment = alignments[pen_random_below(key, 2 * i + 1, 7)];
        unsigned char *bytes = pen_arena_allocate(arena, size, 1, alignment);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % alignment, 0);
        for (size_t k = 0; k < size; k++) {
            CHECK(bytes[k] == 0, "piece %u, byte %zu", i, k);
        }
        pieces[i] = (piece){bytes, size, (unsigned char)(i % 251 + 1)};
        memset(bytes, pieces[i].fill, size);
    }
    for (uint32_t i = 0; i < 3000; i++) {
        for (size_t k = 0; k < pieces[i].size; k++) {
            CHECK(pieces[i].bytes[k] == pieces[i].fill, "piece %u was overwritten", i);
        }
    }
    pen_arena_destroy(arena);
}

static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    assert_null(pen_arena_allocate(arena, SIZE_MAX, 2, 8));
    assert_null(pen_arena_allocate(arena, SIZE_MAX, 1, 8));
    assert_null(pen_arena_allocate(arena, SIZE_MAX - 64, 1, 64));
    assert_non_null(pen_arena_allocate(arena, 8, 1, 8)); // still usable
    assert_non_null(pen_arena_allocate(arena, 0, 8, 8));
    pen_arena_destroy(arena);
}

static void new_never_gives_null(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    uint64_t *numbers = NULL;
    CHECK_OK(PEN_NEW(arena, 0, &numbers));
    assert_non_null(numbers);
    CHECK_OK(PEN_NEW(arena, 5, &numbers));
    numbers[4] = 1;
    CHECK_ERROR(PEN_NEW(arena, SIZE_MAX / 4, &numbers), PEN_OUT_OF_MEMORY, "memory");
    pen_arena_destroy(arena);
}

static void texts_are_copied_and_formatted(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const char *text;
    CHECK_OK(pen_arena_copy_text(arena, "abcdef", 3, &text));
    assert_string_equal(text, "abc");
    CHECK_OK(pen_arena_copy_text(arena, "abc", 0, &text));
    assert_string_equal(text, "");
    CHECK_OK(pen_arena_format(arena, &text, "%s/%d", "conv1", -7));
    assert_string_equal(text, "conv1/-7");
    CHECK_OK(pen_arena_format(arena, &text, "%20000s|", ""));
    assert_int_equal(strlen(text), 20001);
    CHECK_ERROR(pen_arena_copy_text(arena, "", SIZE_MAX, &text), PEN_OUT_OF_MEMORY, "memory");
    pen_arena_destroy(arena);
}

static void bytes_count_what_was_handed_out(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const uint64_t before = pen_arena_bytes(arena);
    assert_non_null(pen_arena_allocate(arena, 100, 10, 8));
    assert_int_equal(pen_arena_bytes(arena) - before, 1000);
    pen_arena_destroy(arena);
}

// After every allocation that the system refuses, the arena is as it was and can be destroyed.
static void refused_memory_is_an_error(void **state) {
    (void)state;
    pen_arena *arena = NULL;
    pen_memory_fail_at(1, 0);
    CHECK_ERROR(pen_arena_create(&arena), PEN_OUT_OF_MEMORY, "memory");
    CHECK_OK(pen_arena_create(&arena));
    char *bytes;
    pen_memory_fail_at(1, 0);
    CHECK_ERROR(PEN_NEW(arena, 100, &bytes), PEN_OUT_OF_MEMORY, "memory");
    CHECK_OK(PEN_NEW(arena, 100, &bytes));
    const char *text;
    pen_memory_fail_at(1, 0);
    CHECK_ERROR(pen_arena_format(arena, &text, "%100000s", ""), PEN_OUT_OF_MEMORY, "memory");
    pen_memory_fail_at(0, 0);
    bytes[99] = 1;
    pen_arena_destroy(arena);
    pen_arena_destroy(NULL);
}

// Allocates 300 pieces of up to 2000 bytes, sees that they are zeroed, and soils them.
static void use_scratch(pen_arena *arena) {
    const pen_random_key key = {2, pen_random_stream("arena_test", 0, 0)};
    for (uint32_t i = 0; i < 300; i++) {
        const size_t size = pen_random_below(key, i, i % 50 == 0 ? 200000 : 2000);
        unsigned char *bytes = pen_arena_allocate(arena, size, 1, 16);
        assert_non_null(bytes);
        for (size_t k = 0; k < size; k++) {
            CHECK(bytes[k] == 0, "piece %u, byte %zu is %d", i, k, bytes[k]);
        }
        memset(bytes, 0xa5, size);
    }
}

static void scratch_is_used_again(void **state) {
    (void)state;
    pen_arena *parent = check_arena();
    pen_arena *arenas[2] = {check_arena(), NULL};
    CHECK_OK(pen_arena_create_within(parent, &arenas[1]));
    for (int a = 0; a < 2; a++) {
        use_scratch(arenas[a]);
        const uint64_t bytes = pen_arena_bytes(arenas[a]);
        pen_arena_reset(arenas[a]);
        assert_true(pen_arena_bytes(arenas[a]) == 0);
        const uint64_t calls = pen_memory_call_count();
        const uint64_t parent_bytes = pen_arena_bytes(parent);
        for (int i = 0; i < 5; i++) {
            use_scratch(arenas[a]);
            assert_true(pen_arena_bytes(arenas[a]) == bytes);
            pen_arena_reset(arenas[a]);
        }
        assert_true(pen_memory_call_count() == calls);
        assert_true(pen_arena_bytes(parent) == parent_bytes);
        use_scratch(arenas[a]);
    }
    pen_arena_destroy(arenas[0]);
    pen_arena_destroy(parent); // and the other with it
}

static void gaps_are_poisoned(void **state) {
    (void)state;
#if PEN_HAS_ASAN
    pen_arena *arena = check_arena();
    char *first = pen_arena_allocate(arena, 16, 1, 1);
    char *second = pen_arena_allocate(arena, 16, 1, 1);
    assert_false(__asan_address_is_poisoned(first + 15));
    assert_true(__asan_address_is_poisoned(first + 16));
    assert_true(__asan_address_is_poisoned(second + 16));
    pen_arena_destroy(arena);
#else
    skip();
#endif
}

// Arenas beneath another go before it, in any order, or with it; their bytes count as its own.
static void arenas_beneath_go_with_it(void **state) {
    (void)state;
    for (uint32_t gone = 0; gone < 8; gone++) {
        pen_arena *arena = check_arena(), *beneath[3], *deeper;
        uint32_t left = 3;
        for (uint32_t i = 0; i < 3; i++) {
            CHECK_OK(pen_arena_create_beneath(arena, &beneath[i]));
            assert_non_null(pen_arena_allocate(beneath[i], 1000, 1, 8));
        }
        CHECK_OK(pen_arena_create_beneath(beneath[1], &deeper));
        assert_non_null(pen_arena_allocate(deeper, 7, 1, 8));
        assert_int_equal(pen_arena_bytes(arena), 3007);
        for (uint32_t i = 0; i < 3; i++) {
            if ((gone >> i & 1) == 0) continue;
            pen_arena_destroy(beneath[i]);
            left -= 1;
        }
        assert_int_equal(pen_arena_bytes(arena), left * 1000 + ((gone & 2) == 0 ? 7 : 0));
        if (gone % 3 == 0) {
            pen_arena_reset(arena);
            assert_int_equal(pen_arena_bytes(arena), 0);
        }
        pen_arena_destroy(arena); // the leak sanitizer tells if something is left
    }
}

PEN_TEST_MAIN(cmocka_unit_test(arenas_beneath_go_with_it),
              cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
              cmocka_unit_test(sizes_that_overflow_are_refused),
              cmocka_unit_test(new_never_gives_null),
              cmocka_unit_test(texts_are_copied_and_formatted),
              cmocka_unit_test(bytes_count_what_was_handed_out),
              cmocka_unit_test(refused_memory_is_an_error), cmocka_unit_test(scratch_is_used_again),
              cmocka_unit_test(gaps_are_poisoned))
