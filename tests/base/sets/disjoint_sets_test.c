// A set is known by its lowest member, however it was joined.
#include "base/sets/disjoint_sets.h"

#include "tests/support/check.h"

static void sets_are_known_by_their_lowest(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_disjoint_sets sets;
    CHECK_OK(pen_disjoint_sets_new(6, arena, &sets));
    assert_true(pen_disjoint_sets_join(&sets, 5, 3));
    assert_true(pen_disjoint_sets_join(&sets, 3, 4));
    assert_false(pen_disjoint_sets_join(&sets, 4, 5));
    assert_true(pen_disjoint_sets_join(&sets, 1, 5));
    const uint32_t lowest[] = {0, 1, 2, 1, 1, 1};
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(pen_disjoint_sets_find(&sets, i), lowest[i]);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(sets_are_known_by_their_lowest))
