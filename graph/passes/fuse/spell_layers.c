#include "graph/passes/fuse/spell_layers.h"

#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/ops/product/recurrent_geometry.h"
#include "graph/passes/copy_graph.h"

typedef struct layer_speller {
    const pen_graph *graph;
    pen_graph_copy copy;
    // the node being spelled, of the old graph
    const pen_node *node;
    pen_node_id id;
    const pen_value *x;
    uint32_t made;                 // nodes so far: part of their names
    const pen_spelling *spellings; // [spelling_count]
    uint32_t spelling_count;
    const pen_spelling *spelling; // of the node, or NULL
} layer_speller;

typedef pen_status (*spell_rule)(layer_speller *s, pen_value_id x, pen_value_id *out_y);

static pen_value_id spell_input(const layer_speller *s, uint32_t input) {
    if (input >= s->node->input_count || !pen_value_is(s->node->inputs[input])) {
        return PEN_VALUE_NONE;
    }
    return s->copy.values[s->node->inputs[input].index];
}

// Adds a node of up to two operands.
static pen_status spell_apply(layer_speller *s, const pen_op *op, pen_value_id a, pen_value_id b,
                              pen_value_id *out_value) {
    const char *name;
    const pen_value_id inputs[] = {a, b};
    pen_node_spec spec;
    PEN_TRY(pen_arena_format(pen_graph_arena(s->graph), &name, "%s/%s_%u", s->node->name, op->name,
                             s->made++));
    PEN_TRY(pen_graph_copy_spec(&s->copy, s->id, op, name, &spec));
    spec.inputs = inputs;
    spec.input_count = pen_value_is(b) ? 2 : 1;
    return pen_graph_add_simple(s->copy.to, &spec, out_value);
}

static pen_element_type spell_element(const layer_speller *s) {
    const pen_value_id scale = spell_input(s, 1);
    pen_element_type element = s->x->type.element;
    if (element == PEN_ELEMENT_UNKNOWN && pen_value_is(scale)) {
        element = pen_value_type(s->copy.to, scale)->element;
    }
    return element == PEN_FLOAT64 ? PEN_FLOAT64 : PEN_FLOAT32;
}

// a op number.
static pen_status spell_number(layer_speller *s, const pen_op *op, pen_value_id a, double number,
                               pen_value_id *out_value) {
    const char *name;
    pen_value_id constant;
    PEN_TRY(
        pen_arena_format(pen_graph_arena(s->graph), &name, "%s/number_%u", s->node->name, s->made));
    PEN_TRY(pen_graph_constant_number(s->copy.to, name, spell_element(s), number, &constant));
    return spell_apply(s, op, a, constant, out_value);
}

// op with integers as second operand.
static pen_status spell_ints(layer_speller *s, const pen_op *op, pen_value_id a, uint32_t count,
                             const int64_t *integers, pen_value_id *out_value) {
    const char *name;
    pen_value_id constant;
    PEN_TRY(pen_arena_format(pen_graph_arena(s->graph), &name, "%s/integers_%u", s->node->name,
                             s->made));
    PEN_TRY(pen_graph_constant_ints(s->copy.to, name, count, integers, &constant));
    return spell_apply(s, op, a, constant, out_value);
}

// ---- activations

// x (1 + y) / 2
static pen_status spell_half_gate(layer_speller *s, pen_value_id x, pen_value_id y,
                                  pen_value_id *out_y) {
    PEN_TRY(spell_number(s, PEN_OP(add), y, 1, &y));
    PEN_TRY(spell_apply(s, PEN_OP(mul), x, y, &y));
    return spell_number(s, PEN_OP(mul), y, 0.5, out_y);
}

static pen_status spell_gelu(layer_speller *s, pen_value_id x, pen_value_id *out_y) {
    const bool is_tanh = strcmp(pen_node_text(s->node, "approximate"), "tanh") == 0;
    pen_value_id y;
    if (is_tanh) {
        PEN_TRY(spell_number(s, PEN_OP(pow), x, 3, &y));
        PEN_TRY(spell_number(s, PEN_OP(mul), y, 0.044715, &y));
        PEN_TRY(spell_apply(s, PEN_OP(add), x, y, &y));
        PEN_TRY(spell_number(s, PEN_OP(mul), y, 0.79788456080286536, &y)); // sqrt(2 / pi)
    } else {
        PEN_TRY(spell_number(s, PEN_OP(div), x, 1.4142135623730951, &y)); // sqrt(2)
    }
    PEN_TRY(spell_apply(s, is_tanh ? PEN_OP(tanh) : PEN_OP(erf), y, PEN_VALUE_NONE, &y));
    return spell_half_gate(s, x, y, out_y);
}

