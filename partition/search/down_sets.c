#include "partition/search/down_sets.h"

#include <stdlib.h>

#include "base/random.h"

// Sets are known by the exclusive or of random 64-bit marks of their groups. Two sets that collide
// (one pair in 2^64) would only lose solutions: results are checked anyway.
typedef struct down_sets_link {
    uint32_t source;
    uint32_t target;
    uint32_t group;
} down_sets_link;

typedef struct down_sets_build {
    const pen_problem *problem;
    pen_arena *arena;
    uint64_t *mark; // [group_count]
    uint64_t *hash; // of each set
    uint32_t *size;
    uint32_t *parent;
    uint32_t *last;
    uint32_t count;
    uint32_t capacity;
    uint32_t *table; // [table_size] 1 + set; 0: free
    uint32_t table_size;
    down_sets_link *links;
    uint32_t link_count;
    uint32_t link_capacity;
} down_sets_build;

// Sets are known by a hash of their members, each of which has a number drawn by chance: adding one
// is an exclusive or.
static pen_status down_sets_begin(const pen_problem *problem, uint32_t capacity,
                                  uint32_t link_capacity, pen_arena *arena,
                                  down_sets_build *out_build) {
    down_sets_build build = {.problem = problem,
                             .arena = arena,
                             .capacity = capacity,
                             .link_capacity = link_capacity,
                             .table_size = 64};
    while (build.table_size < 2 * capacity)
        build.table_size *= 2;
    PEN_TRY(PEN_NEW(arena, problem->group_count, &build.mark));
    PEN_TRY(PEN_NEW(arena, capacity, &build.hash));
    PEN_TRY(PEN_NEW(arena, capacity, &build.size));
    PEN_TRY(PEN_NEW(arena, capacity, &build.parent));
    PEN_TRY(PEN_NEW(arena, capacity, &build.last));
    PEN_TRY(PEN_NEW(arena, build.table_size, &build.table));
    PEN_TRY(PEN_NEW(arena, link_capacity, &build.links));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        build.mark[g] = pen_random_stream("down-set", g, 0);
    }
    *out_build = build;
    return PEN_OK;
}

// The place of `hash` in the table: its set, or where it would go.
static uint32_t *down_sets_find(const down_sets_build *build, uint64_t hash) {
    uint32_t i = (uint32_t)(hash >> 32) & (build->table_size - 1);
    while (build->table[i] != 0 && build->hash[build->table[i] - 1] != hash) {
        i = (i + 1) & (build->table_size - 1);
    }
    return &build->table[i];
}

// There must be room.
static uint32_t down_sets_put(down_sets_build *build, uint64_t hash, uint32_t size, uint32_t parent,
                              uint32_t last) {
    uint32_t *cell = down_sets_find(build, hash);
    if (*cell != 0) return *cell - 1;
    const uint32_t set = build->count++;
    build->hash[set] = hash;
    build->size[set] = size;
    build->parent[set] = parent;
    build->last[set] = last;
    *cell = set + 1;
    return set;
}

// Renumbers sets by size and sorts links by source, then target.
static pen_status down_sets_finish(down_sets_build *build, bool is_complete,
                                   pen_down_sets **out_sets) {
    pen_down_sets *sets;
    uint32_t *rank, *start;
    const uint32_t group_count = build->problem->group_count;
    PEN_TRY(PEN_NEW(build->arena, 1, &sets));
    PEN_TRY(PEN_NEW(build->arena, build->count, &rank));
    PEN_TRY(PEN_NEW(build->arena, (size_t)group_count + 2, &start));
    PEN_TRY(PEN_NEW(build->arena, build->count, &sets->size));
    PEN_TRY(PEN_NEW(build->arena, build->count, &sets->parent));
    PEN_TRY(PEN_NEW(build->arena, build->count, &sets->last));
    PEN_TRY(PEN_NEW(build->arena, (size_t)build->count + 2, &sets->link_first));
    PEN_TRY(PEN_NEW(build->arena, build->link_count, &sets->link_target));
    PEN_TRY(PEN_NEW(build->arena, build->link_count, &sets->link_group));
    sets->count = build->count;
    sets->is_complete = is_complete;
    for (uint32_t s = 0; s < build->count; s++)
        start[build->size[s] + 1] += 1;
    for (uint32_t i = 0; i <= group_count; i++)
        start[i + 1] += start[i];
    for (uint32_t s = 0; s < build->count; s++)
        rank[s] = start[build->size[s]]++;
    for (uint32_t s = 0; s < build->count; s++) {
        sets->size[rank[s]] = build->size[s];
        sets->parent[rank[s]] = rank[build->parent[s]];
        sets->last[rank[s]] = build->last[s];
    }
    for (uint32_t i = 0; i < build->link_count; i++) {
        sets->link_first[rank[build->links[i].source] + 2] += 1;
    }
    for (uint32_t s = 0; s < build->count; s++)
        sets->link_first[s + 2] += sets->link_first[s + 1];
    for (uint32_t i = 0; i < build->link_count; i++) {
        const uint32_t at = sets->link_first[rank[build->links[i].source] + 1]++;
        sets->link_target[at] = rank[build->links[i].target];
        sets->link_group[at] = build->links[i].group;
    }
    *out_sets = sets;
    return PEN_OK;
}

