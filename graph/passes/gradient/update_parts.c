#include "graph/passes/gradient/update_parts.h"

#include "base/integer.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"

#define UPDATES_INPUTS 16 // of any update
#define UPDATES_ATTRIBUTES (PEN_OPTIMIZER_NUMBERS + 3)
#define UPDATES_SUM "gradient"

pen_status pen_updates_node(updates_builder *builder, pen_node_spec *spec, pen_value_id parameter,
                            const char *suffix, pen_node_id *out_node) {
    PEN_TRY(pen_arena_format(builder->arena, &spec->name, "%s/%s",
                             pen_value_name(builder->graph, parameter), suffix));
    return pen_graph_add_node(builder->graph, spec, out_node);
}

// In the backward pass, as the node that reads the parameter there.
pen_status pen_updates_keep(updates_builder *builder, const pen_gradient *gradient, uint32_t index,
                            const updates_kept *kept, pen_value_id *out_value) {
    const char *name;
    PEN_TRY(pen_arena_format(builder->arena, &name, "%s/%s",
                             pen_value_name(builder->graph, gradient->value), kept->value));
    pen_node_spec spec = pen_node_spec_of(kept->op, "");
    spec.role = PEN_ROLE_BACKWARD_WEIGHT;
    spec.gradient_of = gradient->readers[index];
    spec.inputs = &kept->input;
    spec.input_count = 1;
    spec.attributes = kept->attributes;
    spec.attribute_count = kept->attribute_count;
    spec.output_names = &name;
    pen_node_id node;
    PEN_TRY(pen_updates_node(builder, &spec, gradient->value, kept->node, &node));
    pen_graph_set_accumulates(builder->graph, node, kept->accumulates);
    *out_value = pen_graph_node(builder->graph, node)->outputs[0];
    return PEN_OK;
}

// ---- sums

// Whether the producer of `use` may add into it: it makes nothing else, and no one but the update
// reads it.
static bool updates_may_accumulate(const updates_builder *builder, pen_value_id use) {
    const pen_value *value = pen_graph_value(builder->graph, use);
    if (!pen_node_is(value->producer) || builder->reader_count[use.index] != 1) return false;
    const pen_node *producer = pen_graph_node(builder->graph, value->producer);
    return producer->output_count == 1 && !producer->op->is_view &&
           producer->role != PEN_ROLE_FORWARD;
}

// In its producer where that is possible, otherwise in a copy. The sum is called after the
// parameter: programs for other sizes of microbatch, in which another node may make it, find the
// same storage by this name.
pen_status pen_updates_accumulate(updates_builder *builder, const pen_gradient *gradient,
                                  uint32_t index, pen_value_id *out_sum) {
    const pen_value_id use = gradient->uses[index];
    if (updates_may_accumulate(builder, use)) {
        const pen_node_id producer = pen_graph_value(builder->graph, use)->producer;
        const char *name;
        PEN_TRY(pen_arena_format(builder->arena, &name, "%s/" UPDATES_SUM,
                                 pen_value_name(builder->graph, gradient->value)));
        pen_graph_set_accumulates(builder->graph, producer, true);
        *out_sum = use;
        return pen_graph_rename_value(builder->graph, use, name);
    }
    const pen_attribute_given layouts[2] = {pen_attribute_int("from_layout", PEN_LAYOUT_PLAIN),
                                            pen_attribute_int("to_layout", PEN_LAYOUT_PLAIN)};
    const updates_kept copy = {.op = PEN_OP(reorder),
                               .input = use,
                               .attributes = layouts,
                               .attribute_count = 2,
                               .node = "accumulate",
                               .value = UPDATES_SUM,
                               .accumulates = true};
    return pen_updates_keep(builder, gradient, index, &copy, out_sum);
}

// With the last microbatch of each lane, where the sum itself is made.
pen_status pen_updates_tree_sum(updates_builder *builder, const pen_gradient *gradient,
                                uint32_t index, pen_value_id sum, pen_value_id *out_stack) {
    const pen_step_shape *step = builder->step;
    const pen_attribute_given attributes[3] = {
        pen_attribute_int("end", step->lanes),
        pen_attribute_int("each", step->microbatches / step->lanes),
        pen_attribute_int("apart", step->asynchrony.is_asynchronous)};
    const updates_kept lanes = {.op = PEN_OP(tree_sum),
                                .input = sum,
                                .attributes = attributes,
                                .attribute_count = 3,
                                .node = "tree_sum",
                                .value = "gradient_lanes",
                                .accumulates = true};
    return pen_updates_keep(builder, gradient, index, &lanes, out_stack);
}