static pen_status spell_swish(layer_speller *s, pen_value_id x, pen_value_id *out_y) {
    const double alpha = pen_node_float(s->node, "alpha");
    pen_value_id y = x;
    if (alpha != 1) PEN_TRY(spell_number(s, PEN_OP(mul), y, alpha, &y));
    PEN_TRY(spell_apply(s, PEN_OP(sigmoid), y, PEN_VALUE_NONE, &y));
    return spell_apply(s, PEN_OP(mul), x, y, out_y);
}

// Of x the spelling's ops of one operand, one behind the other; then x and that by its op of two.
static pen_status spell_chain(layer_speller *s, pen_value_id x, pen_value_id *out_y) {
    const pen_op *op;
    pen_value_id y = x;
    for (uint32_t i = 0; i < PEN_SPELLING_LIMIT && s->spelling->chain[i] != NULL; i++) {
        PEN_TRY(pen_op_find(s->spelling->chain[i], &op));
        PEN_TRY(spell_apply(s, op, y, PEN_VALUE_NONE, &y));
    }
    if (s->spelling->with != NULL) {
        PEN_TRY(pen_op_find(s->spelling->with, &op));
        PEN_TRY(spell_apply(s, op, x, y, &y));
    }
    *out_y = y;
    return PEN_OK;
}

// ---- normalisations

// The axes from the node's on; a count of 0 where they cannot be told.
static uint32_t spell_axes(const layer_speller *s, int64_t *axes) {
    const int64_t axis = pen_node_int(s->node, "axis");
    const bool is_known = s->x->type.element != PEN_ELEMENT_UNKNOWN;
    int64_t first = axis;
    if (axis >= 0) first = is_known ? axis - (int64_t)s->x->type.shape.rank : 0;
    if (first < -(int64_t)PEN_RANK_LIMIT) return 0;
    uint32_t count = 0;
    for (int64_t i = first; i < 0; i++) {
        axes[count++] = i;
    }
    return count;
}

static pen_status spell_mean(layer_speller *s, pen_value_id x, pen_value_id *out_mean) {
    int64_t axes[PEN_RANK_LIMIT];
    const uint32_t count = spell_axes(s, axes);
    return spell_ints(s, PEN_OP(reduce_mean), x, count, axes, out_mean);
}

// y / sqrt(mean of y² + epsilon), then the weights.
static pen_status spell_divide(layer_speller *s, pen_value_id y, pen_value_id *out_y) {
    const pen_op *const steps[] = {PEN_OP(mul), PEN_OP(add)};
    pen_value_id root;
    PEN_TRY(spell_number(s, PEN_OP(pow), y, 2, &root));
    PEN_TRY(spell_mean(s, root, &root));
    PEN_TRY(spell_number(s, PEN_OP(add), root, pen_node_float(s->node, "epsilon"), &root));
    PEN_TRY(spell_apply(s, PEN_OP(sqrt), root, PEN_VALUE_NONE, &root));
    PEN_TRY(spell_apply(s, PEN_OP(div), y, root, &y));
    for (uint32_t i = 0; i < 2; i++) {
        const pen_value_id weight = spell_input(s, i + 1);
        if (pen_value_is(weight)) PEN_TRY(spell_apply(s, steps[i], y, weight, &y));
    }
    *out_y = y;
    return PEN_OK;
}

static pen_status spell_rms_norm(layer_speller *s, pen_value_id x, pen_value_id *out_y) {
    return spell_divide(s, x, out_y);
}

static pen_status spell_layer_norm(layer_speller *s, pen_value_id x, pen_value_id *out_y) {
    pen_value_id y;
    PEN_TRY(spell_mean(s, x, &y));
    PEN_TRY(spell_apply(s, PEN_OP(sub), x, y, &y));
    return spell_divide(s, y, out_y);
}

