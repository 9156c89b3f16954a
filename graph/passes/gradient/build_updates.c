#include "graph/passes/gradient/build_updates.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/gradient/build_versions.h"
#include "graph/passes/gradient/match_groups.h"
#include "graph/passes/gradient/update_parts.h"

typedef struct updates_item {
    pen_value_id parameter;
    pen_value_id gradient; // one, summed over uses and microbatches; or rows of it
    pen_value_id rows;     // then which; NONE: all
} updates_item;

static pen_status updates_count_readers(updates_builder *builder, const pen_gradients *gradients) {
    PEN_TRY(PEN_NEW(builder->arena, pen_graph_value_count(builder->graph), &builder->reader_count));
    for (uint32_t n = 0; n < pen_graph_node_count(builder->graph); n++) {
        const pen_node *node = pen_graph_node(builder->graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) builder->reader_count[node->inputs[i].index] += 1;
        }
    }
    for (uint32_t i = 0; i < gradients->count; i++) {
        for (uint32_t u = 0; u < gradients->items[i].use_count; u++) {
            builder->reader_count[gradients->items[i].uses[u].index] += 1;
        }
    }
    return PEN_OK;
}

// Lanes of which the step's gradients consist.
static uint32_t updates_lanes(const updates_builder *builder) {
    const bool has_lanes = builder->accumulate && builder->step != NULL && builder->step->lanes > 1;
    return has_lanes ? builder->step->lanes : 1;
}

// Makes `sum`, of the microbatches of a lane, that of all lanes.
static pen_status updates_add_lanes(updates_builder *builder, const pen_gradient *gradient,
                                    uint32_t index, pen_value_id *sum) {
    pen_value_id stack;
    if (updates_lanes(builder) == 1) return PEN_OK;
    PEN_TRY(pen_updates_tree_sum(builder, gradient, index, *sum, &stack));
    const int64_t bounds[2] = {0, builder->step->lanes};
    const pen_attribute_given attribute = pen_attribute_ints("bounds", 2, bounds);
    pen_node_spec spec = pen_node_spec_of(PEN_OP(tree_total), "");
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = &stack;
    spec.input_count = 1;
    spec.attributes = &attribute;
    spec.attribute_count = 1;
    pen_node_id node;
    PEN_TRY(pen_updates_node(builder, &spec, gradient->value, "tree_total", &node));
    *sum = pen_graph_node(builder->graph, node)->outputs[0];
    return PEN_OK;
}

static bool updates_are_scaled(const updates_builder *builder) {
    return builder->step != NULL && builder->step->is_scaled;
}

// Whether the norms of gradients are asked for.
static bool updates_have_norms(const updates_builder *builder) {
    return builder->optimizer->clip_norm > 0 || updates_are_scaled(builder);
}

// ---- gradients of rows

// Whether a value is fed, but for its shape, its type, and the order of its elements.
static bool updates_is_fed(const updates_builder *builder, pen_value_id id) {
    const pen_value *value = pen_graph_value(builder->graph, id);
    while (value->kind == PEN_VALUE_COMPUTED) {
        const pen_node *node = pen_graph_node(builder->graph, value->producer);
        const pen_op *op = node->op;
        if (!op->is_view && op != PEN_OP(cast) && op != PEN_OP(transpose)) {
            return false;
        }
        value = pen_graph_value(builder->graph, node->inputs[0]);
    }
    return value->kind == PEN_VALUE_INPUT && value->type.shape.rank > 0 &&
           value->type.shape.dims[0] == (int64_t)builder->step->examples;
}

