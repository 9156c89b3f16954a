#include "tests/support/part_machine.h"

#include "graph/graph.h"
#include "tests/support/check.h"

static bool machine_is_single(const pen_graph *graph, const pen_value *value) {
    switch (value->kind) {
    case PEN_VALUE_COMPUTED:
        return pen_graph_node(graph, value->producer)->accumulates;
    case PEN_VALUE_INPUT:
    case PEN_VALUE_SCALAR:
        return false;
    case PEN_VALUE_PARAMETER:
    case PEN_VALUE_STATE:
    case PEN_VALUE_CONSTANT:
        break;
    }
    return true;
}

machine machine_make(const pen_graph *graph, uint32_t microbatch_count, pen_arena *arena) {
    machine m = {graph, arena, microbatch_count, NULL};
    CHECK_OK(PEN_NEW(arena, (size_t)pen_graph_value_count(graph) * microbatch_count, &m.data));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        const uint64_t bytes = pen_tensor_type_bytes(&value->type);
        void **data = &m.data[(size_t)v * microbatch_count];
        for (uint32_t i = 0; i < microbatch_count; i++) {
            if (i > 0 && machine_is_single(graph, value)) {
                data[i] = data[0];
                continue;
            }
            char *memory;
            CHECK_OK(PEN_NEW(arena, bytes + 1, &memory));
            memset(memory, value->kind == PEN_VALUE_COMPUTED ? 0x5a : 0, bytes);
            if (value->data != NULL && bytes > 0) memcpy(memory, value->data, bytes);
            data[i] = memory;
        }
    }
    return m;
}

void *machine_data(const machine *m, pen_value_id value, uint32_t microbatch) {
    return m->data[(size_t)value.index * m->microbatch_count + microbatch];
}

void machine_fill(machine *m, const machine *from) {
    for (uint32_t v = 0; v < pen_graph_value_count(m->graph); v++) {
        const pen_value *value = pen_graph_value(m->graph, (pen_value_id){v});
        const bool persists = value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE;
        if (!persists || value->data != NULL || value->data_bytes == 0) continue;
        pen_value_id same;
        CHECK_OK(pen_graph_find_value(from->graph, value->name, &same));
        memcpy(machine_data(m, (pen_value_id){v}, 0), machine_data(from, same, 0),
               value->data_bytes);
    }
}

static pen_tensor machine_tensor(const machine *m, pen_value_id value, uint32_t microbatch) {
    if (!pen_value_is(value)) return (pen_tensor){0};
    return (pen_tensor){*pen_value_type(m->graph, value), machine_data(m, value, microbatch)};
}

static void machine_run_node(machine *m, const pen_node *node, uint32_t microbatch, uint64_t step,
                             pen_arena *scratch) {
    pen_tensor *inputs, *outputs;
    CHECK_OK(PEN_NEW(scratch, node->input_count, &inputs));
    CHECK_OK(PEN_NEW(scratch, node->output_count, &outputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = machine_tensor(m, node->inputs[i], microbatch);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        outputs[i] = machine_tensor(m, node->outputs[i], microbatch);
    }
    const pen_reference_call call = {.graph = m->graph,
                                     .node = node,
                                     .inputs = inputs,
                                     .outputs = outputs,
                                     .scratch = scratch,
                                     .seed = 7,
                                     .step = step,
                                     .microbatch = microbatch};
    CHECK_OK(pen_reference_run(&call, microbatch == 0));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        const pen_value *value = pen_graph_value(m->graph, node->outputs[i]);
        if (!pen_value_is(value->replaces)) continue;
        memcpy(machine_data(m, value->replaces, 0), outputs[i].data,
               pen_tensor_type_bytes(&value->type));
    }
}

void machine_run(machine *m, const pen_node_id *nodes, uint32_t count, uint32_t microbatch,
                 uint64_t step) {
    for (uint32_t i = 0; i < count; i++) {
        pen_arena *scratch = check_arena();
        machine_run_node(m, pen_graph_node(m->graph, nodes[i]), microbatch, step, scratch);
        pen_arena_destroy(scratch);
    }
}

// ---- parts

typedef struct machine_round {
    machine *parts;
    const pen_cut *cut;
    const machine *whole;
    pen_arena *arena;
    uint64_t step;
    bool **is_there; // [device][value * microbatch_count + microbatch]
    uint32_t **done; // [device][list] microbatches done; of updates 0 or 1
    uint32_t left;   // tasks
} machine_round;

static bool *round_there(const machine_round *round, uint32_t device, pen_value_id value,
                         uint32_t microbatch) {
    return &round->is_there[device]
                           [(size_t)value.index * round->whole->microbatch_count + microbatch];
}

static pen_value_id round_find(const pen_graph *graph, const char *name) {
    pen_value_id value;
    CHECK_OK(pen_graph_find_value(graph, name, &value));
    return value;
}