pen_status pen_updates_sum_lanes(updates_builder *builder, const pen_gradient *gradient,
                                 uint32_t index, pen_value_id *out_stack) {
    pen_value_id sum;
    PEN_TRY(pen_updates_accumulate(builder, gradient, index, &sum));
    return pen_updates_tree_sum(builder, gradient, index, sum, out_stack);
}

// ---- the optimizer

pen_status pen_updates_add_state(updates_builder *builder, pen_value_id parameter,
                                 const char *suffix, const pen_tensor_type *type,
                                 pen_value_id *out_state) {
    pen_value state = {.kind = PEN_VALUE_STATE, .type = *type};
    PEN_TRY(pen_arena_format(builder->arena, &state.name, "%s/%s",
                             pen_value_name(builder->graph, parameter), suffix));
    const pen_value *updated = pen_graph_value(builder->graph, parameter);
    const pen_tensor_slice *slice = updated->slice;
    // of a slice, what has its type is a slice of such a state
    if (slice != NULL && pen_tensor_type_equal(&updated->type, type)) {
        pen_tensor_slice *same;
        PEN_TRY(PEN_NEW(builder->arena, 1, &same));
        *same = *slice;
        PEN_TRY(pen_arena_format(builder->arena, &same->whole, "%s/%s", slice->whole, suffix));
        state.slice = same;
    }
    return pen_graph_add_own_value(builder->graph, &state, out_state);
}

// Gives the node the attributes that the optimizer's entry names, as the parameter's group has
// them.
static uint32_t updates_attributes(const updates_builder *builder, pen_value_id parameter,
                                   pen_attribute_given out_given[UPDATES_ATTRIBUTES]) {
    pen_optimizer own = *builder->optimizer;
    const pen_optimizer *optimizer = &own;
    const uint32_t group = builder->group_of[parameter.index];
    const double lr_scale = group == PEN_ID_NONE ? 1 : own.groups[group].lr_scale;
    if (group != PEN_ID_NONE && own.groups[group].has_weight_decay) {
        own.weight_decay = own.groups[group].weight_decay;
    }
    const pen_optimizer_entry *entry = pen_optimizer_entry_of(optimizer->kind);
    uint32_t count = 0;
    for (; count < PEN_OPTIMIZER_NUMBERS && entry->numbers[count].attribute != NULL; count++) {
        const pen_optimizer_number *number = &entry->numbers[count];
        const double value = pen_optimizer_read(optimizer, number);
        out_given[count] = number->is_flag ? pen_attribute_int(number->attribute, (int64_t)value)
                                           : pen_attribute_float(number->attribute, value);
    }
    if (entry->set != NULL) out_given[count++] = pen_attribute_int(entry->set, 1);
    if (optimizer->clip_value > 0) {
        out_given[count++] = pen_attribute_float("clip_value", optimizer->clip_value);
    }
    if (lr_scale != 1) out_given[count++] = pen_attribute_float("lr_scale", lr_scale);
    return count;
}

// States are in the order of the op's operands.
pen_status pen_updates_begin(updates_builder *builder, pen_value_id parameter,
                             updates_operands *out_operands) {
    const pen_optimizer_entry *entry = pen_optimizer_entry_of(builder->optimizer->kind);
    const pen_op_update *at = &builder->op->update;
    *out_operands = (updates_operands){.named = parameter,
                                       .parameter = parameter,
                                       .gradient = PEN_VALUE_NONE,
                                       .rows = PEN_VALUE_NONE,
                                       .step = builder->updates.step,
                                       .scale = builder->scale};
    for (uint32_t i = 0; i < PEN_OPTIMIZER_STATES; i++) {
        out_operands->states[i] = PEN_VALUE_NONE;
        if (at->state + i >= at->rate) continue;
        const pen_optimizer_state *state = &entry->states[i];
        if (!pen_optimizer_keeps(builder->optimizer, state)) continue;
        pen_tensor_type type;
        if (!pen_optimizer_state_type(state->shape, pen_value_type(builder->graph, parameter),
                                      &type)) {
            continue;
        }
        PEN_TRY(pen_updates_add_state(builder, parameter, state->suffix, &type,
                                      &out_operands->states[i]));
    }
    return PEN_OK;
}

