#include <stdlib.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "graph/passes/cut/cut_state.h"
#include "graph/passes/cut/cut_twins.h"

static const pen_node *plan_node(const cut_plan *plan, uint32_t node) {
    return pen_graph_node(plan->graph, (pen_node_id){node});
}

// The node of the order that makes input `input` of `node`; PEN_ID_NONE where it is not computed.
static uint32_t plan_maker(const cut_plan *plan, const pen_node *node, uint32_t input) {
    if (!pen_value_is(node->inputs[input])) return PEN_ID_NONE;
    return pen_graph_value(plan->graph, node->inputs[input])->producer.index;
}

// ---- classes

// Whether a sum of a parameter's gradients, which the backward pass makes when a step has one
// microbatch, could as well be made by the update: nothing else reads it.
static bool plan_may_be_late(const cut_plan *plan, uint32_t n, const bool *may_be_late) {
    const pen_node *node = plan_node(plan, n);
    if (plan->classes[n] != CUT_WEIGHT_HALF || node->accumulates) return false;
    if (pen_node_is(node->gradient_of)) return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const uint32_t v = node->outputs[i].index;
        for (uint32_t r = plan->readers.first[v]; r < plan->readers.first[v + 1]; r++) {
            const uint32_t reader = plan->readers.nodes[r].index;
            if (plan->classes[reader] == CUT_DEAD || plan->classes[reader] == CUT_UPDATE) continue;
            if (!may_be_late[reader]) return false;
        }
    }
    return true;
}

// Sums of gradients that meet from several stages go with the updates: they are exchanged once a
// step, and in whichever direction.
static pen_status plan_delay_sums(cut_plan *plan) {
    bool *may_be_late;
    PEN_TRY(PEN_NEW(plan->scratch, plan->node_count, &may_be_late));
    for (uint32_t n = plan->node_count; n-- > 0;) {
        may_be_late[n] = plan_may_be_late(plan, n, may_be_late);
    }
    for (uint32_t n = 0; n < plan->node_count; n++) {
        const pen_node *node = plan_node(plan, n);
        bool is_late = false;
        for (uint32_t i = 0; may_be_late[n] && i < node->input_count; i++) {
            const uint32_t maker = plan_maker(plan, node, i);
            if (maker == PEN_ID_NONE) continue;
            is_late |=
                plan->classes[maker] == CUT_UPDATE || cut_stage(plan, maker) != cut_stage(plan, n);
        }
        if (is_late) plan->classes[n] = CUT_UPDATE;
    }
    return PEN_OK;
}

static pen_status plan_classify(cut_plan *plan) {
    static const cut_class classes[] = {
        [PEN_ROLE_FORWARD] = CUT_FORWARD,
        [PEN_ROLE_BACKWARD_INPUT] = CUT_INPUT_HALF,
        [PEN_ROLE_BACKWARD_WEIGHT] = CUT_WEIGHT_HALF,
        [PEN_ROLE_UPDATE] = CUT_UPDATE,
        [PEN_ROLE_TRANSFER] = CUT_DEAD,
    };
    const pen_cut_request *request = plan->request;
    for (uint32_t p = 0; p < request->order_count; p++) {
        const pen_node_id id = request->order[p];
        plan->classes[id.index] = classes[pen_graph_node(plan->graph, id)->role];
        PEN_ASSERT(plan->classes[id.index] != CUT_DEAD);
        PEN_ASSERT(request->stage_of_node[id.index] < request->stage_count);
        PEN_ASSERT(cut_device(plan, id.index) < request->device_count);
    }
    return plan_delay_sums(plan);
}

// ---- what may flow where

static pen_status plan_check_flow(const cut_plan *plan, uint32_t reader, pen_value_id value) {
    const uint32_t maker = pen_graph_value(plan->graph, value)->producer.index;
    PEN_ASSERT(plan->classes[maker] != CUT_DEAD);
    const uint32_t from = cut_stage(plan, maker), to = cut_stage(plan, reader);
    const cut_class of = plan->classes[maker], at = plan->classes[reader];
    const bool is_against =
        at == CUT_FORWARD ? from > to : cut_is_backward(at) && cut_is_backward(of) && from < to;
    PEN_ASSERT(at != CUT_FORWARD || of == CUT_FORWARD);
    PEN_ASSERT(!cut_is_backward(at) || of != CUT_UPDATE);
    if (!is_against) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "'%s', which '%s' makes in stage %u, is read by '%s' in stage %u: %s flow to "
                     "%s stages",
                     pen_value_name(plan->graph, value), plan_node(plan, maker)->name, from,
                     plan_node(plan, reader)->name, to,
                     at == CUT_FORWARD ? "activations" : "gradients",
                     at == CUT_FORWARD ? "later" : "earlier");
}

