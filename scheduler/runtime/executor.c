#include "scheduler/runtime/executor.h"

#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/text.h"
#include "graph/analysis/memory_plan.h"

struct pen_executor {
    pen_executor_spec spec;
    pen_arena *arena;
    pen_memory_plan *plan;
    uint64_t input_bytes; // of the persistent region: what is fed
    pen_buffer *persistent;
    pen_buffer *transient; // the arena of activations
    bool owns_transient;   // false: it is the shared executor's
    uint64_t transient_bytes;
    pen_operand *operands; // [value_count]; buffer NULL: nowhere
    pen_kernel **kernels;  // [order_count]; NULL for views
    pen_launch **launches; // [order_count]; NULL for views
    double *node_seconds;  // [order_count], added to; NULL: nobody wants to know
};

static const pen_node *executor_node(const pen_executor *executor, uint32_t position) {
    return pen_graph_node(executor->spec.graph, executor->spec.order[position]);
}

static pen_status executor_prepare_kernels(pen_executor *executor, uint64_t *workspace_of_node) {
    pen_device *device = executor->spec.device;
    for (uint32_t p = 0; p < executor->spec.order_count; p++) {
        if (executor_node(executor, p)->op->is_view) continue;
        const pen_node_id node = executor->spec.order[p];
        PEN_TRY(device->kind->prepare(device, executor->spec.graph, node, executor->arena,
                                      &executor->kernels[p]));
        workspace_of_node[node.index] = device->kind->workspace_bytes(executor->kernels[p]);
    }
    return PEN_OK;
}

// The value whose storage `value` has: itself, but for views and what replaces persistent values.
static pen_value_id executor_home(const pen_graph *graph, pen_value_id value) {
    for (;;) {
        const pen_value *subject = pen_graph_value(graph, value);
        if (pen_value_is(subject->replaces)) return subject->replaces;
        if (subject->kind != PEN_VALUE_COMPUTED) return value;
        const pen_node *producer = pen_graph_node(graph, subject->producer);
        if (!producer->op->is_view) return value;
        value = producer->inputs[0];
    }
}

static bool executor_accumulates(const pen_graph *graph, const pen_value *value) {
    return pen_graph_node(graph, value->producer)->accumulates;
}

// Where a parameter, state or accumulated gradient of the same name lies in the shared executor.
static pen_operand executor_shared_operand(const pen_executor *executor, pen_value_id id) {
    const pen_executor *shared = executor->spec.shared;
    const pen_value *value = pen_graph_value(executor->spec.graph, id);
    const bool outlives =
        value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE ||
        (value->kind == PEN_VALUE_COMPUTED && executor_accumulates(executor->spec.graph, value));
    pen_value_id other;
    if (shared == NULL || !outlives) return (pen_operand){0};
    const pen_status status = pen_graph_find_value(shared->spec.graph, value->name, &other);
    if (status != PEN_OK) {
        pen_status_ignore(status, "not shared: this graph alone has it");
        return (pen_operand){0};
    }
    const pen_value *found = pen_graph_value(shared->spec.graph, other);
    if (!pen_tensor_type_equal(&found->type, &value->type) || found->layout != value->layout) {
        return (pen_operand){0};
    }
    return shared->operands[other.index];
}

// What was asked for, and the model's own parameters and states: those that no node reads are there
// too, to be loaded and saved.
static pen_status executor_list_kept(const pen_executor *executor, pen_value_id **out_kept,
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
        if (persists && value->data != NULL) kept[count++] = (pen_value_id){v};
    }
    *out_kept = kept;
    *out_count = count;
    return PEN_OK;
}

// Gradients that add up over programs of several sizes must have one place.
static pen_status executor_check_accumulated(const pen_executor *executor) {
    const pen_graph *graph = executor->spec.graph;
    if (executor->spec.shared == NULL) return PEN_OK;
    for (uint32_t p = 0; p < executor->spec.order_count; p++) {
        const pen_node *node = executor_node(executor, p);
        if (!node->accumulates) continue;
        for (uint32_t i = 0; i < node->output_count; i++) {
            const pen_value_id output = node->outputs[i];
            if (!pen_value_is(output)) continue;
            if (executor_shared_operand(executor, output).buffer != NULL) continue;
            return pen_error(PEN_INTERNAL, "'%s' is not accumulated in the first program",
                             pen_value_name(graph, output));
        }
    }
    return PEN_OK;
}

