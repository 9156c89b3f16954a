#include <string.h>

#include "graph/graph.h"
#include "graph/lanes.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/passes/cut/cut_state.h"
#include "graph/verify.h"

// What a list of the part is made of.
typedef enum part_step_kind {
    STEP_AGAIN, // a forward node that runs again
    STEP_NODE,
    STEP_COPY, // of a parameter
    STEP_SEND,
} part_step_kind;

typedef struct part_step {
    part_step_kind kind;
    uint32_t index; // node of the whole graph, copy, or channel
} part_step;

typedef struct part_builder {
    cut_plan *plan;
    uint32_t device;
    pen_graph *to;
    pen_value_id *values; // [value_count of the whole graph] what they are in the part
    pen_value_id *again;  // [value_count] likewise, made by nodes that run again
    pen_node_id *nodes;   // [node_count]
    uint32_t *channel_of; // [value_count] by which they come; PEN_ID_NONE
    uint32_t *step_first; // [list_count + 1]
    part_step *steps;
    pen_node_id *order;
    uint32_t order_count;
} part_builder;

static const pen_node *part_node(const part_builder *b, uint32_t node) {
    return pen_graph_node(b->plan->graph, (pen_node_id){node});
}

static bool part_is_here(const part_builder *b, uint32_t node) {
    return b->plan->classes[node] != CUT_DEAD && cut_device(b->plan, node) == b->device;
}

// ---- steps

// Counts a step into its list, or writes it down.
static void part_step_add(part_builder *b, uint32_t key, part_step_kind kind, uint32_t index) {
    const uint32_t list = key - b->plan->first_list[b->device];
    if (b->steps == NULL) {
        b->step_first[list + 1] += 1;
    } else {
        b->steps[b->step_first[list]++] = (part_step){kind, index};
    }
}

// Called twice: to count the steps of each list, then to put them in.
static void part_visit_steps(part_builder *b) {
    const cut_plan *plan = b->plan;
    const pen_cut_request *request = plan->request;
    for (int again = 1; again >= 0; again--) {
        for (uint32_t p = 0; p < request->order_count; p++) {
            const uint32_t n = request->order[p].index;
            if (!part_is_here(b, n) || (again == 1 && plan->again[n] == CUT_DEAD)) continue;
            part_step_add(b, pen_cut_plan_list(plan, n, again == 1),
                          again == 1 ? STEP_AGAIN : STEP_NODE, n);
        }
    }
    for (uint32_t c = 0; c < plan->copy_count; c++) {
        const cut_copy *copy = &plan->copies[c];
        if (request->device_of_stage[copy->stage] != b->device) continue;
        part_step_add(b, pen_cut_plan_update_list(plan, copy->stage, copy->phase), STEP_COPY, c);
    }
    for (uint32_t c = 0; c < plan->channel_count; c++) {
        if (plan->channels[c].source != b->device) continue;
        part_step_add(b, plan->channels[c].source_list + plan->first_list[b->device], STEP_SEND, c);
    }
}

static pen_status part_list_steps(part_builder *b, uint32_t list_count) {
    uint32_t *first;
    PEN_TRY(PEN_NEW(b->plan->scratch, (size_t)list_count + 1, &first));
    PEN_TRY(PEN_NEW(b->plan->scratch, (size_t)list_count + 1, &b->step_first));
    part_visit_steps(b);
    for (uint32_t l = 0; l < list_count; l++) {
        b->step_first[l + 1] += b->step_first[l];
    }
    memcpy(first, b->step_first, ((size_t)list_count + 1) * sizeof *first);
    PEN_TRY(PEN_NEW(b->plan->scratch, first[list_count], &b->steps));
    part_visit_steps(b);
    b->step_first = first;
    return PEN_OK;
}

// ---- values

static void part_want(const part_builder *b, pen_value_id value, bool *wanted) {
    if (!pen_value_is(value)) return;
    if (pen_graph_value(b->plan->graph, value)->kind != PEN_VALUE_COMPUTED) {
        wanted[value.index] = true;
    }
}

