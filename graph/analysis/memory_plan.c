#include "graph/analysis/memory_plan.h"

#include <string.h>

#include "base/integer.h"
#include "graph/analysis/buffer_offsets.h"
#include "graph/graph.h"
#include "graph/op.h"

#define MEMORY_NEVER UINT32_MAX

// A storage is what one or more values (views, in-place results) share, or one node's workspace.
typedef struct memory_storage {
    pen_memory_region region;
    uint64_t bytes;
    uint32_t copies;
    uint32_t first; // positions in the order: alive from first to last, both included
    uint32_t last;
    uint64_t offset;
} memory_storage;

typedef struct memory_planner {
    const pen_memory_request *request;
    pen_arena *arena;
    uint32_t value_count;
    uint32_t *copies;         // [value_count], a view's are those of what it looks at
    bool *is_made;            // [value_count] by a node of the order
    uint32_t *list_end;       // [order_count] of the list that the position is in
    uint32_t *last_use;       // [value_count], position; 0 for unused
    uint32_t *storage_of;     // [value_count], MEMORY_NEVER: none
    memory_storage *storages; // [storage_count]
    uint32_t storage_count;
    uint32_t *workspace_of; // [node_count], storage, MEMORY_NEVER: none
    uint32_t in_place_count;
} memory_planner;

static bool memory_is_persistent(const pen_graph *graph, pen_value_id id) {
    const pen_value *value = pen_graph_value(graph, id);
    if (value->kind != PEN_VALUE_COMPUTED) return true;
    return pen_graph_node(graph, value->producer)->accumulates;
}

static const pen_node *memory_node_at(const memory_planner *planner, uint32_t position) {
    return pen_graph_node(planner->request->graph, planner->request->order[position]);
}

static bool memory_reads_early(const pen_node *node, uint32_t input) {
    return input < 64 && (node->op->constant_inputs >> input & 1) != 0;
}

// A kept value lives to the end of its list, or of all. Views do not own memory: what they look at
// lives as long as they do, and they may be views of views, hence backwards.
static void memory_find_last_uses(memory_planner *planner) {
    const pen_memory_request *request = planner->request;
    for (uint32_t p = 0; p < request->order_count; p++) {
        const pen_node *node = memory_node_at(planner, p);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (pen_value_is(node->inputs[i])) planner->last_use[node->inputs[i].index] = p;
        }
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (!pen_value_is(node->outputs[i])) continue;
            planner->last_use[node->outputs[i].index] = p;
            planner->is_made[node->outputs[i].index] = true;
        }
    }
    for (uint32_t i = 0; i < request->kept_count; i++) {
        uint32_t *last = &planner->last_use[request->kept[i].index];
        *last = *last < request->order_count ? planner->list_end[*last] : request->order_count;
    }
    // a view is read as long as what is made from it
    for (uint32_t p = request->order_count; p-- > 0;) {
        const pen_node *node = memory_node_at(planner, p);
        if (!node->op->is_view) continue;
        uint32_t *source = &planner->last_use[node->inputs[0].index];
        const uint32_t view = planner->last_use[node->outputs[0].index];
        if (view > *source) *source = view;
    }
}

// Where lists end, and how many copies what views look at has.
static void memory_find_lists(memory_planner *planner) {
    const pen_memory_request *request = planner->request;
    for (uint32_t p = 0; p < request->order_count; p++) {
        planner->list_end[p] = request->order_count;
    }
    for (uint32_t l = 0; request->lists != NULL && l < request->list_count; l++) {
        for (uint32_t p = request->lists[l].first; p < request->lists[l].end; p++) {
            planner->list_end[p] = request->lists[l].end;
        }
    }
    if (request->copies_of_value == NULL) return;
    for (uint32_t v = 0; v < planner->value_count; v++) {
        planner->copies[v] = request->copies_of_value[v];
    }
    for (uint32_t p = request->order_count; p-- > 0;) {
        const pen_node *node = memory_node_at(planner, p);
        if (!node->op->is_view) continue;
        uint32_t *source = &planner->copies[node->inputs[0].index];
        const uint32_t view = planner->copies[node->outputs[0].index];
        if (view > *source) *source = view;
    }
}

static uint32_t memory_storage_new(memory_planner *planner, pen_memory_region region,
                                   uint64_t bytes, uint32_t first, uint32_t last) {
    const uint32_t id = planner->storage_count++;
    planner->storages[id] = (memory_storage){
        .region = region, .bytes = bytes, .copies = 1, .first = first, .last = last};
    return id;
}

