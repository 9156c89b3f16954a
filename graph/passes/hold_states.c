#include "graph/passes/hold_states.h"

#include "graph/graph.h"
#include "graph/node_parts.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/copy_graph.h"

typedef struct state_holder {
    const pen_graph *graph;
    pen_node_id *changer; // [value_count], the node that makes what replaces a state; NONE
    bool *is_held;        // [value_count], of states
    bool *is_read;        // [value_count], by a node, or as an output
    pen_value_id *held;   // [value_count], the copy of a state, in the new graph; NONE
    pen_graph_copy copy;
} state_holder;

// Whether input `i` of an op is in a mask of inputs.
static bool hold_is_in(uint64_t mask, uint32_t i) {
    return i < 64 && (mask >> i & 1) != 0;
}

// Whether what a node makes of a state by reading `input` may be written over it while it is read.
static bool hold_is_in_place(const state_holder *holder, const pen_node *node, uint32_t input) {
    const pen_value_id output = node->outputs[0];
    if (!pen_value_is(output) || !hold_is_in(node->op->in_place_inputs, input)) return false;
    return pen_value_same(pen_graph_value(holder->graph, output)->replaces, node->inputs[input]);
}

// Whether a node needs what a state was, and not the state itself.
static bool hold_is_wanted(const state_holder *holder, uint32_t n, uint32_t input) {
    const pen_node *node = pen_graph_node(holder->graph, (pen_node_id){n});
    if (!pen_value_is(node->inputs[input])) return false;
    const pen_node_id changer = holder->changer[node->inputs[input].index];
    if (!pen_node_is(changer)) return false;
    if (changer.index == n && hold_is_in_place(holder, node, input)) return false;
    return !pen_node_is_statistic(node, input);
}

static void hold_find_changers(state_holder *holder) {
    for (uint32_t v = 0; v < pen_graph_value_count(holder->graph); v++) {
        holder->changer[v] = PEN_NODE_NONE;
        holder->held[v] = PEN_VALUE_NONE;
    }
    for (uint32_t v = 0; v < pen_graph_value_count(holder->graph); v++) {
        const pen_value *value = pen_graph_value(holder->graph, (pen_value_id){v});
        if (pen_value_is(value->replaces)) holder->changer[value->replaces.index] = value->producer;
    }
}

// Adds a copy of a value of the new graph, called by the state that it has to do with.
static pen_status hold_add_copy(state_holder *holder, pen_value_id state, const char *suffix,
                                pen_value_id *value) {
    pen_graph *to = holder->copy.to;
    const pen_value *old = pen_graph_value(holder->graph, state);
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(to), &name, "%s/%s", old->name, suffix));
    pen_node_spec spec = pen_node_spec_of(PEN_OP(copy), name);
    spec.source = old->source;
    spec.output_count = 1;
    pen_node_spec_fill(&spec, PEN_INPUTS(*value), PEN_NO_ATTRIBUTES);
    PEN_TRY(pen_graph_add_simple(to, &spec, value));
    pen_graph_set_type(to, *value, &old->type);
    return PEN_OK;
}

// Marks the states that are to be held, and all that is read.
static void hold_find(state_holder *holder) {
    for (uint32_t n = 0; n < pen_graph_node_count(holder->graph); n++) {
        const pen_node *node = pen_graph_node(holder->graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            holder->is_read[node->inputs[i].index] = true;
            if (hold_is_wanted(holder, n, i)) holder->is_held[node->inputs[i].index] = true;
        }
    }
    for (uint32_t i = 0; i < pen_graph_output_count(holder->graph); i++) {
        holder->is_read[pen_graph_output(holder->graph, i).index] = true;
    }
}

static pen_status hold_copy_node(state_holder *holder, uint32_t n) {
    const pen_node *node = pen_graph_node(holder->graph, (pen_node_id){n});
    pen_value_id *inputs;
    PEN_TRY(PEN_NEW(pen_graph_arena(holder->graph), node->input_count, &inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = PEN_VALUE_NONE;
        if (!pen_value_is(node->inputs[i])) continue;
        const uint32_t v = node->inputs[i].index;
        inputs[i] = hold_is_wanted(holder, n, i) ? holder->held[v] : holder->copy.values[v];
    }
    return pen_graph_copy_node_as(&holder->copy, (pen_node_id){n}, inputs, NULL);
}

// What a node makes of states is copied there where others read it, too, or it is a view.
static pen_status hold_changes(state_holder *holder, uint32_t n) {
    const pen_node *node = pen_graph_node(holder->graph, (pen_node_id){n});
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value_id output = node->outputs[i];
        const pen_value_id state = pen_graph_value(holder->graph, output)->replaces;
        pen_value_id value = holder->copy.values[output.index];
        if (!pen_value_is(state) || (!holder->is_read[output.index] && !node->op->is_view)) {
            continue;
        }
        pen_graph_set_replaces(holder->copy.to, value, PEN_VALUE_NONE);
        PEN_TRY(hold_add_copy(holder, state, "changed", &value));
        pen_graph_set_replaces(holder->copy.to, value, holder->copy.values[state.index]);
    }
    return PEN_OK;
}

// Copies of states come first: they read nothing that is computed.
pen_status pen_hold_states(const pen_graph *graph, uint32_t kept_count, const pen_value_id *kept,
                           pen_graph **out_graph, const pen_value_id **out_map) {
    state_holder holder = {.graph = graph};
    const uint32_t value_count = pen_graph_value_count(graph);
    pen_arena *arena = pen_graph_arena(graph);
    PEN_TRY(PEN_NEW(arena, value_count, &holder.changer));
    PEN_TRY(PEN_NEW(arena, value_count, &holder.is_held));
    PEN_TRY(PEN_NEW(arena, value_count, &holder.is_read));
    PEN_TRY(PEN_NEW(arena, value_count, &holder.held));
    for (uint32_t i = 0; i < kept_count; i++) {
        if (pen_value_is(kept[i])) holder.is_read[kept[i].index] = true;
    }
    hold_find_changers(&holder);
    hold_find(&holder);
    PEN_TRY(pen_graph_copy_begin(graph, &holder.copy));
    for (uint32_t v = 0; v < value_count; v++) {
        if (!holder.is_held[v]) continue;
        holder.held[v] = holder.copy.values[v];
        PEN_TRY(hold_add_copy(&holder, (pen_value_id){v}, "held", &holder.held[v]));
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        if (!pen_graph_copy_computes(graph, (pen_node_id){n})) continue;
        PEN_TRY(hold_copy_node(&holder, n));
        PEN_TRY(hold_changes(&holder, n));
    }
    PEN_TRY(pen_graph_copy_end(&holder.copy));
    *out_graph = holder.copy.to;
    *out_map = holder.copy.values;
    return PEN_OK;
}

pen_status pen_keep_states(pen_graph *graph) {
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        pen_graph_set_replaces(graph, (pen_value_id){v}, PEN_VALUE_NONE);
    }
    return PEN_OK;
}
