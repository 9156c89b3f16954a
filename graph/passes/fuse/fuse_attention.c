#include "graph/passes/fuse/fuse_attention.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/copy_graph.h"
#include "graph/passes/fuse/attention_pattern.h"

typedef struct attention_fuser {
    const pen_graph *graph;
    pen_readers readers;
    const pen_attention_match **matches; // [node_count], of the node that each stands for
    pen_graph_copy copy;
} attention_fuser;

static pen_status attention_find_all(attention_fuser *f) {
    PEN_TRY(PEN_NEW(pen_graph_arena(f->graph), pen_graph_node_count(f->graph), &f->matches));
    for (uint32_t n = 0; n < pen_graph_node_count(f->graph); n++) {
        pen_attention_match match, *kept;
        if (!pen_attention_find(f->graph, &f->readers, (pen_node_id){n}, &match)) continue;
        PEN_TRY(PEN_NEW(pen_graph_arena(f->graph), 1, &kept));
        *kept = match;
        f->matches[match.last.index] = kept;
    }
    return PEN_OK;
}

static pen_status attention_add(attention_fuser *f, const pen_attention_match *match,
                                const pen_node_spec *like, pen_value_id *out_value) {
    pen_node_spec spec;
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(f->graph), &name, "%s/%s",
                             pen_node_name(f->graph, match->last), like->name));
    PEN_TRY(pen_graph_copy_spec(&f->copy, match->last, like->op, name, &spec));
    spec.inputs = like->inputs;
    spec.input_count = like->input_count;
    spec.output_names = like->output_names;
    return pen_graph_add_simple(f->copy.to, &spec, out_value);
}

// `value`, of the copy, under another shape. `name`: of the new value; NULL: any.
static pen_status attention_reshape(attention_fuser *f, const pen_attention_match *match,
                                    const pen_shape *shape, const char *name, pen_value_id *value) {
    if (pen_shape_equal(&pen_value_type(f->copy.to, *value)->shape, shape)) return PEN_OK;
    pen_value_id wanted;
    PEN_TRY(pen_graph_constant_ints(f->copy.to, "shape", shape->rank, shape->dims, &wanted));
    const pen_value_id inputs[2] = {*value, wanted};
    pen_node_spec like = pen_node_spec_of(PEN_OP(reshape), "split");
    like.inputs = inputs;
    like.input_count = 2;
    like.output_names = name != NULL ? &name : NULL;
    return attention_add(f, match, &like, value);
}

// Whether scores count, from the condition of a `where` over them.
static pen_status attention_condition(attention_fuser *f, const pen_attention_match *match,
                                      const pen_attention_mask *mask, pen_value_id *out_mask) {
    *out_mask = f->copy.values[mask->condition.index];
    if (!mask->filled_where_true) return PEN_OK;
    const pen_value_id hidden = *out_mask;
    pen_node_spec like = pen_node_spec_of(PEN_OP(not ), "mask");
    like.inputs = &hidden;
    like.input_count = 1;
    return attention_add(f, match, &like, out_mask);
}

// The masks' sum, or whether all conditions hold; NONE without any.
static pen_status attention_make_mask(attention_fuser *f, const pen_attention_match *match,
                                      pen_value_id *out_mask) {
    *out_mask = PEN_VALUE_NONE;
    for (uint32_t i = match->mask_count; i-- > 0;) { // the last that was met was added first
        const pen_attention_mask *m = &match->masks[i];
        pen_value_id mask;
        if (pen_value_is(m->added)) {
            mask = f->copy.values[m->added.index];
        } else {
            PEN_TRY(attention_condition(f, match, m, &mask));
        }
        pen_shape shape = pen_value_type(f->copy.to, mask)->shape;
        while (shape.rank > m->rank) { // what goes is 1
            memmove(shape.dims, shape.dims + 1, --shape.rank * sizeof *shape.dims);
        }
        PEN_TRY(attention_reshape(f, match, &shape, NULL, &mask));
        if (pen_value_is(*out_mask)) {
            const pen_value_id inputs[2] = {*out_mask, mask};
            pen_node_spec like =
                pen_node_spec_of(pen_value_is(m->added) ? PEN_OP(add) : PEN_OP(and), "masks");
            like.inputs = inputs;
            like.input_count = 2;
            PEN_TRY(attention_add(f, match, &like, &mask));
        }
        *out_mask = mask;
    }
    return PEN_OK;
}