static pen_status executor_plan(pen_executor *executor) {
    const pen_executor_spec *spec = &executor->spec;
    const uint32_t value_count = pen_graph_value_count(spec->graph);
    uint64_t *bytes, *workspace;
    PEN_TRY(PEN_NEW(executor->arena, value_count, &bytes));
    PEN_TRY(PEN_NEW(executor->arena, pen_graph_node_count(spec->graph), &workspace));
    for (uint32_t v = 0; v < value_count; v++) {
        const pen_value_id value = {v};
        if (executor_shared_operand(executor, value).buffer != NULL) continue; // has its place
        const pen_value_kind kind = pen_graph_value(spec->graph, value)->kind;
        bytes[v] = spec->device->kind->value_bytes != NULL
                       ? spec->device->kind->value_bytes(spec->device, spec->graph, value)
                       : pen_tensor_type_bytes(pen_value_type(spec->graph, value));
        if (kind == PEN_VALUE_INPUT || kind == PEN_VALUE_SCALAR) executor->input_bytes += bytes[v];
    }
    PEN_TRY(executor_check_accumulated(executor));
    PEN_TRY(executor_prepare_kernels(executor, workspace));
    pen_value_id *kept;
    uint32_t kept_count;
    PEN_TRY(executor_list_kept(executor, &kept, &kept_count));
    const pen_memory_request request = {.graph = spec->graph,
                                        .order = spec->order,
                                        .order_count = spec->order_count,
                                        .bytes_of_value = bytes,
                                        .workspace_of_node = workspace,
                                        .kept = kept,
                                        .kept_count = kept_count};
    return pen_memory_plan_build(&request, executor->arena, &executor->plan);
}

// Where values that outlive a microbatch lie, with their first contents.
static pen_status executor_load_persistent(pen_executor *executor) {
    pen_device *device = executor->spec.device;
    const pen_graph *graph = executor->spec.graph;
    PEN_TRY(device->kind->buffer_create(device, executor->plan->persistent_bytes,
                                        &executor->persistent));
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_memory_slot slot = executor->plan->values[v];
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (slot.region != PEN_MEMORY_PERSISTENT) continue;
        executor->operands[v] =
            executor_shared_operand(executor, executor_home(graph, (pen_value_id){v}));
        if (executor->operands[v].buffer != NULL) continue;
        executor->operands[v] = (pen_operand){executor->persistent, slot.offset};
        if (value->data == NULL) continue;
        PEN_TRY(device->kind->write(device, executor->operands[v], value->data, value->data_bytes));
    }
    PEN_TRY(device->kind->synchronize(device));
    if (executor->spec.loaded != NULL) executor->spec.loaded(executor->spec.loaded_context);
    return PEN_OK;
}

// The arena of the shared executor if it is large enough (they never run at once), or a new one.
static pen_status executor_create_transient(pen_executor *executor) {
    pen_device *device = executor->spec.device;
    const pen_executor *shared = executor->spec.shared;
    const uint64_t bytes = executor->plan->arena_bytes;
    if (shared != NULL && shared->transient_bytes >= bytes) {
        executor->transient = shared->transient;
        executor->transient_bytes = shared->transient_bytes;
        return PEN_OK;
    }
    PEN_TRY(device->kind->buffer_create(device, bytes, &executor->transient));
    executor->owns_transient = true;
    executor->transient_bytes = bytes;
    return PEN_OK;
}

static pen_status executor_place_transient(pen_executor *executor) {
    PEN_TRY(executor_create_transient(executor));
    for (uint32_t v = 0; v < pen_graph_value_count(executor->spec.graph); v++) {
        const pen_memory_slot slot = executor->plan->values[v];
        if (slot.region != PEN_MEMORY_ARENA) continue;
        executor->operands[v] = (pen_operand){executor->transient, slot.offset};
    }
    return PEN_OK;
}

