#include "base/integer.h"
#include "base/memory.h"
#include "base/text.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "scheduler/runtime/executor/executor_state.h"

#define PLACES_PIECE_BYTES ((uint64_t)1 << 20) // a multiple of what places are aligned to

static bool places_accumulates(const pen_graph *graph, const pen_value *value) {
    return pen_graph_node(graph, value->producer)->accumulates;
}

// A parameter, state or accumulated gradient: the value of the same name, type and layout.
pen_value_id executor_find_shared(const pen_graph *graph, pen_value_id id, const pen_graph *first) {
    const pen_value *value = pen_graph_value(graph, id);
    const bool outlives = value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE ||
                          (value->kind == PEN_VALUE_COMPUTED && places_accumulates(graph, value));
    pen_value_id other;
    if (!outlives) return PEN_VALUE_NONE;
    const pen_status status = pen_graph_find_value(first, value->name, &other);
    if (status != PEN_OK) {
        pen_status_ignore(status, "not shared: this graph alone has it");
        return PEN_VALUE_NONE;
    }
    const pen_value *found = pen_graph_value(first, other);
    const bool is_same =
        pen_tensor_type_equal(&found->type, &value->type) && found->layout == value->layout;
    return is_same ? other : PEN_VALUE_NONE;
}

// Where it lies in the shared executor.
static executor_place places_find_shared(const pen_executor *executor, pen_value_id id) {
    const pen_executor *shared = executor->spec.shared;
    if (shared == NULL) return (executor_place){0};
    const pen_value_id other = executor_find_shared(executor->spec.graph, id, shared->spec.graph);
    return pen_value_is(other) ? shared->places[other.index] : (executor_place){0};
}

// What was asked for, and the model's own parameters and states: those that no node reads are there
// too, to be loaded and saved. A part whose contents come later has none that are not its own.
static pen_status places_list_kept(const pen_executor *executor, pen_value_id **out_kept,
                                   uint32_t *out_count) {
    const pen_executor_spec *spec = &executor->spec;
    const uint32_t value_count = pen_graph_value_count(spec->graph);
    pen_value_id *kept;
    uint32_t count = 0;
    PEN_TRY(PEN_NEW(executor->arena, (size_t)value_count + spec->kept_count, &kept));
    for (uint32_t i = 0; i < spec->kept_count; i++) {
        kept[count++] = spec->kept[i];
    }
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value *value = pen_graph_value(spec->graph, (pen_value_id){v});
        const bool persists = value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE;
        if (persists && (value->data != NULL || spec->defer_contents)) {
            kept[count++] = (pen_value_id){v};
        }
    }
    *out_kept = kept;
    *out_count = count;
    return PEN_OK;
}

// Gradients that add up over programs of several sizes must have one place.
static pen_status places_check_accumulated(const pen_executor *executor) {
    const pen_graph *graph = executor->spec.graph;
    if (executor->spec.shared == NULL) return PEN_OK;
    for (uint32_t p = 0; p < executor->spec.order_count; p++) {
        const pen_node *node = pen_graph_node(graph, executor->spec.order[p]);
        if (!node->accumulates) continue;
        for (uint32_t i = 0; i < node->output_count; i++) {
            const pen_value_id output = node->outputs[i];
            if (!pen_value_is(output)) continue;
            if (places_find_shared(executor, output).buffer != NULL) continue;
            return pen_error(PEN_INTERNAL, "'%s' is not accumulated in the first program",
                             pen_value_name(graph, output));
        }
    }
    return PEN_OK;
}

static pen_status places_prepare_kernels(pen_executor *executor, uint64_t *workspace_of_node) {
    pen_device *device = executor->spec.device;
    for (uint32_t p = 0; p < executor->spec.order_count; p++) {
        const pen_node_id node = executor->spec.order[p];
        if (pen_graph_node(executor->spec.graph, node)->op->is_view) continue;
        PEN_TRY(device->kind->prepare(device, executor->spec.graph, node, executor->arena,
                                      &executor->kernels[p]));
        workspace_of_node[node.index] = device->kind->workspace_bytes(executor->kernels[p]);
    }
    return PEN_OK;
}