// Rows that a microbatch picks of the table at most, where use `index` of it is a gather whose rows
// are to be kept; else 0.
static int64_t updates_row_count(const updates_builder *builder, const pen_gradient *gradient,
                                 uint32_t index) {
    const pen_step_shape *step = builder->step;
    const pen_value_id use = gradient->uses[index];
    const pen_value *value = pen_graph_value(builder->graph, use);
    if (step == NULL || step->examples == 0 || !pen_node_is(value->producer)) return 0;
    const pen_node *node = pen_graph_node(builder->graph, value->producer);
    if (node->op != PEN_OP(gather_backward) || node->input_count > 2) return 0;
    if (builder->reader_count[use.index] != 1 || pen_node_int(node, "axis") != 0) return 0;
    if (!updates_is_fed(builder, node->inputs[1])) return 0;
    const pen_shape *indices = &pen_value_type(builder->graph, node->inputs[1])->shape;
    const int64_t count = pen_shape_element_count(indices), own = (int64_t)step->examples;
    const int64_t table = pen_value_type(builder->graph, gradient->value)->shape.dims[0];
    if (count % own != 0) return 0;
    int64_t most, all;
    if (!pen_i64_mul(count / own, (int64_t)step->most_examples, &most)) return 0;
    if (!pen_i64_mul(most, (int64_t)step->microbatches, &all)) return 0;
    return all > 0 && all <= table / 2 ? most : 0;
}

// Keeps `value`, whose first dimensions are rows, for the update.
static pen_status updates_stack(updates_builder *builder, const pen_gradient *gradient,
                                uint32_t index, pen_value_id value, const char *suffix,
                                pen_value_id *out_stack) {
    const pen_node_id producer = pen_graph_value(builder->graph, gradient->uses[index])->producer;
    const pen_value_id indices = pen_graph_node(builder->graph, producer)->inputs[1];
    const int64_t most = updates_row_count(builder, gradient, index);
    const uint32_t rank = pen_value_type(builder->graph, value)->shape.rank;
    const pen_attribute_given attributes[3] = {
        pen_attribute_int("tail", rank - pen_value_type(builder->graph, indices)->shape.rank),
        pen_attribute_int("each", most),
        pen_attribute_int("capacity", most * (int64_t)builder->step->microbatches)};
    updates_kept stack = {.op = PEN_OP(stack_rows),
                          .input = value,
                          .attributes = attributes,
                          .attribute_count = 3,
                          .node = suffix,
                          .accumulates = builder->accumulate};
    PEN_TRY(pen_arena_format(builder->arena, &stack.value, "gradient_%s", suffix));
    return pen_updates_keep(builder, gradient, index, &stack, out_stack);
}

// The rows of a use, and which they are.
static pen_status updates_stack_use(updates_builder *builder, const pen_gradient *gradient,
                                    uint32_t index, updates_item *out_rows) {
    const pen_node *node = pen_graph_node(
        builder->graph, pen_graph_value(builder->graph, gradient->uses[index])->producer);
    const pen_value_id rows = node->inputs[0], indices = node->inputs[1];
    PEN_TRY(updates_stack(builder, gradient, index, rows, "rows", &out_rows->gradient));
    return updates_stack(builder, gradient, index, indices, "indices", &out_rows->rows);
}

// A node of the update that makes one value of two or three.
static pen_status updates_join(updates_builder *builder, pen_node_spec *spec,
                               pen_value_id parameter, pen_value_id *out_value) {
    pen_node_id node;
    spec->role = builder->accumulate ? PEN_ROLE_UPDATE : PEN_ROLE_BACKWARD_WEIGHT;
    PEN_TRY(pen_updates_node(builder, spec, parameter, "gradient_of_uses", &node));
    *out_value = pen_graph_node(builder->graph, node)->outputs[0];
    return PEN_OK;
}

// Rows behind rows.
static pen_status updates_append_rows(updates_builder *builder, const updates_item *rows,
                                      updates_item *item) {
    const pen_attribute_given axis = pen_attribute_int("axis", 0);
    pen_value_id *const sums[2] = {&item->gradient, &item->rows};
    const pen_value_id more[2] = {rows->gradient, rows->rows};
    for (int i = 0; i < 2; i++) {
        const pen_value_id operands[2] = {*sums[i], more[i]};
        pen_node_spec spec = pen_node_spec_of(PEN_OP(concat), "");
        spec.inputs = operands;
        spec.input_count = 2;
        spec.attributes = &axis;
        spec.attribute_count = 1;
        PEN_TRY(updates_join(builder, &spec, item->parameter, sums[i]));
    }
    return PEN_OK;
}

