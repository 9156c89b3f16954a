#include "base/clock.h"
#include "base/memory.h"
#include "base/system/failpoint.h"
#include "graph/graph.h"
#include "graph/node_blame.h"
#include "graph/op.h"
#include "scheduler/runtime/executor/executor.h"
#include "scheduler/runtime/executor/executor_state.h"

// More combinations of copies than this for one node are a mistake of who counted the copies.
#define EXECUTOR_BINDINGS_LIMIT 4096u

static const pen_node *executor_node(const pen_executor *executor, uint32_t position) {
    return pen_graph_node(executor->spec.graph, executor->spec.order[position]);
}

// ---- life

static pen_status executor_copy_lists(pen_executor *executor) {
    const pen_executor_spec *spec = &executor->spec;
    executor->list_count = spec->lists == NULL ? 2 : spec->list_count;
    PEN_TRY(PEN_NEW(executor->arena, executor->list_count, &executor->lists));
    if (spec->lists == NULL) {
        executor->lists[PEN_EXECUTOR_MICROBATCH] = (pen_memory_list){0, spec->update_first};
        executor->lists[PEN_EXECUTOR_UPDATE] =
            (pen_memory_list){spec->update_first, spec->order_count};
        return PEN_OK;
    }
    uint32_t position = 0;
    for (uint32_t l = 0; l < spec->list_count; l++) {
        PEN_ASSERT(spec->lists[l].first == position && spec->lists[l].end >= position);
        position = spec->lists[l].end;
        executor->lists[l] = (pen_memory_list){spec->lists[l].first, spec->lists[l].end};
    }
    PEN_ASSERT(position == spec->order_count);
    return PEN_OK;
}

// The spec's `lent` is needed until the end: a copy of it.
static pen_status executor_copy_lent(pen_executor *executor) {
    pen_value_id *lent;
    PEN_TRY(PEN_NEW(executor->arena, executor->spec.lent_count, &lent));
    for (uint32_t i = 0; i < executor->spec.lent_count; i++) {
        lent[i] = executor->spec.lent[i];
    }
    executor->spec.lent = lent;
    return PEN_OK;
}

static pen_status executor_build(pen_executor *executor) {
    const uint32_t order_count = executor->spec.order_count;
    PEN_TRY(PEN_NEW(executor->arena, order_count, &executor->kernels));
    PEN_TRY(PEN_NEW(executor->arena, 1, &executor->copy));
    PEN_TRY(executor_copy_lent(executor));
    PEN_TRY(executor_copy_lists(executor));
    PEN_TRY(executor_plan(executor));
    PEN_TRY(executor_place_values(executor));
    executor->spec.lists = NULL;
    executor->spec.copies_of_value = NULL;
    executor->spec.kept = NULL;
    return executor->spec.lent_count > 0 ? PEN_OK : pen_executor_bind(executor);
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
    executor_release_lists(executor);
    if (executor->list_memory != NULL) device->kind->buffer_destroy(device, executor->list_memory);
    for (uint32_t p = 0; executor->kernels != NULL && p < executor->spec.order_count; p++) {
        if (executor->kernels[p] != NULL) device->kind->release(device, executor->kernels[p]);
    }
    executor_release_values(executor);
    if (executor->copy != NULL) pen_memory_free(executor->copy->bytes);
    pen_arena_destroy(executor->arena);
    pen_memory_free(executor);
}

// ---- binding

uint64_t executor_common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static const pen_value_id *executor_operand_at(const pen_node *node, uint32_t index) {
    return index < node->input_count ? &node->inputs[index]
                                     : &node->outputs[index - node->input_count];
}