// A constant vector of `count` times `number`.
static pen_status spell_vector(layer_speller *s, const char *suffix, int64_t count, double number,
                               pen_value_id *out_value) {
    const char *name;
    const pen_tensor_type type = {spell_element(s), {1, {count}}};
    unsigned char *data;
    const size_t bytes = type.element == PEN_FLOAT64 ? sizeof(double) : sizeof(float);
    const float narrow = (float)number;
    PEN_TRY(PEN_NEW(pen_graph_tensor_arena(s->graph), (size_t)count * bytes, &data));
    for (int64_t i = 0; i < count; i++) {
        const void *from = bytes == sizeof number ? (const void *)&number : (const void *)&narrow;
        memcpy(data + (size_t)i * bytes, from, bytes);
    }
    PEN_TRY(pen_arena_format(pen_graph_arena(s->graph), &name, "%s/%s", s->node->name, suffix));
    return pen_graph_constant(s->copy.to, name, &type, data, out_value);
}

static pen_status spell_instance_norm(layer_speller *s, pen_value_id x, int64_t groups,
                                      pen_value_id *out_y) {
    pen_value_id inputs[3] = {x};
    PEN_TRY(spell_vector(s, "ones", groups, 1, &inputs[1]));
    PEN_TRY(spell_vector(s, "zeros", groups, 0, &inputs[2]));
    const pen_attribute_given epsilon =
        pen_attribute_float("epsilon", pen_node_float(s->node, "epsilon"));
    const char *name;
    pen_node_spec spec;
    PEN_TRY(pen_arena_format(pen_graph_arena(s->graph), &name, "%s/instances", s->node->name));
    PEN_TRY(pen_graph_copy_spec(&s->copy, s->id, PEN_OP(instance_normalization), name, &spec));
    spec.inputs = inputs;
    spec.input_count = 3;
    spec.attributes = &epsilon;
    spec.attribute_count = 1;
    return pen_graph_add_simple(s->copy.to, &spec, out_y);
}

// Weights of [count] become [count, 1, …], of one dimension less than x.
static pen_status spell_weigh(layer_speller *s, uint32_t rank, pen_value_id *io_y) {
    const pen_op *const steps[] = {PEN_OP(mul), PEN_OP(add)};
    int64_t axes[PEN_RANK_LIMIT];
    for (uint32_t d = 0; d + 2 < rank; d++) {
        axes[d] = d + 1;
    }
    for (uint32_t i = 0; i < 2; i++) {
        pen_value_id weight = spell_input(s, i + 1);
        if (!pen_value_is(weight)) continue;
        if (rank > 2) PEN_TRY(spell_ints(s, PEN_OP(unsqueeze), weight, rank - 2, axes, &weight));
        PEN_TRY(spell_apply(s, steps[i], *io_y, weight, io_y));
    }
    return PEN_OK;
}

// As PyTorch has it where the rank is known, and there is a weight a channel; else in three
// dimensions until the end.
static pen_status spell_group_norm(layer_speller *s, pen_value_id x, pen_value_id *out_y) {
    const int64_t groups = pen_node_int(s->node, "num_groups");
    const pen_value_id scale = spell_input(s, 1);
    const bool is_known = s->x->type.element != PEN_ELEMENT_UNKNOWN;
    int64_t count = groups;
    if (pen_value_is(scale))
        count = pen_shape_element_count(&pen_value_type(s->copy.to, scale)->shape);
    const bool by_channel = is_known && s->x->type.shape.dims[1] == count;
    pen_value_id y, shape;
    PEN_TRY(spell_ints(s, PEN_OP(reshape), x, 3, (const int64_t[]){0, groups, -1}, &y));
    PEN_TRY(spell_instance_norm(s, y, groups, &y));
    PEN_TRY(spell_apply(s, PEN_OP(shape), x, PEN_VALUE_NONE, &shape));
    if (by_channel) {
        PEN_TRY(spell_apply(s, PEN_OP(reshape), y, shape, &y));
        PEN_TRY(spell_weigh(s, s->x->type.shape.rank, &y));
    } else {
        if (count != groups) {
            PEN_TRY(spell_ints(s, PEN_OP(reshape), y, 3, (const int64_t[]){0, count, -1}, &y));
        }
        PEN_TRY(spell_weigh(s, 3, &y));
        PEN_TRY(spell_apply(s, PEN_OP(reshape), y, shape, &y));
    }
    *out_y = y;
    return PEN_OK;
}