static pen_status attention_operand(attention_fuser *f, const pen_attention_match *match,
                                    pen_value_id from, pen_value_id *out_operand) {
    *out_operand = f->copy.values[from.index];
    const pen_shape shape =
        pen_attention_operand_shape(match, &pen_value_type(f->graph, from)->shape);
    return attention_reshape(f, match, &shape, NULL, out_operand);
}

// The node itself; `inputs` are q, k, v and the mask or NONE.
static pen_status attention_make_node(attention_fuser *f, const pen_attention_match *match,
                                      const pen_value_id inputs[4], const char *output,
                                      pen_node_id *out_node) {
    pen_attribute_given attributes[10] = {
        pen_attribute_float("scale", match->scale),
        pen_attribute_int("causal", match->causal),
        pen_attribute_int("q_by_row", match->q_by_row),
        pen_attribute_int("k_by_row", match->k_by_row),
        pen_attribute_int("v_by_row", match->v_by_row),
        pen_attribute_int("y_by_row", match->y_by_row),
    };
    uint32_t count = 6;
    if (isfinite(match->fill)) attributes[count++] = pen_attribute_float("fill", match->fill);
    if (pen_node_is(match->dropout)) {
        const pen_node *dropout = pen_graph_node(f->graph, match->dropout);
        attributes[count++] = pen_attribute_float("dropout", match->ratio);
        attributes[count++] = pen_attribute_text("stream", pen_node_stream(dropout));
        if (pen_node_has(dropout, "seed")) {
            attributes[count++] = pen_attribute_int("seed", pen_node_int(dropout, "seed"));
        }
    }
    pen_node_spec spec;
    const char *name = pen_node_name(f->graph, match->last);
    if (output == NULL) { // else that of the value behind it would be taken
        PEN_TRY(pen_arena_format(pen_graph_arena(f->graph), &name, "%s/whole", name));
    }
    PEN_TRY(pen_graph_copy_spec(&f->copy, match->last, PEN_OP(attention), name, &spec));
    spec.inputs = inputs;
    spec.input_count = pen_value_is(inputs[3]) ? 4 : 3;
    spec.output_count = 1;
    spec.output_names = output != NULL ? &output : NULL;
    spec.attributes = attributes;
    spec.attribute_count = count;
    return pen_graph_add_node(f->copy.to, &spec, out_node);
}

static pen_status attention_make(attention_fuser *f, const pen_attention_match *match) {
    pen_graph_copy *copy = &f->copy;
    const char *y_name = pen_value_name(f->graph, match->y);
    const pen_shape *y_shape = &pen_value_type(f->graph, match->y)->shape;
    const bool is_split = y_shape->rank < match->scores.rank;
    pen_value_id inputs[4];
    PEN_TRY(attention_operand(f, match, match->q, &inputs[0]));
    PEN_TRY(attention_operand(f, match, match->k, &inputs[1]));
    PEN_TRY(attention_operand(f, match, match->v, &inputs[2]));
    PEN_TRY(attention_make_mask(f, match, &inputs[3]));
    pen_node_id made;
    PEN_TRY(attention_make_node(f, match, inputs, is_split ? NULL : y_name, &made));
    copy->nodes[match->last.index] = made;
    pen_value_id y = pen_graph_node(copy->to, made)->outputs[0];
    PEN_TRY(attention_reshape(f, match, y_shape, y_name, &y));
    pen_graph_copy_value(copy, match->y, y);
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
