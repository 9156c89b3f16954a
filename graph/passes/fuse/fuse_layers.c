#include "graph/passes/fuse/fuse_layers.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/passes/copy_graph.h"

static const pen_fuse_rule fuse_rules[] = {
    pen_fuse_layer_norm, pen_fuse_affine_norm, pen_fuse_group_norm,
    pen_fuse_row_norm,   pen_fuse_gelu,
};

typedef struct layer_fuser {
    const pen_graph *graph;
    pen_readers readers;
    const pen_fuse_match **plans; // [node_count]: the match that ends there
    bool *is_taken;               // [node_count]: part of a match
    uint32_t found_count;
    pen_graph_copy copy;
} layer_fuser;

static bool fuser_is_free(const layer_fuser *f, const pen_fuse_match *match) {
    for (uint32_t i = 0; i < match->node_count; i++) {
        if (!match->passes[i] && f->is_taken[match->nodes[i].index]) return false;
    }
    return true;
}

static pen_status fuser_take(layer_fuser *f, const pen_fuse_match *match) {
    pen_fuse_match *plan;
    PEN_TRY(PEN_NEW(pen_graph_arena(f->graph), 1, &plan));
    *plan = *match;
    f->plans[match->last.index] = plan;
    for (uint32_t i = 0; i < match->node_count; i++) {
        if (!match->passes[i]) f->is_taken[match->nodes[i].index] = true;
    }
    f->found_count += 1;
    return PEN_OK;
}

static pen_status fuser_find(layer_fuser *f, pen_node_id anchor) {
    if (!pen_graph_copy_computes(f->graph, anchor)) return PEN_OK;
    for (size_t i = 0; i < sizeof fuse_rules / sizeof *fuse_rules; i++) {
        pen_fuse_match match = pen_fuse_match_begin(f->graph, &f->readers);
        if (!fuse_rules[i](&match, anchor)) continue;
        if (!pen_element_is_float(pen_fuse_type(&match, match.inputs[0])->element)) continue;
        if (!pen_fuse_is_closed(&match) || !fuser_is_free(f, &match)) continue;
        return fuser_take(f, &match);
    }
    return PEN_OK;
}

// The new node keeps name and value of the last one, so that readers and messages find it.
static pen_status fuser_make(layer_fuser *f, const pen_fuse_match *match) {
    const pen_value_id output = pen_fuse_output(match, match->last);
    pen_value_id inputs[PEN_FUSE_OPERAND_LIMIT];
    for (uint32_t i = 0; i < match->input_count; i++) {
        inputs[i] = f->copy.values[match->inputs[i].index];
        PEN_ASSERT(pen_value_is(inputs[i]));
    }
    const char *names[] = {pen_value_name(f->graph, output)};
    pen_node_spec spec;
    PEN_TRY(pen_graph_copy_spec(&f->copy, match->last, match->op,
                                pen_node_name(f->graph, match->last), &spec));
    spec.inputs = inputs;
    spec.input_count = match->input_count;
    spec.output_count = 1;
    spec.output_names = names;
    spec.attributes = match->attributes;
    spec.attribute_count = match->attribute_count;
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(f->copy.to, &spec, &made));
    f->copy.nodes[match->last.index] = made;
    pen_graph_copy_value(&f->copy, output, pen_graph_node(f->copy.to, made)->outputs[0]);
    return PEN_OK;
}

// If nothing is found, the graph comes back as it is.
pen_status pen_fuse_layers(pen_graph *graph, uint32_t kept_count, const pen_value_id *kept,
                           pen_graph **out_graph, const pen_value_id **out_values) {
    *out_graph = graph;
    *out_values = NULL;
    layer_fuser f = {.graph = graph};
    pen_arena *arena = pen_graph_arena(graph);
    const uint32_t node_count = pen_graph_node_count(graph);
    PEN_TRY(pen_readers_build(graph, kept_count, kept, arena, &f.readers));
    PEN_TRY(PEN_NEW(arena, node_count, &f.plans));
    PEN_TRY(PEN_NEW(arena, node_count, &f.is_taken));
    for (uint32_t n = 0; n < node_count; n++) {
        PEN_TRY(fuser_find(&f, (pen_node_id){n}));
    }
    if (f.found_count == 0) return PEN_OK;
    PEN_TRY(pen_graph_copy_begin(graph, &f.copy));
    for (uint32_t n = 0; n < node_count; n++) {
        if (f.plans[n] != NULL) {
            PEN_TRY(fuser_make(&f, f.plans[n]));
        } else {
            PEN_TRY(pen_graph_copy_node(&f.copy, (pen_node_id){n}));
        }
    }
    PEN_TRY(pen_graph_copy_end(&f.copy));
    *out_graph = f.copy.to;
    *out_values = f.copy.values;
    return PEN_OK;
}