// ---- recurrent nets

static bool spell_is_batch_first(const pen_node *node) {
    return node->op->work == PEN_WORK_RECURRENT && pen_node_int(node, "layout") == 1;
}

static pen_status spell_transpose(layer_speller *s, pen_value_id x, uint32_t rank,
                                  const int64_t *order, pen_value_id *out_y) {
    const pen_attribute_given perm = pen_attribute_ints("perm", rank, order);
    const char *name;
    pen_node_spec spec;
    PEN_TRY(pen_arena_format(pen_graph_arena(s->graph), &name, "%s/transpose_%u", s->node->name,
                             s->made++));
    PEN_TRY(pen_graph_copy_spec(&s->copy, s->id, PEN_OP(transpose), name, &spec));
    spec.inputs = &x;
    spec.input_count = 1;
    spec.attributes = &perm;
    spec.attribute_count = 1;
    return pen_graph_add_simple(s->copy.to, &spec, out_y);
}

// The operands, with time or direction first.
static pen_status spell_recurrent_inputs(layer_speller *s, pen_value_id *inputs) {
    static const uint32_t turned[] = {PEN_RECURRENT_X, PEN_RECURRENT_INITIAL_H,
                                      PEN_RECURRENT_INITIAL_C};
    for (uint32_t i = 0; i < s->node->input_count; i++) {
        inputs[i] = spell_input(s, i);
    }
    for (size_t i = 0; i < sizeof turned / sizeof *turned; i++) {
        if (turned[i] >= s->node->input_count || !pen_value_is(inputs[turned[i]])) continue;
        PEN_TRY(spell_transpose(s, inputs[turned[i]], 3, (const int64_t[]){1, 0, 2},
                                &inputs[turned[i]]));
    }
    return PEN_OK;
}

// The node with layout 0; outputs that are for the gradient alone are left out.
static pen_status spell_recurrent_node(layer_speller *s, const pen_value_id *inputs,
                                       pen_node_id *out_node) {
    static const char *const suffixes[] = {"y", "last_h", "last_c"};
    const uint32_t last = s->node->op == PEN_OP(lstm) ? 3 : 2;
    const char *names[PEN_RECURRENT_OUTPUT_COUNT] = {NULL};
    pen_node_spec spec;
    PEN_TRY(pen_graph_copy_spec(&s->copy, s->id, s->node->op, s->node->name, &spec));
    for (uint32_t i = 0; i < last && i < s->node->output_count; i++) {
        if (!pen_value_is(s->node->outputs[i])) continue;
        PEN_TRY(pen_arena_format(pen_graph_arena(s->graph), &names[i], "%s/%s", s->node->name,
                                 suffixes[i]));
        spec.output_count = i + 1;
    }
    spec.inputs = inputs;
    spec.input_count = s->node->input_count;
    spec.output_names = names;
    PEN_TRY(pen_graph_copy_attributes(&s->copy, s->id, &spec));
    pen_attribute_given attributes[PEN_NODE_ATTRIBUTES_LIMIT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec.attribute_count; i++) {
        if (strcmp(spec.attributes[i].name, "layout") != 0)
            attributes[count++] = spec.attributes[i];
    }
    spec.attributes = attributes;
    spec.attribute_count = count;
    return pen_graph_add_node(s->copy.to, &spec, out_node);
}

// For targets without batch-first sequences: transposed before and after, with the old names on
// what readers see.
static pen_status spell_recurrent(layer_speller *s) {
    pen_value_id inputs[PEN_RECURRENT_INPUT_COUNT];
    pen_node_id made;
    s->made = 0;
    PEN_TRY(spell_recurrent_inputs(s, inputs));
    PEN_TRY(spell_recurrent_node(s, inputs, &made));
    s->copy.nodes[s->id.index] = made;
    const uint32_t count = pen_graph_node(s->copy.to, made)->output_count;
    for (uint32_t i = 0; i < count; i++) {
        const pen_value_id output = s->node->outputs[i];
        pen_value_id y = pen_graph_node(s->copy.to, made)->outputs[i];
        if (!pen_value_is(output)) continue;
        if (i == PEN_RECURRENT_Y) {
            PEN_TRY(spell_transpose(s, y, 4, (const int64_t[]){2, 0, 1, 3}, &y));
        } else {
            PEN_TRY(spell_transpose(s, y, 3, (const int64_t[]){1, 0, 2}, &y));
        }
        PEN_TRY(pen_graph_rename_value(s->copy.to, y, pen_value_name(s->graph, output)));
        pen_graph_copy_value(&s->copy, output, y);
    }
    return PEN_OK;
}

