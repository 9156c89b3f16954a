#include "scheduler/runtime/run/part_buffers.h"

#include "graph/graph.h"
#include "graph/op.h"

// A node is bound once for every combination of its operands' copies: past this many combinations
// copies are rounded up to powers of two.
#define BUFFERS_BINDINGS_LIMIT 512u

typedef struct buffers_builder {
    const pen_part_buffers_request *request;
    const pen_part *part;
    pen_arena *arena;
    uint32_t value_count;
    uint32_t *position;   // [list_count][microbatch_count] of tasks
    uint32_t *first_list; // [value_count] of roots: the chain of uses, in `uses`
    uint32_t *list_of;    // [order_count] by position in the part's order
    bool *is_received;    // [value_count] per microbatch, or fed
    bool *is_sent;        // [value_count]
    uint32_t *acquired;   // [microbatch_count] scratch
    uint32_t *released;   // [microbatch_count] scratch
    uint32_t *use_first;  // [value_count + 1]
    uint32_t *uses;       // lists that make or read a root, by root
    pen_part_buffers buffers;
} buffers_builder;

pen_value_id pen_part_value_root(const pen_graph *graph, pen_value_id value) {
    for (;;) {
        const pen_node_id producer = pen_graph_value(graph, value)->producer;
        if (!pen_node_is(producer)) return value;
        const pen_node *node = pen_graph_node(graph, producer);
        if (!node->op->is_view) return value;
        value = node->inputs[0];
    }
}

uint32_t pen_part_task_position(const pen_part_buffers_request *request, uint32_t list,
                                uint32_t microbatch) {
    const pen_part_list *wanted = &request->cut->parts[request->device].lists[list];
    const bool is_update = wanted->kind == PEN_TASK_UPDATE;
    for (uint32_t t = 0; t < request->task_count; t++) {
        const pen_task *task = &request->tasks[t];
        if (task->kind != wanted->kind || task->stage != wanted->stage) continue;
        if (task->microbatch == (is_update ? wanted->phase : microbatch)) return t;
    }
    return PEN_ID_NONE;
}

// ---- which task runs when

static uint32_t *buffers_position(const buffers_builder *b, uint32_t list, uint32_t microbatch) {
    return &b->position[(size_t)list * b->request->microbatch_count + microbatch];
}

// Where each list stands in the device's order for every microbatch: how many places a value needs
// follows from it.
static pen_status buffers_find_tasks(buffers_builder *b) {
    const uint32_t microbatch_count = b->request->microbatch_count;
    PEN_TRY(PEN_NEW(b->arena, (size_t)b->part->list_count * microbatch_count, &b->position));
    PEN_TRY(PEN_NEW(b->arena, b->part->order_count, &b->list_of));
    for (uint32_t l = 0; l < b->part->list_count; l++) {
        const pen_part_list *list = &b->part->lists[l];
        for (uint32_t p = list->first; p < list->end; p++) {
            b->list_of[p] = l;
        }
        for (uint32_t m = 0; m < microbatch_count; m++) {
            const uint32_t position =
                pen_part_task_position(b->request, l, b->request->first_microbatch + m);
            if (position == PEN_ID_NONE) {
                return pen_error(PEN_INTERNAL,
                                 "the schedule of device %u has no task for list %u (stage %u), "
                                 "microbatch %u",
                                 b->request->device, l, list->stage,
                                 b->request->first_microbatch + m);
            }
            *buffers_position(b, l, m) = position;
        }
    }
    return PEN_OK;
}

// ---- which lists make and read each value

typedef void (*buffers_use_fn)(buffers_builder *b, uint32_t root, uint32_t list);

static void buffers_count_use(buffers_builder *b, uint32_t root, uint32_t list) {
    (void)list;
    b->use_first[root + 1]++;
}

static void buffers_add_use(buffers_builder *b, uint32_t root, uint32_t list) {
    b->uses[b->first_list[root]++] = list;
}

