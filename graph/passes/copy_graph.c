#include "graph/passes/copy_graph.h"

#include "graph/graph.h"
#include "graph/op.h"

static pen_status copy_values(pen_graph_copy *copy, const bool *left_out) {
    for (uint32_t s = 0; s < pen_graph_symbol_count(copy->from); s++) {
        int64_t dimension;
        const char *name = pen_graph_symbol_name(copy->from, -(1 + (int64_t)s));
        PEN_TRY(pen_graph_add_symbol(copy->to, name, &dimension));
    }
    for (uint32_t v = 0; v < pen_graph_value_count(copy->from); v++) {
        const pen_value *value = pen_graph_value(copy->from, (pen_value_id){v});
        copy->values[v] = PEN_VALUE_NONE;
        if (value->kind == PEN_VALUE_COMPUTED || (left_out != NULL && left_out[v])) continue;
        PEN_TRY(pen_graph_add_value(copy->to, value, &copy->values[v]));
    }
    return PEN_OK;
}

// As many as there are, and some that the pass may add.
static uint32_t copy_room(uint32_t count) {
    return count + count / 8;
}

pen_status pen_graph_copy_begin(const pen_graph *from, pen_graph_copy *out_copy) {
    return pen_graph_copy_begin_without(from, NULL, out_copy);
}

pen_status pen_graph_copy_begin_without(const pen_graph *from, const bool *left_out,
                                        pen_graph_copy *out_copy) {
    pen_arena *arena = pen_graph_arena(from);
    pen_graph_copy copy = {.from = from};
    PEN_TRY(pen_graph_create_after(from, &copy.to));
    PEN_TRY(pen_graph_reserve(copy.to, copy_room(pen_graph_node_count(from)),
                              copy_room(pen_graph_value_count(from))));
    PEN_TRY(PEN_NEW(arena, pen_graph_value_count(from), &copy.values));
    PEN_TRY(PEN_NEW(arena, pen_graph_node_count(from), &copy.nodes));
    for (uint32_t n = 0; n < pen_graph_node_count(from); n++) {
        copy.nodes[n] = PEN_NODE_NONE;
    }
    PEN_TRY(copy_values(&copy, left_out));
    *out_copy = copy;
    return PEN_OK;
}

bool pen_graph_copy_computes(const pen_graph *graph, pen_node_id id) {
    const pen_node *node = pen_graph_node(graph, id);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        if (pen_graph_value(graph, node->outputs[i])->kind == PEN_VALUE_COMPUTED) return true;
    }
    return false;
}

pen_status pen_graph_copy_node(pen_graph_copy *copy, pen_node_id id) {
    if (!pen_graph_copy_computes(copy->from, id)) return PEN_OK;
    const pen_node *node = pen_graph_node(copy->from, id);
    pen_value_id *inputs;
    PEN_TRY(PEN_NEW(pen_graph_arena(copy->from), node->input_count, &inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value_id input = node->inputs[i];
        inputs[i] = pen_value_is(input) ? copy->values[input.index] : PEN_VALUE_NONE;
        PEN_ASSERT(pen_value_is(inputs[i]) == pen_value_is(input));
    }
    return pen_graph_copy_node_as(copy, id, inputs, NULL);
}

pen_status pen_graph_copy_attributes(const pen_graph_copy *copy, pen_node_id id,
                                     pen_node_spec *spec) {
    const pen_node *node = pen_graph_node(copy->from, id);
    pen_attribute_given *given;
    PEN_TRY(PEN_NEW(pen_graph_arena(copy->from), node->op->attribute_count, &given));
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        const pen_attribute_schema *schema = &node->op->attributes[i];
        if (!node->attributes[i].present) continue;
        given[spec->attribute_count++] =
            (pen_attribute_given){schema->name, schema->kind, node->attributes[i]};
    }
    spec->attributes = given;
    return PEN_OK;
}

pen_status pen_graph_copy_spec(const pen_graph_copy *copy, pen_node_id id, const pen_op *op,
                               const char *name, pen_node_spec *out_spec) {
    const pen_node *node = pen_graph_node(copy->from, id);
    *out_spec = pen_node_spec_of(op, name);
    out_spec->role = node->role;
    out_spec->source = node->source;
    if (pen_node_is(node->gradient_of)) {
        out_spec->gradient_of = copy->nodes[node->gradient_of.index];
    }
    return PEN_OK;
}

void pen_graph_copy_value(pen_graph_copy *copy, pen_value_id from, pen_value_id to) {
    const pen_value *value = pen_graph_value(copy->from, from);
    if (value->type.element != PEN_ELEMENT_UNKNOWN) pen_graph_set_type(copy->to, to, &value->type);
    pen_graph_set_layout(copy->to, to, value->layout);
    if (pen_value_is(value->replaces)) {
        pen_graph_set_replaces(copy->to, to, copy->values[value->replaces.index]);
    }
    copy->values[from.index] = to;
}

static pen_status copy_output_names(const pen_graph_copy *copy, const pen_node *node,
                                    const char *const **out_names) {
    const char **names;
    PEN_TRY(PEN_NEW(pen_graph_arena(copy->from), node->output_count, &names));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        names[i] = pen_value_name(copy->from, node->outputs[i]);
    }
    *out_names = names;
    return PEN_OK;
}

// Passes that change operands or names copy with this; everything else about the node stays.
pen_status pen_graph_copy_node_as(pen_graph_copy *copy, pen_node_id id, const pen_value_id *inputs,
                                  const char *const *output_names) {
    if (!pen_graph_copy_computes(copy->from, id)) return PEN_OK;
    const pen_node *node = pen_graph_node(copy->from, id);
    pen_node_spec spec;
    PEN_TRY(pen_graph_copy_spec(copy, id, node->op, node->name, &spec));
    spec.inputs = inputs;
    spec.input_count = node->input_count;
    spec.output_count = node->output_count;
    spec.output_names = output_names;
    if (output_names == NULL) PEN_TRY(copy_output_names(copy, node, &spec.output_names));
    PEN_TRY(pen_graph_copy_attributes(copy, id, &spec));
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(copy->to, &spec, &made));
    pen_graph_set_accumulates(copy->to, made, node->accumulates);
    copy->nodes[id.index] = made;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        pen_graph_copy_value(copy, node->outputs[i], pen_graph_node(copy->to, made)->outputs[i]);
    }
    return PEN_OK;
}

pen_status pen_graph_copy_end(pen_graph_copy *copy) {
    for (uint32_t i = 0; i < pen_graph_output_count(copy->from); i++) {
        const pen_value_id output = copy->values[pen_graph_output(copy->from, i).index];
        PEN_ASSERT(pen_value_is(output));
        PEN_TRY(pen_graph_add_output(copy->to, output));
    }
    return PEN_OK;
}
