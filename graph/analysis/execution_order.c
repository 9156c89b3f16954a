#include "graph/analysis/execution_order.h"

#include "base/sets/id_heap.h"
#include "graph/analysis/readers.h"
#include "graph/graph.h"
#include "graph/op.h"

typedef struct order_builder {
    const pen_graph *graph;
    pen_execution_order order;
    bool *ready;            // [value_count]: computed, or there from the start
    uint32_t *readers_left; // [value_count]: of persistent values, nodes that have yet to run
    uint32_t *home;         // [value_count]: the value whose storage it shares, through views
    bool *placed;           // [node_count]; dead nodes count as placed
    // for updates that mix with other nodes:
    bool mixes;
    pen_readers readers;
    uint32_t *replacer;     // [value_count]: the update that replaces it; PEN_ID_NONE
    bool *queued;           // [node_count]: waits in one of the rounds, or did
    pen_id_heap round;      // updates that may run after the node at hand
    pen_id_heap next_round; // after the next one
    uint32_t round_at;      // the update of the round that is being placed, or 0
} order_builder;

// Marks nodes on which neither a kept nor a replacing value depends as placed.
static pen_status order_drop_dead(order_builder *builder, const pen_execution_options *options,
                                  pen_arena *arena) {
    bool *wanted;
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(builder->graph), &wanted));
    for (uint32_t i = 0; i < options->kept_count; i++) {
        wanted[options->kept[i].index] = true;
    }
    for (uint32_t n = pen_graph_node_count(builder->graph); n-- > 0;) {
        const pen_node *node = pen_graph_node(builder->graph, (pen_node_id){n});
        bool live = false;
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            const pen_value *value = pen_graph_value(builder->graph, node->outputs[i]);
            if (!pen_node_is(value->producer)) continue; // folded into a constant
            live |= wanted[node->outputs[i].index] || pen_value_is(value->replaces);
        }
        builder->placed[n] = !live;
        for (uint32_t i = 0; live && i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) wanted[node->inputs[i].index] = true;
        }
    }
    return PEN_OK;
}

// Views count as readers of what they look at, not of themselves: memory is free when the last
// reader of the value below is done.
static pen_status order_init(order_builder *builder, const pen_execution_options *options,
                             pen_arena *arena) {
    const uint32_t value_count = pen_graph_value_count(builder->graph);
    const uint32_t node_count = pen_graph_node_count(builder->graph);
    PEN_TRY(PEN_NEW(arena, node_count, &builder->order.nodes));
    PEN_TRY(PEN_NEW(arena, value_count, &builder->ready));
    PEN_TRY(PEN_NEW(arena, value_count, &builder->readers_left));
    PEN_TRY(PEN_NEW(arena, value_count, &builder->home));
    PEN_TRY(PEN_NEW(arena, node_count, &builder->placed));
    PEN_TRY(order_drop_dead(builder, options, arena));
    for (uint32_t v = 0; v < value_count; v++) {
        builder->home[v] = v;
        builder->ready[v] =
            pen_graph_value(builder->graph, (pen_value_id){v})->kind != PEN_VALUE_COMPUTED;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        const pen_node *node = pen_graph_node(builder->graph, (pen_node_id){n});
        if (node->op->is_view) {
            builder->home[node->outputs[0].index] = builder->home[node->inputs[0].index];
        }
        if (builder->placed[n]) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            builder->readers_left[builder->home[node->inputs[i].index]] += 1;
        }
    }
    return PEN_OK;
}

// How often the node itself reads the storage of `value`.
static uint32_t order_own_reads(const order_builder *builder, const pen_node *node,
                                pen_value_id value) {
    uint32_t reads = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        reads += builder->home[node->inputs[i].index] == builder->home[value.index];
    }
    return reads;
}

// Inputs computed, and nobody else left to read what it overwrites.
static bool order_can_run(const order_builder *builder, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (pen_value_is(node->inputs[i]) && !builder->ready[node->inputs[i].index]) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value_id old = pen_graph_value(builder->graph, node->outputs[i])->replaces;
        if (!pen_value_is(old)) continue;
        if (builder->readers_left[old.index] > order_own_reads(builder, node, old)) return false;
    }
    return true;
}