// A storage with as many copies as the value has.
static uint32_t memory_storage_copied(memory_planner *planner, pen_value_id value) {
    const uint32_t id = memory_storage_new(planner, PEN_MEMORY_COPIES,
                                           planner->request->bytes_of_value[value.index], 0,
                                           planner->request->order_count);
    planner->storages[id].copies = planner->copies[value.index];
    return id;
}

// Whether the node reads something from memory in this storage that it may not overwrite.
static bool memory_storage_is_read(const memory_planner *planner, const pen_node *node,
                                   uint32_t storage) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        const bool may_overwrite = i < 64 && (node->op->in_place_inputs >> i & 1) != 0;
        if (planner->storage_of[node->inputs[i].index] == storage && !may_overwrite) return true;
    }
    return false;
}

// Whether a value may be overwritten by the node, its last reader: in the arena, or a sum over
// microbatches that an update reads, for the next step sets it anew.
static bool memory_may_end(const memory_planner *planner, const pen_node *node, pen_value_id value,
                           const memory_storage *storage) {
    if (storage->region == PEN_MEMORY_ARENA) return true;
    const pen_value *sum = pen_graph_value(planner->request->graph, value);
    return storage->region == PEN_MEMORY_PERSISTENT && node->role == PEN_ROLE_UPDATE &&
           sum->kind == PEN_VALUE_COMPUTED && !pen_value_is(sum->replaces) &&
           pen_graph_node(planner->request->graph, sum->producer)->accumulates;
}

// The storage of an input that output 0 of the node at `position` may take over.
static uint32_t memory_in_place(const memory_planner *planner, uint32_t position) {
    const pen_node *node = memory_node_at(planner, position);
    if (node->op->in_place_inputs == 0 || !pen_value_is(node->outputs[0])) return MEMORY_NEVER;
    const uint64_t bytes = planner->request->bytes_of_value[node->outputs[0].index];
    for (uint32_t i = 0; i < node->input_count && i < 64; i++) {
        if ((node->op->in_place_inputs >> i & 1) == 0 || !pen_value_is(node->inputs[i])) continue;
        const uint32_t storage = planner->storage_of[node->inputs[i].index];
        if (storage == MEMORY_NEVER) continue;
        const memory_storage *candidate = &planner->storages[storage];
        if (memory_may_end(planner, node, node->inputs[i], candidate) &&
            candidate->last == position &&
            planner->request->bytes_of_value[node->inputs[i].index] == bytes &&
            candidate->bytes == bytes && !memory_storage_is_read(planner, node, storage)) {
            return storage;
        }
    }
    return MEMORY_NEVER;
}

static bool memory_has_copies(const memory_planner *planner, pen_value_id id) {
    if (planner->copies[id.index] == 0) return false;
    const bool is_fed = pen_graph_value(planner->request->graph, id)->kind == PEN_VALUE_INPUT;
    return is_fed || !memory_is_persistent(planner->request->graph, id);
}

static void memory_share(memory_planner *planner, uint32_t storage, pen_value_id value) {
    planner->storage_of[value.index] = storage;
    memory_storage *shared = &planner->storages[storage];
    if (planner->last_use[value.index] > shared->last) {
        shared->last = planner->last_use[value.index];
    }
}

// Gives the outputs of the node at `position` their storages.
static void memory_place_outputs(memory_planner *planner, uint32_t position) {
    const pen_graph *graph = planner->request->graph;
    const pen_node *node = memory_node_at(planner, position);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const pen_value_id output = node->outputs[i];
        if (!pen_value_is(output)) continue;
        const pen_value_id replaces = pen_graph_value(graph, output)->replaces;
        uint32_t storage = MEMORY_NEVER;
        if (pen_value_is(replaces)) {
            storage = planner->storage_of[replaces.index];
        } else if (i == 0 && node->op->is_view) {
            PEN_ASSERT(!node->accumulates);
            storage = planner->storage_of[node->inputs[0].index];
        } else if (memory_has_copies(planner, output)) {
            storage = memory_storage_copied(planner, output);
        } else if (i == 0 && !node->accumulates) {
            storage = memory_in_place(planner, position);
            if (storage != MEMORY_NEVER) planner->in_place_count += 1;
        }
        if (storage != MEMORY_NEVER) {
            memory_share(planner, storage, output);
            continue;
        }
        const pen_memory_region region =
            memory_is_persistent(graph, output) ? PEN_MEMORY_PERSISTENT : PEN_MEMORY_ARENA;
        planner->storage_of[output.index] =
            memory_storage_new(planner, region, planner->request->bytes_of_value[output.index],
                               position, planner->last_use[output.index]);
    }
}

