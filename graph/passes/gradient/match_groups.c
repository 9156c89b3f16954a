#include "graph/passes/gradient/match_groups.h"

#include "base/pattern.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/gradient/freeze_matching.h"

static bool groups_may_have(const pen_value *value) {
    return value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE;
}

// States are matched too: a normalization's statistics are.
static void groups_match_one(const pen_graph *graph, const pen_pattern *pattern, uint32_t group,
                             uint32_t *group_of) {
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (!groups_may_have(value) || group_of[v] != PEN_ID_NONE) continue;
        const char *name = value->slice != NULL ? value->slice->whole : value->name;
        if (pen_pattern_matches(pattern, name)) group_of[v] = group;
    }
}

pen_status pen_match_groups(const pen_graph *graph, const pen_optimizer *optimizer,
                            pen_arena *arena, const uint32_t **out_group_of, uint32_t *out_group) {
    const uint32_t value_count = pen_graph_value_count(graph);
    uint32_t *group_of;
    PEN_TRY(PEN_NEW(arena, value_count, &group_of));
    for (uint32_t v = 0; v < value_count; v++) {
        group_of[v] = PEN_ID_NONE;
    }
    for (uint32_t g = 0; g < optimizer->group_count; g++) {
        pen_pattern *pattern;
        *out_group = g;
        PEN_TRY(pen_pattern_create(optimizer->groups[g].match, &pattern));
        groups_match_one(graph, pattern, g, group_of);
        pen_pattern_destroy(pattern);
    }
    *out_group_of = group_of;
    return PEN_OK;
}

// A group without parameters is most likely a mistake in its pattern, or in the order.
static pen_status groups_check(const pen_graph *graph, const pen_optimizer *optimizer,
                               const uint32_t *group_of, uint32_t group) {
    const char *match = optimizer->groups[group].match, *example = "", *taken = NULL;
    uint32_t taker = 0;
    pen_pattern *pattern;
    PEN_TRY(pen_pattern_create(match, &pattern));
    bool is_used = false;
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER) continue;
        example = value->name;
        if (group_of[v] == group) is_used = true;
        if (taken != NULL || !pen_pattern_matches(pattern, value->name)) continue;
        taken = value->name;
        taker = group_of[v];
    }
    pen_pattern_destroy(pattern);
    if (is_used) return PEN_OK;
    if (taken == NULL) {
        return pen_error(PEN_NOT_FOUND, "groups: no parameter matches '%s'; one is called '%s'",
                         match, example);
    }
    return pen_error(PEN_INVALID_INPUT,
                     "groups: all parameters that match '%s' belong to groups before it, '%s' to "
                     "that of '%s'",
                     match, taken, optimizer->groups[taker].match);
}

pen_status pen_check_groups(const pen_graph *graph, const pen_optimizer *optimizer,
                            pen_arena *arena, uint32_t *out_group) {
    const uint32_t *group_of;
    PEN_TRY(pen_match_groups(graph, optimizer, arena, &group_of, out_group));
    for (uint32_t g = 0; g < optimizer->group_count; g++) {
        *out_group = g;
        PEN_TRY(groups_check(graph, optimizer, group_of, g));
    }
    return PEN_OK;
}

pen_status pen_freeze_groups(pen_graph *graph, const pen_optimizer *optimizer, pen_arena *arena,
                             uint32_t *out_group) {
    const uint32_t *group_of;
    PEN_TRY(pen_match_groups(graph, optimizer, arena, &group_of, out_group));
    bool *is_frozen;
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(graph), &is_frozen));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        is_frozen[v] = group_of[v] != PEN_ID_NONE && optimizer->groups[group_of[v]].freeze;
    }
    return pen_freeze_values(graph, is_frozen);
}