static uint64_t places_value_bytes(const pen_executor *executor, pen_value_id value) {
    const pen_executor_spec *spec = &executor->spec;
    if (spec->device->kind->value_bytes != NULL) {
        return spec->device->kind->value_bytes(spec->device, spec->graph, value);
    }
    return pen_tensor_type_bytes(pen_value_type(spec->graph, value));
}

static pen_status places_mark_lent(pen_executor *executor) {
    if (executor->spec.lent_count == 0) return PEN_OK;
    PEN_TRY(
        PEN_NEW(executor->arena, pen_graph_value_count(executor->spec.graph), &executor->is_lent));
    for (uint32_t i = 0; i < executor->spec.lent_count; i++) {
        executor->is_lent[executor->spec.lent[i].index] = true;
    }
    return PEN_OK;
}

// What another executor has a place for needs none here. Kernels are prepared before memory is
// planned, since they say what workspace they need.
pen_status executor_plan(pen_executor *executor) {
    const pen_executor_spec *spec = &executor->spec;
    const uint32_t value_count = pen_graph_value_count(spec->graph);
    uint64_t *needed, *workspace;
    PEN_TRY(PEN_NEW(executor->arena, value_count, &executor->bytes_of_value));
    PEN_TRY(PEN_NEW(executor->arena, value_count, &needed));
    PEN_TRY(PEN_NEW(executor->arena, pen_graph_node_count(spec->graph), &workspace));
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value_id value = {v};
        executor->bytes_of_value[v] = places_value_bytes(executor, value);
        if (places_find_shared(executor, value).buffer != NULL) continue; // has its place
        needed[v] = executor->bytes_of_value[v];
        const pen_value_kind kind = pen_graph_value(spec->graph, value)->kind;
        const bool has_copies = spec->copies_of_value != NULL && spec->copies_of_value[v] > 0;
        if (kind == PEN_VALUE_SCALAR || (kind == PEN_VALUE_INPUT && !has_copies)) {
            executor->input_bytes += needed[v];
        }
    }
    PEN_TRY(places_mark_lent(executor));
    PEN_TRY(places_check_accumulated(executor));
    PEN_TRY(places_prepare_kernels(executor, workspace));
    pen_value_id *kept;
    uint32_t kept_count;
    PEN_TRY(places_list_kept(executor, &kept, &kept_count));
    const pen_memory_request request = {.graph = spec->graph,
                                        .order = spec->order,
                                        .order_count = spec->order_count,
                                        .bytes_of_value = needed,
                                        .workspace_of_node = workspace,
                                        .kept = kept,
                                        .kept_count = kept_count,
                                        .lists = spec->lists == NULL ? NULL : executor->lists,
                                        .list_count = executor->list_count,
                                        .copies_of_value = spec->copies_of_value,
                                        .is_lent = executor->is_lent};
    return pen_memory_plan_build(&request, executor->arena, &executor->plan);
}

// First contents that do not lie in the model as they are needed go through a piece of memory.
static pen_status places_load_converted(pen_device *device, pen_operand place,
                                        const pen_value *value) {
    char *piece = pen_memory_allocate(pen_min_u64(value->data_bytes, PLACES_PIECE_BYTES), 1);
    pen_status status = piece == NULL ? pen_error_out_of_memory() : PEN_OK;
    for (uint64_t first = 0; first < value->data_bytes && status == PEN_OK;
         first += PLACES_PIECE_BYTES) {
        const uint64_t bytes = pen_min_u64(value->data_bytes - first, PLACES_PIECE_BYTES);
        pen_value_copy_contents(value, first, piece, bytes);
        status = device->kind->write(device, place, piece, bytes);
        place.offset += bytes;
    }
    pen_memory_free(piece);
    return status;
}

