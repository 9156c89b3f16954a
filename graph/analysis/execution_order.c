#include "graph/analysis/execution_order.h"

#include "graph/graph.h"
#include "graph/op.h"

typedef struct order_builder {
    const pen_graph *graph;
    pen_execution_order order;
    bool *ready;            // [value_count]: computed, or there from the start
    uint32_t *readers_left; // [value_count]: of persistent values, nodes that have yet to run
    uint32_t *home;         // [value_count]: the value whose storage it shares, through views
    bool *placed;           // [node_count]; dead nodes count as placed
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

static void order_place(order_builder *builder, pen_node_id id) {
    const pen_node *node = pen_graph_node(builder->graph, id);
    builder->order.nodes[builder->order.count++] = id;
    builder->placed[id.index] = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        builder->readers_left[builder->home[node->inputs[i].index]] -= 1;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) builder->ready[node->outputs[i].index] = true;
    }
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

static void order_place_updates(order_builder *builder, uint32_t *first_update) {
    const uint32_t node_count = pen_graph_node_count(builder->graph);
    while (*first_update < node_count && builder->placed[*first_update]) {
        *first_update += 1;
    }
    for (uint32_t n = *first_update; n < node_count; n++) {
        const pen_node *node = pen_graph_node(builder->graph, (pen_node_id){n});
        if (builder->placed[n] || node->role != PEN_ROLE_UPDATE) continue;
        if (order_can_run(builder, node)) order_place(builder, (pen_node_id){n});
    }
}

static uint32_t order_first_update(const pen_graph *graph) {
    uint32_t n = 0;
    while (n < pen_graph_node_count(graph) &&
           pen_graph_node(graph, (pen_node_id){n})->role != PEN_ROLE_UPDATE) {
        n++;
    }
    return n;
}

// Forward and backward nodes come in the graph's order, and updates last, or, with mix_updates,
// each as soon as all that read the old parameter are done, which frees its gradient.
pen_status pen_execution_order_build(const pen_graph *graph, const pen_execution_options *options,
                                     pen_arena *arena, pen_execution_order *out_order) {
    order_builder builder = {.graph = graph};
    PEN_TRY(order_init(&builder, options, arena));
    const uint32_t node_count = pen_graph_node_count(graph);
    uint32_t first_update = order_first_update(graph);
    for (uint32_t n = 0; n < node_count; n++) {
        const bool is_update = pen_graph_node(graph, (pen_node_id){n})->role == PEN_ROLE_UPDATE;
        if (is_update || builder.placed[n]) continue;
        order_place(&builder, (pen_node_id){n});
        if (options->mix_updates) order_place_updates(&builder, &first_update);
    }
    builder.order.update_first = builder.order.count;
    for (uint32_t n = 0; n < node_count; n++) {
        if (!builder.placed[n]) order_place(&builder, (pen_node_id){n});
    }
    if (options->mix_updates) builder.order.update_first = builder.order.count;
    *out_order = builder.order;
    return PEN_OK;
}