static pen_status executor_bind_node(pen_executor *executor, uint32_t position,
                                     pen_launch **out_launch) {
    const pen_node *node = executor_node(executor, position);
    pen_operand *inputs, *outputs;
    PEN_TRY(PEN_NEW(executor->arena, node->input_count, &inputs));
    PEN_TRY(PEN_NEW(executor->arena, node->output_count, &outputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (pen_value_is(node->inputs[i])) inputs[i] = executor->operands[node->inputs[i].index];
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) outputs[i] = executor->operands[node->outputs[i].index];
    }
    const uint32_t index = executor->spec.order[position].index;
    const pen_binding binding = {
        .inputs = inputs,
        .outputs = outputs,
        .workspace = {executor->transient, executor->plan->workspace_offsets[index]}};
    pen_device *device = executor->spec.device;
    return device->kind->bind(device, executor->kernels[position], &binding, executor->arena,
                              out_launch);
}

static pen_status executor_bind(pen_executor *executor) {
    for (uint32_t p = 0; p < executor->spec.order_count; p++) {
        if (executor->kernels[p] == NULL) continue;
        PEN_TRY(executor_bind_node(executor, p, &executor->launches[p]));
    }
    return PEN_OK;
}

static pen_status executor_build(pen_executor *executor) {
    const uint32_t value_count = pen_graph_value_count(executor->spec.graph);
    PEN_TRY(PEN_NEW(executor->arena, value_count, &executor->operands));
    PEN_TRY(PEN_NEW(executor->arena, executor->spec.order_count, &executor->kernels));
    PEN_TRY(PEN_NEW(executor->arena, executor->spec.order_count, &executor->launches));
    PEN_TRY(executor_plan(executor));
    char kept[PEN_QUANTITY_TEXT_BYTES], fed[PEN_QUANTITY_TEXT_BYTES];
    char passing[PEN_QUANTITY_TEXT_BYTES];
    pen_status status = executor_load_persistent(executor);
    if (status == PEN_OK) status = executor_place_transient(executor);
    if (pen_status_get_code(status) == PEN_DOES_NOT_FIT) {
        return pen_status_add_context(
            status,
            "parameters, accumulated gradients and optimizer state take %s, inputs of a microbatch "
            "%s, "
            "values passed along %s",
            pen_bytes_format(
                executor->plan->persistent_bytes -
                    pen_min_u64(executor->input_bytes, executor->plan->persistent_bytes),
                kept),
            pen_bytes_format(executor->input_bytes, fed),
            pen_bytes_format(executor->plan->arena_bytes, passing));
    }
    PEN_TRY(status);
    return executor_bind(executor);
}

pen_status pen_executor_create(const pen_executor_spec *spec, pen_executor **out_executor) {
    pen_executor *executor = pen_memory_allocate(1, sizeof *executor);
    if (executor == NULL) return pen_error_out_of_memory();
    executor->spec = *spec;
    pen_status status = pen_arena_create(&executor->arena);
    if (status == PEN_OK) status = executor_build(executor);
    if (status != PEN_OK) {
        pen_executor_destroy(executor);
        return status;
    }
    *out_executor = executor;
    return PEN_OK;
}

void pen_executor_destroy(pen_executor *executor) {
    if (executor == NULL) return;
    pen_device *device = executor->spec.device;
    for (uint32_t p = 0; executor->kernels != NULL && p < executor->spec.order_count; p++) {
        if (executor->kernels[p] != NULL) device->kind->release(device, executor->kernels[p]);
    }
    if (executor->owns_transient) device->kind->buffer_destroy(device, executor->transient);
    if (executor->persistent != NULL) device->kind->buffer_destroy(device, executor->persistent);
    pen_arena_destroy(executor->arena);
    pen_memory_free(executor);
}

bool pen_executor_holds(const pen_executor *executor, pen_value_id value) {
    return executor->operands[value.index].buffer != NULL;
}

static void executor_check_bytes(const pen_executor *executor, pen_value_id value, uint64_t bytes) {
    PEN_ASSERT(pen_graph_value(executor->spec.graph, value)->layout == PEN_LAYOUT_PLAIN);
    PEN_ASSERT(bytes == pen_tensor_type_bytes(pen_value_type(executor->spec.graph, value)));
}

