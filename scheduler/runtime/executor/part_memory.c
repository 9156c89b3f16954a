#include "scheduler/runtime/executor/part_memory.h"

#include "graph/analysis/memory_plan.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "scheduler/runtime/executor/executor_state.h"

typedef struct part_measure {
    const pen_part_memory_request *request;
    const pen_graph *graph;
    pen_arena *arena;
    uint32_t value_count;
    uint64_t *bytes;     // [value_count]
    uint64_t *workspace; // [node_count]
    pen_value_id *kept;  // [kept_count] as the executor keeps
    uint32_t kept_count;
    bool *is_lent;          // [value_count]
    pen_memory_list *lists; // [list_count]
    pen_memory_plan *plan;
} part_measure;

static pen_status measure_sizes(part_measure *m) {
    const pen_part *part = m->request->part;
    PEN_TRY(PEN_NEW(m->arena, m->value_count, &m->bytes));
    PEN_TRY(PEN_NEW(m->arena, pen_graph_node_count(m->graph), &m->workspace));
    for (uint32_t v = 0; v < m->value_count; v++) {
        m->bytes[v] = m->request->value_bytes(m->request->context, m->graph, (pen_value_id){v});
    }
    for (uint32_t p = 0; p < part->order_count; p++) {
        const pen_node_id node = part->order[p];
        if (pen_graph_node(m->graph, node)->op->is_view) continue;
        PEN_TRY(
            m->request->workspace(m->request->context, m->graph, node, &m->workspace[node.index]));
    }
    return PEN_OK;
}

// As an executor would be set up for the part, so that both plan the same memory.
static pen_status measure_lists(part_measure *m) {
    const pen_part *part = m->request->part;
    PEN_TRY(PEN_NEW(m->arena, (size_t)m->value_count + part->kept_count, &m->kept));
    PEN_TRY(PEN_NEW(m->arena, m->value_count, &m->is_lent));
    PEN_TRY(PEN_NEW(m->arena, part->list_count, &m->lists));
    for (uint32_t l = 0; l < part->list_count; l++) {
        m->lists[l] = (pen_memory_list){part->lists[l].first, part->lists[l].end};
    }
    for (uint32_t i = 0; i < part->kept_count; i++) {
        m->kept[m->kept_count++] = part->kept[i];
    }
    for (uint32_t v = 0; v < m->value_count; v++) {
        const pen_value_kind kind = pen_graph_value(m->graph, (pen_value_id){v})->kind;
        if (kind != PEN_VALUE_PARAMETER && kind != PEN_VALUE_STATE) continue;
        m->kept[m->kept_count++] = (pen_value_id){v};
    }
    for (uint32_t i = 0; i < m->request->lent_count; i++) {
        m->is_lent[m->request->lent[i].index] = true;
    }
    return PEN_OK;
}

// Whether the value has bytes of its own: it is no view, and takes over nothing.
static bool measure_is_own(const part_measure *m, pen_value_id id) {
    const pen_value *value = pen_graph_value(m->graph, id);
    if (value->kind != PEN_VALUE_COMPUTED) return true;
    const pen_node *producer = pen_graph_node(m->graph, value->producer);
    if (pen_value_is(value->replaces) || producer->op->is_view) return false;
    const pen_memory_slot *slot = &m->plan->values[id.index];
    for (uint32_t i = 0; i < producer->input_count; i++) { // a sum that an update goes on with
        if (!pen_value_is(producer->inputs[i])) continue;
        const pen_memory_slot *other = &m->plan->values[producer->inputs[i].index];
        if (other->region == slot->region && other->offset == slot->offset) return false;
    }
    return true;
}

