#include "graph/passes/shard/shard_layers.h"

#include "graph/op.h"
#include "graph/passes/shard/sharder.h"

bool pen_shard_can_cut(const pen_graph *graph, pen_node_id node) {
    return pen_shard_is_product(graph, node) || pen_shard_is_embedding(graph, node);
}

// The first that does a node does it.
static const shard_rule shard_rules[] = {
    pen_shard_product,   pen_shard_embedding, pen_shard_elementwise,   pen_shard_view,
    pen_shard_transpose, pen_shard_split,     pen_shard_pick,          pen_shard_dropout,
    pen_shard_attention, pen_shard_accuracy,  pen_shard_cross_entropy,
};

// A node that no rule takes reads all that it reads whole.
static pen_status shard_copy_node(sharder *s, pen_node_id id) {
    const pen_node *node = pen_graph_node(s->from, id);
    pen_value_id whole;
    if (!pen_graph_copy_computes(s->from, id)) return PEN_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        PEN_TRY(pen_shard_whole(s, node->inputs[i], &whole));
    }
    return pen_graph_copy_node(&s->copy, id);
}

static pen_status shard_node_of(sharder *s, pen_node_id id) {
    bool is_done = false;
    s->at = id;
    for (size_t r = 0; r < sizeof shard_rules / sizeof *shard_rules && !is_done; r++) {
        PEN_TRY(shard_rules[r](s, id, &is_done));
    }
    return is_done ? PEN_OK : shard_copy_node(s, id);
}

// Parameters wait until it is known whether they are cut; the rest is brought over at once.
static pen_status shard_begin(sharder *s) {
    const uint32_t value_count = pen_graph_value_count(s->from);
    bool *waits;
    PEN_TRY(PEN_NEW(s->arena, value_count, &waits));
    PEN_TRY(PEN_NEW(s->arena, value_count, &s->pieces));
    PEN_TRY(PEN_NEW(s->arena, value_count, &s->whole_reader));
    for (uint32_t v = 0; v < value_count; v++) {
        waits[v] = pen_graph_value(s->from, (pen_value_id){v})->kind == PEN_VALUE_PARAMETER;
        s->whole_reader[v] = PEN_NODE_NONE;
    }
    return pen_graph_copy_begin_without(s->from, waits, &s->copy);
}

// What is asked for, the outputs, and parameters that nothing reads are there whole.
static pen_status shard_finish(sharder *s, uint32_t kept_count, const pen_value_id *kept) {
    pen_value_id whole;
    for (uint32_t i = 0; i < kept_count; i++) {
        PEN_TRY(pen_shard_whole(s, kept[i], &whole));
    }
    for (uint32_t i = 0; i < pen_graph_output_count(s->from); i++) {
        PEN_TRY(pen_shard_whole(s, pen_graph_output(s->from, i), &whole));
    }
    for (uint32_t v = 0; v < pen_graph_value_count(s->from); v++) {
        if (pen_graph_value(s->from, (pen_value_id){v})->kind != PEN_VALUE_PARAMETER) continue;
        if (s->pieces[v].cut.ways > 0) continue;
        PEN_TRY(pen_shard_whole(s, (pen_value_id){v}, &whole));
    }
    return pen_graph_copy_end(&s->copy);
}

pen_status pen_shard_nodes(const pen_graph *graph, const uint32_t *ways, uint32_t kept_count,
                           const pen_value_id *kept, pen_graph **out_graph,
                           const pen_value_id **out_values) {
    sharder s = {.from = graph, .arena = pen_graph_arena(graph), .ways = ways};
    PEN_TRY(pen_readers_build(graph, kept_count, kept, s.arena, &s.readers));
    PEN_TRY(shard_begin(&s));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        PEN_TRY(shard_node_of(&s, (pen_node_id){n}));
    }
    PEN_TRY(shard_finish(&s, kept_count, kept));
    *out_graph = s.copy.to;
    *out_values = s.copy.values;
    return PEN_OK;
}