static pen_status plan_check_flows(const cut_plan *plan) {
    for (uint32_t p = 0; p < plan->request->order_count; p++) {
        const uint32_t n = plan->request->order[p].index;
        const pen_node *node = plan_node(plan, n);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (plan_maker(plan, node, i) == PEN_ID_NONE) continue;
            PEN_TRY(plan_check_flow(plan, n, node->inputs[i]));
        }
    }
    return PEN_OK;
}

// What is replaced for every microbatch, a running statistic, is there once, in one stage.
static pen_status plan_check_statistics(const cut_plan *plan, uint32_t v) {
    const pen_value_id successor = plan->successor[v];
    if (!pen_value_is(successor)) return PEN_OK;
    const uint32_t maker = pen_graph_value(plan->graph, successor)->producer.index;
    if (plan->classes[maker] == CUT_DEAD || plan->classes[maker] == CUT_UPDATE) return PEN_OK;
    for (uint32_t r = plan->readers.first[v]; r < plan->readers.first[v + 1]; r++) {
        const uint32_t reader = plan->readers.nodes[r].index;
        if (plan->classes[reader] == CUT_DEAD) continue;
        if (cut_stage(plan, reader) == cut_stage(plan, maker)) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "'%s', which '%s' in stage %u changes for every microbatch, is read by "
                         "'%s' in stage %u: a running statistic belongs to one stage",
                         pen_value_name(plan->graph, (pen_value_id){v}),
                         plan_node(plan, maker)->name, cut_stage(plan, maker),
                         plan_node(plan, reader)->name, cut_stage(plan, reader));
    }
    return PEN_OK;
}

static pen_status plan_find_successors(cut_plan *plan) {
    for (uint32_t v = 0; v < plan->value_count; v++) {
        plan->successor[v] = PEN_VALUE_NONE;
    }
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const pen_value *value = pen_graph_value(plan->graph, (pen_value_id){v});
        if (!pen_value_is(value->replaces) || !pen_node_is(value->producer)) continue;
        if (plan->classes[value->producer.index] == CUT_DEAD) continue;
        plan->successor[value->replaces.index] = (pen_value_id){v};
    }
    for (uint32_t v = 0; v < plan->value_count; v++) {
        PEN_TRY(plan_check_statistics(plan, v));
    }
    return PEN_OK;
}

// ---- phases of updates

// The phase of what runs in `stage` after `maker`: above that of another stage, on whatever device,
// so that nothing depends on the order in which stages of one device run a phase.
static uint32_t plan_phase_after(const cut_plan *plan, uint32_t maker, uint32_t stage) {
    const uint32_t phase = plan->classes[maker] == CUT_UPDATE ? plan->phases[maker] : 0;
    return phase + (cut_stage(plan, maker) == stage ? 0 : 1);
}

// The phase of what runs in `stage` after all updates of its device that read `value`.
static uint32_t plan_phase_after_readers(const cut_plan *plan, uint32_t value, uint32_t stage,
                                         uint32_t but) {
    const uint32_t device = plan->request->device_of_stage[stage];
    uint32_t phase = 0;
    for (uint32_t r = plan->readers.first[value]; r < plan->readers.first[value + 1]; r++) {
        const uint32_t reader = plan->readers.nodes[r].index;
        if (reader == but || plan->classes[reader] != CUT_UPDATE) continue;
        if (cut_device(plan, reader) != device) continue;
        const uint32_t after = plan_phase_after(plan, reader, stage);
        if (after > phase) phase = after;
    }
    return phase;
}