// Rows onto a table.
static pen_status updates_add_rows(updates_builder *builder, const updates_item *rows,
                                   updates_item *item) {
    const pen_shape *shape = &pen_value_type(builder->graph, item->parameter)->shape;
    const pen_attribute_given attributes[2] = {
        pen_attribute_int("axis", 0), pen_attribute_ints("shape", shape->rank, shape->dims)};
    const pen_value_id operands[3] = {rows->gradient, rows->rows, item->gradient};
    pen_node_spec spec = pen_node_spec_of(PEN_OP(gather_backward), "");
    spec.inputs = operands;
    spec.input_count = 3;
    spec.attributes = attributes;
    spec.attribute_count = 2;
    return updates_join(builder, &spec, item->parameter, &item->gradient);
}

static pen_status updates_add_use(updates_builder *builder, pen_value_id use, updates_item *item) {
    if (!pen_value_is(item->gradient)) {
        item->gradient = use;
        return PEN_OK;
    }
    pen_node_spec spec = pen_node_spec_of(PEN_OP(add), "");
    const pen_value_id operands[2] = {item->gradient, use};
    spec.inputs = operands;
    spec.input_count = 2;
    return updates_join(builder, &spec, item->parameter, &item->gradient);
}

// Whether rows are kept of some uses of the parameter. In one microbatch of a whole graph, later
// passes do without (graph/passes/fuse/fuse_rows.h); and they add rows to tables.
static bool updates_keeps_rows(const updates_builder *builder, const pen_gradient *gradient) {
    if (builder->step == NULL) return false;
    if (builder->accumulate) return true;
    const bool is_read_twice = updates_have_norms(builder);
    return gradient->use_count == 1 && (is_read_twice || !builder->step->is_whole);
}

// One gradient from those of all uses: tables in order, then rows in order.
static pen_status updates_sum_uses(updates_builder *builder, const pen_gradient *gradient,
                                   updates_item *item) {
    const bool keeps = updates_keeps_rows(builder, gradient);
    *item = (updates_item){gradient->value, PEN_VALUE_NONE, PEN_VALUE_NONE};
    for (uint32_t i = 0; i < gradient->use_count; i++) {
        pen_value_id use = gradient->uses[i];
        if (keeps && updates_row_count(builder, gradient, i) > 0) continue;
        if (builder->accumulate) PEN_TRY(pen_updates_accumulate(builder, gradient, i, &use));
        if (builder->accumulate) PEN_TRY(updates_add_lanes(builder, gradient, i, &use));
        PEN_TRY(updates_add_use(builder, use, item));
    }
    for (uint32_t i = 0; keeps && i < gradient->use_count; i++) {
        updates_item rows;
        if (updates_row_count(builder, gradient, i) == 0) continue;
        PEN_TRY(updates_stack_use(builder, gradient, i, &rows));
        if (!pen_value_is(item->gradient)) {
            item->gradient = rows.gradient;
            item->rows = rows.rows;
        } else if (pen_value_is(item->rows)) {
            PEN_TRY(updates_append_rows(builder, &rows, item));
        } else {
            PEN_TRY(updates_add_rows(builder, &rows, item));
        }
    }
    return PEN_OK;
}

// ---- clipping

typedef struct updates_named {
    const char *name;
    const updates_item *item;
} updates_named;

static int updates_compare(const void *left, const void *right) {
    return strcmp(((const updates_named *)left)->name, ((const updates_named *)right)->name);
}