// An update that may run now joins those that wait; where a later one of the same round made it
// ready, it waits for the next round.
static void order_wake(order_builder *builder, uint32_t n) {
    if (builder->placed[n] || builder->queued[n]) return;
    const pen_node *node = pen_graph_node(builder->graph, (pen_node_id){n});
    if (node->role != PEN_ROLE_UPDATE || !order_can_run(builder, node)) return;
    builder->queued[n] = true;
    pen_id_heap_push(n < builder->round_at ? &builder->next_round : &builder->round, n);
}

static void order_wake_readers(order_builder *builder, uint32_t value) {
    for (uint32_t i = builder->readers.first[value]; i < builder->readers.first[value + 1]; i++) {
        order_wake(builder, builder->readers.nodes[i].index);
    }
}

static void order_place(order_builder *builder, pen_node_id id) {
    const pen_node *node = pen_graph_node(builder->graph, id);
    builder->order.nodes[builder->order.count++] = id;
    builder->placed[id.index] = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const uint32_t home = builder->home[node->inputs[i].index];
        builder->readers_left[home] -= 1;
        if (builder->mixes && builder->replacer[home] != PEN_ID_NONE) {
            order_wake(builder, builder->replacer[home]);
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        builder->ready[node->outputs[i].index] = true;
        if (builder->mixes) order_wake_readers(builder, node->outputs[i].index);
    }
}

// Places the updates that wait, and those that become ready by that, in the order of their ids.
static void order_place_updates(order_builder *builder) {
    while (builder->round.count > 0) {
        builder->round_at = pen_id_heap_pop(&builder->round);
        order_place(builder, (pen_node_id){builder->round_at});
    }
    builder->round_at = 0;
    const pen_id_heap done = builder->round;
    builder->round = builder->next_round;
    builder->next_round = done;
}

// Finds whom to wake, and wakes those that nothing keeps from running at all.
static pen_status order_begin_rounds(order_builder *builder, pen_arena *arena) {
    const uint32_t value_count = pen_graph_value_count(builder->graph);
    const uint32_t node_count = pen_graph_node_count(builder->graph);
    PEN_TRY(pen_readers_build(builder->graph, 0, NULL, arena, &builder->readers));
    PEN_TRY(PEN_NEW(arena, value_count, &builder->replacer));
    PEN_TRY(PEN_NEW(arena, node_count, &builder->queued));
    PEN_TRY(PEN_NEW(arena, node_count, &builder->round.ids));
    PEN_TRY(PEN_NEW(arena, node_count, &builder->next_round.ids));
    builder->mixes = true;
    for (uint32_t v = 0; v < value_count; v++) {
        builder->replacer[v] = PEN_ID_NONE;
    }
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value *value = pen_graph_value(builder->graph, (pen_value_id){v});
        if (!pen_value_is(value->replaces)) continue;
        builder->replacer[value->replaces.index] = value->producer.index;
    }
    for (uint32_t n = 0; n < node_count; n++) {
        order_wake(builder, n);
    }
    return PEN_OK;
}

// Forward and backward nodes come in the graph's order, and updates last, or, with mix_updates,
// each as soon as all that read the old parameter are done, which frees its gradient.
pen_status pen_execution_order_build(const pen_graph *graph, const pen_execution_options *options,
                                     pen_arena *arena, pen_execution_order *out_order) {
    order_builder builder = {.graph = graph};
    PEN_TRY(order_init(&builder, options, arena));
    if (options->mix_updates) PEN_TRY(order_begin_rounds(&builder, arena));
    const uint32_t node_count = pen_graph_node_count(graph);
    for (uint32_t n = 0; n < node_count; n++) {
        const bool is_update = pen_graph_node(graph, (pen_node_id){n})->role == PEN_ROLE_UPDATE;
        if (is_update || builder.placed[n]) continue;
        order_place(&builder, (pen_node_id){n});
        order_place_updates(&builder);
    }
    builder.order.update_first = builder.order.count;
    for (uint32_t n = 0; n < node_count; n++) {
        if (!builder.placed[n]) order_place(&builder, (pen_node_id){n});
    }
    if (options->mix_updates) builder.order.update_first = builder.order.count;
    *out_order = builder.order;
    return PEN_OK;
}
