// Lists of nodes on a device that runs launches as one: made when a list first runs, one for each
// combination of its operands' places.
#include "base/memory.h"
#include "graph/graph.h"
#include "scheduler/runtime/executor/executor_state.h"

static uint32_t list_combinations(const pen_executor *executor, const pen_memory_list *list) {
    uint64_t count = 1;
    for (uint32_t p = list->first; p < list->end && count <= EXECUTOR_LIST_COMBINATIONS; p++) {
        const uint32_t own = executor->launch_first[p + 1] - executor->launch_first[p];
        if (own > 1) count *= own / executor_common_divisor(count, own);
    }
    return count <= EXECUTOR_LIST_COMBINATIONS ? (uint32_t)count : 0;
}

// All lists of the executor find place together: in the device's room beside those of others, or in
// memory of their own.
pen_status executor_reserve_lists(pen_executor *executor) {
    pen_device *device = executor->spec.device;
    uint64_t at = 0;
    if (device->kind->list_bytes == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(executor->arena, executor->list_count, &executor->list_memory_of));
    for (uint32_t l = 0; l < executor->list_count; l++) {
        const pen_memory_list *list = &executor->lists[l];
        pen_list_memory *memory = &executor->list_memory_of[l];
        memory->bytes = device->kind->list_bytes(
            executor->spec.graph, &executor->spec.order[list->first], list->end - list->first);
        memory->at.offset = at;
        at += memory->bytes * list_combinations(executor, list);
    }
    if (at == 0) return PEN_OK;
    PEN_TRY(
        device->kind->list_reserve(device, at, &executor->list_memory, &executor->list_own_bytes));
    for (uint32_t l = 0; l < executor->list_count; l++)
        executor->list_memory_of[l].at.buffer = executor->list_memory;
    return PEN_OK;
}

typedef struct list_maker {
    const pen_executor *executor;
    uint32_t combination;
    pen_list_item *items;
    uint32_t count;
} list_maker;

static pen_status list_add_look(void *context, pen_value_id value) {
    list_maker *maker = context;
    const pen_executor *executor = maker->executor;
    const pen_tensor_type *type = pen_value_type(executor->spec.graph, value);
    executor_list_look *made;
    if (!executor_has_elements(executor, value)) return PEN_OK;
    const uint64_t count = (uint64_t)pen_shape_element_count(&type->shape);
    if (count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(executor->arena, 1, &made));
    *made =
        (executor_list_look){.look = {.of = executor_operand(executor, value, maker->combination),
                                      .count = count,
                                      .is_wide = type->element == PEN_FLOAT64},
                             .executor = executor,
                             .value = value};
    maker->items[maker->count++].look = &made->look;
    return PEN_OK;
}

// The launches, and between them what the guards look at.
static pen_status list_add_all(list_maker *maker, const pen_memory_list *list) {
    const pen_executor *executor = maker->executor;
    const bool is_guarded = executor->guards != NULL;
    const executor_looker looker = {maker, list_add_look};
    if (is_guarded) PEN_TRY(executor_guard_looks_first(executor, list, &looker));
    for (uint32_t p = list->first; p < list->end; p++) {
        const pen_launch *launch = executor_launch(executor, p, maker->combination);
        if (launch == NULL) continue;
        if (is_guarded) PEN_TRY(executor_guard_looks_before(executor, list, p, &looker));
        maker->items[maker->count++].launch = launch;
        if (is_guarded) PEN_TRY(executor_guard_looks_after(executor, p, &looker));
    }
    return PEN_OK;
}

// Of a node there are three items at most, and one for each update of the list.
static pen_status list_make(const pen_executor *executor, uint32_t list_index, uint32_t combination,
                            pen_launch_list **out_list) {
    pen_device *device = executor->spec.device;
    const pen_memory_list *list = &executor->lists[list_index];
    pen_list_memory memory = executor->list_memory_of[list_index];
    const size_t limit = 4 * ((size_t)list->end - list->first) + 1;
    list_maker maker = {.executor = executor, .combination = combination};
    maker.items = pen_memory_allocate(limit, sizeof *maker.items);
    if (maker.items == NULL) return pen_error_out_of_memory();
    memory.at.offset += combination * memory.bytes;
    pen_status status = list_add_all(&maker, list);
    if (status == PEN_OK)
        status = device->kind->list_create(device, maker.items, maker.count, &memory, out_list);
    pen_memory_free(maker.items);
    return status;
}

bool executor_has_lists(const pen_executor *executor) {
    return executor->spec.device->kind->list_create != NULL && !executor->is_guarded_here;
}

// Lists are made when they first run: a form of a microbatch that never comes costs nothing.
pen_status executor_find_list(pen_executor *executor, uint32_t list_index, uint64_t microbatch,
                              pen_launch_list **out_list) {
    *out_list = NULL;
    if (!executor_has_lists(executor)) return PEN_OK;
    if (executor->made == NULL)
        PEN_TRY(PEN_NEW(executor->arena, executor->list_count, &executor->made));
    executor_made *made = &executor->made[list_index];
    const pen_memory_list *list = &executor->lists[list_index];
    if (made->lists == NULL) {
        const uint32_t count = list_combinations(executor, list);
        PEN_TRY(PEN_NEW(executor->arena, (size_t)count + 1, &made->lists));
        made->count = count;
    }
    if (made->count == 0) return PEN_OK;
    const uint32_t combination = (uint32_t)(microbatch % made->count);
    if (made->lists[combination] == NULL)
        PEN_TRY(list_make(executor, list_index, combination, &made->lists[combination]));
    *out_list = made->lists[combination];
    return PEN_OK;
}

void executor_release_lists(pen_executor *executor) {
    pen_device *device = executor->spec.device;
    for (uint32_t l = 0; executor->made != NULL && l < executor->list_count; l++) {
        executor_made *made = &executor->made[l];
        for (uint32_t i = 0; i < made->count; i++)
            device->kind->list_destroy(device, made->lists[i]);
    }
    executor->made = NULL;
}
