// What the job adapts: which nodes it means, and which of all parameters are trained then.
#include "graph/graph.h"
#include "graph/passes/adapt_weights.h"
#include "graph/passes/gradient/match_groups.h"
#include "partition/spec/name_match.h"
#include "scheduler/compile/compile_pass.h"

static pen_status adapt_choose(const pen_compilation *compilation, const bool **out_chosen) {
    const uint32_t count = pen_graph_node_count(compilation->graph);
    const char **names;
    bool *chosen;
    pen_name_matches matches;
    PEN_TRY(PEN_NEW(compilation->arena, count, &names));
    PEN_TRY(PEN_NEW(compilation->arena, count, &chosen));
    for (uint32_t n = 0; n < count; n++) {
        names[n] = pen_node_name(compilation->graph, (pen_node_id){n});
    }
    const pen_name_set set = {.names = names, .count = count, .what = "node"};
    PEN_TRY(pen_match_names(&set, compilation->request->lora->nodes, compilation->arena, &matches));
    for (uint32_t i = 0; i < matches.count; i++) {
        chosen[matches.indices[i]] = true;
    }
    *out_chosen = chosen;
    return PEN_OK;
}

// Adapters are trained, and what a group is of; all else is as it was. What `freeze` and groups
// that freeze mean stays frozen, adapters among them.
static pen_status adapt_freeze_rest(pen_compilation *compilation, uint32_t *out_group) {
    const pen_optimizer *optimizer = &compilation->request->optimizer;
    pen_graph *graph = compilation->graph;
    const uint32_t *group_of;
    PEN_TRY(pen_check_groups(graph, optimizer, compilation->arena, out_group));
    PEN_TRY(pen_match_groups(graph, optimizer, compilation->arena, &group_of, out_group));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER || !value->trainable) continue;
        const uint32_t group = group_of[v];
        const bool stays = group != PEN_ID_NONE ? !optimizer->groups[group].freeze
                                                : pen_adapter_has_name(value->name);
        if (!stays) pen_graph_set_trainable(graph, (pen_value_id){v}, false);
    }
    return PEN_OK;
}

pen_status pen_compile_adapt(pen_compilation *compilation) {
    const pen_compile_lora *lora = compilation->request->lora;
    const pen_program *program = &compilation->program;
    pen_adapters adapters = {
        .rank = lora->rank, .scale = lora->alpha / lora->rank, .seed = lora->seed};
    pen_graph *graph;
    const pen_value_id *map;
    uint32_t group = 0;
    PEN_TRY(pen_compilation_blame(compilation, PEN_COMPILE_PART_ADAPT,
                                  adapt_choose(compilation, &adapters.chosen)));
    PEN_TRY(
        pen_compilation_blame(compilation, PEN_COMPILE_PART_ADAPT,
                              pen_adapt_weights(compilation->graph, &adapters, program->kept_count,
                                                program->kept, &graph, &map)));
    pen_compilation_follow(compilation, graph, map);
    const pen_status status = adapt_freeze_rest(compilation, &group);
    return pen_compilation_blame_group(compilation, group, status);
}