// Inputs go through the channels of the host, scalars to whoever has them.
static void round_feed(machine_round *round) {
    const machine *whole = round->whole;
    for (uint32_t c = 0; c < round->cut->channel_count; c++) {
        const pen_channel *channel = &round->cut->channels[c];
        if (channel->source != PEN_CHANNEL_HOST) continue;
        const pen_value_id from = round_find(whole->graph, channel->value);
        machine *to = &round->parts[channel->target];
        for (uint32_t m = 0; m < whole->microbatch_count; m++) {
            memcpy(machine_data(to, channel->to, m), machine_data(whole, from, m),
                   pen_tensor_type_bytes(pen_value_type(whole->graph, from)));
            *round_there(round, channel->target, channel->to, m) = true;
        }
    }
    for (uint32_t d = 0; d < round->cut->device_count; d++) {
        const pen_graph *graph = round->cut->parts[d].graph;
        for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
            const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
            if (value->kind == PEN_VALUE_COMPUTED || value->kind == PEN_VALUE_INPUT) continue;
            for (uint32_t m = 0; m < whole->microbatch_count; m++) {
                *round_there(round, d, (pen_value_id){v}, m) = true;
                if (value->kind != PEN_VALUE_SCALAR) continue;
                memcpy(machine_data(&round->parts[d], (pen_value_id){v}, m),
                       machine_data(whole, round_find(whole->graph, value->name), m),
                       pen_tensor_type_bytes(&value->type));
            }
        }
    }
}

static void round_begin(machine_round *round) {
    const pen_cut *cut = round->cut;
    const uint32_t microbatch_count = round->whole->microbatch_count;
    CHECK_OK(PEN_NEW(round->arena, cut->device_count, &round->is_there));
    CHECK_OK(PEN_NEW(round->arena, cut->device_count, &round->done));
    for (uint32_t d = 0; d < cut->device_count; d++) {
        const pen_part *part = &cut->parts[d];
        CHECK_OK(PEN_NEW(round->arena,
                         (size_t)pen_graph_value_count(part->graph) * microbatch_count,
                         &round->is_there[d]));
        CHECK_OK(PEN_NEW(round->arena, part->list_count, &round->done[d]));
        for (uint32_t l = 0; l < part->list_count; l++) {
            round->left += part->lists[l].kind == PEN_TASK_UPDATE ? 1 : microbatch_count;
        }
    }
    round_feed(round);
}

static bool round_inputs_are_there(const machine_round *round, uint32_t device, uint32_t list,
                                   uint32_t microbatch) {
    const pen_part *part = &round->cut->parts[device];
    const pen_part_list *l = &part->lists[list];
    for (uint32_t p = l->first; p < l->end; p++) {
        const pen_node *node = pen_graph_node(part->graph, part->order[p]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            if (*round_there(round, device, node->inputs[i], microbatch)) continue;
            const pen_node_id maker = pen_graph_value(part->graph, node->inputs[i])->producer;
            bool is_inside = false;
            for (uint32_t q = l->first; q < p && pen_node_is(maker); q++) {
                is_inside |= part->order[q].index == maker.index;
            }
            if (!is_inside) return false;
        }
    }
    return true;
}

// Updates run in order, behind everything else of their device.
static bool round_may_run(const machine_round *round, uint32_t device, uint32_t list) {
    const pen_part *part = &round->cut->parts[device];
    const uint32_t microbatch_count = round->whole->microbatch_count;
    const bool is_update = part->lists[list].kind == PEN_TASK_UPDATE;
    if (round->done[device][list] == (is_update ? 1 : microbatch_count)) return false;
    for (uint32_t l = 0; is_update && l < list; l++) {
        const uint32_t all = part->lists[l].kind == PEN_TASK_UPDATE ? 1 : microbatch_count;
        if (round->done[device][l] < all) return false;
    }
    return round_inputs_are_there(round, device, list, round->done[device][list]);
}

static void round_send(machine_round *round, uint32_t device, uint32_t list, uint32_t microbatch) {
    for (uint32_t c = 0; c < round->cut->channel_count; c++) {
        const pen_channel *channel = &round->cut->channels[c];
        if (channel->source != device || channel->source_list != list) continue;
        machine *from = &round->parts[device], *to = &round->parts[channel->target];
        CHECK(!channel->is_per_step || microbatch == 0, "%s leaves with microbatch %u",
              channel->value, microbatch);
        memcpy(machine_data(to, channel->to, microbatch),
               machine_data(from, channel->from, microbatch),
               pen_tensor_type_bytes(pen_value_type(from->graph, channel->from)));
        *round_there(round, channel->target, channel->to, microbatch) = true;
    }
}

static void round_run(machine_round *round, uint32_t device, uint32_t list) {
    const pen_part *part = &round->cut->parts[device];
    const pen_part_list *l = &part->lists[list];
    const uint32_t microbatch = round->done[device][list]++;
    machine_run(&round->parts[device], part->order + l->first, l->end - l->first, microbatch,
                round->step);
    for (uint32_t p = l->first; p < l->end; p++) {
        const pen_node *node = pen_graph_node(part->graph, part->order[p]);
        const bool is_sum = node->accumulates;
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            *round_there(round, device, node->outputs[i], is_sum ? 0 : microbatch) = true;
        }
    }
    round_send(round, device, list, microbatch);
    round->left -= 1;
}

void machine_run_parts(machine *parts, const pen_cut *cut, const machine *whole, random_case *dice,
                       uint64_t step) {
    machine_round round = {parts, cut, whole, check_arena(), step, NULL, NULL, 0};
    round_begin(&round);
    while (round.left > 0) {
        uint32_t ready_count = 0, device = 0, list = 0;
        for (uint32_t d = 0; d < cut->device_count; d++) {
            for (uint32_t l = 0; l < cut->parts[d].list_count; l++) {
                if (!round_may_run(&round, d, l)) continue;
                ready_count += 1; // each of those ready is taken with the same chance
                if (random_between(dice, 1, ready_count) > 1) continue;
                device = d;
                list = l;
            }
        }
        CHECK(ready_count > 0, "%u tasks are left, none can run", round.left);
        round_run(&round, device, list);
    }
    pen_arena_destroy(round.arena);
}