static void buffers_walk_uses(buffers_builder *b, buffers_use_fn use) {
    const pen_graph *graph = b->part->graph;
    for (uint32_t p = 0; p < b->part->order_count; p++) {
        const pen_node *node = pen_graph_node(graph, b->part->order[p]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            use(b, pen_part_value_root(graph, node->inputs[i]).index, b->list_of[p]);
        }
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            use(b, pen_part_value_root(graph, node->outputs[i]).index, b->list_of[p]);
        }
    }
}

static pen_status buffers_list_uses(buffers_builder *b) {
    PEN_TRY(PEN_NEW(b->arena, (size_t)b->value_count + 1, &b->use_first));
    PEN_TRY(PEN_NEW(b->arena, (size_t)b->value_count + 1, &b->first_list));
    buffers_walk_uses(b, buffers_count_use);
    for (uint32_t v = 0; v < b->value_count; v++) {
        b->use_first[v + 1] += b->use_first[v];
        b->first_list[v] = b->use_first[v];
    }
    PEN_TRY(PEN_NEW(b->arena, b->use_first[b->value_count], &b->uses));
    buffers_walk_uses(b, buffers_add_use);
    return PEN_OK;
}

static pen_status buffers_mark_channels(buffers_builder *b) {
    const pen_cut *cut = b->request->cut;
    PEN_TRY(PEN_NEW(b->arena, b->value_count, &b->is_received));
    PEN_TRY(PEN_NEW(b->arena, b->value_count, &b->is_sent));
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        const pen_channel *channel = &cut->channels[c];
        if (channel->target == b->request->device) b->is_received[channel->to.index] = true;
        if (channel->source != b->request->device) continue;
        b->is_sent[pen_part_value_root(b->part->graph, channel->from).index] = true;
    }
    return PEN_OK;
}

// ---- copies

// Whether the value outlives rounds, or is set for each task anew.
static bool buffers_persists(const buffers_builder *b, const pen_value *value) {
    switch (value->kind) {
    case PEN_VALUE_COMPUTED:
        break;
    case PEN_VALUE_INPUT:
        return false;
    case PEN_VALUE_SCALAR:
    case PEN_VALUE_PARAMETER:
    case PEN_VALUE_STATE:
    case PEN_VALUE_CONSTANT:
        return true;
    }
    if (pen_value_is(value->replaces)) return true;
    return pen_node_is(value->producer) &&
           pen_graph_node(b->part->graph, value->producer)->accumulates;
}

// The most microbatches at once between the first task that uses the value and the last.
static uint32_t buffers_overlap(buffers_builder *b, uint32_t value) {
    const uint32_t microbatch_count = b->request->microbatch_count;
    for (uint32_t m = 0; m < microbatch_count; m++) {
        b->acquired[m] = UINT32_MAX;
        b->released[m] = 0;
        for (uint32_t u = b->use_first[value]; u < b->use_first[value + 1]; u++) {
            const uint32_t position = *buffers_position(b, b->uses[u], m);
            if (position < b->acquired[m]) b->acquired[m] = position;
            if (position > b->released[m]) b->released[m] = position;
        }
    }
    uint32_t most = 1;
    for (uint32_t m = 0; m < microbatch_count; m++) {
        uint32_t count = 1;
        while (m + count < microbatch_count && b->acquired[m + count] <= b->released[m]) {
            count++;
        }
        if (count > most) most = count;
    }
    return most;
}

// Whether tasks of updates alone make and read the value, or it is read by one: once a round.
static bool buffers_is_per_round(const buffers_builder *b, uint32_t value) {
    for (uint32_t u = b->use_first[value]; u < b->use_first[value + 1]; u++) {
        if (b->part->lists[b->uses[u]].kind == PEN_TASK_UPDATE) return true;
    }
    return false;
}

static bool buffers_is_in_one_list(const buffers_builder *b, uint32_t value) {
    for (uint32_t u = b->use_first[value] + 1; u < b->use_first[value + 1]; u++) {
        if (b->uses[u] != b->uses[b->use_first[value]]) return false;
    }
    return true;
}

