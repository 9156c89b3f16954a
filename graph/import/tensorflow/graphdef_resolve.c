#include "graph/import/tensorflow/graphdef_resolve.h"

#include <string.h>

#define RESOLVE_DEAD(output) ((uint8_t)(1u << ((output) > 0 ? 1 : 0))) // bit 0: output 0

typedef struct resolver {
    pen_graphdef_flat *flat;
    uint32_t count;
    uint32_t *order; // of all nodes that come before the outputs
    uint32_t order_count;
    uint8_t *dead; // [count], which outputs
    bool *needed;  // [count]
    uint32_t *merged;
} resolver;

uint32_t pen_graphdef_data_inputs(const pen_graphdef_node *node) {
    uint32_t count = 0;
    while (count < node->input_count && !node->inputs[count].is_control) {
        count++;
    }
    return count;
}

static bool resolve_is(const pen_graphdef_node *node, const char *op) {
    return strcmp(node->op, op) == 0;
}

bool pen_graphdef_reads_first(const pen_graphdef_node *node) {
    return resolve_is(node, "Switch") || resolve_is(node, "RefSwitch");
}

static bool resolve_is_merge(const pen_graphdef_node *node) {
    return resolve_is(node, "Merge") || resolve_is(node, "RefMerge");
}

static pen_status resolve_find(const resolver *r, const char *reader,
                               const pen_graphdef_input *input, uint32_t *out_node) {
    *out_node = pen_graphdef_flat_find(r->flat, input->node);
    if (*out_node != PEN_NAME_MAP_NONE) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "%s%.100s%s reads '%.100s', which is no node of the graph",
                     reader[0] != '\0' ? "node '" : "the signature", reader,
                     reader[0] != '\0' ? "'" : "", input->node);
}

// ---- order: depth first, without recursion

typedef struct resolve_frame {
    uint32_t node;
    uint32_t next; // input
} resolve_frame;

// Depth first with a stack of its own: a graph may be deeper than a thread's stack.
static pen_status resolve_walk(resolver *r, uint32_t root, uint8_t *state, resolve_frame *stack) {
    uint32_t depth = 0;
    if (state[root] == 2) return PEN_OK;
    stack[depth++] = (resolve_frame){root, 0};
    state[root] = 1;
    while (depth > 0) {
        resolve_frame *frame = &stack[depth - 1];
        const pen_graphdef_node *node = &r->flat->nodes[frame->node];
        if (frame->next == node->input_count) {
            state[frame->node] = 2;
            r->order[r->order_count++] = frame->node;
            depth--;
            continue;
        }
        const pen_graphdef_input *input = &node->inputs[frame->next++];
        uint32_t read;
        if (input->is_control && pen_graphdef_flat_find(r->flat, input->node) == UINT32_MAX) {
            continue; // it was pruned by whoever froze the graph
        }
        PEN_TRY(resolve_find(r, node->name, input, &read));
        if (state[read] == 1) {
            return pen_error(PEN_UNSUPPORTED,
                             "node '%.100s' depends on itself, through '%.100s': loops (while) are "
                             "not possible",
                             r->flat->nodes[read].name, node->name);
        }
        if (state[read] == 2) continue;
        state[read] = 1;
        stack[depth++] = (resolve_frame){read, 0}; // each node is on the stack once
    }
    return PEN_OK;
}

// ---- what never runs

static bool resolve_input_is_dead(const resolver *r, const pen_graphdef_input *input) {
    const uint32_t read = pen_graphdef_flat_find(r->flat, input->node);
    if (read == PEN_NAME_MAP_NONE) return false;
    const uint8_t dead = r->dead[read];
    if (input->is_control) return dead == 3;
    return (dead & RESOLVE_DEAD(input->output)) != 0;
}

