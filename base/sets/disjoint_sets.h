// Sets of numbers below `count` that are joined; each is known by its lowest member.
#ifndef PEN_BASE_SETS_DISJOINT_SETS_H
#define PEN_BASE_SETS_DISJOINT_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_disjoint_sets {
    uint32_t count;
    uint32_t *parent; // [count]
} pen_disjoint_sets;

// Every number alone, in an array of the caller's [count].
pen_disjoint_sets pen_disjoint_sets_in(uint32_t count, uint32_t *parent);
// The same in an array of its own. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_disjoint_sets_new(uint32_t count, pen_arena *arena,
                                               pen_disjoint_sets *out_sets);

// The lowest member of the set that `member` is in.
uint32_t pen_disjoint_sets_find(pen_disjoint_sets *sets, uint32_t member);

// Joins the sets of a and b. False when they were one.
bool pen_disjoint_sets_join(pen_disjoint_sets *sets, uint32_t a, uint32_t b);

#endif // PEN_BASE_SETS_DISJOINT_SETS_H