static void plan_set_phase(cut_plan *plan, uint32_t n) {
    const pen_node *node = plan_node(plan, n);
    uint32_t phase = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t maker = plan_maker(plan, node, i);
        if (maker == PEN_ID_NONE) continue;
        const uint32_t after = plan_phase_after(plan, maker, cut_stage(plan, n));
        if (after > phase) phase = after;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value_id old = pen_graph_value(plan->graph, node->outputs[i])->replaces;
        if (!pen_value_is(old)) continue;
        const uint32_t after = plan_phase_after_readers(plan, old.index, cut_stage(plan, n), n);
        if (after > phase) phase = after;
    }
    plan->phases[n] = phase;
}

static void plan_set_phases(cut_plan *plan) {
    for (uint32_t p = 0; p < plan->request->order_count; p++) {
        const uint32_t n = plan->request->order[p].index;
        if (plan->classes[n] == CUT_UPDATE) plan_set_phase(plan, n);
    }
}

// ---- copies of parameters

// A device that reads a parameter which another one updates gets a copy, refreshed when its readers
// are done.
static void plan_copy_parameter(cut_plan *plan, uint32_t v, uint32_t *lowest_stage) {
    const pen_value_id updated = plan->successor[v];
    const uint32_t maker = pen_graph_value(plan->graph, updated)->producer.index;
    for (uint32_t d = 0; d < plan->request->device_count; d++) {
        lowest_stage[d] = PEN_ID_NONE;
    }
    for (uint32_t r = plan->readers.first[v]; r < plan->readers.first[v + 1]; r++) {
        const uint32_t reader = plan->readers.nodes[r].index;
        if (plan->classes[reader] == CUT_DEAD) continue;
        uint32_t *lowest = &lowest_stage[cut_device(plan, reader)];
        if (cut_stage(plan, reader) < *lowest) *lowest = cut_stage(plan, reader);
    }
    for (uint32_t d = 0; d < plan->request->device_count; d++) {
        const uint32_t stage = lowest_stage[d];
        if (stage == PEN_ID_NONE || d == cut_device(plan, maker)) continue;
        const uint32_t arrives = plan->phases[maker] + 1;
        const uint32_t after = plan_phase_after_readers(plan, v, stage, PEN_ID_NONE);
        plan->copies[plan->copy_count++] = (cut_copy){.parameter = {v},
                                                      .updated = updated,
                                                      .stage = stage,
                                                      .phase = after > arrives ? after : arrives};
    }
}

static pen_status plan_find_copies(cut_plan *plan) {
    uint32_t *lowest_stage;
    size_t limit = 0;
    for (uint32_t v = 0; v < plan->value_count; v++) {
        if (!pen_value_is(plan->successor[v])) continue;
        limit += pen_readers_count(&plan->readers, (pen_value_id){v});
    }
    PEN_TRY(PEN_NEW(plan->scratch, plan->request->device_count, &lowest_stage));
    PEN_TRY(PEN_NEW(plan->scratch, limit, &plan->copies));
    for (uint32_t v = 0; v < plan->value_count; v++) {
        if (pen_value_is(plan->successor[v])) plan_copy_parameter(plan, v, lowest_stage);
    }
    return PEN_OK;
}

// ---- what runs again

// Whether running the node again gives what it gave: it reads nothing that has been replaced since,
// but for statistics that go into nothing but what replaces them.
static bool plan_is_repeatable(const cut_plan *plan, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const pen_value_id successor = plan->successor[node->inputs[i].index];
        if (!pen_value_is(successor)) continue;
        const uint32_t maker = pen_graph_value(plan->graph, successor)->producer.index;
        if (plan->classes[maker] != CUT_FORWARD) continue;
        if (!pen_node_is_statistic(node, i)) return false;
    }
    return true;
}

// Has the forward nodes of its stage that `reader` reads run again, with half `half`.
static void plan_repeat_inputs(cut_plan *plan, uint32_t reader, cut_class half) {
    const pen_node *node = plan_node(plan, reader);
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t maker = plan_maker(plan, node, i);
        if (maker == PEN_ID_NONE || plan->classes[maker] != CUT_FORWARD) continue;
        if (cut_stage(plan, maker) != cut_stage(plan, reader)) continue;
        if (plan->again[maker] != CUT_DEAD && plan->again[maker] <= half) continue;
        if (plan_is_repeatable(plan, plan_node(plan, maker))) plan->again[maker] = half;
    }
}