// Brings over what is not computed: all that nodes of the part read or replace.
static pen_status part_add_values(part_builder *b) {
    bool *wanted;
    PEN_TRY(PEN_NEW(b->plan->scratch, b->plan->value_count, &wanted));
    for (uint32_t n = 0; n < b->plan->node_count; n++) {
        if (!part_is_here(b, n)) continue;
        const pen_node *node = part_node(b, n);
        for (uint32_t i = 0; i < node->input_count; i++) {
            part_want(b, node->inputs[i], wanted);
        }
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            part_want(b, pen_graph_value(b->plan->graph, node->outputs[i])->replaces, wanted);
        }
    }
    for (uint32_t v = 0; v < b->plan->value_count; v++) {
        if (!wanted[v]) continue;
        const pen_value *value = pen_graph_value(b->plan->graph, (pen_value_id){v});
        PEN_TRY(pen_graph_add_value(b->to, value, &b->values[v]));
        if (b->channel_of[v] != PEN_ID_NONE) {
            b->plan->channels[b->channel_of[v]].to = b->values[v];
        }
    }
    return PEN_OK;
}

// A name for what the cut adds: "<of>/<suffix>", free in the whole graph.
static pen_status part_name(const part_builder *b, const pen_name_map *taken, const char *of,
                            const char *suffix, const char **out_name) {
    const char *wanted;
    PEN_TRY(pen_arena_format(b->plan->scratch, &wanted, "%s/%s", of, suffix));
    return pen_name_map_free_name(taken, wanted, out_name);
}

// What of a value is sent: the bytes from its first one on. Of a stack of sums of lanes these are
// its blocks; what lies above them served while lanes were added up.
static pen_shape part_sent_shape(const part_builder *b, const pen_value *value) {
    pen_shape shape = value->type.shape;
    pen_lane_block blocks[PEN_LANE_BLOCKS];
    const pen_node *maker = pen_graph_node(b->plan->graph, value->producer);
    if (maker->op != PEN_OP(tree_sum) || pen_node_int(maker, "apart") != 0) return shape;
    shape.dims[0] = pen_lane_blocks((uint32_t)pen_node_int(maker, "first"),
                                    (uint32_t)pen_node_int(maker, "end"), blocks);
    return shape;
}

// Takes the name of the value that it receives, so that messages name what the user knows.
static pen_status part_receive(part_builder *b, pen_value_id value) {
    const uint32_t channel = b->channel_of[value.index];
    PEN_ASSERT(channel != PEN_ID_NONE);
    const pen_value *from = pen_graph_value(b->plan->graph, value);
    const pen_shape shape = part_sent_shape(b, from);
    const pen_attribute_given attributes[3] = {
        pen_attribute_int("channel", channel),
        pen_attribute_text("element", pen_element_name(from->type.element)),
        pen_attribute_ints("shape", shape.rank, shape.dims)};
    pen_node_spec spec = pen_node_spec_of(PEN_OP(receive), NULL);
    PEN_TRY(part_name(b, &b->plan->node_names, from->name, "receive", &spec.name));
    spec.role = PEN_ROLE_TRANSFER;
    spec.source = from->source;
    spec.attributes = attributes;
    spec.attribute_count = shape.rank > 0 ? 3 : 2;
    spec.output_names = &from->name;
    PEN_TRY(pen_graph_add_simple(b->to, &spec, &b->values[value.index]));
    pen_graph_set_layout(b->to, b->values[value.index], from->layout);
    b->plan->channels[channel].to = b->values[value.index];
    return PEN_OK;
}

// What `value` is to a node of the part that runs, or runs again.
static pen_status part_operand(part_builder *b, uint32_t reader, bool is_again, pen_value_id value,
                               pen_value_id *out_operand) {
    *out_operand = PEN_VALUE_NONE;
    if (!pen_value_is(value)) return PEN_OK;
    const pen_node_id maker = pen_graph_value(b->plan->graph, value)->producer;
    if (pen_node_is(maker)) {
        const bool stays = cut_stage(b->plan, maker.index) == cut_stage(b->plan, reader) &&
                           b->plan->again[maker.index] != CUT_DEAD;
        if ((is_again && stays) || cut_reads_again(b->plan, reader, maker.index)) {
            *out_operand = b->again[value.index];
            PEN_ASSERT(pen_value_is(*out_operand));
            return PEN_OK;
        }
        if (!pen_value_is(b->values[value.index])) PEN_TRY(part_receive(b, value));
    }
    *out_operand = b->values[value.index];
    PEN_ASSERT(pen_value_is(*out_operand));
    return PEN_OK;
}