// ---- the complete family

// Walks the tree of all down-sets: a set's members in ascending `rank`, a topological order, are
// its path from the root, since each beginning of that path is a down-set too.
typedef struct down_sets_walk {
    down_sets_build build;
    const pen_problem_lists *after;
    uint32_t *order;     // [group_count] topological
    uint32_t *rank;      // [group_count] position there
    uint32_t *missing;   // [group_count] direct predecessors that are not in the set
    uint64_t *available; // bits by rank: could be added
    uint32_t word_count;
    uint32_t *path; // sets on the path
    uint32_t depth;
    uint64_t *link_hash; // [link_capacity] hash of the target
} down_sets_walk;

static void walk_toggle(down_sets_walk *walk, uint32_t rank) {
    walk->available[rank / 64] ^= 1ull << (rank % 64);
}

static void walk_add(down_sets_walk *walk, uint32_t group) {
    walk_toggle(walk, walk->rank[group]);
    for (uint32_t e = walk->after->first[group]; e < walk->after->first[group + 1]; e++) {
        const uint32_t next = walk->after->ids[e];
        if (--walk->missing[next] == 0) walk_toggle(walk, walk->rank[next]);
    }
}

static void walk_remove(down_sets_walk *walk, uint32_t group) {
    for (uint32_t e = walk->after->first[group]; e < walk->after->first[group + 1]; e++) {
        const uint32_t next = walk->after->ids[e];
        if (walk->missing[next]++ == 0) walk_toggle(walk, walk->rank[next]);
    }
    walk_toggle(walk, walk->rank[group]);
}

// Notes the links of the set at hand. False when there are too many.
static bool walk_note_links(down_sets_walk *walk, uint32_t set) {
    down_sets_build *build = &walk->build;
    for (uint32_t w = 0; w < walk->word_count; w++) {
        for (uint64_t bits = walk->available[w]; bits != 0; bits &= bits - 1) {
            const uint32_t group = walk->order[w * 64 + (uint32_t)__builtin_ctzll(bits)];
            if (build->link_count == build->link_capacity) return false;
            walk->link_hash[build->link_count] = build->hash[set] ^ build->mark[group];
            build->links[build->link_count++] = (down_sets_link){.source = set, .group = group};
        }
    }
    return true;
}