static void memory_place_source(memory_planner *planner, pen_value_id value) {
    const pen_memory_request *request = planner->request;
    uint32_t *storage = &planner->storage_of[value.index];
    if (*storage != MEMORY_NEVER || planner->is_made[value.index]) return;
    if (request->is_lent != NULL && request->is_lent[value.index]) {
        *storage =
            memory_storage_new(planner, PEN_MEMORY_LENT, request->bytes_of_value[value.index], 0,
                               request->order_count);
        planner->storages[*storage].copies = 0;
        return;
    }
    if (memory_has_copies(planner, value)) {
        *storage = memory_storage_copied(planner, value);
        return;
    }
    if (pen_graph_value(request->graph, value)->kind == PEN_VALUE_COMPUTED) return;
    *storage = memory_storage_new(planner, PEN_MEMORY_PERSISTENT,
                                  request->bytes_of_value[value.index], 0, request->order_count);
}

// Storages for what is there before the first node: fed, received, persistent and constant values
// that some node reads from memory, or that are asked for.
static void memory_place_sources(memory_planner *planner) {
    const pen_memory_request *request = planner->request;
    for (uint32_t p = 0; p < request->order_count; p++) {
        const pen_node *node = memory_node_at(planner, p);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i]) || memory_reads_early(node, i)) continue;
            memory_place_source(planner, node->inputs[i]);
        }
    }
    for (uint32_t i = 0; i < request->kept_count; i++) {
        memory_place_source(planner, request->kept[i]);
    }
}

static void memory_place_workspaces(memory_planner *planner) {
    const pen_memory_request *request = planner->request;
    if (request->workspace_of_node == NULL) return;
    for (uint32_t p = 0; p < request->order_count; p++) {
        const uint32_t node = request->order[p].index;
        const uint64_t bytes = request->workspace_of_node[node];
        if (bytes == 0) continue;
        planner->workspace_of[node] = memory_storage_new(planner, PEN_MEMORY_ARENA, bytes, p, p);
    }
}

// Gives the storages of the arena their offsets.
static pen_status memory_assign_arena(memory_planner *planner, pen_memory_plan *plan) {
    pen_buffer *buffers;
    uint32_t count = 0;
    pen_buffer_sums sums;
    PEN_TRY(PEN_NEW(planner->arena, planner->storage_count, &buffers));
    for (uint32_t s = 0; s < planner->storage_count; s++) {
        const memory_storage *storage = &planner->storages[s];
        if (storage->region != PEN_MEMORY_ARENA) continue;
        buffers[count++] =
            (pen_buffer){.bytes = storage->bytes, .first = storage->first, .last = storage->last};
    }
    PEN_TRY(pen_buffer_offsets_find(buffers, count, &sums));
    for (uint32_t s = planner->storage_count; s-- > 0;) {
        memory_storage *storage = &planner->storages[s];
        if (storage->region == PEN_MEMORY_ARENA) storage->offset = buffers[--count].offset;
    }
    plan->arena_bytes = sums.bytes;
    plan->live_bytes_peak = sums.live_bytes_peak;
    return PEN_OK;
}

// Gives every storage its offset in its region.
static pen_status memory_assign(memory_planner *planner, pen_memory_plan *plan) {
    for (uint32_t s = 0; s < planner->storage_count; s++) {
        memory_storage *storage = &planner->storages[s];
        if (storage->region == PEN_MEMORY_ARENA || storage->region == PEN_MEMORY_LENT) continue;
        uint64_t *region =
            storage->region == PEN_MEMORY_COPIES ? &plan->copies_bytes : &plan->persistent_bytes;
        const uint64_t stride = pen_align_up(storage->bytes, PEN_MEMORY_ALIGNMENT);
        uint64_t bytes;
        storage->offset = *region;
        if (!pen_u64_mul(stride, storage->copies, &bytes) || !pen_u64_add(*region, bytes, region)) {
            return pen_error_out_of_memory();
        }
    }
    return memory_assign_arena(planner, plan);
}

