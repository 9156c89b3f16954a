#include "scheduler/runtime/executor/part_memory.h"

#include "graph/analysis/memory_plan.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "scheduler/runtime/executor/executor_state.h"

typedef struct part_measure {
    const pen_part_memory_request *request;
    pen_part_first *first; // NULL: nobody asks
    bool is_further;       // than the first
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

// Whether the first executor has a place for the value.
static bool measure_is_shared(const part_measure *m, pen_value_id value) {
    if (!m->is_further) return false;
    const pen_value_id other = executor_find_shared(m->graph, value, m->first->graph);
    if (!pen_value_is(other)) return false;
    const pen_memory_region region = m->first->slots[other.index].region;
    return region != PEN_MEMORY_NONE && region != PEN_MEMORY_LENT;
}

static pen_status measure_sizes(part_measure *m) {
    const pen_part *part = m->request->part;
    PEN_TRY(PEN_NEW(m->arena, m->value_count, &m->bytes));
    PEN_TRY(PEN_NEW(m->arena, pen_graph_node_count(m->graph), &m->workspace));
    for (uint32_t v = 0; v < m->value_count; v++) {
        if (measure_is_shared(m, (pen_value_id){v})) continue;
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
        const pen_value *value = pen_graph_value(m->graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        if (m->request->is_whole && value->data == NULL) continue;
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

// What lists take beside the device's room, of which executors before may have taken some.
static uint64_t measure_launch_lists(const part_measure *m) {
    const pen_part *part = m->request->part;
    uint64_t bytes = 0, taken = m->first == NULL ? 0 : m->first->room_bytes;
    if (m->request->device == NULL || m->request->device->kind->list_bytes == NULL) return 0;
    const pen_device_kind *kind = m->request->device->kind;
    for (uint32_t l = 0; l < part->list_count; l++) {
        const pen_memory_list *list = &m->lists[l];
        bytes += measure_combinations(m, list) *
                 kind->list_bytes(m->graph, &part->order[list->first], list->end - list->first);
    }
    const uint64_t own = pen_list_room_take(kind, &taken, bytes);
    if (m->first != NULL) m->first->room_bytes = taken;
    return own;
}

// The executor's own memory plan, without a device.
static pen_status measure_plan(part_measure *m) {
    PEN_TRY(measure_sizes(m));
    PEN_TRY(measure_lists(m));
    const pen_memory_request request = {.graph = m->graph,
                                        .order = m->request->part->order,
                                        .order_count = m->request->part->order_count,
                                        .bytes_of_value = m->bytes,
                                        .workspace_of_node = m->workspace,
                                        .kept = m->kept,
                                        .kept_count = m->kept_count,
                                        .lists = m->request->is_whole ? NULL : m->lists,
                                        .list_count = m->request->part->list_count,
                                        .copies_of_value = m->request->copies_of_value,
                                        .is_lent = m->is_lent};
    return pen_memory_plan_build(&request, m->arena, &m->plan);
}

// Sorts the bytes by kind.
static void measure_kinds(const part_measure *m, pen_device_memory *memory) {
    for (uint32_t v = 0; v < m->value_count; v++) {
        const pen_memory_slot *slot = &m->plan->values[v];
        const pen_value_id id = {v};
        const pen_value *value = pen_graph_value(m->graph, id);
        const bool is_counted =
            slot->region == PEN_MEMORY_PERSISTENT || slot->region == PEN_MEMORY_COPIES;
        if (!is_counted || !measure_is_own(m, id)) continue;
        *measure_kind(m, value, memory) += slot->stride * slot->copies;
    }
    memory->workspace = m->plan->arena_bytes + measure_launch_lists(m);
    memory->total = m->plan->persistent_bytes + m->plan->copies_bytes + memory->workspace;
}

static void measure_first(const part_measure *m) {
    m->first->graph = m->graph;
    m->first->working_bytes = m->plan->copies_bytes + m->plan->arena_bytes;
    for (uint32_t v = 0; v < m->value_count; v++) {
        m->first->slots[v] = m->plan->values[v];
    }
}

static part_measure measure_of(const pen_part_memory_request *request) {
    return (part_measure){.request = request,
                          .graph = request->part->graph,
                          .value_count = pen_graph_value_count(request->part->graph)};
}

pen_status pen_part_memory_find(const pen_part_memory_request *request,
                                pen_device_memory *out_memory) {
    return pen_part_memory_find_first(request, NULL, out_memory);
}

pen_status pen_part_memory_find_first(const pen_part_memory_request *request, pen_part_first *first,
                                      pen_device_memory *out_memory) {
    part_measure m = measure_of(request);
    pen_device_memory memory = {0};
    m.first = first;
    PEN_TRY(pen_arena_create(&m.arena));
    const pen_status status = measure_plan(&m);
    if (status == PEN_OK) measure_kinds(&m, &memory);
    if (status == PEN_OK && first != NULL) measure_first(&m);
    pen_arena_destroy(m.arena);
    *out_memory = memory;
    return status;
}

// The first one's working memory serves where it is large enough.
pen_status pen_part_memory_find_further(const pen_part_memory_request *request,
                                        pen_part_first *first, uint64_t *out_bytes) {
    part_measure m = measure_of(request);
    m.first = first;
    m.is_further = true;
    PEN_TRY(pen_arena_create(&m.arena));
    const pen_status status = measure_plan(&m);
    if (status == PEN_OK) {
        const uint64_t working = m.plan->copies_bytes + m.plan->arena_bytes;
        *out_bytes = m.plan->persistent_bytes + measure_launch_lists(&m) +
                     (working > first->working_bytes ? working : 0);
    }
    pen_arena_destroy(m.arena);
    return status;
}
