#include "partition/problem/problem_index.h"

#include <stdlib.h>
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

// ---- outputs

// One node's result, before those with the same readers are put together.
typedef struct outputs_draft {
    uint32_t owner;
    uint32_t reader_first; // in outputs_build.readers
    uint32_t reader_count;
    double cost;
} outputs_draft;

typedef struct outputs_build {
    outputs_draft *drafts;
    uint32_t draft_count;
    uint32_t *readers;
    uint32_t reader_count;
} outputs_build;

static int outputs_compare_ids(const void *left, const void *right) {
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

// The readers of node u that are in other groups, ascending, each once.
static void outputs_collect(const pen_problem *problem, uint32_t u, outputs_build *build) {
    const uint32_t owner = problem->group_of_node[u];
    uint32_t *readers = build->readers + build->reader_count;
    uint32_t count = 0;
    for (uint32_t e = problem->successors.first[u]; e < problem->successors.first[u + 1]; e++) {
        const uint32_t reader = problem->group_of_node[problem->successors.ids[e]];
        if (reader != owner) readers[count++] = reader;
    }
    if (count == 0) return;
    if (count > 1) qsort(readers, count, sizeof *readers, outputs_compare_ids);
    uint32_t distinct = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (readers[i] != readers[i - 1]) readers[distinct++] = readers[i];
    }
    build->drafts[build->draft_count++] = (outputs_draft){
        .owner = owner,
        .reader_first = build->reader_count,
        .reader_count = distinct,
        .cost = problem->given.nodes[u].transfer,
    };
    build->reader_count += distinct;
}

static bool outputs_have_same_readers(const outputs_build *build, const outputs_draft *a,
                                      const outputs_draft *b) {
    return a->reader_count == b->reader_count &&
           memcmp(build->readers + a->reader_first, build->readers + b->reader_first,
                  a->reader_count * sizeof *build->readers) == 0;
}

// How far back an output looks for one of its group with the same readers.
#define OUTPUTS_LOOK_BACK 64

// Results of one group with the same readers become one output with the sum of their costs: moves
// then look at it once.
static pen_status outputs_write(pen_problem *problem, const outputs_build *build,
                                pen_arena *arena) {
    uint32_t reader_count = 0;
    PEN_TRY(PEN_NEW(arena, build->draft_count, &problem->output_owner));
    PEN_TRY(PEN_NEW(arena, build->draft_count, &problem->output_cost));
    PEN_TRY(PEN_NEW(arena, build->draft_count, &problem->output_results));
    PEN_TRY(PEN_NEW(arena, (size_t)build->draft_count + 1, &problem->readers.first));
    PEN_TRY(PEN_NEW(arena, build->reader_count, &problem->readers.ids));
    PEN_TRY(PEN_NEW(arena, (size_t)problem->group_count + 1, &problem->own_first));
    uint32_t *draft_of; // of each output
    PEN_TRY(PEN_NEW(arena, build->draft_count, &draft_of));
    for (uint32_t i = 0; i < build->draft_count; i++) {
        const outputs_draft *draft = &build->drafts[i];
        bool is_known = false;
        uint32_t o = problem->output_count;
        for (uint32_t looked = 0; !is_known && o > 0 && looked < OUTPUTS_LOOK_BACK; looked++) {
            if (problem->output_owner[o - 1] != draft->owner) break;
            o--;
            is_known = outputs_have_same_readers(build, draft, &build->drafts[draft_of[o]]);
        }
        if (is_known) {
            problem->output_cost[o] += draft->cost;
            problem->output_results[o] += 1.0;
            continue;
        }
        o = problem->output_count++;
        draft_of[o] = i;
        problem->output_owner[o] = draft->owner;
        problem->output_cost[o] = draft->cost;
        problem->output_results[o] = 1.0;
        memcpy(problem->readers.ids + reader_count, build->readers + draft->reader_first,
               draft->reader_count * sizeof *problem->readers.ids);
        reader_count += draft->reader_count;
        problem->readers.first[o + 1] = reader_count;
        problem->own_first[draft->owner + 1] = problem->output_count;
    }
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (problem->own_first[g + 1] < problem->own_first[g]) {
            problem->own_first[g + 1] = problem->own_first[g];
        }
    }
    return PEN_OK;
}

static pen_status outputs_list_reads(pen_problem *problem, pen_arena *arena) {
    pen_problem_edge *pairs; // group, output
    const uint32_t count =
        problem->output_count == 0 ? 0 : problem->readers.first[problem->output_count];
    PEN_TRY(PEN_NEW(arena, count, &pairs));
    for (uint32_t o = 0; o < problem->output_count; o++) {
        for (uint32_t r = problem->readers.first[o]; r < problem->readers.first[o + 1]; r++) {
            pairs[r] = (pen_problem_edge){problem->readers.ids[r], o};
        }
    }
    return pen_problem_lists_build(problem->group_count, pairs, count, false, arena,
                                   &problem->reads);
}

pen_status pen_problem_form_outputs(pen_problem *problem, pen_arena *arena) {
    const uint32_t node_count = problem->given.node_count;
    outputs_build build = {0};
    PEN_TRY(PEN_NEW(arena, node_count, &build.drafts));
    PEN_TRY(PEN_NEW(arena, problem->successors.first[node_count], &build.readers));
    problem->output_count = 0;
    for (uint32_t g = 0; g < problem->group_count; g++) {
        for (uint32_t m = problem->members.first[g]; m < problem->members.first[g + 1]; m++) {
            const uint32_t u = problem->members.ids[m];
            if (problem->given.nodes[u].transfer > 0.0) outputs_collect(problem, u, &build);
        }
    }
    PEN_TRY(outputs_write(problem, &build, arena));
    return outputs_list_reads(problem, arena);
}
