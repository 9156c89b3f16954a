// Families of down-sets: sets of groups that hold all that their members wait for. What runs on the
// first devices of a contiguous placement is a down-set, so placements are chains of them.
//
// A family has the empty set, the whole, and links from a set to those that have one group more.
// The complete family allows exact answers, where it is small; the family of the prefixes of some
// linear orders allows good ones.
//
// Lifetime: lives in the arena it was made with.
// Threads:  immutable once returned.
#ifndef PEN_PARTITION_SEARCH_DOWN_SETS_H
#define PEN_PARTITION_SEARCH_DOWN_SETS_H

#include "partition/problem/problem.h"

typedef struct pen_down_sets {
    uint32_t count;        // set 0 is empty, set count - 1 the whole; smaller sets come first
    uint32_t *size;        // [count] groups in it
    uint32_t *parent;      // [count] a set with one group less; of set 0: itself
    uint32_t *last;        // [count] that group
    uint32_t *link_first;  // [count + 1]
    uint32_t *link_target; // a set with one group more
    uint32_t *link_group;  // that group
    bool is_complete;      // all down-sets are in it
} pen_down_sets;

// All down-sets of the graph `after` among groups, when there are at most `limit`; else *out_sets
// is NULL. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_down_sets_all(const pen_problem *problem,
                                           const pen_problem_lists *after, uint32_t limit,
                                           pen_arena *arena, pen_down_sets **out_sets);

// The prefixes of `order_count` topological orders of the groups, one after another in `orders`
// ([order_count][group_count]). OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_down_sets_of_orders(const pen_problem *problem, const uint32_t *orders,
                                                 uint32_t order_count, pen_arena *arena,
                                                 pen_down_sets **out_sets);

#endif // PEN_PARTITION_SEARCH_DOWN_SETS_H