static void plan_find_repeated(cut_plan *plan) {
    const bool *is_recomputed = plan->request->is_recomputed;
    for (uint32_t n = plan->node_count; n-- > 0 && is_recomputed != NULL;) {
        if (plan->classes[n] == CUT_DEAD || !is_recomputed[cut_stage(plan, n)]) continue;
        if (cut_is_backward(plan->classes[n])) plan_repeat_inputs(plan, n, plan->classes[n]);
        if (plan->again[n] != CUT_DEAD) plan_repeat_inputs(plan, n, plan->again[n]);
    }
}

// ---- channels

typedef struct plan_reading {
    uint32_t value; // whose readers were looked at last, plus 1
    bool in_microbatch;
} plan_reading;

static void plan_add_channel(cut_plan *plan, pen_value_id value, uint32_t source, uint32_t target,
                             bool in_microbatch) {
    const pen_node_id maker = pen_graph_value(plan->graph, value)->producer;
    const cut_class of = pen_node_is(maker) ? plan->classes[maker.index] : CUT_FORWARD;
    plan->channel_values[plan->channel_count] = value;
    plan->channels[plan->channel_count++] = (pen_channel){
        .value = pen_value_name(plan->graph, value),
        .source = source,
        .target = target,
        .from = value, // of the whole graph, until the parts are made
        .to = PEN_VALUE_NONE,
        .is_per_step = !in_microbatch,
        .is_backward = in_microbatch && cut_is_backward(of),
    };
}

// Channels to every device but `source` that reads the value.
static void plan_add_channels(cut_plan *plan, pen_value_id value, uint32_t source,
                              plan_reading *readings) {
    const uint32_t v = value.index;
    for (uint32_t r = plan->readers.first[v]; r < plan->readers.first[v + 1]; r++) {
        const uint32_t reader = plan->readers.nodes[r].index;
        if (plan->classes[reader] == CUT_DEAD) continue;
        plan_reading *reading = &readings[cut_device(plan, reader)];
        if (reading->value != v + 1) *reading = (plan_reading){.value = v + 1};
        reading->in_microbatch |= plan->classes[reader] != CUT_UPDATE;
    }
    const pen_value_id old = pen_graph_value(plan->graph, value)->replaces;
    for (uint32_t c = 0; pen_value_is(old) && c < plan->copy_count; c++) {
        if (!pen_value_same(plan->copies[c].updated, value)) continue;
        plan_reading *reading = &readings[plan->request->device_of_stage[plan->copies[c].stage]];
        if (reading->value != v + 1) *reading = (plan_reading){.value = v + 1};
    }
    for (uint32_t d = 0; d < plan->request->device_count; d++) {
        if (readings[d].value != v + 1 || d == source) continue;
        plan_add_channel(plan, value, source, d, readings[d].in_microbatch);
    }
}

static int plan_compare_numbers(uint32_t a, uint32_t b) {
    return (a > b) - (a < b);
}

static int plan_compare_channels(const void *left, const void *right) {
    const pen_channel *a = left, *b = right;
    if (a->source != b->source) return plan_compare_numbers(a->source, b->source);
    if (a->target != b->target) return plan_compare_numbers(a->target, b->target);
    return plan_compare_numbers(a->from.index, b->from.index);
}

// Sorted, so that the same cut always numbers its channels alike.
static pen_status plan_find_channels(cut_plan *plan) {
    const size_t limit = (size_t)plan->readers.first[plan->value_count] + plan->copy_count;
    plan_reading *readings;
    PEN_TRY(PEN_NEW(plan->scratch, plan->request->device_count, &readings));
    PEN_TRY(PEN_NEW(plan->scratch, limit, &plan->channels));
    PEN_TRY(PEN_NEW(plan->scratch, limit, &plan->channel_values));
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const pen_node_id maker = pen_graph_value(plan->graph, (pen_value_id){v})->producer;
        if (!pen_node_is(maker) || plan->classes[maker.index] == CUT_DEAD) continue;
        plan_add_channels(plan, (pen_value_id){v}, cut_device(plan, maker.index), readings);
    }
    for (uint32_t i = 0; i < plan->request->fed_count; i++) {
        const pen_value_id fed = plan->request->fed[i];
        if (pen_value_is(fed)) plan_add_channels(plan, fed, PEN_CHANNEL_HOST, readings);
    }
    qsort(plan->channels, plan->channel_count, sizeof *plan->channels, plan_compare_channels);
    pen_channel *channels;
    PEN_TRY(PEN_NEW(plan->arena, plan->channel_count, &channels));
    for (uint32_t c = 0; c < plan->channel_count; c++) {
        channels[c] = plan->channels[c];
        plan->channel_values[c] = channels[c].from;
        channels[c].from = PEN_VALUE_NONE;
    }
    plan->channels = channels;
    return PEN_OK;
}

