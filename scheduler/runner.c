#include "scheduler/runner.h"

#include <string.h>

#include "base/memory.h"

#define RUNNER_FORMS_LIMIT 16
#define RUNNER_CHUNK_BYTES ((uint64_t)1 << 20) // a multiple of a hash word

typedef struct runner_entry {
    pen_runner_form form;
    pen_compile_mode mode;
    uint64_t microbatch_size;
    bool accumulate;
} runner_entry;

struct pen_runner {
    pen_runner_options options;
    pen_device *device;
    runner_entry entries[RUNNER_FORMS_LIMIT];
    uint32_t entry_count;
    pen_value_id *tensors; // [tensor_count], in the first form's graph
    uint32_t tensor_count;
};

pen_status pen_runner_create(const pen_runner_options *options, pen_runner **out_runner) {
    const pen_device_kind *kind;
    PEN_TRY(pen_device_kind_find(options->device_kind, &kind));
    pen_runner *runner = pen_memory_allocate(1, sizeof *runner);
    if (runner == NULL) return pen_error_out_of_memory();
    runner->options = *options;
    const pen_status status = kind->open(&options->device, &runner->device);
    if (status != PEN_OK) {
        pen_memory_free(runner);
        return status;
    }
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
    pen_memory_free(runner->tensors);
    pen_memory_free(runner);
}

static bool runner_is_model_tensor(const pen_value *value) {
    // the optimizer's states start as zeros and are not the model's
    const bool persistent = value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_STATE;
    return persistent && value->data != NULL;
}

static pen_status runner_list_tensors(pen_runner *runner) {
    const pen_graph *graph = runner->entries[0].form.program->graph;
    runner->tensors = pen_memory_allocate(pen_graph_value_count(graph), sizeof *runner->tensors);
    if (runner->tensors == NULL) return pen_error_out_of_memory();
    for (uint32_t v = 0; v < pen_graph_value_count(graph); v++) {
        if (!runner_is_model_tensor(pen_graph_value(graph, (pen_value_id){v}))) continue;
        runner->tensors[runner->tensor_count++] = (pen_value_id){v};
    }
    return PEN_OK;
}

static void runner_forget_file(const void *program) {
    pen_program_forget(program);
}

static pen_status runner_build(pen_runner *runner, runner_entry *entry) {
    pen_compile_request request = runner->options.compile;
    request.mode = entry->mode;
    request.microbatch_size = entry->microbatch_size;
    request.accumulate = entry->accumulate;
    request.device = runner->device;
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
    const pen_status status = pen_executor_create(&spec, &entry->form.executor);
    if (status != PEN_OK) pen_program_destroy(program);
    return status;
}

pen_status pen_runner_get(pen_runner *runner, pen_compile_mode mode, uint64_t microbatch_size,
                          bool accumulate, const pen_runner_form **out_form) {
    for (uint32_t i = 0; i < runner->entry_count; i++) {
        const runner_entry *entry = &runner->entries[i];
        if (entry->mode != mode || entry->microbatch_size != microbatch_size ||
            entry->accumulate != accumulate) {
            continue;
        }
        *out_form = &entry->form;
        return PEN_OK;
    }
    if (runner->entry_count == RUNNER_FORMS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "more than %d batch sizes in one run",
                         RUNNER_FORMS_LIMIT);
    }
    runner_entry *entry = &runner->entries[runner->entry_count];
    *entry =
        (runner_entry){.mode = mode, .microbatch_size = microbatch_size, .accumulate = accumulate};
    PEN_TRY(runner_build(runner, entry));
    runner->entry_count += 1;
    *out_form = &entry->form;
    return runner->tensors == NULL ? runner_list_tensors(runner) : PEN_OK;
}

const pen_runner_form *pen_runner_first(const pen_runner *runner) {
    return runner->entry_count == 0 ? NULL : &runner->entries[0].form;
}

uint32_t pen_runner_form_count(const pen_runner *runner) {
    return runner->entry_count;
}

const pen_runner_form *pen_runner_form_at(const pen_runner *runner, uint32_t index) {
    PEN_ASSERT(index < runner->entry_count);
    return &runner->entries[index].form;
}

uint32_t pen_runner_tensor_count(const pen_runner *runner) {
    return runner->tensor_count;
}

const pen_value *pen_runner_tensor(const pen_runner *runner, uint32_t index) {
    PEN_ASSERT(index < runner->tensor_count);
    return pen_graph_value(runner->entries[0].form.program->graph, runner->tensors[index]);
}

pen_status pen_runner_read(pen_runner *runner, uint32_t index, void *host, uint64_t bytes) {
    return pen_executor_read(runner->entries[0].form.executor, runner->tensors[index], host, bytes);
}

pen_status pen_runner_write(pen_runner *runner, uint32_t index, const void *host, uint64_t bytes) {
    return pen_executor_write(runner->entries[0].form.executor, runner->tensors[index], host,
                              bytes);
}

static uint64_t runner_hash_words(uint64_t hash, const unsigned char *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, count - i < sizeof word ? count - i : sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
    }
    return hash;
}

// `chunk` has RUNNER_CHUNK_BYTES.
static pen_status runner_hash_tensor(pen_runner *runner, uint32_t index, unsigned char *chunk,
                                     uint64_t *hash) {
    const pen_value *tensor = pen_runner_tensor(runner, index);
    pen_executor *executor = runner->entries[0].form.executor;
    for (uint64_t first = 0; first < tensor->data_bytes; first += RUNNER_CHUNK_BYTES) {
        const uint64_t left = tensor->data_bytes - first;
        const uint64_t bytes = left < RUNNER_CHUNK_BYTES ? left : RUNNER_CHUNK_BYTES;
        PEN_TRY(pen_executor_read_part(executor, runner->tensors[index], first, chunk, bytes));
        *hash = runner_hash_words(*hash, chunk, bytes);
    }
    return PEN_OK;
}

pen_status pen_runner_hash(pen_runner *runner, uint64_t *out_hash) {
    unsigned char *chunk = pen_memory_allocate(RUNNER_CHUNK_BYTES, 1);
    if (chunk == NULL) return pen_error_out_of_memory();
    uint64_t hash = 0xcbf29ce484222325u;
    pen_status status = PEN_OK;
    for (uint32_t i = 0; status == PEN_OK && i < runner->tensor_count; i++) {
        status = runner_hash_tensor(runner, i, chunk, &hash);
    }
    pen_memory_free(chunk);
    *out_hash = hash;
    return status;
}

uint64_t pen_runner_device_bytes(const pen_runner *runner) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < runner->entry_count; i++) {
        bytes += pen_executor_get_memory(runner->entries[i].form.executor).owned_bytes;
    }
    return bytes;
}

pen_device *pen_runner_device(const pen_runner *runner) {
    return runner->device;
}