static pen_status places_load(pen_executor *executor, pen_value_id id) {
    pen_device *device = executor->spec.device;
    const pen_value *value = pen_graph_value(executor->spec.graph, id);
    const pen_operand place = executor_operand(executor, id, 0);
    if (!pen_value_lies_plain(value)) return places_load_converted(device, place, value);
    return device->kind->write(device, place, value->data, value->data_bytes);
}

// Where values that outlive a microbatch lie, with their first contents.
static pen_status places_load_persistent(pen_executor *executor) {
    const pen_executor_spec *spec = &executor->spec;
    pen_device *device = spec->device;
    PEN_TRY(device->kind->buffer_create(device, executor->plan->persistent_bytes,
                                        &executor->persistent));
    for (uint32_t v = 0; v < pen_graph_value_count(spec->graph); v++) {
        const pen_memory_slot slot = executor->plan->values[v];
        const pen_value *value = pen_graph_value(spec->graph, (pen_value_id){v});
        executor_place *place = &executor->places[v];
        if (slot.region != PEN_MEMORY_PERSISTENT) continue;
        *place = places_find_shared(executor, pen_value_home(spec->graph, (pen_value_id){v}));
        if (place->buffer != NULL) continue;
        *place =
            (executor_place){.buffer = executor->persistent, .offset = slot.offset, .copies = 1};
        const bool comes_later = spec->defer_contents && (value->kind == PEN_VALUE_PARAMETER ||
                                                          value->kind == PEN_VALUE_STATE);
        if (value->data == NULL || comes_later) continue;
        PEN_TRY(places_load(executor, (pen_value_id){v}));
    }
    PEN_TRY(device->kind->synchronize(device));
    if (spec->loaded != NULL) spec->loaded(spec->loaded_context);
    return PEN_OK;
}

// The working memory of the shared executor if it is large enough (they never run at once), or a
// new one.
static pen_status places_create_working(pen_executor *executor) {
    pen_device *device = executor->spec.device;
    const pen_executor *shared = executor->spec.shared;
    uint64_t bytes;
    if (!pen_u64_add(executor->plan->copies_bytes, executor->plan->arena_bytes, &bytes)) {
        return pen_error_out_of_memory();
    }
    if (shared != NULL && shared->working_bytes >= bytes) {
        executor->working = shared->working;
        executor->working_bytes = shared->working_bytes;
        return PEN_OK;
    }
    PEN_TRY(device->kind->buffer_create(device, bytes, &executor->working));
    executor->owns_working = true;
    executor->working_bytes = bytes;
    return PEN_OK;
}

static pen_status places_place_working(pen_executor *executor) {
    PEN_TRY(places_create_working(executor));
    for (uint32_t v = 0; v < pen_graph_value_count(executor->spec.graph); v++) {
        const pen_memory_slot slot = executor->plan->values[v];
        if (slot.region != PEN_MEMORY_ARENA && slot.region != PEN_MEMORY_COPIES) continue;
        const uint64_t first = slot.region == PEN_MEMORY_ARENA ? executor->plan->copies_bytes : 0;
        executor->places[v] = (executor_place){.buffer = executor->working,
                                               .offset = first + slot.offset,
                                               .stride = slot.stride,
                                               .copies = slot.copies};
    }
    return PEN_OK;
}