// What a Switch does not choose is dead, and so is all that reads it, up to a Merge.
static pen_status resolve_deadness(resolver *r, uint32_t n) {
    const pen_graphdef_node *node = &r->flat->nodes[n];
    const bool is_merge = resolve_is_merge(node);
    uint32_t dead_count = 0, alive = UINT32_MAX, alive_count = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (resolve_input_is_dead(r, &node->inputs[i])) {
            dead_count++;
        } else if (!node->inputs[i].is_control) {
            alive = i;
            alive_count++;
        }
    }
    r->merged[n] = is_merge && alive_count == 1 ? alive : UINT32_MAX;
    if (is_merge ? alive_count == 0 && dead_count > 0 : dead_count > 0) {
        r->dead[n] = 3;
        return PEN_OK;
    }
    if (!pen_graphdef_reads_first(node) || pen_graphdef_data_inputs(node) < 2) return PEN_OK;
    pen_graphdef_truth truth;
    PEN_TRY(pen_graphdef_flat_truth(r->flat, &node->inputs[1], &truth));
    if (truth == PEN_GRAPHDEF_TRUE) r->dead[n] = RESOLVE_DEAD(0);
    if (truth == PEN_GRAPHDEF_FALSE) r->dead[n] = RESOLVE_DEAD(1);
    return PEN_OK;
}

// ---- what is needed

static void resolve_need(resolver *r, const pen_graphdef_input *input) {
    const uint32_t read = pen_graphdef_flat_find(r->flat, input->node);
    if (read != PEN_NAME_MAP_NONE) r->needed[read] = true;
}

static void resolve_need_inputs(resolver *r, uint32_t n) {
    const pen_graphdef_node *node = &r->flat->nodes[n];
    uint32_t first = 0, end = pen_graphdef_data_inputs(node);
    if (r->merged[n] != UINT32_MAX) {
        first = r->merged[n];
        end = first + 1;
    } else if (pen_graphdef_reads_first(node) && end > 1 && r->dead[n] != 0) {
        end = 1;
    }
    for (uint32_t i = first; i < end; i++) {
        resolve_need(r, &node->inputs[i]);
    }
}

static pen_status resolve_init(resolver *r) {
    pen_arena *arena = r->flat->arena;
    PEN_TRY(PEN_NEW(arena, r->count, &r->order));
    PEN_TRY(PEN_NEW(arena, r->count, &r->dead));
    PEN_TRY(PEN_NEW(arena, r->count, &r->needed));
    return PEN_NEW(arena, r->count, &r->merged);
}

// An order of what the outputs need, without the branches that are never taken.
pen_status pen_graphdef_resolve(pen_graphdef_flat *flat, const pen_graphdef_input *outputs,
                                uint32_t output_count, pen_graphdef_order *out_order) {
    resolver r = {.flat = flat, .count = flat->count};
    uint8_t *state;
    resolve_frame *stack;
    PEN_TRY(resolve_init(&r));
    PEN_TRY(PEN_NEW(flat->arena, r.count, &state));
    PEN_TRY(PEN_NEW(flat->arena, r.count, &stack));
    for (uint32_t i = 0; i < output_count; i++) {
        uint32_t node;
        PEN_TRY(resolve_find(&r, "", &outputs[i], &node));
        PEN_TRY(resolve_walk(&r, node, state, stack));
    }
    for (uint32_t i = 0; i < r.order_count; i++) {
        PEN_TRY(resolve_deadness(&r, r.order[i]));
    }
    for (uint32_t i = 0; i < output_count; i++) {
        resolve_need(&r, &outputs[i]);
    }
    for (uint32_t i = r.order_count; i-- > 0;) {
        if (r.needed[r.order[i]]) resolve_need_inputs(&r, r.order[i]);
    }
    pen_graphdef_order order = {.nodes = r.order, .merged = r.merged};
    for (uint32_t i = 0; i < r.order_count; i++) { // in place: the list only shrinks
        if (r.needed[r.order[i]]) order.nodes[order.count++] = r.order[i];
    }
    *out_order = order;
    return PEN_OK;
}
