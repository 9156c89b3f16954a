#include "graph/passes/assign_layouts.h"

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/copy_graph.h"

#define LAYOUT_END UINT32_MAX

// A value of the old graph in one layout in the new graph.
typedef struct layout_variant {
    pen_layout layout;
    pen_value_id value;
    pen_node_id reorder; // that made it
    uint32_t next;       // in the list of the same old value
} layout_variant;

typedef struct layout_assigner {
    pen_graph_copy copy;
    const pen_layout_rules *rules;
    pen_value_id *native;     // [value_count], as its producer makes it
    uint32_t *first_variant;  // [value_count], reordered
    layout_variant *variants; // [variant_count]
    uint32_t variant_count;
    uint32_t variant_capacity;
    bool *is_pinned; // [value_count]: plain to the outside
} layout_assigner;

static pen_status layout_init(layout_assigner *assigner, const pen_graph *graph) {
    pen_arena *arena = pen_graph_arena(graph);
    const uint32_t count = pen_graph_value_count(graph);
    PEN_TRY(pen_graph_copy_begin(graph, &assigner->copy));
    PEN_TRY(PEN_NEW(arena, count, &assigner->native));
    PEN_TRY(PEN_NEW(arena, count, &assigner->first_variant));
    PEN_TRY(PEN_NEW(arena, count, &assigner->is_pinned));
    for (uint32_t v = 0; v < count; v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        assigner->native[v] = assigner->copy.values[v];
        assigner->first_variant[v] = LAYOUT_END;
        assigner->is_pinned[v] = pen_value_is(value->replaces);
    }
    for (uint32_t i = 0; i < pen_graph_output_count(graph); i++) {
        assigner->is_pinned[pen_graph_output(graph, i).index] = true;
    }
    return PEN_OK;
}

static pen_layout layout_native(const layout_assigner *assigner, pen_value_id old) {
    return pen_graph_value(assigner->copy.to, assigner->native[old.index])->layout;
}

static pen_status layout_remember(layout_assigner *assigner, pen_value_id old,
                                  layout_variant variant) {
    if (assigner->variant_count == assigner->variant_capacity) {
        const uint32_t capacity = 2 * assigner->variant_capacity + 16;
        layout_variant *grown;
        PEN_TRY(PEN_NEW(pen_graph_arena(assigner->copy.from), capacity, &grown));
        for (uint32_t i = 0; i < assigner->variant_count; i++) {
            grown[i] = assigner->variants[i];
        }
        assigner->variants = grown;
        assigner->variant_capacity = capacity;
    }
    variant.next = assigner->first_variant[old.index];
    assigner->first_variant[old.index] = assigner->variant_count;
    assigner->variants[assigner->variant_count++] = variant;
    return PEN_OK;
}

// Adds the reorder of `old` to `layout` on behalf of node `reader`. The value it makes is called
// `name`, or, where that is NULL, after the old value and the layout.
static pen_status layout_reorder(layout_assigner *assigner, pen_node_id reader, pen_value_id old,
                                 pen_layout layout, const char *name, pen_value_id *out_value) {
    pen_graph_copy *copy = &assigner->copy;
    const pen_layout native = layout_native(assigner, old);
    const char *node_name;
    PEN_TRY(pen_arena_format(pen_graph_arena(copy->from), &node_name, "%s/layout_%u",
                             pen_value_name(copy->from, old), (unsigned)layout));
    if (name == NULL) name = node_name;
    pen_node_spec spec;
    PEN_TRY(pen_graph_copy_spec(copy, reader, PEN_OP(reorder), node_name, &spec));
    const pen_attribute_given attributes[] = {
        pen_attribute_int("from_layout", native),
        pen_attribute_int("to_layout", layout),
    };
    spec.inputs = &assigner->native[old.index];
    spec.input_count = 1;
    spec.output_names = &name;
    spec.attributes = attributes;
    spec.attribute_count = 2;
    layout_variant variant = {.layout = layout};
    PEN_TRY(pen_graph_add_node(copy->to, &spec, &variant.reorder));
    variant.value = pen_graph_node(copy->to, variant.reorder)->outputs[0];
    pen_graph_set_layout(copy->to, variant.value, layout);
    *out_value = variant.value;
    return layout_remember(assigner, old, variant);
}

// Whether both may read one reorder. In the backward pass values flow down the stages alone, and
// which of two gradients' stages is the lower one is not known yet: each has its own.
static bool layout_can_share(const layout_assigner *assigner, pen_node_id reorder,
                             pen_node_id reader) {
    const pen_node *made = pen_graph_node(assigner->copy.to, reorder);
    const pen_node *wants = pen_graph_node(assigner->copy.from, reader);
    if (!pen_role_is_backward(made->role) || !pen_role_is_backward(wants->role)) return true;
    const pen_node_id of = wants->gradient_of;
    return pen_node_is(of) && assigner->copy.nodes[of.index].index == made->gradient_of.index;
}

// `old` in the layout that `reader` wants.
static pen_status layout_operand(layout_assigner *assigner, pen_node_id reader, pen_value_id old,
                                 pen_layout layout, pen_value_id *out_value) {
    if (layout_native(assigner, old) == layout) {
        *out_value = assigner->native[old.index];
        return PEN_OK;
    }
    for (uint32_t i = assigner->first_variant[old.index]; i != LAYOUT_END;
         i = assigner->variants[i].next) {
        const layout_variant *variant = &assigner->variants[i];
        if (variant->layout != layout) continue;
        if (!layout_can_share(assigner, variant->reorder, reader)) continue;
        // it must have run before its earliest reader: forward before either backward half
        const pen_role role = pen_graph_node(assigner->copy.from, reader)->role;
        if (role < pen_graph_node(assigner->copy.to, variant->reorder)->role) {
            pen_graph_set_role(assigner->copy.to, variant->reorder, role);
        }
        *out_value = variant->value;
        return PEN_OK;
    }
    return layout_reorder(assigner, reader, old, layout, NULL, out_value);
}

