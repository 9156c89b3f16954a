#include "partition/plan/stage_assign.h"

#include "base/name_map.h"
#include "graph/analysis/forward_owner.h"
#include "graph/graph.h"

typedef struct assigner {
    const pen_graph *graph;
    const pen_plan *plan;
    const pen_forward_owners *owners;
    uint32_t *stages;                // [node_count], PEN_ID_NONE: not known yet
    bool trains;                     // some node is behind the forward pass
    const pen_plan_replica *replica; // whose stages; NULL: of all
    bool is_of_updates;              // stages that update what the nodes read, not their own
} assigner;

static const pen_node *assign_node(const assigner *a, uint32_t node) {
    return pen_graph_node(a->graph, (pen_node_id){node});
}

static bool assign_is_of(const assigner *a, const pen_plan_node *node) {
    const pen_plan_replica *replica = a->replica;
    return replica == NULL || (node->stage >= replica->first_stage &&
                               node->stage - replica->first_stage < replica->stage_count);
}

// The graph was compiled for another size or mode than the plan's: nodes are found by their names.
// Evaluation may lack nodes of the training, but not have others.
static pen_status assign_by_name(assigner *a, pen_arena *scratch) {
    pen_name_map map;
    pen_name_map_init(&map, scratch);
    for (uint32_t i = 0; i < a->plan->node_count; i++) {
        const pen_plan_node *node = &a->plan->nodes[i];
        if (node->stage >= a->plan->stages.stage_count) {
            return pen_error(PEN_INVALID_INPUT, "node '%s' is in stage %u, the plan has %u stages",
                             node->name, node->stage, a->plan->stages.stage_count);
        }
        if (!assign_is_of(a, node)) continue;
        if (pen_name_map_find(&map, node->name) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_INVALID_INPUT, "node '%s' is in the plan twice", node->name);
        }
        PEN_TRY(pen_name_map_add(&map, node->name, i));
    }
    uint32_t found_count = 0, missing = PEN_ID_NONE;
    for (uint32_t n = 0; n < a->owners->node_count; n++) {
        a->stages[n] = PEN_ID_NONE;
        a->trains |= assign_node(a, n)->role != PEN_ROLE_FORWARD;
        if (!a->owners->is_listed[n]) continue;
        const uint32_t at = pen_name_map_find(&map, assign_node(a, n)->name);
        if (at != PEN_NAME_MAP_NONE) {
            const pen_plan_node *node = &a->plan->nodes[at];
            a->stages[n] = a->is_of_updates ? node->update_stage : node->stage;
            found_count++;
        } else if (missing == PEN_ID_NONE) {
            missing = n;
        }
    }
    if (missing == PEN_ID_NONE || (found_count > 0 && !a->trains)) return PEN_OK;
    const char *name = assign_node(a, missing)->name;
    if (found_count > 0) {
        return pen_error(PEN_INVALID_INPUT, "node '%s' of the model is in no stage of the plan",
                         name);
    }
    return pen_error(PEN_INVALID_INPUT,
                     "the plan lists '%s', say, but no node of this model, as '%s'",
                     a->plan->node_count > 0 ? a->plan->nodes[0].name : "nothing", name);
}

// The stage of the node that a listed node's operand comes from, a layout change's own.
static uint32_t assign_stage(const assigner *a, uint32_t node) {
    return a->stages[a->owners->listed[node]];
}

// The last stage that makes an operand of the node; PEN_ID_NONE where none is computed.
static uint32_t assign_after_operands(const assigner *a, const pen_node *node) {
    uint32_t last = PEN_ID_NONE;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_value_id source = pen_forward_owners_source(a->owners, node->inputs[i]);
        if (!pen_value_is(source)) continue;
        const pen_node_id maker = pen_graph_value(a->graph, source)->producer;
        const uint32_t stage = assign_stage(a, maker.index);
        if (stage == PEN_ID_NONE) continue;
        if (last == PEN_ID_NONE || stage > last) last = stage;
    }
    return last;
}