// What stands in for a running statistic where a node runs again: it does not matter what.
static pen_status part_stand_in(part_builder *b, pen_value_id *operand) {
    const pen_value *statistic = pen_graph_value(b->to, *operand);
    const pen_tensor_type type = statistic->type;
    const char *name;
    char *zeros;
    PEN_TRY(part_name(b, &b->plan->value_names, statistic->name, "stand_in", &name));
    PEN_TRY(PEN_NEW(pen_graph_tensor_arena(b->to), pen_tensor_type_bytes(&type), &zeros));
    return pen_graph_constant(b->to, name, &type, zeros, operand);
}

static pen_status part_operands(part_builder *b, uint32_t n, bool is_again,
                                const pen_value_id **out_inputs) {
    const pen_node *node = part_node(b, n);
    pen_value_id *inputs;
    PEN_TRY(PEN_NEW(b->plan->scratch, node->input_count, &inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        const pen_value_id value = node->inputs[i];
        const bool is_statistic = pen_node_is_statistic(node, i);
        PEN_TRY(part_operand(b, n, is_again, value, &inputs[i]));
        if (!is_again || !is_statistic || !pen_value_is(value)) continue;
        if (pen_value_is(b->plan->successor[value.index])) PEN_TRY(part_stand_in(b, &inputs[i]));
    }
    *out_inputs = inputs;
    return PEN_OK;
}

// ---- nodes

static pen_status part_attributes(const part_builder *b, const pen_node *node, bool is_again,
                                  pen_node_spec *spec) {
    pen_attribute_given *given;
    PEN_TRY(PEN_NEW(b->plan->scratch, (size_t)node->op->attribute_count + 1, &given));
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        const pen_attribute_schema *schema = &node->op->attributes[i];
        if (!node->attributes[i].present) continue;
        given[spec->attribute_count++] =
            (pen_attribute_given){schema->name, schema->kind, node->attributes[i]};
    }
    if (is_again && node->op->is_random && !pen_node_has(node, "stream")) {
        given[spec->attribute_count++] = pen_attribute_text("stream", pen_node_stream(node));
    }
    spec->attributes = given;
    return PEN_OK;
}

// The names of a node's outputs: their own, or, where it runs again, others; what replaces
// statistics is left out then where it may be.
static pen_status part_output_names(const part_builder *b, const pen_node *node, bool is_again,
                                    pen_node_spec *spec) {
    const char **names;
    PEN_TRY(PEN_NEW(b->plan->scratch, node->output_count, &names));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value *value = pen_graph_value(b->plan->graph, node->outputs[i]);
        const bool is_required = i < node->op->output_min;
        names[i] = value->name;
        if (value->kind != PEN_VALUE_COMPUTED) {
            names[i] = NULL; // folded into a constant, of which those who read it have a copy
        } else if (is_again) {
            PEN_TRY(part_name(b, &b->plan->value_names, value->name, "recompute", &names[i]));
            if (pen_value_is(value->replaces)) names[i] = NULL;
        }
        if (names[i] == NULL && is_required) {
            PEN_TRY(part_name(b, &b->plan->value_names, value->name, "unread", &names[i]));
        }
    }
    spec->output_names = names;
    spec->output_count = node->output_count;
    return PEN_OK;
}

static void part_follow_outputs(part_builder *b, const pen_node *node, pen_node_id made,
                                bool is_again) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value_id output = pen_graph_node(b->to, made)->outputs[i];
        const pen_value *value = pen_graph_value(b->plan->graph, node->outputs[i]);
        if (!pen_value_is(output) || value->kind != PEN_VALUE_COMPUTED) continue;
        pen_graph_set_type(b->to, output, &value->type);
        pen_graph_set_layout(b->to, output, value->layout);
        pen_value_id *follows = is_again ? b->again : b->values;
        follows[node->outputs[i].index] = output;
        if (is_again || !pen_value_is(value->replaces)) continue;
        pen_graph_set_replaces(b->to, output, b->values[value->replaces.index]);
    }
}

