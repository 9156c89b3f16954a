#include "partition/objective/stage_forming.h"

#include <string.h>

#include "base/sets/components.h"
#include "partition/problem/problem_lists.h"

#define FORMING_NONE UINT32_MAX

// The forward nodes that each of `nodes` is tied to by `lists` of the problem, in the same order.
static pen_status forming_tie(const pen_stage_forming *forming, const pen_problem_lists *lists,
                              const uint32_t *nodes, pen_arena *arena,
                              pen_problem_lists *out_ties) {
    const pen_problem *problem = forming->problem;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(arena, (size_t)forming->forward_count + 1, &out_ties->first));
    PEN_TRY(PEN_NEW(arena, lists->first[problem->given.node_count], &out_ties->ids));
    for (uint32_t i = 0; i < forming->forward_count; i++) {
        for (uint32_t e = lists->first[nodes[i]]; e < lists->first[nodes[i] + 1]; e++) {
            if (!pen_problem_is_forward(&problem->given, lists->ids[e])) continue;
            out_ties->ids[count++] = lists->ids[e];
        }
        out_ties->first[i + 1] = count;
    }
    return PEN_OK;
}

// Stages follow from forward nodes and what is between them: told apart once, not at each forming.
static pen_status forming_find_forward(pen_stage_forming *forming, pen_arena *arena) {
    const pen_problem *problem = forming->problem;
    const uint32_t count = problem->given.node_count;
    uint32_t filled = 0, other_count = 0;
    PEN_TRY(PEN_NEW(arena, count, &forming->forward));
    PEN_TRY(PEN_NEW(arena, count, &forming->forward_order));
    PEN_TRY(PEN_NEW(arena, count, &forming->other));
    for (uint32_t v = 0; v < count; v++) {
        if (pen_problem_is_forward(&problem->given, v)) {
            forming->forward[forming->forward_count++] = v;
        } else {
            forming->other[other_count++] = v;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = problem->node_order[i];
        if (pen_problem_is_forward(&problem->given, v)) forming->forward_order[filled++] = v;
    }
    PEN_TRY(forming_tie(forming, &problem->successors, forming->forward, arena, &forming->after));
    return forming_tie(forming, &problem->predecessors, forming->forward_order, arena,
                       &forming->before);
}

// Room for as many stages as nodes: the search evaluates thousands of placements with it.
pen_status pen_stage_forming_new(const pen_problem *problem, pen_arena *arena,
                                 pen_stage_forming **out_forming) {
    pen_stage_forming *forming;
    const size_t count = problem->given.node_count;
    PEN_TRY(PEN_NEW(arena, 1, &forming));
    forming->problem = problem;
    PEN_TRY(pen_arena_create_within(arena, &forming->scratch));
    PEN_TRY(forming_find_forward(forming, arena));
    PEN_TRY(PEN_NEW(arena, count, &forming->stage_of_node));
    PEN_TRY(PEN_NEW(arena, count, &forming->device_of_stage));
    PEN_TRY(PEN_NEW(arena, count + 1, &forming->stage_first));
    PEN_TRY(PEN_NEW(arena, count, &forming->nodes));
    PEN_TRY(PEN_NEW(arena, count, &forming->level));
    PEN_TRY(PEN_NEW(arena, count, &forming->rank));
    PEN_TRY(PEN_NEW(arena, count, &forming->sorted));
    for (uint32_t v = 0; v < count && forming->loop_level == NULL; v++) {
        if (problem->given.nodes[v].loop == 0) continue;
        PEN_TRY(PEN_NEW(arena, count + 1, &forming->loop_level));
    }
    PEN_TRY(PEN_NEW(arena, problem->group_count, &forming->stage_anchor));
    PEN_TRY(PEN_NEW(arena, problem->given.device_count, &forming->stage_last));
    PEN_TRY(PEN_NEW(arena, problem->successors.first[count], &forming->edges));
    *out_forming = forming;
    return PEN_OK;
}

// Circles of devices: out_component[d] is larger for those that come earlier.
static pen_status forming_find_circles(pen_stage_forming *forming, const uint32_t *device_of_node,
                                       uint32_t *out_component, uint32_t *out_count) {
    const uint32_t device_count = forming->problem->given.device_count;
    const pen_problem_lists *ties = &forming->after;
    pen_problem_lists after;
    uint32_t edge_count = 0;
    for (uint32_t i = 0; i < forming->forward_count; i++) {
        const uint32_t here = device_of_node[forming->forward[i]];
        for (uint32_t e = ties->first[i]; e < ties->first[i + 1]; e++) {
            const pen_problem_edge edge = {here, device_of_node[ties->ids[e]]};
            if (edge.source == edge.target) continue;
            if (edge_count > 0 && forming->edges[edge_count - 1].source == edge.source &&
                forming->edges[edge_count - 1].target == edge.target) {
                continue;
            }
            forming->edges[edge_count++] = edge;
        }
    }
    PEN_TRY(pen_problem_lists_build(device_count, forming->edges, edge_count, false,
                                    forming->scratch, &after));
    return pen_components_find(device_count, after.first, after.ids, forming->scratch,
                               out_component, out_count);
}

// Levels of forward nodes within their circles, each at least what is known of its loop's; fills
// level_most of each circle.
static void forming_find_levels(pen_stage_forming *forming, const uint32_t *device_of_node,
                                const uint32_t *component, uint32_t *level_most) {
    const pen_problem *problem = forming->problem;
    for (uint32_t i = 0; i < forming->forward_count; i++) {
        const uint32_t v = forming->forward_order[i];
        const uint32_t here = device_of_node[v];
        uint32_t level = 0;
        if (forming->loop_level != NULL) level = forming->loop_level[problem->given.nodes[v].loop];
        for (uint32_t e = forming->before.first[i]; e < forming->before.first[i + 1]; e++) {
            const uint32_t u = forming->before.ids[e];
            const uint32_t there = device_of_node[u];
            if (component[there] != component[here]) continue;
            const uint32_t reached = forming->level[u] + (there != here);
            if (reached > level) level = reached;
        }
        forming->level[v] = level;
        if (level > level_most[component[here]]) level_most[component[here]] = level;
    }
}

// Raises what is known of the levels of loops to the highest of their nodes. False: all were so.
static bool forming_raise_loops(pen_stage_forming *forming) {
    const pen_problem_given *given = &forming->problem->given;
    bool is_raised = false;
    for (uint32_t i = 0; forming->loop_level != NULL && i < forming->forward_count; i++) {
        const uint32_t v = forming->forward[i];
        const uint32_t loop = given->nodes[v].loop;
        if (loop == 0) continue;
        if (forming->level[v] <= forming->loop_level[loop]) continue;
        forming->loop_level[loop] = forming->level[v];
        is_raised = true;
    }
    return is_raised;
}

// The nodes of a loop have one level, which those behind them see: no way leads back into a loop,
// so that comes to an end.
static void forming_level(pen_stage_forming *forming, const uint32_t *device_of_node,
                          const uint32_t *component, uint32_t *level_most) {
    if (forming->loop_level != NULL) {
        memset(forming->loop_level, 0,
               ((size_t)forming->problem->given.node_count + 1) * sizeof *forming->loop_level);
    }
    do {
        forming_find_levels(forming, device_of_node, component, level_most);
    } while (forming_raise_loops(forming));
}

// Stable counting sort of `count` nodes by key[node] (or key[by[node]]) below `limit`.
static pen_status forming_sort(pen_stage_forming *forming, const uint32_t *key, uint32_t limit,
                               const uint32_t *nodes, uint32_t count, uint32_t *out_sorted) {
    uint32_t *first;
    PEN_TRY(PEN_NEW(forming->scratch, (size_t)limit + 1, &first));
    for (uint32_t i = 0; i < count; i++)
        first[key[nodes[i]] + 1] += 1;
    for (uint32_t k = 0; k < limit; k++)
        first[k + 1] += first[k];
    for (uint32_t i = 0; i < count; i++)
        out_sorted[first[key[nodes[i]]]++] = nodes[i];
    return PEN_OK;
}

// Numbers the stages of forward nodes: by circle, level and device.
static pen_status forming_number(pen_stage_forming *forming, const uint32_t *device_of_node,
                                 const uint32_t *component, uint32_t component_count,
                                 const uint32_t *level_most) {
    const pen_problem_given *given = &forming->problem->given;
    uint32_t *rank_first; // of each circle
    uint32_t rank_count = 0;
    const uint32_t count = forming->forward_count;
    PEN_TRY(PEN_NEW(forming->scratch, component_count, &rank_first));
    for (uint32_t c = component_count; c-- > 0;) {
        rank_first[c] = rank_count;
        rank_count += level_most[c] + 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = forming->forward[i];
        forming->rank[v] = rank_first[component[device_of_node[v]]] + forming->level[v];
    }
    PEN_TRY(forming_sort(forming, device_of_node, given->device_count, forming->forward, count,
                         forming->sorted));
    PEN_TRY(
        forming_sort(forming, forming->rank, rank_count, forming->sorted, count, forming->nodes));
    forming->stage_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = forming->nodes[i], device = device_of_node[v];
        const uint32_t before = i > 0 ? forming->nodes[i - 1] : v;
        if (i == 0 || device_of_node[before] != device ||
            forming->rank[before] != forming->rank[v]) {
            forming->stage_last[device] = forming->stage_count;
            forming->device_of_stage[forming->stage_count++] = device;
        }
        forming->stage_of_node[v] = forming->stage_count - 1;
    }
    return PEN_OK;
}