// The earliest stage in which a forward node reads what the node makes.
static uint32_t assign_before_readers(const assigner *a, const pen_node *node) {
    uint32_t earliest = PEN_ID_NONE;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const uint32_t v = node->outputs[i].index;
        const pen_readers *readers = &a->owners->readers;
        for (uint32_t r = readers->first[v]; r < readers->first[v + 1]; r++) {
            const uint32_t reader = readers->nodes[r].index;
            if (assign_node(a, reader)->role != PEN_ROLE_FORWARD) continue;
            const uint32_t stage = assign_stage(a, reader);
            if (stage < earliest) earliest = stage;
        }
    }
    return earliest;
}

// Without dropout, nodes that differ in training may be one: two directions of a recurrent layer
// that drop different units begin with equal states, say. The one that stays goes to the earliest
// stage that reads it, where its twin was: what the twin read is there, too.
static void assign_twins(assigner *a) {
    for (uint32_t n = a->owners->node_count; n-- > 0;) {
        if (!a->owners->is_listed[n]) continue;
        const uint32_t earliest = assign_before_readers(a, assign_node(a, n));
        if (earliest < a->stages[n]) a->stages[n] = earliest;
    }
}

// Nodes come after what they read: one walk upwards, then one downwards for those that read nothing
// computed, and another upwards for those behind them.
static void assign_rest(assigner *a) {
    const uint32_t node_count = a->owners->node_count;
    for (uint32_t n = 0; n < node_count; n++) {
        if (!a->owners->is_listed[n] || a->stages[n] != PEN_ID_NONE) continue;
        a->stages[n] = assign_after_operands(a, assign_node(a, n));
    }
    for (uint32_t n = node_count; n-- > 0;) {
        if (!a->owners->is_listed[n] || a->stages[n] != PEN_ID_NONE) continue;
        a->stages[n] = assign_before_readers(a, assign_node(a, n));
    }
    for (uint32_t n = 0; n < node_count; n++) {
        if (!a->owners->is_listed[n] || a->stages[n] != PEN_ID_NONE) continue;
        a->stages[n] = 0; // nobody needs it
    }
    if (!a->trains) assign_twins(a);
    for (uint32_t n = 0; n < node_count; n++) {
        if (!a->owners->is_listed[n]) a->stages[n] = assign_stage(a, a->owners->home[n]);
    }
}

static pen_status assign_run(assigner *a, pen_arena *scratch) {
    PEN_TRY(pen_forward_owners_build(a->graph, scratch, &a->owners));
    PEN_TRY(assign_by_name(a, scratch));
    assign_rest(a);
    return PEN_OK;
}

static pen_status assign_all(assigner *a, pen_arena *arena, const uint32_t **out_stage_of_node) {
    pen_arena *scratch;
    PEN_TRY(PEN_NEW(arena, pen_graph_node_count(a->graph), &a->stages));
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = assign_run(a, scratch);
    pen_arena_destroy(scratch);
    PEN_TRY(pen_status_add_context(status, "while assigning the plan's stages"));
    *out_stage_of_node = a->stages;
    return PEN_OK;
}

pen_status pen_stage_assign(const pen_graph *graph, const pen_plan *plan, pen_arena *arena,
                            const uint32_t **out_stage_of_node) {
    assigner a = {.graph = graph, .plan = plan};
    return assign_all(&a, arena, out_stage_of_node);
}

pen_status pen_stage_assign_replica(const pen_graph *graph, const pen_plan *plan, uint32_t replica,
                                    pen_arena *arena, const uint32_t **out_stage_of_node) {
    PEN_ASSERT(replica < plan->replica_count);
    assigner a = {.graph = graph, .plan = plan, .replica = &plan->replicas[replica]};
    return assign_all(&a, arena, out_stage_of_node);
}

pen_status pen_stage_assign_updates(const pen_graph *graph, const pen_plan *plan, pen_arena *arena,
                                    const uint32_t **out_stage_of_node) {
    assigner a = {.graph = graph,
                  .plan = plan,
                  .replica = plan->replica_count > 0 ? &plan->replicas[0] : NULL,
                  .is_of_updates = true};
    return assign_all(&a, arena, out_stage_of_node);
}