// Puts a node of the whole graph into the part.
static pen_status part_add_node(part_builder *b, uint32_t n, bool is_again) {
    const pen_node *node = part_node(b, n);
    pen_node_spec spec = {.op = node->op,
                          .name = node->name,
                          .role = node->role,
                          .source = node->source,
                          .gradient_of = PEN_NODE_NONE,
                          .input_count = node->input_count};
    if (is_again) {
        spec.role = b->plan->again[n] == CUT_INPUT_HALF ? PEN_ROLE_BACKWARD_INPUT
                                                        : PEN_ROLE_BACKWARD_WEIGHT;
        PEN_TRY(part_name(b, &b->plan->node_names, node->name, "recompute", &spec.name));
    } else if (b->plan->classes[n] == CUT_UPDATE) {
        spec.role = PEN_ROLE_UPDATE;
    } else if (pen_node_is(node->gradient_of)) {
        spec.gradient_of = b->nodes[node->gradient_of.index];
    }
    PEN_TRY(part_operands(b, n, is_again, &spec.inputs));
    PEN_TRY(part_output_names(b, node, is_again, &spec));
    PEN_TRY(part_attributes(b, node, is_again, &spec));
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(b->to, &spec, &made));
    pen_graph_set_accumulates(b->to, made, node->accumulates);
    part_follow_outputs(b, node, made, is_again);
    if (!is_again) b->nodes[n] = made;
    b->order[b->order_count++] = made;
    return PEN_OK;
}

static pen_status part_add_copy(part_builder *b, const cut_copy *copy) {
    const char *name = pen_value_name(b->plan->graph, copy->parameter), *output_name;
    if (!pen_value_is(b->values[copy->updated.index])) PEN_TRY(part_receive(b, copy->updated));
    pen_node_spec spec = pen_node_spec_of(PEN_OP(copy), NULL);
    PEN_TRY(part_name(b, &b->plan->node_names, name, "copy", &spec.name));
    PEN_TRY(part_name(b, &b->plan->value_names, name, "copied", &output_name));
    spec.role = PEN_ROLE_UPDATE;
    spec.inputs = &b->values[copy->updated.index];
    spec.input_count = 1;
    spec.output_names = &output_name;
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(b->to, &spec, &made));
    pen_graph_set_replaces(b->to, pen_graph_node(b->to, made)->outputs[0],
                           b->values[copy->parameter.index]);
    b->order[b->order_count++] = made;
    return PEN_OK;
}

// Whether the bytes of a value, through views or as they are, came from elsewhere, or are those of
// a parameter: an update writes there, and need not wait for who reads them on another device.
static bool part_is_borrowed(const part_builder *b, pen_value_id value) {
    for (;;) {
        const pen_value *found = pen_graph_value(b->to, value);
        if (!pen_node_is(found->producer)) {
            return found->kind == PEN_VALUE_INPUT || found->kind == PEN_VALUE_PARAMETER;
        }
        const pen_node *maker = pen_graph_node(b->to, found->producer);
        if (maker->role == PEN_ROLE_TRANSFER) return true;
        if (!maker->op->is_view) return false;
        value = maker->inputs[0];
    }
}

// What is passed on gets a place of its own: that of what came is free again when this device has
// read it, and that of a parameter is written by its update.
static pen_status part_add_relay(part_builder *b, uint32_t channel, pen_value_id *value) {
    const pen_part_list *list =
        &b->plan->keys[b->plan->first_list[b->device] + b->plan->channels[channel].source_list]
             .list;
    const char *name = pen_value_name(b->to, *value), *output_name;
    pen_node_spec spec = pen_node_spec_of(PEN_OP(copy), NULL);
    PEN_TRY(part_name(b, &b->plan->node_names, name, "relay", &spec.name));
    PEN_TRY(part_name(b, &b->plan->value_names, name, "relayed", &output_name));
    if (list->kind != PEN_TASK_FORWARD) spec.role = PEN_ROLE_BACKWARD_INPUT;
    if (list->kind == PEN_TASK_UPDATE) spec.role = PEN_ROLE_UPDATE;
    spec.inputs = value;
    spec.input_count = 1;
    spec.output_names = &output_name;
    const pen_layout layout = pen_graph_value(b->to, *value)->layout;
    pen_node_id made;
    PEN_TRY(pen_graph_add_node(b->to, &spec, &made));
    *value = pen_graph_node(b->to, made)->outputs[0];
    pen_graph_set_layout(b->to, *value, layout);
    b->order[b->order_count++] = made;
    return PEN_OK;
}