// The scale that holds the norm of all gradients together at clip_norm or below; without that it is
// 1. Of scaled gradients it is below 0 where they are not finite: one number decides for all
// devices.
static pen_status updates_clip(updates_builder *builder, uint32_t count,
                               const updates_item *items) {
    updates_named *named;
    pen_value_id *norms;
    PEN_TRY(PEN_NEW(builder->arena, count, &named));
    PEN_TRY(PEN_NEW(builder->arena, count, &norms));
    for (uint32_t i = 0; i < count; i++) {
        named[i] = (updates_named){pen_value_name(builder->graph, items[i].parameter), &items[i]};
    }
    qsort(named, count, sizeof *named, updates_compare);
    for (uint32_t i = 0; i < count; i++) {
        const updates_item *item = named[i].item;
        const pen_shape *shape = &pen_value_type(builder->graph, item->parameter)->shape;
        const pen_attribute_given whole = pen_attribute_ints("shape", shape->rank, shape->dims);
        const pen_value_id operands[2] = {item->gradient, item->rows};
        const bool has_rows = pen_value_is(item->rows);
        pen_node_spec spec = pen_node_spec_of(PEN_OP(squared_norm), "");
        spec.role = PEN_ROLE_UPDATE;
        spec.inputs = operands;
        spec.input_count = has_rows ? 2 : 1;
        spec.attributes = &whole;
        spec.attribute_count = has_rows ? 1 : 0;
        pen_node_id node = PEN_NODE_NONE;
        PEN_TRY(pen_updates_node(builder, &spec, item->parameter, "squared_norm", &node));
        norms[i] = pen_graph_node(builder->graph, node)->outputs[0];
    }
    pen_node_spec spec = pen_node_spec_of(PEN_OP(clip_scale), "clip_scale");
    const pen_attribute_given attributes[2] = {
        pen_attribute_float(
            "limit", builder->optimizer->clip_norm > 0 ? builder->optimizer->clip_norm : FLT_MAX),
        pen_attribute_int("skips", 1)};
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = norms;
    spec.input_count = count;
    spec.attributes = attributes;
    spec.attribute_count = updates_are_scaled(builder) ? 2 : 1;
    PEN_TRY(pen_graph_add_simple(builder->graph, &spec, &builder->scale));
    if (updates_are_scaled(builder)) builder->updates.applied = builder->scale;
    return PEN_OK;
}

static pen_status updates_add_scalar(pen_graph *graph, const char *name, pen_value_id *out_value) {
    const pen_value value = {
        .name = name, .kind = PEN_VALUE_SCALAR, .type = pen_tensor_type_make(PEN_FLOAT32, 0, NULL)};
    return pen_graph_add_own_value(graph, &value, out_value);
}

// The fed scalar, as a gradient's type has it. Of a model with parameters of several types, one of
// them has what is fed.
static pen_status updates_cast_unscale(updates_builder *builder, const updates_item *item,
                                       pen_value_id *out_unscale) {
    const pen_element_type element = pen_value_type(builder->graph, item->gradient)->element;
    *out_unscale = builder->updates.unscale;
    if (pen_value_type(builder->graph, *out_unscale)->element == element) return PEN_OK;
    const pen_attribute_given to = pen_attribute_text("to", pen_element_name(element));
    pen_node_spec spec = pen_node_spec_of(PEN_OP(cast), "");
    pen_node_id node;
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = &builder->updates.unscale;
    spec.input_count = 1;
    spec.attributes = &to;
    spec.attribute_count = 1;
    PEN_TRY(pen_updates_node(builder, &spec, item->parameter, "unscale", &node));
    *out_unscale = pen_graph_node(builder->graph, node)->outputs[0];
    return PEN_OK;
}

