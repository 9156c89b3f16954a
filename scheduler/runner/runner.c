#include "scheduler/runner/runner.h"

#include <string.h>

#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "device/on_host.h"
#include "graph/graph.h"
#include "scheduler/store/joined_store.h"

#define RUNNER_FORMS_LIMIT 16

typedef struct runner_entry {
    pen_runner_form form;
    pen_compile_mode mode;
    uint64_t microbatch_size;
    bool accumulate;
    const char *output; // NULL: the first, or all
} runner_entry;

struct pen_runner {
    pen_arena *arena;
    pen_runner_options options;
    pen_device *device;
    runner_entry entries[RUNNER_FORMS_LIMIT];
    uint32_t entry_count;
    pen_tensor_store tensors; // of the first form
    const pen_tensor_store *joined;
    pen_value_id *tensor_values; // [tensors.count], in its graph
};

pen_status pen_runner_create(const pen_runner_options *options, pen_runner **out_runner) {
    const pen_device_kind *kind;
    PEN_TRY(pen_device_kind_find(options->device_kind, &kind));
    pen_runner *runner = pen_memory_allocate(1, sizeof *runner);
    if (runner == NULL) return pen_error_out_of_memory();
    runner->options = *options;
    pen_status status = pen_arena_create(&runner->arena);
    if (status == PEN_OK) status = kind->open(&options->device, &runner->device);
    if (status != PEN_OK) {
        pen_arena_destroy(runner->arena);
        pen_memory_free(runner);
        return status;
    }
    pen_log_lines(PEN_LOG_WARNING, pen_device_lacks(runner->device));
    *out_runner = runner;
    return PEN_OK;
}

void pen_runner_destroy(pen_runner *runner) {
    if (runner == NULL) return;
    for (uint32_t i = runner->entry_count; i-- > 0;) { // the first form is shared: it goes last
        pen_executor_destroy(runner->entries[i].form.executor);
        pen_program_destroy(runner->entries[i].form.program);
    }
    runner->device->kind->close(runner->device);
    pen_arena_destroy(runner->arena);
    pen_memory_free(runner);
}

static pen_status runner_read(void *context, uint32_t index, uint64_t first, void *host,
                              uint64_t bytes) {
    const pen_runner *runner = context;
    return pen_executor_read_part(runner->entries[0].form.executor, runner->tensor_values[index],
                                  first, host, bytes);
}

static pen_status runner_write(void *context, uint32_t index, uint64_t first, const void *host,
                               uint64_t bytes) {
    const pen_runner *runner = context;
    return pen_executor_write_part(runner->entries[0].form.executor, runner->tensor_values[index],
                                   first, host, bytes);
}

// Lists those with first contents, which are the model's, or those that start as zeros.
static void runner_add_tensors(pen_runner *runner, bool is_model, pen_stored_tensor *tensors) {
    const pen_graph *graph = runner->entries[0].form.program->graph;
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        const pen_value *value = pen_graph_value(graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER && value->kind != PEN_VALUE_STATE) continue;
        if ((value->data != NULL) != is_model) continue;
        const uint32_t index = runner->tensors.count++;
        runner->tensor_values[index] = (pen_value_id){v};
        tensors[index] = (pen_stored_tensor){.name = value->name,
                                             .type = value->type,
                                             .bytes = pen_tensor_type_bytes(&value->type),
                                             .is_model = is_model,
                                             .slice = value->slice};
    }
}

static pen_status runner_list_tensors(pen_runner *runner) {
    const uint32_t value_count = pen_graph_value_count(runner->entries[0].form.program->graph);
    pen_stored_tensor *tensors;
    PEN_TRY(PEN_NEW(runner->arena, value_count, &tensors));
    PEN_TRY(PEN_NEW(runner->arena, value_count, &runner->tensor_values));
    runner->tensors = (pen_tensor_store){
        .tensors = tensors, .context = runner, .read = runner_read, .write = runner_write};
    runner_add_tensors(runner, true, tensors);
    runner_add_tensors(runner, false, tensors);
    return pen_joined_store_create(&runner->tensors, runner->arena, &runner->joined);
}

static void runner_forget_file(const void *program) {
    pen_program_forget(program);
}

// Names the operators that have no kernel where the device's memory is, each once.
static pen_status runner_tell_host(const pen_runner *runner, const pen_program *program) {
    pen_on_host found;
    if (runner->device->kind->runs_on_host == NULL) return PEN_OK;
    PEN_TRY(pen_on_host_find(runner->device, program->graph, program->order, program->order_count,
                             runner->arena, &found));
    if (found.count > 0) {
        pen_log(PEN_LOG_NOTE,
                "device '%s': %u of %u nodes run on the host, of operators without a kernel: %s",
                runner->options.device.name, found.count, found.of, found.list);
    }
    return PEN_OK;
}

