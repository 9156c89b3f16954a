#include "partition/problem/problem_lists.h"

#include <string.h>

// A counting sort by target, then a stable one by source, leaves each list ascending; doubles are
// then neighbours.
pen_status pen_problem_lists_build(uint32_t owner_count, const pen_problem_edge *edges,
                                   uint32_t edge_count, bool reversed, pen_arena *arena,
                                   pen_problem_lists *out_lists) {
    pen_problem_lists lists;
    uint32_t id_limit = 0;
    for (uint32_t e = 0; e < edge_count; e++) {
        const uint32_t id = reversed ? edges[e].source : edges[e].target;
        if (id >= id_limit) id_limit = id + 1;
    }
    uint32_t *by_id, *sorted;
    PEN_TRY(PEN_NEW(arena, (size_t)id_limit + 1, &by_id));
    PEN_TRY(PEN_NEW(arena, edge_count, &sorted)); // edges in ascending order of id
    PEN_TRY(PEN_NEW(arena, (size_t)owner_count + 2, &lists.first));
    PEN_TRY(PEN_NEW(arena, edge_count, &lists.ids));
    for (uint32_t e = 0; e < edge_count; e++) {
        by_id[(reversed ? edges[e].source : edges[e].target) + 1] += 1;
        lists.first[(reversed ? edges[e].target : edges[e].source) + 2] += 1;
    }
    for (uint32_t i = 0; i < id_limit; i++)
        by_id[i + 1] += by_id[i];
    for (uint32_t i = 0; i < owner_count; i++)
        lists.first[i + 2] += lists.first[i + 1];
    for (uint32_t e = 0; e < edge_count; e++) {
        sorted[by_id[reversed ? edges[e].source : edges[e].target]++] = e;
    }
    for (uint32_t i = 0; i < edge_count; i++) {
        const pen_problem_edge *edge = &edges[sorted[i]];
        const uint32_t owner = reversed ? edge->target : edge->source;
        lists.ids[lists.first[owner + 1]++] = reversed ? edge->source : edge->target;
    }
    uint32_t filled = 0;
    uint32_t start = 0;
    for (uint32_t i = 0; i < owner_count; i++) { // drops doubles
        const uint32_t end = lists.first[i + 1];
        lists.first[i] = filled;
        for (uint32_t e = start; e < end; e++) {
            if (e > start && lists.ids[e] == lists.ids[e - 1]) continue;
            lists.ids[filled++] = lists.ids[e];
        }
        start = end;
    }
    lists.first[owner_count] = filled;
    *out_lists = lists;
    return PEN_OK;
}

// Tarjan's algorithm with a stack of its own.
typedef struct components_search {
    const pen_problem_lists *after;
    uint32_t *component;
    uint32_t *index; // [count] 1 + order of discovery, 0: not seen
    uint32_t *low;   // [count]
    uint32_t *next;  // [count] position in the list of the group
    uint32_t *stack; // of groups without component yet
    uint32_t *path;
    uint32_t stack_count;
    uint32_t seen_count;
    uint32_t component_count;
} components_search;

static void components_enter(components_search *search, uint32_t v) {
    search->index[v] = search->low[v] = ++search->seen_count;
    search->next[v] = search->after->first[v];
    search->stack[search->stack_count++] = v;
}

static void components_leave(components_search *search, uint32_t v) {
    if (search->low[v] != search->index[v]) return;
    uint32_t member;
    do {
        member = search->stack[--search->stack_count];
        search->component[member] = search->component_count;
    } while (member != v);
    search->component_count += 1;
}

// Tarjan's algorithm with a stack of its own: a graph may be deeper than the call stack.
static void components_visit(components_search *search, uint32_t root) {
    uint32_t depth = 0;
    search->path[depth++] = root;
    components_enter(search, root);
    while (depth > 0) {
        const uint32_t v = search->path[depth - 1];
        if (search->next[v] == search->after->first[v + 1]) {
            components_leave(search, v);
            depth--;
            if (depth > 0 && search->low[v] < search->low[search->path[depth - 1]]) {
                search->low[search->path[depth - 1]] = search->low[v];
            }
            continue;
        }
        const uint32_t w = search->after->ids[search->next[v]++];
        if (search->index[w] == 0) {
            components_enter(search, w);
            search->path[depth++] = w;
        } else if (search->component[w] == UINT32_MAX && search->index[w] < search->low[v]) {
            search->low[v] = search->index[w];
        }
    }
}

pen_status pen_problem_components(uint32_t count, const pen_problem_lists *after, pen_arena *arena,
                                  uint32_t *out_component, uint32_t *out_component_count) {
    components_search search = {.after = after, .component = out_component};
    PEN_TRY(PEN_NEW(arena, count, &search.index));
    PEN_TRY(PEN_NEW(arena, count, &search.low));
    PEN_TRY(PEN_NEW(arena, count, &search.next));
    PEN_TRY(PEN_NEW(arena, count, &search.stack));
    PEN_TRY(PEN_NEW(arena, count, &search.path));
    memset(out_component, 0xff, count * sizeof *out_component);
    for (uint32_t v = 0; v < count; v++) {
        if (search.index[v] == 0) components_visit(&search, v);
    }
    *out_component_count = search.component_count;
    return PEN_OK;
}