pen_status pen_executor_write(pen_executor *executor, pen_value_id value, const void *host,
                              uint64_t bytes) {
    executor_check_bytes(executor, value, bytes);
    if (!pen_executor_holds(executor, value)) return PEN_OK;
    pen_device *device = executor->spec.device;
    PEN_TRY(device->kind->write(device, executor->operands[value.index], host, bytes));
    return device->kind->synchronize(device);
}

pen_status pen_executor_read(pen_executor *executor, pen_value_id value, void *host,
                             uint64_t bytes) {
    executor_check_bytes(executor, value, bytes);
    if (!pen_executor_holds(executor, value)) {
        return pen_error(PEN_INTERNAL, "value '%s' has no place in memory",
                         pen_value_name(executor->spec.graph, value));
    }
    pen_device *device = executor->spec.device;
    return device->kind->read(device, executor->operands[value.index], host, bytes);
}

pen_status pen_executor_read_part(pen_executor *executor, pen_value_id value, uint64_t first,
                                  void *host, uint64_t bytes) {
    PEN_ASSERT(pen_executor_holds(executor, value));
    pen_device *device = executor->spec.device;
    pen_operand from = executor->operands[value.index];
    from.offset += first;
    return device->kind->read(device, from, host, bytes);
}

pen_status pen_executor_write_part(pen_executor *executor, pen_value_id value, uint64_t first,
                                   const void *host, uint64_t bytes) {
    PEN_ASSERT(pen_executor_holds(executor, value));
    pen_device *device = executor->spec.device;
    pen_operand to = executor->operands[value.index];
    to.offset += first;
    PEN_TRY(device->kind->write(device, to, host, bytes));
    return device->kind->synchronize(device);
}

static pen_status executor_name_node(const pen_executor *executor, uint32_t position,
                                     pen_status status) {
    const pen_node *node = executor_node(executor, position);
    return pen_status_add_context(status, "while running %s '%s'", node->op->name, node->name);
}

static pen_status executor_run_timed(pen_executor *executor, uint32_t first, uint32_t last,
                                     const pen_run_context *run) {
    pen_device *device = executor->spec.device;
    PEN_TRY(device->kind->synchronize(device));
    double started = pen_clock_seconds();
    for (uint32_t p = first; p < last; p++) {
        if (executor->launches[p] == NULL) continue;
        pen_status status = device->kind->enqueue(device, executor->launches[p], run);
        if (status == PEN_OK) status = device->kind->synchronize(device);
        if (status != PEN_OK) return executor_name_node(executor, p, status);
        const double ended = pen_clock_seconds();
        executor->node_seconds[p] += ended - started;
        started = ended;
    }
    return PEN_OK;
}

static pen_status executor_run(pen_executor *executor, uint32_t first, uint32_t last,
                               const pen_run_context *run) {
    pen_device *device = executor->spec.device;
    if (executor->node_seconds != NULL) return executor_run_timed(executor, first, last, run);
    for (uint32_t p = first; p < last; p++) {
        if (executor->launches[p] == NULL) continue;
        const pen_status status = device->kind->enqueue(device, executor->launches[p], run);
        if (status != PEN_OK) return executor_name_node(executor, p, status);
    }
    return PEN_OK;
}

void pen_executor_time_nodes(pen_executor *executor, double *seconds) {
    executor->node_seconds = seconds;
}

pen_status pen_executor_run_microbatch(pen_executor *executor, const pen_run_context *run) {
    return executor_run(executor, 0, executor->spec.update_first, run);
}

pen_status pen_executor_run_update(pen_executor *executor, const pen_run_context *run) {
    PEN_TRY(executor_run(executor, executor->spec.update_first, executor->spec.order_count, run));
    return executor->spec.device->kind->synchronize(executor->spec.device);
}

pen_executor_memory pen_executor_get_memory(const pen_executor *executor) {
    const pen_memory_plan *plan = executor->plan;
    return (pen_executor_memory){
        .persistent_bytes = plan->persistent_bytes,
        .arena_bytes = plan->arena_bytes,
        .live_bytes_peak = plan->live_bytes_peak,
        .in_place_count = plan->in_place_count,
        .owned_bytes =
            plan->persistent_bytes + (executor->owns_transient ? executor->transient_bytes : 0),
    };
}