// Gives all other nodes a stage.
static void forming_attach(pen_stage_forming *forming, const uint32_t *device_of_node) {
    const pen_problem *problem = forming->problem;
    uint32_t *anchor = forming->stage_anchor;
    memset(anchor, 0xff, problem->group_count * sizeof *anchor);
    for (uint32_t i = 0; i < forming->forward_count; i++) {
        const uint32_t v = forming->forward[i];
        uint32_t *group = &anchor[problem->group_of_node[v]];
        const uint32_t stage = forming->stage_of_node[v];
        if (*group == FORMING_NONE || stage > *group) *group = stage;
    }
    for (uint32_t i = 0; i < problem->given.node_count - forming->forward_count; i++) {
        const uint32_t v = forming->other[i];
        const uint32_t device = device_of_node[v];
        uint32_t stage = anchor[problem->group_of_node[v]];
        if (stage == FORMING_NONE) stage = forming->stage_last[device];
        if (stage == FORMING_NONE) {
            stage = forming->stage_count++;
            forming->device_of_stage[stage] = device;
            forming->stage_last[device] = stage;
        }
        forming->stage_of_node[v] = stage;
    }
}

static void forming_list_nodes(pen_stage_forming *forming) {
    const uint32_t count = forming->problem->given.node_count;
    uint32_t *first = forming->stage_first;
    memset(first, 0, ((size_t)forming->stage_count + 1) * sizeof *first);
    for (uint32_t v = 0; v < count; v++)
        first[forming->stage_of_node[v]] += 1;
    uint32_t end = 0;
    for (uint32_t s = 0; s <= forming->stage_count; s++) {
        end += first[s];
        first[s] = end; // of the nodes of s, which move it back to their first
    }
    for (uint32_t v = count; v-- > 0;)
        forming->nodes[--first[forming->stage_of_node[v]]] = v;
}

pen_status pen_stage_forming_run(pen_stage_forming *forming, const uint32_t *device_of_node) {
    const uint32_t device_count = forming->problem->given.device_count;
    uint32_t *component, *level_most, component_count;
    pen_arena_reset(forming->scratch);
    PEN_TRY(PEN_NEW(forming->scratch, device_count, &component));
    PEN_TRY(forming_find_circles(forming, device_of_node, component, &component_count));
    PEN_TRY(PEN_NEW(forming->scratch, component_count, &level_most));
    forming_level(forming, device_of_node, component, level_most);
    memset(forming->stage_last, 0xff, device_count * sizeof *forming->stage_last);
    PEN_TRY(forming_number(forming, device_of_node, component, component_count, level_most));
    forming_attach(forming, device_of_node);
    forming_list_nodes(forming);
    return PEN_OK;
}