static void buffers_count_copies(buffers_builder *b, uint32_t value) {
    const bool is_used = b->use_first[value] < b->use_first[value + 1];
    const bool is_moved = b->is_received[value] || b->is_sent[value];
    if (!is_used || buffers_persists(b, pen_graph_value(b->part->graph, (pen_value_id){value}))) {
        return;
    }
    if (!is_moved && buffers_is_in_one_list(b, value)) return;
    uint32_t copies = 1, held = 1;
    if (!buffers_is_per_round(b, value)) {
        held = buffers_overlap(b, value);
        copies = held;
        if (b->is_received[value]) copies = held + 1;
        if (b->is_sent[value] && copies < 2) copies = 2;
        if (b->request->microbatch_count <= 1) copies = 1;
    }
    b->buffers.held[value] = held;
    b->buffers.copies[value] = copies;
}

static uint32_t buffers_common_divisor(uint32_t a, uint32_t b) {
    while (b != 0) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Whether some node would be bound too often.
static bool buffers_is_too_varied(const buffers_builder *b, const pen_node *node) {
    uint64_t common = 1;
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        const pen_value_id operand =
            i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        if (!pen_value_is(operand)) continue;
        const uint32_t copies =
            b->buffers.copies[pen_part_value_root(b->part->graph, operand).index];
        if (copies == 0) continue;
        common *= copies / buffers_common_divisor((uint32_t)common, copies);
        if (common > BUFFERS_BINDINGS_LIMIT) return true;
    }
    return false;
}

static void buffers_round_up(buffers_builder *b) {
    for (uint32_t v = 0; v < b->value_count; v++) {
        uint32_t copies = 1;
        while (copies < b->buffers.copies[v]) {
            copies *= 2;
        }
        if (b->buffers.copies[v] > 0) b->buffers.copies[v] = copies;
    }
}

static void buffers_follow_views(buffers_builder *b) {
    for (uint32_t v = 0; v < b->value_count; v++) {
        const uint32_t root = pen_part_value_root(b->part->graph, (pen_value_id){v}).index;
        b->buffers.copies[v] = b->buffers.copies[root];
        b->buffers.held[v] = b->buffers.held[root];
    }
}

// How many microbatches' values live at once, value by value. A node is bound once for each
// combination of its operands' places, so where these are too many the numbers are rounded up to
// fewer different ones.
static pen_status buffers_build(buffers_builder *b) {
    b->part = &b->request->cut->parts[b->request->device];
    b->value_count = pen_graph_value_count(b->part->graph);
    PEN_TRY(PEN_NEW(b->arena, b->value_count, &b->buffers.copies));
    PEN_TRY(PEN_NEW(b->arena, b->value_count, &b->buffers.held));
    PEN_TRY(PEN_NEW(b->arena, b->request->microbatch_count, &b->acquired));
    PEN_TRY(PEN_NEW(b->arena, b->request->microbatch_count, &b->released));
    PEN_TRY(buffers_find_tasks(b));
    PEN_TRY(buffers_list_uses(b));
    PEN_TRY(buffers_mark_channels(b));
    for (uint32_t v = 0; v < b->value_count; v++) {
        buffers_count_copies(b, v);
    }
    for (uint32_t p = 0; p < b->part->order_count; p++) {
        if (!buffers_is_too_varied(b, pen_graph_node(b->part->graph, b->part->order[p]))) continue;
        buffers_round_up(b);
        break;
    }
    buffers_follow_views(b);
    return PEN_OK;
}

pen_status pen_part_buffers_plan(const pen_part_buffers_request *request, pen_arena *arena,
                                 pen_part_buffers *out_buffers) {
    buffers_builder builder = {.request = request, .arena = arena};
    PEN_TRY(buffers_build(&builder));
    *out_buffers = builder.buffers;
    return PEN_OK;
}