// From storages, which several values may share, to a slot for each value.
static pen_status memory_fill_plan(const memory_planner *planner, pen_memory_plan *plan) {
    const pen_graph *graph = planner->request->graph;
    const uint32_t node_count = pen_graph_node_count(graph);
    PEN_TRY(PEN_NEW(planner->arena, planner->value_count, &plan->values));
    PEN_TRY(PEN_NEW(planner->arena, node_count, &plan->workspace_offsets));
    for (uint32_t v = 0; v < planner->value_count; v++) {
        if (planner->storage_of[v] == MEMORY_NEVER) continue;
        const memory_storage *storage = &planner->storages[planner->storage_of[v]];
        plan->values[v] =
            (pen_memory_slot){.region = storage->region,
                              .copies = storage->copies,
                              .offset = storage->offset,
                              .stride = pen_align_up(storage->bytes, PEN_MEMORY_ALIGNMENT)};
    }
    for (uint32_t n = 0; n < node_count; n++) {
        if (planner->workspace_of[n] == MEMORY_NEVER) continue;
        plan->workspace_offsets[n] = planner->storages[planner->workspace_of[n]].offset;
    }
    plan->in_place_count = planner->in_place_count;
    return PEN_OK;
}

// What is read from the arena was made in the list that reads it.
static pen_status memory_check_lists(const memory_planner *planner) {
    for (uint32_t p = 0; p < planner->request->order_count; p++) {
        const pen_node *node = memory_node_at(planner, p);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const uint32_t storage = planner->storage_of[node->inputs[i].index];
            if (storage == MEMORY_NEVER) continue;
            if (planner->storages[storage].region != PEN_MEMORY_ARENA) continue;
            if (planner->list_end[planner->storages[storage].first] == planner->list_end[p]) {
                continue;
            }
            return pen_error(PEN_INTERNAL,
                             "value '%s' has no copies, but '%s' of another task reads it",
                             pen_value_name(planner->request->graph, node->inputs[i]), node->name);
        }
    }
    return PEN_OK;
}

// Lives first, then storages (in place, views, copies), then offsets. Nothing is allocated on a
// device here: the plan is numbers.
pen_status pen_memory_plan_build(const pen_memory_request *request, pen_arena *arena,
                                 pen_memory_plan **out_plan) {
    const uint32_t node_count = pen_graph_node_count(request->graph);
    memory_planner planner = {
        .request = request, .arena = arena, .value_count = pen_graph_value_count(request->graph)};
    pen_memory_plan *plan;
    PEN_TRY(PEN_NEW(arena, 1, &plan));
    PEN_TRY(PEN_NEW(arena, planner.value_count, &planner.copies));
    PEN_TRY(PEN_NEW(arena, planner.value_count, &planner.is_made));
    PEN_TRY(PEN_NEW(arena, request->order_count, &planner.list_end));
    PEN_TRY(PEN_NEW(arena, planner.value_count, &planner.last_use));
    PEN_TRY(PEN_NEW(arena, planner.value_count, &planner.storage_of));
    PEN_TRY(PEN_NEW(arena, node_count, &planner.workspace_of));
    PEN_TRY(PEN_NEW(arena, (size_t)planner.value_count + node_count, &planner.storages));
    memset(planner.storage_of, 0xff, planner.value_count * sizeof *planner.storage_of);
    memset(planner.workspace_of, 0xff, node_count * sizeof *planner.workspace_of);
    memory_find_lists(&planner);
    memory_find_last_uses(&planner);
    memory_place_sources(&planner);
    for (uint32_t p = 0; p < request->order_count; p++) {
        memory_place_outputs(&planner, p);
    }
    PEN_TRY(memory_check_lists(&planner));
    memory_place_workspaces(&planner);
    PEN_TRY(memory_assign(&planner, plan));
    PEN_TRY(memory_fill_plan(&planner, plan));
    *out_plan = plan;
    return PEN_OK;
}

pen_value_id pen_value_home(const pen_graph *graph, pen_value_id value) {
    for (;;) {
        const pen_value *subject = pen_graph_value(graph, value);
        if (pen_value_is(subject->replaces)) return subject->replaces;
        if (subject->kind != PEN_VALUE_COMPUTED) return value;
        const pen_node *producer = pen_graph_node(graph, subject->producer);
        if (!producer->op->is_view) return value;
        value = producer->inputs[0];
    }
}
