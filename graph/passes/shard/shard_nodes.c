// The nodes of a graph that is being cut.
#include <string.h>

#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/shard/sharder.h"

pen_status pen_shard_add(sharder *s, pen_node_id like, const shard_node *node,
                         pen_value_id *out_value) {
    pen_node_spec spec;
    const char *name;
    PEN_TRY(pen_arena_format(s->arena, &name, "%s/%s", pen_node_name(s->from, like), node->suffix));
    PEN_TRY(pen_graph_copy_spec(&s->copy, like, node->op, name, &spec));
    spec.inputs = node->inputs;
    spec.input_count = node->input_count;
    spec.attributes = node->attributes;
    spec.attribute_count = node->attribute_count;
    spec.output_names = node->output == NULL ? NULL : &node->output;
    return pen_graph_add_simple(s->copy.to, &spec, out_value);
}

pen_status pen_shard_apply(sharder *s, pen_node_id like, const pen_op *op, pen_value_id a,
                           pen_value_id b, pen_value_id *out_value) {
    const pen_value_id inputs[2] = {a, b};
    const shard_node node = {
        .op = op, .suffix = op->name, .inputs = inputs, .input_count = pen_value_is(b) ? 2 : 1};
    return pen_shard_add(s, like, &node, out_value);
}

pen_status pen_shard_reduce(sharder *s, pen_node_id like, const pen_op *op, pen_value_id value,
                            int64_t axis, pen_value_id *out_value) {
    pen_value_id axes;
    PEN_TRY(pen_graph_constant_ints(s->copy.to, "axes", 1, &axis, &axes));
    return pen_shard_apply(s, like, op, value, axes, out_value);
}

pen_status pen_shard_constant(sharder *s, pen_element_type element, double number,
                              pen_value_id *out_value) {
    return pen_graph_constant_number(s->copy.to, "shard/number", element, number, out_value);
}

pen_status pen_shard_reshape(sharder *s, pen_node_id like, const pen_shape *shape,
                             const char *output, pen_value_id *value) {
    pen_value_id inputs[2] = {*value};
    const shard_node node = {.op = PEN_OP(reshape),
                             .suffix = "shape",
                             .inputs = inputs,
                             .input_count = 2,
                             .output = output};
    PEN_TRY(pen_graph_constant_ints(s->copy.to, "shape", shape->rank, shape->dims, &inputs[1]));
    return pen_shard_add(s, like, &node, value);
}

pen_status pen_shard_concat(sharder *s, pen_node_id like, const shard_list *list, uint32_t axis,
                            const char *output, pen_value_id *out_value) {
    const pen_attribute_given attribute = pen_attribute_int("axis", axis);
    const shard_node node = {.op = PEN_OP(concat),
                             .suffix = "concat",
                             .inputs = list->values,
                             .input_count = list->count,
                             .attributes = &attribute,
                             .attribute_count = 1,
                             .output = output};
    return pen_shard_add(s, like, &node, out_value);
}

pen_status pen_shard_sum(sharder *s, pen_node_id like, const shard_list *list, const char *output,
                         pen_value_id *out_value) {
    *out_value = list->values[0];
    for (uint32_t i = 1; i < list->count; i++) {
        const pen_value_id inputs[2] = {*out_value, list->values[i]};
        shard_node node = {.op = PEN_OP(add),
                           .inputs = inputs,
                           .input_count = 2,
                           .output = i + 1 == list->count ? output : NULL};
        PEN_TRY(pen_arena_format(s->arena, &node.suffix, "sum%u", i));
        PEN_TRY(pen_shard_add(s, like, &node, out_value));
    }
    return PEN_OK;
}

// Names of the outputs of a piece: those that the node has.
static pen_status map_name_outputs(sharder *s, const pen_node *node, uint32_t piece,
                                   const char *const **out_names) {
    const char **names;
    PEN_TRY(PEN_NEW(s->arena, node->output_count, &names));
    for (uint32_t o = 0; o < node->output_count; o++) {
        if (!pen_value_is(node->outputs[o])) continue;
        PEN_TRY(pen_arena_format(s->arena, &names[o], "%s/shard%u",
                                 pen_value_name(s->from, node->outputs[o]), piece));
    }
    *out_names = names;
    return PEN_OK;
}

// Random numbers of a piece are its own.
static pen_status map_name_stream(sharder *s, pen_node_spec *spec, uint32_t piece) {
    pen_attribute_given *given = (pen_attribute_given *)(uintptr_t)spec->attributes;
    for (uint32_t i = 0; spec->op->is_random && i < spec->attribute_count; i++) {
        if (strcmp(given[i].name, "stream") != 0) continue;
        PEN_TRY(pen_arena_format(s->arena, &given[i].value.text, "%s/shard%u", given[i].value.text,
                                 piece));
    }
    return PEN_OK;
}

static pen_status map_piece(sharder *s, pen_node_id id, const pen_value_id *inputs,
                            uint32_t input_count, uint32_t piece, pen_node_id *out_node) {
    const pen_node *node = pen_graph_node(s->from, id);
    pen_node_spec spec;
    const char *name;
    PEN_TRY(pen_arena_format(s->arena, &name, "%s/shard%u", node->name, piece));
    PEN_TRY(pen_graph_copy_spec(&s->copy, id, node->op, name, &spec));
    PEN_TRY(pen_graph_copy_attributes(&s->copy, id, &spec));
    PEN_TRY(map_name_stream(s, &spec, piece));
    PEN_TRY(map_name_outputs(s, node, piece, &spec.output_names));
    spec.inputs = inputs;
    spec.input_count = input_count;
    spec.output_count = node->output_count;
    return pen_graph_add_node(s->copy.to, &spec, out_node);
}

// Outputs that a node leaves out are left out of its pieces, too.
pen_status pen_shard_map(sharder *s, pen_node_id id, const pen_value_id *const *inputs,
                         uint32_t input_count, const shard_cut *cuts) {
    const pen_node *node = pen_graph_node(s->from, id);
    pen_value_id **outputs, *operands;
    PEN_TRY(PEN_NEW(s->arena, node->output_count, &outputs));
    PEN_TRY(PEN_NEW(s->arena, input_count, &operands));
    for (uint32_t o = 0; o < node->output_count; o++) {
        PEN_TRY(PEN_NEW(s->arena, cuts[o].ways, &outputs[o]));
    }
    for (uint32_t p = 0; p < cuts[0].ways; p++) {
        pen_node_id made;
        for (uint32_t i = 0; i < input_count; i++) {
            operands[i] = inputs[i] == NULL ? PEN_VALUE_NONE : inputs[i][p];
        }
        PEN_TRY(map_piece(s, id, operands, input_count, p, &made));
        for (uint32_t o = 0; o < node->output_count; o++) {
            outputs[o][p] = pen_graph_node(s->copy.to, made)->outputs[o];
        }
    }
    for (uint32_t o = 0; o < node->output_count; o++) {
        if (!pen_value_is(node->outputs[o])) continue;
        pen_shard_set(s, node->outputs[o], &cuts[o], outputs[o]);
    }
    return PEN_OK;
}