// The first form holds the parameters; others use its memory.
static pen_status runner_build(pen_runner *runner, runner_entry *entry) {
    const pen_compile_request *compile = &runner->options.compile;
    const pen_compile_form form = {.mode = entry->mode,
                                   .microbatch_size = entry->microbatch_size,
                                   .microbatches = compile->microbatches,
                                   .most_examples = compile->most_examples,
                                   .accumulates = entry->accumulate,
                                   .is_whole = true,
                                   .output = entry->output,
                                   .device = runner->device};
    const pen_compile_request request = pen_compile_request_of(compile, &form);
    PEN_TRY(pen_compile(&request, &entry->form.program));
    const pen_program *program = entry->form.program;
    const pen_executor_spec spec = {
        .device = runner->device,
        .graph = program->graph,
        .order = program->order,
        .order_count = program->order_count,
        .update_first = program->update_first,
        .kept = program->kept,
        .kept_count = program->kept_count,
        .loaded = runner_forget_file,
        .loaded_context = program,
        .shared = runner->entry_count > 0 ? runner->entries[0].form.executor : NULL,
    };
    pen_status status = PEN_OK;
    if (runner->entry_count == 0) status = runner_tell_host(runner, program);
    if (status == PEN_OK) status = pen_executor_create(&spec, &entry->form.executor);
    if (status != PEN_OK) pen_program_destroy(program);
    return status;
}

static bool runner_is_same(const runner_entry *a, const runner_entry *b) {
    const bool has_outputs = a->output != NULL && b->output != NULL;
    return a->mode == b->mode && a->microbatch_size == b->microbatch_size &&
           a->accumulate == b->accumulate &&
           (has_outputs ? strcmp(a->output, b->output) == 0 : a->output == b->output);
}

// Forms are compiled when they are first needed and kept: sizes of batches are few, the whole one
// and the last.
static pen_status runner_get(pen_runner *runner, const runner_entry *wanted,
                             const pen_runner_form **out_form) {
    for (uint32_t i = 0; i < runner->entry_count; i++) {
        if (!runner_is_same(&runner->entries[i], wanted)) continue;
        *out_form = &runner->entries[i].form;
        return PEN_OK;
    }
    if (runner->entry_count == RUNNER_FORMS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "more than %d batch sizes in one run",
                         RUNNER_FORMS_LIMIT);
    }
    runner_entry *entry = &runner->entries[runner->entry_count];
    *entry = *wanted;
    PEN_TRY(runner_build(runner, entry));
    runner->entry_count += 1;
    *out_form = &entry->form;
    return runner->tensor_values == NULL ? runner_list_tensors(runner) : PEN_OK;
}

pen_status pen_runner_get(pen_runner *runner, pen_compile_mode mode, uint64_t microbatch_size,
                          bool accumulate, const pen_runner_form **out_form) {
    const runner_entry wanted = {
        .mode = mode, .microbatch_size = microbatch_size, .accumulate = accumulate};
    return runner_get(runner, &wanted, out_form);
}

pen_status pen_runner_get_row(pen_runner *runner, pen_compile_mode mode, const char *output,
                              const pen_runner_form **out_form) {
    const runner_entry wanted = {.mode = mode, .microbatch_size = 1, .output = output};
    return runner_get(runner, &wanted, out_form);
}

uint32_t pen_runner_form_count(const pen_runner *runner) {
    return runner->entry_count;
}

const pen_runner_form *pen_runner_form_at(const pen_runner *runner, uint32_t index) {
    PEN_ASSERT(index < runner->entry_count);
    return &runner->entries[index].form;
}

const pen_tensor_store *pen_runner_tensors(const pen_runner *runner) {
    return runner->joined;
}

const pen_tensor_store *pen_runner_slices(const pen_runner *runner) {
    return &runner->tensors;
}

pen_status pen_runner_arithmetic(const pen_runner *runner, pen_arena *arena,
                                 const char **out_text) {
    const pen_device_kind *kind = runner->device->kind;
    const char *identity;
    *out_text = kind->name;
    if (kind->identify == NULL) return PEN_OK;
    PEN_TRY(kind->identify(runner->device, arena, &identity));
    return pen_arena_format(arena, out_text, "%s: %s", kind->name, identity);
}

uint64_t pen_runner_host_bytes(const pen_runner *runner) {
    return runner->device->kind->has_own_memory ? 0 : pen_runner_device_bytes(runner);
}

pen_status pen_runner_pinned_bytes(const pen_runner *runner, uint64_t *out_bytes) {
    *out_bytes = 0;
    for (uint32_t i = 0; i < runner->entry_count; i++) {
        const pen_program *program = runner->entries[i].form.program;
        uint64_t bytes;
        PEN_TRY(pen_device_pinned_bytes(runner->device, program->graph, program->order,
                                        program->order_count, &bytes));
        *out_bytes = pen_max_u64(*out_bytes, bytes);
    }
    return PEN_OK;
}

uint64_t pen_runner_device_bytes(const pen_runner *runner) {
    uint64_t bytes = pen_device_own_bytes(runner->device);
    for (uint32_t i = 0; i < runner->entry_count; i++) {
        bytes += pen_executor_get_memory(runner->entries[i].form.executor).owned_bytes;
    }
    return bytes;
}
