#include "graph/passes/cut/cut_twins.h"

#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/passes/copy_graph.h"

typedef struct twin {
    uint32_t stage;
    pen_node_id node; // in the copy
    uint32_t next;    // of the same node, PEN_ID_NONE ends
} twin;

typedef struct twins_builder {
    const cut_plan *plan;
    pen_graph_copy copy;
    uint32_t *first; // [node_count] of the twins of a node
    twin *twins;
    uint32_t twin_count;
    uint32_t twin_limit;
    bool is_dry; // counts only
} twins_builder;

static const pen_node *twins_node(const twins_builder *b, uint32_t node) {
    return pen_graph_node(b->plan->graph, (pen_node_id){node});
}

static bool twins_may_repeat(const twins_builder *b, const pen_node *node) {
    if (node->accumulates || node->op->is_random) return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value *value = pen_graph_value(b->plan->graph, node->outputs[i]);
        if (pen_value_is(value->replaces)) return false;
    }
    return true;
}

// The node whose twin in `stage` a backward node there reads as its input; PEN_ID_NONE: it reads
// the input itself.
static uint32_t twins_of_input(const twins_builder *b, pen_value_id input, uint32_t stage) {
    if (!pen_value_is(input)) return PEN_ID_NONE;
    const pen_node_id maker = pen_graph_value(b->plan->graph, input)->producer;
    if (!pen_node_is(maker) || !cut_is_backward(b->plan->classes[maker.index])) return PEN_ID_NONE;
    if (cut_stage(b->plan, maker.index) >= stage) return PEN_ID_NONE;
    return twins_may_repeat(b, twins_node(b, maker.index)) ? maker.index : PEN_ID_NONE;
}

static uint32_t twins_find(const twins_builder *b, uint32_t node, uint32_t stage) {
    uint32_t t = b->first[node];
    PEN_ASSERT(b->twins != NULL || t == PEN_ID_NONE);
    while (t != PEN_ID_NONE && b->twins[t].stage != stage) {
        t = b->twins[t].next;
    }
    return t;
}

static void twins_remember(twins_builder *b, uint32_t node, uint32_t stage) {
    b->twins[b->twin_count] = (twin){stage, PEN_NODE_NONE, b->first[node]};
    b->first[node] = b->twin_count++;
}

// The operands of a node, or its twin, in `stage`. Their twins are there.
static pen_status twins_inputs(const twins_builder *b, const pen_node *node, uint32_t stage,
                               pen_value_id **out_inputs) {
    PEN_TRY(PEN_NEW(b->plan->scratch, node->input_count, out_inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value_id input = node->inputs[i];
        (*out_inputs)[i] = pen_value_is(input) ? b->copy.values[input.index] : PEN_VALUE_NONE;
        const uint32_t of = twins_of_input(b, input, stage);
        if (of == PEN_ID_NONE) continue;
        const pen_node_id made = b->twins[twins_find(b, of, stage)].node;
        const uint32_t output = pen_graph_value(b->plan->graph, input)->producer_output;
        (*out_inputs)[i] = pen_graph_node(b->copy.to, made)->outputs[output];
    }
    return PEN_OK;
}

// A twin reads what the reader's own stage has, twins of its operands among it.
static pen_status twins_add(twins_builder *b, uint32_t n, uint32_t stage) {
    const pen_node *node = twins_node(b, n);
    pen_node_spec spec;
    pen_value_id *inputs;
    const char *name;
    PEN_TRY(pen_arena_format(b->plan->scratch, &name, "%s/twin", node->name));
    PEN_TRY(pen_graph_copy_spec(&b->copy, (pen_node_id){n}, node->op, name, &spec));
    spec.gradient_of = PEN_NODE_NONE;
    PEN_TRY(pen_graph_copy_attributes(&b->copy, (pen_node_id){n}, &spec));
    PEN_TRY(twins_inputs(b, node, stage, &inputs));
    const char **names;
    PEN_TRY(PEN_NEW(b->plan->scratch, node->output_count, &names));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        PEN_TRY(pen_arena_format(b->plan->scratch, &names[i], "%s/twin",
                                 pen_value_name(b->plan->graph, node->outputs[i])));
    }
    spec.inputs = inputs;
    spec.input_count = node->input_count;
    spec.output_names = names;
    spec.output_count = node->output_count;
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(b->copy.to, &spec, &made));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value *value = pen_graph_value(b->plan->graph, node->outputs[i]);
        const pen_value_id output = pen_graph_node(b->copy.to, made)->outputs[i];
        pen_graph_set_type(b->copy.to, output, &value->type);
        pen_graph_set_layout(b->copy.to, output, value->layout);
    }
    b->twins[twins_find(b, n, stage)].node = made;
    return PEN_OK;
}

// Twins of what a node reads, and of what those read, lowest first: a stack of nodes whose inputs
// are looked at before they are made themselves.
typedef struct twins_frame {
    uint32_t node;
    uint32_t input;
} twins_frame;