// How many combinations of copies the operands of a node go through.
static pen_status executor_count_bindings(const pen_executor *executor, uint32_t position,
                                          uint32_t *out_count) {
    const pen_node *node = executor_node(executor, position);
    uint64_t count = 1;
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        const pen_value_id operand = *executor_operand_at(node, i);
        if (!pen_value_is(operand)) continue;
        const uint32_t copies = executor->places[operand.index].copies;
        if (copies > 1) count *= copies / executor_common_divisor(count, copies);
        if (count > EXECUTOR_BINDINGS_LIMIT) {
            return pen_error(PEN_INTERNAL,
                             "the copies of the operands of '%s' have more than %u combinations",
                             node->name, EXECUTOR_BINDINGS_LIMIT);
        }
    }
    *out_count = (uint32_t)count;
    return PEN_OK;
}

static pen_status executor_check_operands(const pen_executor *executor, const pen_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        if (executor->places[node->inputs[i].index].copies > 0) continue;
        if (i < 64 && (node->op->constant_inputs >> i & 1) != 0) continue; // read when prepared
        return pen_error(PEN_INTERNAL, "'%s' reads '%s', which has no place in memory", node->name,
                         pen_value_name(executor->spec.graph, node->inputs[i]));
    }
    return PEN_OK;
}

// Addresses of one combination of places. Kernels keep them: enqueueing looks nothing up.
static pen_status executor_bind_node(const pen_executor *executor, uint32_t position,
                                     uint32_t microbatch, pen_launch **out_launch) {
    const pen_node *node = executor_node(executor, position);
    pen_operand *inputs, *outputs;
    PEN_TRY(PEN_NEW(executor->arena, node->input_count, &inputs));
    PEN_TRY(PEN_NEW(executor->arena, node->output_count, &outputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        inputs[i] = executor_operand(executor, node->inputs[i], microbatch);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_value_is(node->outputs[i])) continue;
        outputs[i] = executor_operand(executor, node->outputs[i], microbatch);
    }
    const pen_memory_plan *plan = executor->plan;
    const uint64_t workspace = plan->workspace_offsets[executor->spec.order[position].index];
    const pen_binding binding = {.inputs = inputs,
                                 .outputs = outputs,
                                 .workspace = {executor->working, plan->copies_bytes + workspace}};
    pen_device *device = executor->spec.device;
    return device->kind->bind(device, executor->kernels[position], &binding, executor->arena,
                              out_launch);
}

// Counts first, so that all launches lie in one array by node and microbatch.
pen_status pen_executor_bind(pen_executor *executor) {
    const uint32_t order_count = executor->spec.order_count;
    PEN_ASSERT(executor->launches == NULL);
    executor_place_views(executor);
    PEN_TRY(PEN_NEW(executor->arena, (size_t)order_count + 1, &executor->launch_first));
    for (uint32_t p = 0; p < order_count; p++) {
        uint32_t count = 0;
        if (executor->kernels[p] != NULL) {
            PEN_TRY(executor_check_operands(executor, executor_node(executor, p)));
            PEN_TRY(executor_count_bindings(executor, p, &count));
        }
        executor->launch_first[p + 1] = executor->launch_first[p] + count;
    }
    pen_launch **launches;
    PEN_TRY(PEN_NEW(executor->arena, executor->launch_first[order_count], &launches));
    for (uint32_t p = 0; p < order_count; p++) {
        const uint32_t first = executor->launch_first[p];
        for (uint32_t k = first; k < executor->launch_first[p + 1]; k++) {
            PEN_TRY(executor_bind_node(executor, p, k - first, &launches[k]));
        }
    }
    executor->launches = launches;
    return executor_reserve_lists(executor);
}

// ---- contents

bool pen_executor_holds(const pen_executor *executor, pen_value_id value) {
    return executor->places[value.index].copies > 0;
}

uint32_t pen_executor_copies(const pen_executor *executor, pen_value_id value) {
    return executor->places[value.index].copies;
}

uint64_t pen_executor_bytes(const pen_executor *executor, pen_value_id value) {
    return executor->bytes_of_value[value.index];
}

pen_memory_place pen_executor_place(const pen_executor *executor, pen_value_id value,
                                    uint64_t microbatch) {
    pen_device *device = executor->spec.device;
    if (!pen_executor_holds(executor, value)) return pen_memory_place_at(NULL);
    return device->kind->place(device, executor_operand(executor, value, microbatch));
}