static pen_status part_add_send(part_builder *b, uint32_t channel) {
    const pen_value_id value = b->plan->channel_values[channel];
    const pen_attribute_given number = pen_attribute_int("channel", channel);
    pen_value_id from = b->values[value.index];
    PEN_ASSERT(pen_value_is(from));
    if (part_is_borrowed(b, from)) PEN_TRY(part_add_relay(b, channel, &from));
    pen_node_spec spec = pen_node_spec_of(PEN_OP(send), NULL);
    PEN_TRY(part_name(b, &b->plan->node_names, pen_value_name(b->plan->graph, value), "send",
                      &spec.name));
    spec.role = PEN_ROLE_TRANSFER;
    spec.inputs = &from;
    spec.input_count = 1;
    spec.output_count = 0;
    spec.attributes = &number;
    spec.attribute_count = 1;
    b->plan->channels[channel].from = from;
    pen_node_id made;
    return pen_graph_add_node(b->to, &spec, &made);
}

static pen_status part_take_step(part_builder *b, part_step step, uint32_t *count) {
    switch (step.kind) {
    case STEP_AGAIN:
        return part_add_node(b, step.index, true);
    case STEP_NODE:
        *count += 1;
        return part_add_node(b, step.index, false);
    case STEP_COPY:
        return part_add_copy(b, &b->plan->copies[step.index]);
    case STEP_SEND:
        return part_add_send(b, step.index);
    }
    return pen_error(PEN_INTERNAL, "step kind %d", (int)step.kind);
}

// ---- the part

// Values that arrive from elsewhere get their channel before any node is copied.
static pen_status part_begin(part_builder *b) {
    const cut_plan *plan = b->plan;
    PEN_TRY(pen_graph_create(plan->arena, pen_graph_name(plan->graph), &b->to));
    PEN_TRY(PEN_NEW(plan->scratch, plan->value_count, &b->values));
    PEN_TRY(PEN_NEW(plan->scratch, plan->value_count, &b->again));
    PEN_TRY(PEN_NEW(plan->scratch, plan->value_count, &b->channel_of));
    PEN_TRY(PEN_NEW(plan->scratch, plan->node_count, &b->nodes));
    for (uint32_t v = 0; v < plan->value_count; v++) {
        b->values[v] = b->again[v] = PEN_VALUE_NONE;
        b->channel_of[v] = PEN_ID_NONE;
    }
    for (uint32_t n = 0; n < plan->node_count; n++) {
        b->nodes[n] = PEN_NODE_NONE;
    }
    for (uint32_t c = 0; c < plan->channel_count; c++) {
        if (plan->channels[c].target != b->device) continue;
        b->channel_of[plan->channel_values[c].index] = c;
    }
    return part_add_values(b);
}

static pen_status part_keep(const part_builder *b, pen_part *part) {
    const pen_cut_request *request = b->plan->request;
    pen_value_id *kept;
    PEN_TRY(PEN_NEW(b->plan->arena, request->kept_count, &kept));
    for (uint32_t k = 0; k < request->kept_count; k++) {
        if (!pen_value_is(request->kept[k])) continue;
        const pen_node_id maker = pen_graph_value(b->plan->graph, request->kept[k])->producer;
        if (!pen_node_is(maker) || !part_is_here(b, maker.index)) continue;
        kept[part->kept_count++] = b->values[request->kept[k].index];
    }
    part->kept = kept;
    return PEN_OK;
}

// List by list, in the order in which the lists run: so every node finds its operands made.
pen_status pen_cut_part_make(cut_plan *plan, uint32_t device, pen_part *out_part, uint32_t *count) {
    part_builder b = {.plan = plan, .device = device};
    const uint32_t first_list = plan->first_list[device];
    const uint32_t list_count = plan->first_list[device + 1] - first_list;
    pen_part_list *lists;
    PEN_TRY(part_begin(&b));
    PEN_TRY(part_list_steps(&b, list_count));
    PEN_TRY(PEN_NEW(plan->arena, list_count, &lists));
    PEN_TRY(PEN_NEW(plan->arena, b.step_first[list_count], &b.order));
    for (uint32_t l = 0; l < list_count; l++) {
        lists[l] = plan->keys[first_list + l].list;
        lists[l].first = b.order_count;
        for (uint32_t s = b.step_first[l]; s < b.step_first[l + 1]; s++) {
            PEN_TRY(part_take_step(&b, b.steps[s], count));
        }
        lists[l].end = b.order_count;
    }
    pen_part part = {.graph = b.to,
                     .order = b.order,
                     .order_count = b.order_count,
                     .lists = lists,
                     .list_count = list_count};
    PEN_TRY(part_keep(&b, &part));
    PEN_TRY(pen_graph_verify(part.graph, &(pen_verify_options){.types = true}));
    *out_part = part;
    return PEN_OK;
}
