// An arena for graphs of a test that nobody takes down: it stays until the program ends.
#ifndef PEN_TESTS_SUPPORT_KEPT_ARENA_H
#define PEN_TESTS_SUPPORT_KEPT_ARENA_H

#include "tests/support/check.h"

typedef struct kept_arena {
    pen_arena *arena;
    struct kept_arena *before;
} kept_arena;

static inline pen_arena *keep_arena(void) {
    static kept_arena *newest; // so that a leak checker finds them all
    pen_arena *arena = check_arena();
    kept_arena *kept;
    CHECK_OK(PEN_NEW(arena, 1, &kept));
    *kept = (kept_arena){arena, newest};
    newest = kept;
    return arena;
}

#endif // PEN_TESTS_SUPPORT_KEPT_ARENA_H