// ---- lists

static cut_key plan_update_key(const cut_plan *plan, uint32_t stage, uint32_t phase) {
    return (cut_key){plan->request->device_of_stage[stage],
                     {2, phase, stage},
                     {.kind = PEN_TASK_UPDATE, .stage = stage, .phase = phase}};
}

static cut_key plan_key(const cut_plan *plan, uint32_t stage, cut_class class, uint32_t phase) {
    const uint32_t device = plan->request->device_of_stage[stage];
    if (class == CUT_UPDATE) return plan_update_key(plan, stage, phase);
    if (class == CUT_FORWARD) {
        return (cut_key){device, {0, stage, 0}, {.kind = PEN_TASK_FORWARD, .stage = stage}};
    }
    PEN_ASSERT(class != CUT_DEAD);
    pen_task_kind kind = PEN_TASK_BACKWARD;
    if (plan->request->is_halved != NULL && plan->request->is_halved[stage]) {
        kind = class == CUT_INPUT_HALF ? PEN_TASK_BACKWARD_INPUT : PEN_TASK_BACKWARD_WEIGHT;
    }
    return (cut_key){
        device, {1, UINT32_MAX - stage, (uint32_t)kind}, {.kind = kind, .stage = stage}};
}

static int plan_compare_keys(const void *left, const void *right) {
    const cut_key *a = left, *b = right;
    int order = plan_compare_numbers(a->device, b->device);
    for (int i = 0; i < 3 && order == 0; i++) {
        order = plan_compare_numbers(a->ranks[i], b->ranks[i]);
    }
    return order;
}

// The task that a channel's value leaves with.
static cut_key plan_source_key(const cut_plan *plan, uint32_t channel) {
    const uint32_t maker =
        pen_graph_value(plan->graph, plan->channel_values[channel])->producer.index;
    const uint32_t stage = cut_stage(plan, maker);
    const bool is_update = plan->classes[maker] == CUT_UPDATE;
    if (plan->channels[channel].is_per_step && !is_update) return plan_update_key(plan, stage, 0);
    return plan_key(plan, stage, plan->classes[maker], plan->phases[maker]);
}

static uint32_t plan_find_key(const cut_plan *plan, const cut_key *key) {
    const cut_key *found =
        bsearch(key, plan->keys, plan->key_count, sizeof *key, plan_compare_keys);
    PEN_ASSERT(found != NULL);
    return (uint32_t)(found - plan->keys);
}

uint32_t pen_cut_plan_list(const cut_plan *plan, uint32_t node, bool is_again) {
    const cut_class class = is_again ? plan->again[node] : plan->classes[node];
    const cut_key key = plan_key(plan, cut_stage(plan, node), class, plan->phases[node]);
    return plan_find_key(plan, &key);
}

uint32_t pen_cut_plan_update_list(const cut_plan *plan, uint32_t stage, uint32_t phase) {
    const cut_key key = plan_update_key(plan, stage, phase);
    return plan_find_key(plan, &key);
}

