#include "base/sets/disjoint_sets.h"

pen_disjoint_sets pen_disjoint_sets_in(uint32_t count, uint32_t *parent) {
    for (uint32_t i = 0; i < count; i++)
        parent[i] = i;
    return (pen_disjoint_sets){.count = count, .parent = parent};
}

pen_status pen_disjoint_sets_new(uint32_t count, pen_arena *arena, pen_disjoint_sets *out_sets) {
    uint32_t *parent;
    PEN_TRY(PEN_NEW(arena, count, &parent));
    *out_sets = pen_disjoint_sets_in(count, parent);
    return PEN_OK;
}

uint32_t pen_disjoint_sets_find(pen_disjoint_sets *sets, uint32_t member) {
    while (sets->parent[member] != member) {
        sets->parent[member] = sets->parent[sets->parent[member]];
        member = sets->parent[member];
    }
    return member;
}

bool pen_disjoint_sets_join(pen_disjoint_sets *sets, uint32_t a, uint32_t b) {
    a = pen_disjoint_sets_find(sets, a);
    b = pen_disjoint_sets_find(sets, b);
    if (a < b) sets->parent[b] = a;
    if (b < a) sets->parent[a] = b;
    return a != b;
}