// When memory does not fit, the error says which kind took how much: that is what a user can
// change.
pen_status executor_place_values(pen_executor *executor) {
    const pen_memory_plan *plan = executor->plan;
    char kept[PEN_QUANTITY_TEXT_BYTES], fed[PEN_QUANTITY_TEXT_BYTES];
    char flying[PEN_QUANTITY_TEXT_BYTES], passing[PEN_QUANTITY_TEXT_BYTES];
    PEN_TRY(
        PEN_NEW(executor->arena, pen_graph_value_count(executor->spec.graph), &executor->places));
    pen_status status = places_load_persistent(executor);
    if (status == PEN_OK) status = places_place_working(executor);
    if (pen_status_get_code(status) != PEN_DOES_NOT_FIT) return status;
    const uint64_t kept_bytes =
        plan->persistent_bytes - pen_min_u64(executor->input_bytes, plan->persistent_bytes);
    if (plan->copies_bytes == 0) {
        return pen_status_add_context(
            status,
            "parameters, accumulated gradients and optimizer state take %s, inputs of a microbatch "
            "%s, values passed along %s",
            pen_bytes_format(kept_bytes, kept), pen_bytes_format(executor->input_bytes, fed),
            pen_bytes_format(plan->arena_bytes, passing));
    }
    return pen_status_add_context(
        status,
        "parameters, accumulated gradients and optimizer state take %s, values of microbatches "
        "under way %s, values within a task %s",
        pen_bytes_format(plan->persistent_bytes, kept),
        pen_bytes_format(plan->copies_bytes, flying), pen_bytes_format(plan->arena_bytes, passing));
}

void executor_place_views(pen_executor *executor) {
    const pen_graph *graph = executor->spec.graph;
    if (executor->is_lent == NULL) return;
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value_id home = pen_value_home(graph, (pen_value_id){v});
        if (executor->is_lent[home.index]) executor->places[v] = executor->places[home.index];
    }
}

void executor_release_values(pen_executor *executor) {
    pen_device *device = executor->spec.device;
    for (uint32_t i = 0; executor->places != NULL && i < executor->spec.lent_count; i++) {
        executor_place *place = &executor->places[executor->spec.lent[i].index];
        for (uint32_t c = 0; place->lent != NULL && c < place->copies; c++) {
            if (place->lent[c] != NULL) device->kind->buffer_destroy(device, place->lent[c]);
        }
        place->lent = NULL;
    }
    if (executor->owns_working) device->kind->buffer_destroy(device, executor->working);
    if (executor->persistent != NULL) device->kind->buffer_destroy(device, executor->persistent);
}

pen_operand executor_operand(const pen_executor *executor, pen_value_id value,
                             uint64_t microbatch) {
    const executor_place *place = &executor->places[value.index];
    if (place->copies == 0) return (pen_operand){0};
    const uint64_t copy = microbatch % place->copies;
    if (place->lent != NULL) return (pen_operand){.buffer = place->lent[copy]};
    return (pen_operand){place->buffer, place->offset + copy * place->stride};
}

// The maker's memory is wrapped as a buffer of this device, which it can be within a domain. What
// is read there may be the beginning of what the maker has.
pen_status pen_executor_lend(pen_executor *executor, pen_value_id value, const pen_executor *maker,
                             pen_value_id from) {
    pen_device *device = executor->spec.device;
    const char *name = pen_value_name(executor->spec.graph, value);
    const uint32_t copies = pen_executor_copies(maker, from);
    executor_place place = {.copies = copies};
    PEN_ASSERT(executor->is_lent != NULL && executor->is_lent[value.index]);
    PEN_ASSERT(executor->launches == NULL);
    if (!pen_executor_holds(maker, from) || executor->places[value.index].copies > 0) {
        return pen_error(PEN_INTERNAL,
                         "value '%s' cannot be lent: its maker has no place for it, "
                         "or it was lent before",
                         name);
    }
    if (pen_executor_bytes(maker, from) < executor->bytes_of_value[value.index]) {
        return pen_error(PEN_INTERNAL, "value '%s' has %llu bytes, its maker's %llu", name,
                         (unsigned long long)executor->bytes_of_value[value.index],
                         (unsigned long long)pen_executor_bytes(maker, from));
    }
    PEN_TRY(PEN_NEW(executor->arena, copies, &place.lent));
    executor->places[value.index] = place;
    for (uint32_t c = 0; c < copies; c++) {
        const pen_status status =
            device->kind->buffer_wrap(device, pen_executor_place(maker, from, c),
                                      executor->bytes_of_value[value.index], &place.lent[c]);
        PEN_TRY(pen_status_add_context(status, "while lending value '%s'", name));
    }
    return PEN_OK;
}
