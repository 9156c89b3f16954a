#include "base/sets/components.h"

#include <string.h>

typedef struct components_search {
    const uint32_t *first, *ids; // of edges
    uint32_t *component;
    uint32_t *index; // [count] 1 + order of discovery, 0: not seen
    uint32_t *low;   // [count]
    uint32_t *next;  // [count] position in its list
    uint32_t *stack; // of those without a component yet
    uint32_t *path;
    uint32_t stack_count;
    uint32_t seen_count;
    uint32_t component_count;
} components_search;

static void components_enter(components_search *search, uint32_t v) {
    search->index[v] = search->low[v] = ++search->seen_count;
    search->next[v] = search->first[v];
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
        if (search->next[v] == search->first[v + 1]) {
            components_leave(search, v);
            depth--;
            if (depth > 0 && search->low[v] < search->low[search->path[depth - 1]]) {
                search->low[search->path[depth - 1]] = search->low[v];
            }
            continue;
        }
        const uint32_t w = search->ids[search->next[v]++];
        if (search->index[w] == 0) {
            components_enter(search, w);
            search->path[depth++] = w;
        } else if (search->component[w] == UINT32_MAX && search->index[w] < search->low[v]) {
            search->low[v] = search->index[w];
        }
    }
}

pen_status pen_components_find(uint32_t count, const uint32_t *first, const uint32_t *ids,
                               pen_arena *arena, uint32_t *out_component,
                               uint32_t *out_component_count) {
    components_search search = {.first = first, .ids = ids, .component = out_component};
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