// A list for each stage, pass and phase in which a device has something to do.
static pen_status plan_gather_keys(cut_plan *plan) {
    const pen_cut_request *request = plan->request;
    const size_t limit = (size_t)request->order_count + plan->copy_count + plan->channel_count;
    PEN_TRY(PEN_NEW(plan->scratch, limit, &plan->keys));
    uint32_t count = 0;
    for (uint32_t p = 0; p < request->order_count; p++) {
        const uint32_t n = request->order[p].index;
        plan->keys[count++] = plan_key(plan, cut_stage(plan, n), plan->classes[n], plan->phases[n]);
    }
    for (uint32_t c = 0; c < plan->copy_count; c++) {
        plan->keys[count++] = plan_update_key(plan, plan->copies[c].stage, plan->copies[c].phase);
    }
    for (uint32_t c = 0; c < plan->channel_count; c++) {
        if (plan->channels[c].source == PEN_CHANNEL_HOST) continue;
        plan->keys[count++] = plan_source_key(plan, c);
    }
    qsort(plan->keys, count, sizeof *plan->keys, plan_compare_keys);
    for (uint32_t k = 0; k < count; k++) {
        const bool is_new =
            k == 0 || plan_compare_keys(&plan->keys[k], &plan->keys[plan->key_count - 1]) != 0;
        if (is_new) plan->keys[plan->key_count++] = plan->keys[k];
    }
    return PEN_OK;
}

static pen_status plan_find_lists(cut_plan *plan) {
    const uint32_t device_count = plan->request->device_count;
    PEN_TRY(plan_gather_keys(plan));
    PEN_TRY(PEN_NEW(plan->scratch, (size_t)device_count + 1, &plan->first_list));
    for (uint32_t k = 0; k < plan->key_count; k++) {
        plan->first_list[plan->keys[k].device + 1] += 1;
    }
    for (uint32_t d = 0; d < device_count; d++) {
        plan->first_list[d + 1] += plan->first_list[d];
    }
    for (uint32_t c = 0; c < plan->channel_count; c++) {
        if (plan->channels[c].source == PEN_CHANNEL_HOST) continue;
        const cut_key key = plan_source_key(plan, c);
        plan->channels[c].source_list =
            plan_find_key(plan, &key) - plan->first_list[plan->channels[c].source];
    }
    return PEN_OK;
}

static pen_status plan_gather_names(cut_plan *plan) {
    pen_name_map_init(&plan->node_names, plan->scratch);
    pen_name_map_init(&plan->value_names, plan->scratch);
    for (uint32_t n = 0; n < plan->node_count; n++) {
        PEN_TRY(pen_name_map_add(&plan->node_names, plan_node(plan, n)->name, n));
    }
    for (uint32_t v = 0; v < plan->value_count; v++) {
        const char *name = pen_value_name(plan->graph, (pen_value_id){v});
        PEN_TRY(pen_name_map_add(&plan->value_names, name, v));
    }
    return PEN_OK;
}

static pen_status plan_begin(const pen_cut_request *request, cut_plan *plan) {
    plan->request = request;
    plan->graph = request->graph;
    plan->node_count = pen_graph_node_count(request->graph);
    plan->value_count = pen_graph_value_count(request->graph);
    PEN_TRY(PEN_NEW(plan->scratch, plan->node_count, &plan->classes));
    PEN_TRY(pen_readers_build(request->graph, 0, NULL, plan->scratch, &plan->readers));
    return plan_classify(plan);
}

// Twins change the graph, so after them the plan begins anew.
pen_status pen_cut_plan_make(const pen_cut_request *request, pen_arena *arena, pen_arena *scratch,
                             cut_plan *out_plan) {
    cut_plan plan = {.arena = arena, .scratch = scratch};
    pen_cut_request *twinned;
    PEN_TRY(PEN_NEW(scratch, 1, &twinned));
    PEN_TRY(plan_begin(request, &plan));
    PEN_TRY(pen_cut_twins_make(&plan, twinned, &plan.twin_count));
    if (plan.twin_count > 0) PEN_TRY(plan_begin(twinned, &plan));
    PEN_TRY(PEN_NEW(scratch, plan.node_count, &plan.phases));
    PEN_TRY(PEN_NEW(scratch, plan.node_count, &plan.again));
    PEN_TRY(PEN_NEW(scratch, plan.value_count, &plan.successor));
    PEN_TRY(plan_check_flows(&plan));
    PEN_TRY(plan_find_successors(&plan));
    plan_set_phases(&plan);
    PEN_TRY(plan_find_copies(&plan));
    plan_find_repeated(&plan);
    PEN_TRY(plan_find_channels(&plan));
    PEN_TRY(plan_find_lists(&plan));
    PEN_TRY(plan_gather_names(&plan));
    *out_plan = plan;
    return PEN_OK;
}