// A stack of its own, since chains of twins may be long.
static pen_status twins_add_all(twins_builder *b, uint32_t reader, twins_frame *stack) {
    const uint32_t stage = cut_stage(b->plan, reader);
    uint32_t depth = 1;
    stack[0] = (twins_frame){reader, 0};
    while (depth > 0) {
        twins_frame *top = &stack[depth - 1];
        const pen_node *node = twins_node(b, top->node);
        if (top->input == node->input_count) {
            depth--;
            if (depth > 0 && !b->is_dry) PEN_TRY(twins_add(b, top->node, stage));
            continue;
        }
        const uint32_t of = twins_of_input(b, node->inputs[top->input++], stage);
        if (of == PEN_ID_NONE || twins_find(b, of, stage) != PEN_ID_NONE) continue;
        if (b->twin_count == b->twin_limit) {
            twin *more;
            const uint32_t limit = 2 * b->twin_limit + 16;
            PEN_TRY(PEN_NEW(b->plan->scratch, limit, &more));
            if (b->twin_count > 0) memcpy(more, b->twins, b->twin_count * sizeof *more);
            b->twins = more;
            b->twin_limit = limit;
        }
        twins_remember(b, of, stage);
        stack[depth++] = (twins_frame){of, 0};
    }
    return PEN_OK;
}

// Walks all nodes, in order of their ids. A stack is at most as deep as there are nodes.
static pen_status twins_walk(twins_builder *b) {
    twins_frame *stack;
    PEN_TRY(PEN_NEW(b->plan->scratch, (size_t)b->plan->node_count + 1, &stack));
    PEN_TRY(PEN_NEW(b->plan->scratch, b->plan->node_count, &b->first));
    memset(b->first, 0xff, b->plan->node_count * sizeof *b->first);
    b->twin_count = 0;
    for (uint32_t n = 0; n < b->plan->node_count; n++) {
        const bool reads = cut_is_backward(b->plan->classes[n]);
        if (reads) PEN_TRY(twins_add_all(b, n, stack));
        if (b->is_dry) continue;
        pen_value_id *inputs;
        const uint32_t stage = reads ? cut_stage(b->plan, n) : 0; // below which is nothing
        PEN_TRY(twins_inputs(b, twins_node(b, n), stage, &inputs));
        PEN_TRY(pen_graph_copy_node_as(&b->copy, (pen_node_id){n}, inputs, NULL));
    }
    return PEN_OK;
}

// ---- the request about the new graph

static pen_status twins_move_values(const twins_builder *b, uint32_t count,
                                    const pen_value_id **values) {
    pen_value_id *moved;
    PEN_TRY(PEN_NEW(b->plan->scratch, count, &moved));
    for (uint32_t i = 0; i < count; i++) {
        const pen_value_id old = (*values)[i];
        moved[i] = pen_value_is(old) ? b->copy.values[old.index] : PEN_VALUE_NONE;
    }
    *values = moved;
    return PEN_OK;
}

// Twins are in the copy right before the node that they were made for, and run right before it.
// Those that read them, too, have higher ids: the order is one by ids within the backward pass.
static pen_status twins_order(const twins_builder *b, pen_cut_request *request) {
    const uint32_t count = pen_graph_node_count(b->copy.to);
    uint32_t *stages;
    pen_node_id *order;
    bool *is_placed;
    PEN_TRY(PEN_NEW(b->plan->scratch, count, &stages));
    PEN_TRY(PEN_NEW(b->plan->scratch, count, &is_placed));
    PEN_TRY(PEN_NEW(b->plan->scratch, (size_t)request->order_count + b->twin_count, &order));
    for (uint32_t n = 0; n < b->plan->node_count; n++) {
        if (!pen_node_is(b->copy.nodes[n])) continue;
        stages[b->copy.nodes[n].index] = cut_stage(b->plan, n);
        is_placed[b->copy.nodes[n].index] = true; // not a twin
    }
    for (uint32_t t = 0; t < b->twin_count; t++) {
        stages[b->twins[t].node.index] = b->twins[t].stage;
    }
    uint32_t placed = 0;
    for (uint32_t p = 0; p < request->order_count; p++) {
        const uint32_t n = b->copy.nodes[request->order[p].index].index;
        uint32_t first = n; // twins that were made for a node are right before it
        while (first > 0 && !is_placed[first - 1]) {
            first--;
        }
        for (uint32_t t = first; t < n; t++) {
            order[placed++] = (pen_node_id){t};
        }
        order[placed++] = (pen_node_id){n};
    }
    PEN_ASSERT(placed == request->order_count + b->twin_count);
    request->order = order;
    request->order_count = placed;
    request->stage_of_node = stages;
    return PEN_OK;
}

pen_status pen_cut_twins_make(const cut_plan *plan, pen_cut_request *twinned,
                              uint32_t *out_twin_count) {
    twins_builder b = {.plan = plan, .is_dry = true};
    PEN_TRY(twins_walk(&b));
    *out_twin_count = b.twin_count;
    if (b.twin_count == 0) return PEN_OK;
    b.is_dry = false;
    PEN_TRY(pen_graph_copy_begin(plan->graph, &b.copy));
    PEN_TRY(twins_walk(&b));
    PEN_TRY(pen_graph_copy_end(&b.copy));
    *twinned = *plan->request;
    PEN_TRY(twins_order(&b, twinned));
    PEN_TRY(twins_move_values(&b, twinned->fed_count, &twinned->fed));
    PEN_TRY(twins_move_values(&b, twinned->kept_count, &twinned->kept));
    twinned->graph = b.copy.to;
    return PEN_OK;
}
