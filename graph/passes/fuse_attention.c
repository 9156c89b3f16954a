#include "graph/passes/fuse_attention.h"

#include "graph/op.h"
#include "graph/passes/attention_pattern.h"
#include "graph/passes/copy_graph.h"

typedef struct attention_fuser {
    const pen_graph *graph;
    pen_readers readers;
    const pen_attention_match **matches; // [node_count], of the node that each stands for
    pen_graph_copy copy;
} attention_fuser;

// Marks what depends on parameters that are trained.
static pen_status attention_mark_trained(const pen_graph *graph, bool **out_trained) {
    bool *trained;
    PEN_TRY(PEN_NEW(pen_graph_arena(graph), pen_graph_value_count(graph), &trained));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        trained[v] = value->kind == PEN_VALUE_PARAMETER && value->trainable;
    }
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        const pen_node *node = pen_graph_node(graph, (pen_node_id){n});
        bool any = false;
        for (uint32_t i = 0; i < node->input_count; i++) {
            any |= pen_value_is(node->inputs[i]) && trained[node->inputs[i].index];
        }
        for (uint32_t i = 0; any && i < node->output_count; i++) {
            if (pen_value_is(node->outputs[i])) trained[node->outputs[i].index] = true;
        }
    }
    *out_trained = trained;
    return PEN_OK;
}

static pen_status attention_find_all(attention_fuser *f) {
    bool *trained;
    PEN_TRY(attention_mark_trained(f->graph, &trained));
    PEN_TRY(PEN_NEW(pen_graph_arena(f->graph), pen_graph_node_count(f->graph), &f->matches));
    for (uint32_t n = 0; n < pen_graph_node_count(f->graph); n++) {
        pen_attention_match match, *kept;
        if (!pen_attention_find(f->graph, &f->readers, trained, (pen_node_id){n}, &match)) continue;
        PEN_TRY(PEN_NEW(pen_graph_arena(f->graph), 1, &kept));
        *kept = match;
        f->matches[match.last.index] = kept;
    }
    return PEN_OK;
}

// The mask to be added that stands for a `where` over the scores.
static pen_status attention_make_mask(attention_fuser *f, const pen_attention_match *match,
                                      pen_value_id *out_mask) {
    pen_graph_copy *copy = &f->copy;
    const pen_node *last = pen_graph_node(f->graph, match->last);
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(f->graph), &name, "%s/mask", last->name));
    pen_node_spec spec;
    PEN_TRY(pen_graph_copy_spec(copy, match->last, "where", name, &spec));
    const pen_value_id fill = copy->values[match->fill.index];
    pen_value_id zero;
    PEN_TRY(pen_graph_constant_number(copy->to, "zero", pen_value_type(copy->to, fill)->element, 0,
                                      &zero));
    const pen_value_id inputs[3] = {copy->values[match->condition.index],
                                    match->filled_where_true ? fill : zero,
                                    match->filled_where_true ? zero : fill};
    spec.inputs = inputs;
    spec.input_count = 3;
    return pen_graph_add_simple(copy->to, &spec, out_mask);
}

static pen_status attention_make(attention_fuser *f, const pen_attention_match *match) {
    pen_graph_copy *copy = &f->copy;
    const pen_node *last = pen_graph_node(f->graph, match->last);
    const char *y_name = pen_value_name(f->graph, match->y);
    pen_value_id mask =
        pen_value_is(match->mask) ? copy->values[match->mask.index] : PEN_VALUE_NONE;
    if (pen_value_is(match->condition)) PEN_TRY(attention_make_mask(f, match, &mask));
    const pen_value_id inputs[4] = {copy->values[match->q.index], copy->values[match->k.index],
                                    copy->values[match->v.index], mask};
    const pen_attribute_given attributes[] = {
        pen_attribute_float("scale", match->scale),
        pen_attribute_int("causal", match->causal),
        pen_attribute_int("q_by_row", match->q_by_row),
        pen_attribute_int("k_by_row", match->k_by_row),
        pen_attribute_int("v_by_row", match->v_by_row),
        pen_attribute_int("y_by_row", match->y_by_row),
    };
    pen_node_spec spec;
    PEN_TRY(pen_graph_copy_spec(copy, match->last, "attention", last->name, &spec));
    spec.inputs = inputs;
    spec.input_count = pen_value_is(mask) ? 4 : 3;
    spec.output_count = 1;
    spec.output_names = &y_name;
    spec.attributes = attributes;
    spec.attribute_count = sizeof attributes / sizeof *attributes;
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(copy->to, &spec, &made));
    copy->nodes[match->last.index] = made;
    pen_graph_copy_value(copy, match->y, pen_graph_node(copy->to, made)->outputs[0]);
    return PEN_OK;
}

pen_status pen_fuse_attention(const pen_graph *graph, uint32_t kept_count, const pen_value_id *kept,
                              pen_graph **out_graph, const pen_value_id **out_values) {
    attention_fuser f = {.graph = graph};
    PEN_TRY(pen_readers_build(graph, kept_count, kept, pen_graph_arena(graph), &f.readers));
    PEN_TRY(attention_find_all(&f));
    PEN_TRY(pen_graph_copy_begin(graph, &f.copy));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        if (f.matches[n] == NULL) {
            PEN_TRY(pen_graph_copy_node(&f.copy, (pen_node_id){n}));
        } else {
            PEN_TRY(attention_make(&f, f.matches[n]));
        }
    }
    PEN_TRY(pen_graph_copy_end(&f.copy));
    *out_graph = f.copy.to;
    *out_values = f.copy.values;
    return PEN_OK;
}