// The first available rank from `from` on, or UINT32_MAX.
static uint32_t walk_next(const down_sets_walk *walk, uint32_t from) {
    for (uint32_t w = from / 64; w < walk->word_count; w++) {
        uint64_t bits = walk->available[w];
        if (w == from / 64) bits &= ~0ull << (from % 64);
        if (bits != 0) return w * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return UINT32_MAX;
}

// False when there are more sets or links than there is room for.
static bool walk_all(down_sets_walk *walk) {
    down_sets_build *build = &walk->build;
    uint32_t from = 0; // groups of smaller rank were tried here
    walk->path[0] = down_sets_put(build, 0, 0, 0, 0);
    walk->depth = 0;
    if (!walk_note_links(walk, 0)) return false;
    for (;;) {
        const uint32_t set = walk->path[walk->depth];
        const uint32_t rank = walk_next(walk, from);
        if (rank == UINT32_MAX) {
            if (walk->depth == 0) return true;
            const uint32_t group = build->last[set];
            walk_remove(walk, group);
            walk->depth--;
            from = walk->rank[group] + 1;
            continue;
        }
        if (build->count == build->capacity) return false;
        const uint32_t group = walk->order[rank];
        const uint32_t larger = down_sets_put(build, build->hash[set] ^ build->mark[group],
                                              build->size[set] + 1, set, group);
        walk_add(walk, group);
        walk->path[++walk->depth] = larger;
        if (!walk_note_links(walk, larger)) return false;
        from = rank + 1;
    }
}

// The order of visits keeps long chains together, so that neighbouring sets share most of their
// members.
static pen_status walk_begin(const pen_problem *problem, const pen_problem_lists *after,
                             uint32_t limit, pen_arena *arena, down_sets_walk *walk) {
    const uint32_t count = problem->group_count;
    const uint32_t link_limit = limit * 8;
    PEN_TRY(down_sets_begin(problem, limit, link_limit, arena, &walk->build));
    walk->after = after;
    walk->word_count = count / 64 + 1;
    PEN_TRY(PEN_NEW(arena, count, &walk->order));
    PEN_TRY(PEN_NEW(arena, count, &walk->rank));
    PEN_TRY(PEN_NEW(arena, count, &walk->missing));
    PEN_TRY(PEN_NEW(arena, walk->word_count, &walk->available));
    PEN_TRY(PEN_NEW(arena, (size_t)count + 1, &walk->path));
    PEN_TRY(PEN_NEW(arena, link_limit, &walk->link_hash));
    uint32_t *waits = walk->missing;
    for (uint32_t e = 0; e < after->first[count]; e++)
        waits[after->ids[e]] += 1;
    uint32_t filled = 0, stack_count = 0;
    uint32_t *stack = walk->path; // not in use yet; depth first keeps long chains together
    for (uint32_t g = count; g-- > 0;) {
        if (waits[g] == 0) stack[stack_count++] = g;
    }
    while (stack_count > 0) {
        const uint32_t g = stack[--stack_count];
        walk->order[filled++] = g;
        for (uint32_t e = after->first[g]; e < after->first[g + 1]; e++) {
            if (--waits[after->ids[e]] == 0) stack[stack_count++] = after->ids[e];
        }
    }
    PEN_ASSERT(filled == count);
    for (uint32_t e = 0; e < after->first[count]; e++)
        walk->missing[after->ids[e]] += 1;
    for (uint32_t i = 0; i < count; i++)
        walk->rank[walk->order[i]] = i;
    for (uint32_t g = 0; g < count; g++) {
        if (walk->missing[g] == 0) walk_toggle(walk, walk->rank[g]);
    }
    return PEN_OK;
}

pen_status pen_down_sets_all(const pen_problem *problem, const pen_problem_lists *after,
                             uint32_t limit, pen_arena *arena, pen_down_sets **out_sets) {
    down_sets_walk walk = {0};
    *out_sets = NULL;
    PEN_TRY(walk_begin(problem, after, limit, arena, &walk));
    if (!walk_all(&walk)) return PEN_OK;
    down_sets_build *build = &walk.build;
    for (uint32_t i = 0; i < build->link_count; i++) {
        const uint32_t target = *down_sets_find(build, walk.link_hash[i]);
        PEN_ASSERT(target != 0);
        build->links[i].target = target - 1;
    }
    return down_sets_finish(build, true, out_sets);
}

// ---- prefixes of orders

static int down_sets_compare(const void *left, const void *right) {
    const down_sets_link *a = left, *b = right;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    return a->target < b->target ? -1 : a->target > b->target;
}

// Prefixes of a few orders instead of all down-sets, of which there may be too many.
pen_status pen_down_sets_of_orders(const pen_problem *problem, const uint32_t *orders,
                                   uint32_t order_count, pen_arena *arena,
                                   pen_down_sets **out_sets) {
    down_sets_build build;
    const uint32_t count = problem->group_count;
    PEN_TRY(down_sets_begin(problem, count * order_count + 1, count * order_count, arena, &build));
    for (uint32_t i = 0; i < order_count; i++) {
        uint32_t set = down_sets_put(&build, 0, 0, 0, 0);
        for (uint32_t j = 0; j < count; j++) {
            const uint32_t group = orders[(size_t)i * count + j];
            const uint32_t larger =
                down_sets_put(&build, build.hash[set] ^ build.mark[group], j + 1, set, group);
            build.links[build.link_count++] = (down_sets_link){set, larger, group};
            set = larger;
        }
    }
    if (order_count > 1) {
        uint32_t distinct = 0;
        qsort(build.links, build.link_count, sizeof *build.links, down_sets_compare);
        for (uint32_t i = 0; i < build.link_count; i++) {
            const bool is_new =
                i == 0 || down_sets_compare(&build.links[i - 1], &build.links[i]) != 0;
            if (is_new) build.links[distinct++] = build.links[i];
        }
        build.link_count = distinct;
    }
    return down_sets_finish(&build, false, out_sets);
}