void *pen_executor_address(const pen_executor *executor, pen_value_id value, uint64_t microbatch) {
    return pen_memory_place_address(pen_executor_place(executor, value, microbatch));
}

bool executor_is_seen(const pen_executor *executor) {
    pen_device *device = executor->spec.device;
    const pen_memory_place place = device->kind->place(device, (pen_operand){.buffer = NULL});
    return place.domain == &pen_memory_host;
}

static void executor_check_bytes(const pen_executor *executor, pen_value_id value, uint64_t bytes) {
    PEN_ASSERT(pen_graph_value(executor->spec.graph, value)->layout == PEN_LAYOUT_PLAIN);
    PEN_ASSERT(bytes == pen_tensor_type_bytes(pen_value_type(executor->spec.graph, value)));
}

pen_status pen_executor_write(pen_executor *executor, pen_value_id value, uint64_t microbatch,
                              const void *host, uint64_t bytes) {
    executor_check_bytes(executor, value, bytes);
    if (!pen_executor_holds(executor, value)) return PEN_OK;
    pen_device *device = executor->spec.device;
    return device->kind->write(device, executor_operand(executor, value, microbatch), host, bytes);
}

static pen_status executor_check_held(const pen_executor *executor, pen_value_id value,
                                      uint64_t bytes) {
    executor_check_bytes(executor, value, bytes);
    if (pen_executor_holds(executor, value)) return PEN_OK;
    return pen_error(PEN_INTERNAL, "value '%s' has no place in memory",
                     pen_value_name(executor->spec.graph, value));
}

pen_status pen_executor_read(pen_executor *executor, pen_value_id value, uint64_t microbatch,
                             void *host, uint64_t bytes) {
    pen_device *device = executor->spec.device;
    PEN_TRY(executor_check_held(executor, value, bytes));
    return device->kind->read(device, executor_operand(executor, value, microbatch), host, bytes);
}

pen_status pen_executor_fetch(pen_executor *executor, pen_value_id value, uint64_t microbatch,
                              void *host, uint64_t bytes) {
    pen_device *device = executor->spec.device;
    PEN_TRY(executor_check_held(executor, value, bytes));
    return device->kind->fetch(device, executor_operand(executor, value, microbatch), host, bytes);
}

pen_status pen_executor_fetch_number(pen_executor *executor, pen_value_id value,
                                     uint64_t microbatch, pen_executor_number *out_number) {
    pen_executor_number *number = out_number;
    *number = (pen_executor_number){
        .is_wide = pen_value_type(executor->spec.graph, value)->element == PEN_FLOAT64};
    return number->is_wide
               ? pen_executor_fetch(executor, value, microbatch, &number->wide, sizeof number->wide)
               : pen_executor_fetch(executor, value, microbatch, &number->single,
                                    sizeof number->single);
}

pen_status pen_executor_copy_in(pen_executor *executor, pen_value_id value, uint64_t microbatch,
                                const void *host, uint64_t bytes) {
    pen_device *device = executor->spec.device;
    PEN_ASSERT(pen_executor_holds(executor, value));
    PEN_ASSERT(bytes <= pen_executor_bytes(executor, value));
    const pen_operand to = executor_operand(executor, value, microbatch);
    return device->kind->copy_in == NULL ? device->kind->write(device, to, host, bytes)
                                         : device->kind->copy_in(device, to, host, bytes);
}

pen_status pen_executor_copy_out(pen_executor *executor, pen_value_id value, uint64_t microbatch,
                                 void *host, uint64_t bytes) {
    pen_device *device = executor->spec.device;
    PEN_ASSERT(pen_executor_holds(executor, value));
    PEN_ASSERT(bytes <= pen_executor_bytes(executor, value));
    const pen_operand from = executor_operand(executor, value, microbatch);
    return device->kind->copy_out(device, from, host, bytes);
}

