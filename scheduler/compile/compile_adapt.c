// What the job adapts: which nodes it means, what adapters begin with, and which of all parameters
// are trained then.
#include <string.h>

#include "graph/graph.h"
#include "graph/passes/adapt_weights.h"
#include "graph/passes/gradient/match_groups.h"
#include "partition/spec/name_match.h"
#include "scheduler/compile/compile_pass.h"
#include "scheduler/store/safetensors.h"

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

// ---- adapters that were saved

static const pen_safetensors_entry *adapt_find(const pen_safetensors *file, const char *name,
                                               pen_arena *arena, pen_status *out_status) {
    const char *prefixed = NULL;
    const pen_safetensors_entry *entry = pen_safetensors_find(file, name);
    if (entry != NULL) return entry;
    *out_status = pen_arena_format(arena, &prefixed, PEN_ADAPTERS_PREFIX "%s", name);
    return *out_status == PEN_OK ? pen_safetensors_find(file, prefixed) : NULL;
}

// Sets one adapter. *out_wrong says what is wrong with it.
static pen_status adapt_set(pen_compilation *compilation, const pen_safetensors *file,
                            pen_value_id id, pen_status *out_wrong) {
    pen_graph *graph = compilation->graph;
    const pen_value *value = pen_graph_value(graph, id);
    const uint64_t bytes = pen_tensor_type_bytes(&value->type);
    const char *path = compilation->request->lora->weights;
    pen_status status = PEN_OK;
    char *data;
    const pen_safetensors_entry *entry = adapt_find(file, value->name, compilation->arena, &status);
    PEN_TRY(status);
    if (entry == NULL) {
        *out_wrong = pen_error(PEN_INVALID_INPUT, "%s lacks '%s'", path, value->name);
        return PEN_OK;
    }
    if (!pen_tensor_type_equal(&entry->type, &value->type)) {
        char texts[2][PEN_SHAPE_TEXT_BYTES];
        *out_wrong = pen_error(PEN_INVALID_INPUT, "%s: '%s' is %s, expected %s", path, entry->name,
                               pen_tensor_type_format(&entry->type, texts[0]),
                               pen_tensor_type_format(&value->type, texts[1]));
        return PEN_OK;
    }
    PEN_TRY(PEN_NEW(pen_graph_tensor_arena(graph), bytes, &data));
    memcpy(data, entry->data, bytes);
    pen_graph_set_contents(graph, id, value->type.element, data);
    return PEN_OK;
}

// All that is missing, too much, or of another shape is said at once.
static pen_status adapt_set_all(pen_compilation *compilation, const pen_safetensors *file) {
    pen_status wrong = PEN_OK;
    uint32_t count = 0;
    for (uint32_t v = 0; v < pen_graph_value_count(compilation->graph); v++) {
        const pen_value *value = pen_graph_value(compilation->graph, (pen_value_id){v});
        pen_status one = PEN_OK;
        if (value->kind != PEN_VALUE_PARAMETER || !pen_adapter_has_name(value->name)) continue;
        if (pen_adapter_is_scale(value->name)) continue;
        const pen_status status = adapt_set(compilation, file, (pen_value_id){v}, &one);
        wrong = pen_status_join(wrong, one);
        if (status != PEN_OK) return pen_status_join(status, wrong);
        count += 1;
    }
    if (wrong != PEN_OK || pen_safetensors_count(file) == count) return wrong;
    return pen_error(PEN_INVALID_INPUT, "%s has %u tensors, expected %u: the adapters alone",
                     compilation->request->lora->weights, pen_safetensors_count(file), count);
}

static pen_status adapt_load(pen_compilation *compilation) {
    pen_safetensors *file;
    if (compilation->request->lora->weights == NULL) return PEN_OK;
    PEN_TRY(pen_safetensors_open(compilation->request->lora->weights, &file));
    const pen_status status = adapt_set_all(compilation, file);
    pen_safetensors_close(file);
    return status;
}

// ---- the pass

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
    PEN_TRY(pen_compilation_blame(compilation, PEN_COMPILE_PART_ADAPTERS, adapt_load(compilation)));
    const pen_status status = adapt_freeze_rest(compilation, &group);
    return pen_compilation_blame_group(compilation, group, status);
}
