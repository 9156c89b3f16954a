#include "partition/problem/problem_lists.h"

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