pen_status pen_executor_copy_across(pen_executor *executor, pen_value_id value, uint64_t microbatch,
                                    const pen_executor *maker, pen_value_id from, uint64_t bytes) {
    pen_device *device = executor->spec.device;
    PEN_ASSERT(pen_executor_holds(executor, value) && pen_executor_holds(maker, from));
    PEN_ASSERT(bytes <= pen_executor_bytes(executor, value));
    PEN_ASSERT(bytes <= pen_executor_bytes(maker, from));
    return device->kind->copy_across(device, executor_operand(executor, value, microbatch),
                                     maker->spec.device, executor_operand(maker, from, microbatch),
                                     bytes);
}

pen_status pen_executor_write_part(pen_executor *executor, pen_value_id value, uint64_t first,
                                   const void *host, uint64_t bytes) {
    PEN_ASSERT(pen_executor_holds(executor, value));
    pen_device *device = executor->spec.device;
    pen_operand to = executor_operand(executor, value, 0);
    to.offset += first;
    return device->kind->write(device, to, host, bytes);
}

pen_status pen_executor_read_part(pen_executor *executor, pen_value_id value, uint64_t first,
                                  void *host, uint64_t bytes) {
    PEN_ASSERT(pen_executor_holds(executor, value));
    pen_device *device = executor->spec.device;
    pen_operand from = executor_operand(executor, value, 0);
    from.offset += first;
    return device->kind->read(device, from, host, bytes);
}

// ---- running

static pen_status executor_name_node(const pen_executor *executor, uint32_t position,
                                     pen_status status) {
    return pen_node_blame(executor->spec.graph, executor_node(executor, position), status);
}

const pen_launch *executor_launch(const pen_executor *executor, uint32_t position,
                                  uint64_t microbatch) {
    const uint32_t first = executor->launch_first[position];
    const uint32_t count = executor->launch_first[position + 1] - first;
    return count == 0 ? NULL : executor->launches[first + microbatch % count];
}

// By the device's clock, if it has one: a mark before each node and one behind the last, and a
// single wait.
static pen_status executor_run_marked(pen_executor *executor, const pen_memory_list *list,
                                      uint64_t microbatch, const pen_run_context *run) {
    pen_device *device = executor->spec.device;
    uint32_t mark = 0;
    pen_span span;
    PEN_TRY(device->kind->mark(device, mark));
    for (uint32_t p = list->first; p < list->end; p++) {
        const pen_launch *launch = executor_launch(executor, p, microbatch);
        if (launch == NULL) continue;
        pen_status status = device->kind->enqueue(device, launch, run);
        if (status == PEN_OK) status = device->kind->mark(device, ++mark);
        if (status != PEN_OK) return executor_name_node(executor, p, status);
    }
    PEN_TRY(device->kind->synchronize(device));
    mark = 0;
    for (uint32_t p = list->first; p < list->end; p++) {
        if (executor_launch(executor, p, microbatch) == NULL) continue;
        PEN_TRY(device->kind->marked(device, mark, mark + 1, &span));
        executor->node_seconds[p] += span.seconds;
        mark++;
    }
    return PEN_OK;
}

static pen_status executor_run_timed(pen_executor *executor, const pen_memory_list *list,
                                     uint64_t microbatch, const pen_run_context *run) {
    pen_device *device = executor->spec.device;
    if (device->kind->mark != NULL) return executor_run_marked(executor, list, microbatch, run);
    PEN_TRY(device->kind->synchronize(device));
    double started = pen_clock_seconds();
    for (uint32_t p = list->first; p < list->end; p++) {
        const pen_launch *launch = executor_launch(executor, p, microbatch);
        if (launch == NULL) continue;
        pen_status status = device->kind->enqueue(device, launch, run);
        if (status == PEN_OK) status = device->kind->synchronize(device);
        if (status != PEN_OK) return executor_name_node(executor, p, status);
        const double ended = pen_clock_seconds();
        executor->node_seconds[p] += ended - started;
        started = ended;
    }
    return PEN_OK;
}