// ---- the graph

static const struct {
    pen_known_op op;
    spell_rule rule;
} spell_rules[] = {
    {PEN_KNOWN_gelu, spell_gelu},
    {PEN_KNOWN_swish, spell_swish},
    {PEN_KNOWN_rms_normalization, spell_rms_norm},
    {PEN_KNOWN_layer_normalization, spell_layer_norm},
    {PEN_KNOWN_group_normalization, spell_group_norm},
};

// The spelling of the node; NULL: none.
static const pen_spelling *spell_find(const layer_speller *s) {
    for (uint32_t i = 0; i < s->spelling_count; i++) {
        if (strcmp(s->spellings[i].op_name, s->node->op->name) == 0) return &s->spellings[i];
    }
    return NULL;
}

// NULL for what stays as it is.
static spell_rule spell_rule_of(layer_speller *s, pen_node_id id) {
    spell_rule rule = NULL;
    int64_t axes[PEN_RANK_LIMIT];
    s->id = id;
    s->node = pen_graph_node(s->graph, id);
    s->spelling = spell_find(s);
    if (s->spelling != NULL) rule = spell_chain;
    for (size_t i = 0; i < sizeof spell_rules / sizeof *spell_rules && rule == NULL; i++) {
        if (s->node->op == pen_op_known(spell_rules[i].op)) rule = spell_rules[i].rule;
    }
    if (rule == NULL || s->node->role != PEN_ROLE_FORWARD) return NULL;
    s->x = pen_graph_value(s->graph, s->node->inputs[0]);
    s->made = 0;
    const bool has_scale = s->node->input_count > 1 && pen_value_is(s->node->inputs[1]);
    if (rule == spell_layer_norm && has_scale) return NULL;
    if ((rule == spell_layer_norm || rule == spell_rms_norm) && spell_axes(s, axes) == 0) {
        return NULL;
    }
    return rule;
}

// The nodes for one; the result takes the old one's name.
static pen_status spell_node(layer_speller *s, spell_rule rule) {
    const pen_value_id output = s->node->outputs[0];
    pen_value_id y;
    PEN_TRY(rule(s, spell_input(s, 0), &y));
    PEN_TRY(pen_graph_rename_value(s->copy.to, y, pen_value_name(s->graph, output)));
    pen_graph_copy_value(&s->copy, output, y);
    s->copy.nodes[s->id.index] = pen_graph_value(s->copy.to, y)->producer;
    return PEN_OK;
}

// If there is nothing to spell out, the graph comes back as it is.
pen_status pen_spell_layers(const pen_graph *graph, const pen_spelling *spellings, uint32_t count,
                            const pen_graph **out_graph) {
    layer_speller s = {.graph = graph, .spellings = spellings, .spelling_count = count};
    const uint32_t node_count = pen_graph_node_count(graph);
    bool any = false;
    for (uint32_t n = 0; n < node_count && !any; n++) {
        any = spell_rule_of(&s, (pen_node_id){n}) != NULL || spell_is_batch_first(s.node);
    }
    *out_graph = graph;
    if (!any) return PEN_OK;
    PEN_TRY(pen_graph_copy_begin(graph, &s.copy));
    for (uint32_t n = 0; n < node_count; n++) {
        const spell_rule rule = spell_rule_of(&s, (pen_node_id){n});
        const bool computes = pen_graph_copy_computes(graph, (pen_node_id){n});
        if (rule != NULL && computes) {
            PEN_TRY(spell_node(&s, rule));
        } else if (computes && spell_is_batch_first(s.node)) {
            PEN_TRY(spell_recurrent(&s));
        } else {
            PEN_TRY(pen_graph_copy_node(&s.copy, (pen_node_id){n}));
        }
    }
    PEN_TRY(pen_graph_copy_end(&s.copy));
    *out_graph = s.copy.to;
    return PEN_OK;
}