// The node has outputs up to that of the last state that is kept. Where one before it is not,
// outputs get names, so that its own can be left out.
static pen_status updates_name_outputs(updates_builder *builder, const updates_operands *operands,
                                       pen_node_spec *spec) {
    const char **names;
    uint32_t kept = 1;
    spec->output_count = 1;
    for (uint32_t i = 0; i < PEN_OPTIMIZER_STATES; i++) {
        if (!pen_value_is(operands->states[i])) continue;
        spec->output_count = 2 + i;
        kept += 1;
    }
    if (kept == spec->output_count) return PEN_OK;
    PEN_TRY(PEN_NEW(builder->arena, PEN_OPTIMIZER_STATES + 1, &names));
    for (uint32_t i = 0; i < spec->output_count; i++) {
        if (i > 0 && !pen_value_is(operands->states[i - 1])) continue;
        PEN_TRY(pen_arena_format(builder->arena, &names[i], "%s/update%s:%u",
                                 pen_value_name(builder->graph, operands->named),
                                 operands->suffix == NULL ? "" : operands->suffix, i));
    }
    spec->output_names = names;
    return PEN_OK;
}

// Operands behind the states are optional: the last one that is there decides how many there are.
pen_status pen_updates_apply(updates_builder *builder, const updates_operands *operands,
                             updates_operands *out_after) {
    const pen_op_update *at = &builder->op->update;
    pen_value_id inputs[UPDATES_INPUTS];
    pen_attribute_given attributes[UPDATES_ATTRIBUTES];
    PEN_ASSERT(at->rows < UPDATES_INPUTS);
    for (uint32_t i = 0; i < UPDATES_INPUTS; i++) {
        inputs[i] = PEN_VALUE_NONE;
    }
    inputs[0] = operands->parameter;
    for (uint32_t i = 0; at->state + i < at->rate; i++) {
        inputs[at->state + i] = operands->states[i];
    }
    inputs[at->gradient] = operands->gradient;
    inputs[at->rate] = builder->updates.learning_rate;
    if (at->step != 0) inputs[at->step] = operands->step;
    inputs[at->scale] = operands->scale;
    inputs[at->rows] = operands->rows;
    pen_node_spec spec = pen_node_spec_of(builder->op, "");
    PEN_TRY(updates_name_outputs(builder, operands, &spec));
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = inputs;
    spec.input_count = pen_value_is(operands->rows)    ? at->rows + 1
                       : pen_value_is(operands->scale) ? at->scale + 1
                                                       : at->scale;
    spec.attributes = attributes;
    spec.attribute_count = updates_attributes(builder, operands->named, attributes);
    pen_node_id node;
    PEN_TRY(pen_updates_node(builder, &spec, operands->named, "update", &node));
    *out_after = *operands;
    for (uint32_t i = 0; i < spec.output_count; i++) {
        pen_value_id *value = i == 0 ? &out_after->parameter : &out_after->states[i - 1];
        if (pen_value_is(*value)) *value = pen_graph_node(builder->graph, node)->outputs[i];
    }
    return PEN_OK;
}

// It reads what the update has made, so it is where the parameter is updated.
pen_status pen_updates_average(updates_builder *builder, pen_value_id parameter,
                               pen_value_id after) {
    const pen_optimizer_average *average = &builder->optimizer->average;
    const pen_tensor_type type = *pen_value_type(builder->graph, parameter);
    pen_value_id old;
    if (average->decay == 0) return PEN_OK;
    PEN_TRY(pen_updates_add_state(builder, parameter, PEN_OPTIMIZER_AVERAGE, &type, &old));
    const pen_value_id inputs[4] = {after, old, builder->updates.step, builder->updates.applied};
    const pen_attribute_given attributes[2] = {
        pen_attribute_float("decay", average->decay),
        pen_attribute_int("from", (int64_t)pen_min_u64(average->from, INT64_MAX))};
    pen_node_spec spec = pen_node_spec_of(PEN_OP(average_update), "");
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = inputs;
    spec.input_count = pen_value_is(builder->updates.applied) ? 4 : 3;
    spec.attributes = attributes;
    spec.attribute_count = 2;
    pen_node_id node;
    PEN_TRY(pen_updates_node(builder, &spec, parameter, "average_update", &node));
    pen_graph_set_replaces(builder->graph, pen_graph_node(builder->graph, node)->outputs[0], old);
    return PEN_OK;
}

void pen_updates_replace(updates_builder *builder, const updates_operands *before,
                         const updates_operands *after) {
    pen_graph_set_replaces(builder->graph, after->parameter, before->parameter);
    for (uint32_t i = 0; i < PEN_OPTIMIZER_STATES; i++) {
        if (!pen_value_is(before->states[i])) continue;
        pen_graph_set_replaces(builder->graph, after->states[i], before->states[i]);
    }
}
