#include "graph/passes/remove_dead.h"

#include "graph/graph.h"
#include "graph/passes/copy_graph.h"

// Whether some result of the node is live or replaces what persists. Folded results are constants:
// they need no node.
static bool dead_is_needed(const pen_graph *graph, pen_node_id id, const bool *live) {
    const pen_node *node = pen_graph_node(graph, id);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const pen_value_id output = node->outputs[i];
        if (!pen_value_is(output)) continue;
        const pen_value *value = pen_graph_value(graph, output);
        if (value->kind != PEN_VALUE_COMPUTED) continue;
        if (live[output.index] || pen_value_is(value->replaces)) return true;
    }
    return false;
}

// Marks what live values are computed from, walking nodes backwards.
static void dead_mark(const pen_graph *graph, bool *live) {
    for (uint32_t n = pen_graph_node_count(graph); n-- > 0;) {
        if (!dead_is_needed(graph, (pen_node_id){n}, live)) continue;
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) live[node->inputs[i].index] = true;
        }
    }
}

// A new graph of what `live` values, marked to begin with, are computed from. Inputs, parameters
// and states stay even if unread: they are what the model promises.
static pen_status dead_rewrite(const pen_graph *graph, bool *live, pen_graph **out_graph,
                               const pen_value_id **out_values) {
    const uint32_t value_count = pen_graph_value_count(graph);
    bool *left_out;
    dead_mark(graph, live);
    // whatever is not computed stays, but for constants that nobody reads
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), value_count, &left_out));
    for (uint32_t i = 0; i < value_count; i++) {
        const pen_value_kind kind = pen_graph_value(graph, (pen_value_id){i})->kind;
        left_out[i] = kind == PEN_VALUE_CONSTANT && !live[i];
    }
    pen_graph_copy copy;
    PEN_TRY(pen_graph_copy_begin_without(graph, left_out, &copy));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        if (dead_is_needed(graph, (pen_node_id){n}, live)) {
            PEN_TRY(pen_graph_copy_node(&copy, (pen_node_id){n}));
        }
    }
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        const pen_value_id output = copy.values[pen_graph_output(graph, i).index];
        if (pen_value_is(output)) PEN_TRY(pen_graph_add_output(copy.to, output));
    }
    *out_graph = copy.to;
    *out_values = copy.values;
    return PEN_OK;
}

static pen_status dead_live_new(const pen_graph *graph, uint32_t kept_count,
                                const pen_value_id *kept, bool **out_live) {
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), pen_graph_value_count(graph), out_live));
    for (uint32_t i = 0; i < kept_count; i++) {
        (*out_live)[kept[i].index] = true;
    }
    return PEN_OK;
}

pen_status pen_remove_dead(const pen_graph *graph, uint32_t kept_count, const pen_value_id *kept,
                           pen_graph **out_graph, const pen_value_id **out_values) {
    bool *live;
    PEN_TRY(dead_live_new(graph, kept_count, kept, &live));
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        live[pen_graph_output(graph, i).index] = true;
    }
    return dead_rewrite(graph, live, out_graph, out_values);
}

pen_status pen_remove_idle(const pen_graph *graph, uint32_t kept_count, const pen_value_id *kept,
                           pen_graph **out_graph, const pen_value_id **out_values) {
    bool *live;
    PEN_TRY(dead_live_new(graph, kept_count, kept, &live));
    return dead_rewrite(graph, live, out_graph, out_values);
}