// One bit is changed, where that does most harm: 1.5 becomes what is not a number.
void executor_spoil(const pen_executor *executor, uint32_t position, uint64_t microbatch) {
    if (!PEN_FAILPOINT("executor.node_run")) return;
    const pen_node *node = executor_node(executor, position);
    uint8_t *memory = pen_executor_address(executor, node->outputs[0], microbatch);
    const uint64_t bytes = pen_executor_bytes(executor, node->outputs[0]);
    if (memory == NULL || bytes < 4) return;
    uint64_t at = 0;
    for (uint64_t i = 0; i + 4 <= bytes; i += 4) {
        const bool is_between_1_and_2 = (memory[i + 3] & 0x7f) == 0x3f && memory[i + 2] > 0x80;
        if (is_between_1_and_2) at = i;
        if (is_between_1_and_2) break;
    }
    memory[at + 3] ^= 0x40;
}

static pen_status executor_run_guarded(pen_executor *executor, const pen_memory_list *list,
                                       uint64_t microbatch, const pen_run_context *run) {
    pen_device *device = executor->spec.device;
    PEN_TRY(executor_guard_list(executor, list, microbatch, run));
    for (uint32_t p = list->first; p < list->end; p++) {
        const pen_launch *launch = executor_launch(executor, p, microbatch);
        if (launch == NULL) continue;
        pen_status status = executor_guard_before(executor, list, p, microbatch);
        if (status == PEN_OK) status = device->kind->enqueue(device, launch, run);
        executor_spoil(executor, p, microbatch);
        if (status == PEN_OK) status = executor_guard_after(executor, p, microbatch, run);
        if (status != PEN_OK) return executor_name_node(executor, p, status);
    }
    return PEN_OK;
}

void pen_executor_time_nodes(pen_executor *executor, double *seconds) {
    executor->node_seconds = seconds;
}

pen_status pen_executor_enqueue(pen_executor *executor, uint32_t list_index, uint64_t microbatch,
                                const pen_run_context *run) {
    pen_device *device = executor->spec.device;
    pen_launch_list *as_one;
    PEN_ASSERT(list_index < executor->list_count && executor->launches != NULL);
    const pen_memory_list *list = &executor->lists[list_index];
    if (executor->node_seconds != NULL) return executor_run_timed(executor, list, microbatch, run);
    PEN_TRY(executor_find_list(executor, list_index, microbatch, &as_one));
    if (as_one != NULL) return device->kind->list_enqueue(device, as_one, run);
    if (executor->guards != NULL) return executor_run_guarded(executor, list, microbatch, run);
    for (uint32_t p = list->first; p < list->end; p++) {
        const pen_launch *launch = executor_launch(executor, p, microbatch);
        if (launch == NULL) continue;
        const pen_status status = device->kind->enqueue(device, launch, run);
        if (status != PEN_OK) return executor_name_node(executor, p, status);
    }
    return PEN_OK;
}

pen_status pen_executor_finish(pen_executor *executor) {
    pen_device *device = executor->spec.device;
    const pen_look *look = NULL;
    PEN_TRY(device->kind->synchronize(device));
    if (device->kind->found != NULL) PEN_TRY(device->kind->found(device, &look));
    return look == NULL ? PEN_OK : executor_guard_found(executor, look);
}

pen_status pen_executor_run(pen_executor *executor, uint32_t list, uint64_t microbatch,
                            const pen_run_context *run) {
    PEN_TRY(pen_executor_enqueue(executor, list, microbatch, run));
    return pen_executor_finish(executor);
}

pen_executor_memory pen_executor_get_memory(const pen_executor *executor) {
    const pen_memory_plan *plan = executor->plan;
    return (pen_executor_memory){
        .persistent_bytes = plan->persistent_bytes,
        .copies_bytes = plan->copies_bytes,
        .arena_bytes = plan->arena_bytes,
        .live_bytes_peak = plan->live_bytes_peak,
        .in_place_count = plan->in_place_count,
        .owned_bytes = plan->persistent_bytes +
                       (executor->owns_working ? executor->working_bytes : 0) +
                       executor->list_own_bytes,
        .table_bytes = pen_arena_bytes(executor->arena),
    };
}