static uint64_t *measure_kind(const part_measure *m, const pen_value *value,
                              pen_device_memory *memory) {
    switch (value->kind) {
    case PEN_VALUE_PARAMETER:
    case PEN_VALUE_CONSTANT:
        return &memory->parameters;
    case PEN_VALUE_STATE:
        return value->data == NULL ? &memory->optimizer_state : &memory->parameters;
    case PEN_VALUE_INPUT:
    case PEN_VALUE_SCALAR:
        return &memory->receive_buffers;
    case PEN_VALUE_COMPUTED:
        break;
    }
    const pen_node *producer = pen_graph_node(m->graph, value->producer);
    if (producer->role == PEN_ROLE_TRANSFER) return &memory->receive_buffers;
    return producer->accumulates ? &memory->gradients : &memory->activations;
}

// In how many combinations of places the list runs, as executor_list.c counts the launches.
static uint32_t measure_combinations(const part_measure *m, const pen_memory_list *list) {
    uint64_t count = 1;
    for (uint32_t p = list->first; p < list->end && count <= EXECUTOR_LIST_COMBINATIONS; p++) {
        const pen_node *node = pen_graph_node(m->graph, m->request->part->order[p]);
        for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
            const pen_value_id operand =
                i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
            if (node->op->is_view || !pen_value_is(operand)) continue;
            const uint32_t copies = m->plan->values[operand.index].copies;
            if (copies > 1) count *= copies / executor_common_divisor(count, copies);
        }
    }
    return count <= EXECUTOR_LIST_COMBINATIONS ? (uint32_t)count : 0;
}

static uint64_t measure_launch_lists(const part_measure *m) {
    const pen_part *part = m->request->part;
    uint64_t bytes = 0, taken = 0;
    if (m->request->device == NULL || m->request->device->kind->list_bytes == NULL) return 0;
    const pen_device_kind *kind = m->request->device->kind;
    for (uint32_t l = 0; l < part->list_count; l++) {
        const pen_memory_list *list = &m->lists[l];
        bytes += measure_combinations(m, list) *
                 kind->list_bytes(m->graph, &part->order[list->first], list->end - list->first);
    }
    return pen_list_room_take(kind, &taken, bytes);
}

// Makes the executor's own memory plan without a device and sorts its bytes by kind.
static pen_status measure_plan(part_measure *m, pen_device_memory *memory) {
    PEN_TRY(measure_sizes(m));
    PEN_TRY(measure_lists(m));
    const pen_memory_request request = {.graph = m->graph,
                                        .order = m->request->part->order,
                                        .order_count = m->request->part->order_count,
                                        .bytes_of_value = m->bytes,
                                        .workspace_of_node = m->workspace,
                                        .kept = m->kept,
                                        .kept_count = m->kept_count,
                                        .lists = m->lists,
                                        .list_count = m->request->part->list_count,
                                        .copies_of_value = m->request->copies_of_value,
                                        .is_lent = m->is_lent};
    PEN_TRY(pen_memory_plan_build(&request, m->arena, &m->plan));
    for (uint32_t v = 0; v < m->value_count; v++) {
        const pen_memory_slot *slot = &m->plan->values[v];
        const pen_value_id id = {v};
        if (m->request->slots != NULL) m->request->slots[v] = *slot;
        const pen_value *value = pen_graph_value(m->graph, id);
        const bool is_counted =
            slot->region == PEN_MEMORY_PERSISTENT || slot->region == PEN_MEMORY_COPIES;
        if (!is_counted || !measure_is_own(m, id)) continue;
        *measure_kind(m, value, memory) += slot->stride * slot->copies;
    }
    memory->workspace = m->plan->arena_bytes + measure_launch_lists(m);
    memory->total = m->plan->persistent_bytes + m->plan->copies_bytes + memory->workspace;
    return PEN_OK;
}

pen_status pen_part_memory_find(const pen_part_memory_request *request,
                                pen_device_memory *out_memory) {
    part_measure m = {.request = request,
                      .graph = request->part->graph,
                      .value_count = pen_graph_value_count(request->part->graph)};
    pen_device_memory memory = {0};
    PEN_TRY(pen_arena_create(&m.arena));
    const pen_status status = measure_plan(&m, &memory);
    pen_arena_destroy(m.arena);
    *out_memory = memory;
    return status;
}