// As PyTorch's GradScaler: gradients are multiplied before anything else is done with them.
static pen_status updates_unscale(updates_builder *builder, uint32_t count, updates_item *items) {
    const pen_tensor_type *type = pen_value_type(builder->graph, items[0].gradient);
    const pen_value unscale = {.name = "unscale",
                               .kind = PEN_VALUE_SCALAR,
                               .type = pen_tensor_type_make(type->element, 0, NULL)};
    PEN_TRY(pen_graph_add_own_value(builder->graph, &unscale, &builder->updates.unscale));
    for (uint32_t i = 0; i < count; i++) {
        pen_value_id operands[2] = {items[i].gradient, PEN_VALUE_NONE};
        PEN_TRY(updates_cast_unscale(builder, &items[i], &operands[1]));
        pen_node_spec spec = pen_node_spec_of(PEN_OP(mul), "");
        pen_node_id node;
        spec.role = PEN_ROLE_UPDATE;
        spec.inputs = operands;
        spec.input_count = 2;
        PEN_TRY(pen_updates_node(builder, &spec, items[i].parameter, "unscaled", &node));
        items[i].gradient = pen_graph_node(builder->graph, node)->outputs[0];
    }
    return PEN_OK;
}

// The update of a parameter: its new value, and those of its states, take the places of the old.
static pen_status updates_add(updates_builder *builder, const updates_item *item) {
    updates_operands before, after;
    PEN_TRY(pen_updates_begin(builder, item->parameter, &before));
    before.gradient = item->gradient;
    before.rows = item->rows;
    PEN_TRY(pen_updates_apply(builder, &before, &after));
    pen_updates_replace(builder, &before, &after);
    return pen_updates_average(builder, item->parameter, after.parameter);
}

// Sums come first, for all parameters, because clipping reads them together.
static pen_status updates_add_all(updates_builder *builder, const pen_gradients *gradients) {
    updates_item *items;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(builder->arena, gradients->count, &items));
    for (uint32_t i = 0; i < gradients->count; i++) {
        if (gradients->items[i].use_count == 0) continue;
        PEN_TRY(updates_sum_uses(builder, &gradients->items[i], &items[count]));
        count++;
    }
    PEN_TRY(updates_add_scalar(builder->graph, "learning_rate", &builder->updates.learning_rate));
    if (builder->op->update.step != 0 || builder->optimizer->average.decay > 0) {
        PEN_TRY(updates_add_scalar(builder->graph, "step", &builder->updates.step));
    }
    if (updates_are_scaled(builder) && count > 0) PEN_TRY(updates_unscale(builder, count, items));
    if (updates_have_norms(builder) && count > 0) PEN_TRY(updates_clip(builder, count, items));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(updates_add(builder, &items[i]));
    }
    builder->updates.updated_count = count;
    return PEN_OK;
}

// The fed scalars come where the first update reads them.
pen_status pen_build_updates(pen_graph *graph, const pen_gradients *gradients,
                             const pen_optimizer *optimizer, bool accumulate,
                             const pen_step_shape *step, pen_updates *out_updates) {
    updates_builder builder = {
        .graph = graph,
        .arena = pen_graph_arena(graph),
        .optimizer = optimizer,
        .op = pen_optimizer_op(optimizer->kind),
        .accumulate = accumulate,
        .step = step,
        .updates = {.step = PEN_VALUE_NONE, .unscale = PEN_VALUE_NONE, .applied = PEN_VALUE_NONE},
        .scale = PEN_VALUE_NONE};
    uint32_t group;
    PEN_TRY(updates_count_readers(&builder, gradients));
    PEN_TRY(pen_match_groups(graph, optimizer, builder.arena, &builder.group_of, &group));
    if (updates_lanes(&builder) > 1 && step->asynchrony.is_asynchronous) {
        PEN_TRY(updates_add_scalar(graph, "learning_rate", &builder.updates.learning_rate));
        PEN_TRY(pen_build_versions(&builder, gradients));
    } else {
        PEN_TRY(updates_add_all(&builder, gradients));
    }
    *out_updates = builder.updates;
    return PEN_OK;
}