// Sums over microbatches outlive a program, and are shared with others: they are plain, and so is
// all that a node works on that would make one in another layout.
static void layout_keep_plain(const pen_node *node, pen_layout *inputs, pen_layout *outputs) {
    bool is_plain = true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        is_plain = is_plain && outputs[i] == PEN_LAYOUT_PLAIN;
        outputs[i] = PEN_LAYOUT_PLAIN;
    }
    for (uint32_t i = 0; !is_plain && i < node->input_count; i++) {
        inputs[i] = PEN_LAYOUT_PLAIN;
    }
}

static pen_status layout_choose(const layout_assigner *assigner, pen_node_id id, pen_layout *inputs,
                                pen_layout *outputs) {
    const pen_graph *graph = assigner->copy.from;
    const pen_node *node = pen_graph_node(graph, id);
    for (uint32_t i = 0; i < node->input_count; i++) {
        const bool is_there = pen_value_is(node->inputs[i]) && !node->op->is_view;
        inputs[i] = is_there ? layout_native(assigner, node->inputs[i]) : PEN_LAYOUT_PLAIN;
    }
    if (node->op->is_view) return PEN_OK; // the bytes themselves, so plain on both sides
    PEN_TRY(assigner->rules->choose(assigner->rules->context, graph, id, inputs, outputs));
    for (uint32_t i = 0; i < node->input_count && i < 64; i++) {
        if ((node->op->constant_inputs >> i & 1) != 0) inputs[i] = PEN_LAYOUT_PLAIN;
    }
    if (node->accumulates) layout_keep_plain(node, inputs, outputs);
    return PEN_OK;
}

// The outputs' names in the new graph. Who is asked for by name must be plain: where the node makes
// such a value in another layout, the name goes to the reordered one.
static pen_status layout_names(const layout_assigner *assigner, pen_node_id id,
                               const pen_layout *layouts, const char **names) {
    const pen_graph *graph = assigner->copy.from;
    const pen_node *node = pen_graph_node(graph, id);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const pen_value_id old = node->outputs[i];
        if (!pen_value_is(old)) continue;
        names[i] = pen_value_name(graph, old);
        if (layouts[i] == PEN_LAYOUT_PLAIN || !assigner->is_pinned[old.index]) continue;
        PEN_TRY(pen_arena_format(pen_graph_arena(graph), &names[i], "%s/layout_%u", names[i],
                                 (unsigned)layouts[i]));
    }
    return PEN_OK;
}

// Takes in what a copied node makes.
static pen_status layout_settle_outputs(layout_assigner *assigner, pen_node_id id,
                                        const pen_layout *layouts) {
    pen_graph_copy *copy = &assigner->copy;
    const pen_node *node = pen_graph_node(copy->from, id);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const pen_value_id old = node->outputs[i];
        if (!pen_value_is(old)) continue;
        const pen_value_id made = copy->values[old.index];
        pen_graph_set_layout(copy->to, made, layouts[i]);
        assigner->native[old.index] = made;
        if (layouts[i] == PEN_LAYOUT_PLAIN || !assigner->is_pinned[old.index]) continue;
        pen_value_id plain;
        pen_graph_set_replaces(copy->to, made, PEN_VALUE_NONE);
        PEN_TRY(layout_reorder(assigner, id, old, PEN_LAYOUT_PLAIN, pen_value_name(copy->from, old),
                               &plain));
        pen_graph_copy_value(copy, old, plain);
    }
    return PEN_OK;
}

// Operands come in the layout that the node wants; a reorder is added where one lies otherwise.
static pen_status layout_node(layout_assigner *assigner, pen_node_id id) {
    pen_graph_copy *copy = &assigner->copy;
    if (!pen_graph_copy_computes(copy->from, id)) return PEN_OK;
    pen_arena *arena = pen_graph_arena(copy->from);
    const pen_node *node = pen_graph_node(copy->from, id);
    pen_layout *wanted, *made;
    pen_value_id *inputs;
    const char **names;
    PEN_TRY(PEN_NEW(arena, node->input_count, &wanted));
    PEN_TRY(PEN_NEW(arena, node->output_count, &made));
    PEN_TRY(PEN_NEW(arena, node->input_count, &inputs));
    PEN_TRY(PEN_NEW(arena, node->output_count, &names));
    PEN_TRY(layout_choose(assigner, id, wanted, made));
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = PEN_VALUE_NONE;
        if (!pen_value_is(node->inputs[i])) continue;
        PEN_TRY(layout_operand(assigner, id, node->inputs[i], wanted[i], &inputs[i]));
    }
    PEN_TRY(layout_names(assigner, id, made, names));
    PEN_TRY(pen_graph_copy_node_as(copy, id, inputs, names));
    return layout_settle_outputs(assigner, id, made);
}

pen_status pen_assign_layouts(const pen_graph *graph, const pen_layout_rules *rules,
                              pen_graph **out_graph, const pen_value_id **out_values) {
    layout_assigner assigner = {.rules = rules};
    PEN_TRY(layout_init(&assigner, graph));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        PEN_TRY(layout_node(&assigner, (pen_node_id){n}));
    }
    PEN_TRY(pen_graph_copy_end(&assigner.copy));
    *out_graph = assigner.copy.to;
    *out_values = assigner.copy.values;
    return PEN_OK;
}
