#include "device/cuda/cuda_device.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda/cuda_inside.h"
#include "device/cuda/cuda_text.h"
#include "device/run_context.h"
#include "graph/node_blame.h"

cuda_device *cuda_device_of(pen_device *device) {
    PEN_ASSERT(device->kind == &pen_cuda_device_kind);
    return (cuda_device *)device;
}

// ---- opening

// The lines of the text as one, which is what the driver reads. Freed by the caller.
static pen_status cuda_join_text(char **out_text, uint64_t *out_hash) {
    size_t bytes = 1, at = 0;
    for (const char *const *line = pen_cuda_text; *line != NULL; line++)
        bytes += strlen(*line) + 1;
    char *text = pen_memory_allocate(bytes, 1);
    if (text == NULL) return pen_error_out_of_memory();
    for (const char *const *line = pen_cuda_text; *line != NULL; line++) {
        const size_t length = strlen(*line);
        memcpy(text + at, *line, length);
        text[at + length] = '\n';
        at += length + 1;
    }
    text[at] = 0;
    *out_hash = pen_hash_bytes(0, text, at);
    *out_text = text;
    return PEN_OK;
}

static pen_status cuda_load_kernels(cuda_device *device) {
    static const char *const names[] = {
#define CUDA_KERNEL_NAME(name) #name,
        PEN_CUDA_KERNELS(CUDA_KERNEL_NAME)};
    const pen_cuda_memory *memory = &device->memory;
    char *text;
    PEN_TRY(cuda_join_text(&text, &device->text_hash));
    const pen_cuda_result result = memory->driver->module_load(&device->module, text);
    pen_memory_free(text);
    PEN_TRY(pen_cuda_check(memory, result, "while its kernels were compiled"));
    for (uint32_t k = 0; k < PEN_CUDA_KERNEL_COUNT; k++) {
        PEN_TRY(pen_cuda_check(
            memory,
            memory->driver->module_function(&device->functions[k], device->module, names[k]),
            "while its kernels were looked for"));
    }
    return PEN_OK;
}

static pen_status cuda_make_words(cuda_device *device) {
    const pen_cuda_memory *memory = &device->memory;
    void *here;
    PEN_TRY(pen_memory_budget_check(&memory->budget, CUDA_OWN_BYTES));
    device->memory.budget.bytes_in_use += CUDA_OWN_BYTES;
    PEN_TRY(pen_cuda_check(memory, memory->driver->host_allocate(&here, CUDA_WORDS_BYTES, 0),
                           "while pinned memory was taken"));
    device->words_here = here;
    PEN_TRY(pen_cuda_check(memory, memory->driver->allocate(&device->words, CUDA_OWN_BYTES),
                           "while memory was taken"));
    return pen_cuda_check(memory,
                          memory->driver->fill(device->words, 0, CUDA_WORDS_BYTES, memory->stream),
                          "while memory was set to zeros");
}

static void cuda_close(pen_device *base) {
    if (base == NULL) return;
    cuda_device *device = cuda_device_of(base);
    const pen_cuda_driver *driver = device->memory.driver;
    pen_cuda_host_close(&device->host);
    if (driver != NULL && device->memory.context != NULL) {
        pen_cuda_memory_rest(&device->memory);
        pen_cuda_libraries_close(&device->libraries);
        pen_cuda_clock_close(&device->clock, &device->memory);
        pen_cuda_queues_close(&device->queues);
        if (device->words != 0) (void)driver->free(device->words);
        if (device->words_here != NULL) (void)driver->host_free(device->words_here);
        if (device->module != NULL) (void)driver->module_unload(device->module);
    }
    pen_cuda_memory_close(&device->memory);
    pen_arena_destroy(device->arena);
}

// Where only sizes are asked for, a plan is made, perhaps on a machine without a GPU: no driver is
// needed.
static pen_status cuda_open_parts(const pen_device_options *options, cuda_device *device) {
    device->only_sizes = options->only_sizes;
    PEN_TRY(pen_arena_format(device->arena, &device->memory.domain.name, "GPU %u", options->gpu));
    if (!device->only_sizes) {
        PEN_TRY(pen_cuda_memory_open(&device->memory));
        PEN_TRY(cuda_load_kernels(device));
        PEN_TRY(cuda_make_words(device));
        PEN_TRY(pen_cuda_libraries_open(&device->memory, options->libraries, device->arena,
                                        &device->libraries));
    }
    return pen_cuda_host_open(options, &device->memory, &device->host);
}

// What was opened before an error is closed again.
static pen_status cuda_open(const pen_device_options *options, pen_device **out_device) {
    const char *name = options->name == NULL ? "cuda" : options->name;
    pen_arena *arena;
    cuda_device *device;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = PEN_NEW(arena, 1, &device);
    if (status == PEN_OK) {
        device->base.kind = &pen_cuda_device_kind;
        device->precision = options->precision;
        device->libraries.wanted = options->libraries;
        device->arena = arena;
        status = pen_arena_copy_text(arena, name, strlen(name), &device->name);
    }
    if (status != PEN_OK) {
        pen_arena_destroy(arena);
        return status;
    }
    device->memory =
        (pen_cuda_memory){.gpu = (int)options->gpu,
                          .budget = {.device = device->name, .bytes_limit = options->memory_bytes}};
    device->queues.memory = &device->memory;
    status = cuda_open_parts(options, device);
    if (status != PEN_OK) {
        cuda_close(&device->base);
        return pen_status_add_context(status, "while opening device '%s' of kind cuda", name);
    }
    *out_device = &device->base;
    return PEN_OK;
}

// The GPU, then what runs beside it on the host.
static pen_status cuda_describe(pen_device *base, pen_arena *arena, const char **out_text) {
    const cuda_device *device = cuda_device_of(base);
    char memory[PEN_QUANTITY_TEXT_BYTES];
    const char *host, *libraries;
    pen_cuda_gpu gpu;
    if (device->only_sizes) {
        return pen_arena_format(arena, out_text, "cuda '%s': for plans alone", device->name);
    }
    PEN_TRY(pen_cuda_gpu_describe((uint32_t)device->memory.gpu, &gpu));
    PEN_TRY(pen_cpu_device_kind.describe(device->host.cpu, arena, &host));
    PEN_TRY(pen_cuda_libraries_name(&device->libraries, arena, &libraries));
    const char *level = strstr(host, "kernel level");
    return pen_arena_format(arena, out_text,
                            "cuda '%s': %s, compute capability %d.%d, %d processors, %s, driver "
                            "%d.%d, kernels %08x%s; on the host %s",
                            device->name, gpu.name, gpu.major, gpu.minor, gpu.processors,
                            pen_bytes_format(gpu.memory_bytes, memory), gpu.driver / 1000,
                            gpu.driver % 1000 / 10, (unsigned)device->text_hash, libraries,
                            level == NULL ? host : level);
}

static pen_status cuda_identify(pen_device *base, pen_arena *arena, const char **out_text) {
    const cuda_device *device = cuda_device_of(base);
    const char *libraries;
    pen_cuda_gpu gpu;
    PEN_TRY(pen_cuda_gpu_describe((uint32_t)device->memory.gpu, &gpu));
    PEN_TRY(pen_cuda_libraries_name(&device->libraries, arena, &libraries));
    return pen_arena_format(arena, out_text,
                            "%s, compute capability %d.%d, driver %d.%d, kernels %08x, products of "
                            "%s%s",
                            gpu.name, gpu.major, gpu.minor, gpu.driver / 1000,
                            gpu.driver % 1000 / 10, (unsigned)device->text_hash,
                            pen_precision_names[device->precision], libraries);
}

static const char *cuda_lacks(pen_device *base) {
    return cuda_device_of(base)->libraries.lacks;
}

// ---- memory

static uint64_t cuda_own_bytes(pen_device *device) {
    return CUDA_OWN_BYTES + pen_cuda_libraries_bytes(cuda_device_of(device)->libraries.wanted);
}

static pen_status cuda_pinned_bytes(pen_device *device, const pen_graph *graph,
                                    const pen_node_id *order, uint32_t order_count,
                                    uint64_t *out_bytes) {
    const pen_cuda_host *host = &cuda_device_of(device)->host;
    PEN_TRY(pen_cuda_host_measure(host, graph, order, order_count, out_bytes));
    *out_bytes += PEN_CUDA_PINNED_BYTES + CUDA_WORDS_BYTES;
    return PEN_OK;
}

static pen_status cuda_buffer_create(pen_device *device, uint64_t bytes, pen_buffer **out_buffer) {
    return pen_cuda_buffer_create(&cuda_device_of(device)->memory, bytes, out_buffer);
}

static pen_status cuda_buffer_wrap(pen_device *device, pen_memory_place place, uint64_t bytes,
                                   pen_buffer **out_buffer) {
    return pen_cuda_buffer_wrap(&cuda_device_of(device)->memory, place, bytes, out_buffer);
}

static pen_status cuda_write(pen_device *device, pen_operand to, const void *host, uint64_t bytes) {
    return pen_cuda_write(&cuda_device_of(device)->memory, to, host, bytes);
}

static pen_status cuda_read(pen_device *device, pen_operand from, void *host, uint64_t bytes) {
    return pen_cuda_read(&cuda_device_of(device)->memory, from, host, bytes);
}

static pen_status cuda_fetch(pen_device *device, pen_operand from, void *host, uint64_t bytes) {
    return pen_cuda_fetch_value(&cuda_device_of(device)->memory, from, host, bytes);
}

// ---- copies beside the work

static pen_status cuda_host_allocate(pen_device *device, uint64_t bytes, void **out_memory) {
    return pen_cuda_host_allocate(&cuda_device_of(device)->memory, bytes, out_memory);
}

static void cuda_host_free(pen_device *device, void *memory) {
    pen_cuda_host_free(&cuda_device_of(device)->memory, memory);
}

static pen_status cuda_fence_reserve(pen_device *device, uint32_t count) {
    return pen_cuda_fence_reserve(&cuda_device_of(device)->queues, count);
}

static pen_status cuda_copy_in(pen_device *device, pen_operand to, const void *host,
                               uint64_t bytes) {
    return pen_cuda_copy_in(&cuda_device_of(device)->memory, to, host, bytes);
}

static pen_status cuda_copy_out(pen_device *device, pen_operand from, void *host, uint64_t bytes) {
    return pen_cuda_copy_out(&cuda_device_of(device)->memory, from, host, bytes);
}

static pen_status cuda_reach(pen_device *device, pen_device *other, bool *out_reaches) {
    return pen_cuda_reach(&cuda_device_of(device)->memory, &cuda_device_of(other)->memory,
                          out_reaches);
}

static pen_status cuda_copy_across(pen_device *device, pen_operand to, pen_device *other,
                                   pen_operand from, uint64_t bytes) {
    return pen_cuda_copy_across(&cuda_device_of(device)->memory, to, &cuda_device_of(other)->memory,
                                from, bytes);
}

static pen_status cuda_fence_set(pen_device *device, pen_queue queue, uint32_t fence) {
    return pen_cuda_fence_set(&cuda_device_of(device)->queues, queue, fence);
}

static pen_status cuda_fence_pass(pen_device *device, pen_queue queue, pen_device *of,
                                  uint32_t fence) {
    return pen_cuda_fence_pass(&cuda_device_of(device)->queues, queue, &cuda_device_of(of)->queues,
                               fence);
}

static pen_status cuda_fence_wait(pen_device *of, uint32_t fence) {
    return pen_cuda_fence_wait(&cuda_device_of(of)->queues, fence);
}

static pen_memory_place cuda_place(pen_device *device, pen_operand operand) {
    return (pen_memory_place){&cuda_device_of(device)->memory.domain, pen_cuda_address_of(operand)};
}

// The first word that is raised says which data was wrong; all are lowered then, and the flag.
static pen_status cuda_blame(cuda_device *device) {
    const pen_cuda_memory *memory = &device->memory;
    for (uint32_t w = CUDA_FIRST_WORD; w < CUDA_WORDS; w++) {
        const cuda_kernel *raiser = device->raisers[w];
        if (device->words_here[w] == 0 || raiser == NULL) continue;
        PEN_TRY(pen_cuda_check(
            memory,
            memory->driver->fill(cuda_word(device, CUDA_FLAG_WORD), 0,
                                 CUDA_WORDS_BYTES - CUDA_FLAG_WORD * sizeof(uint32_t),
                                 memory->stream),
            "while memory was set to zeros"));
        device->found_number = 0;
        const pen_status status =
            raiser->entry->blame(raiser->graph, raiser->node, device->words_here[w]);
        return pen_node_blame(raiser->graph, raiser->node, status);
    }
    return PEN_OK;
}

// One wait, by which words come, too.
static pen_status cuda_synchronize(pen_device *base) {
    cuda_device *device = cuda_device_of(base);
    pen_cuda_memory *memory = &device->memory;
    PEN_TRY(pen_cuda_memory_enter(memory));
    if (!device->may_be_raised) return pen_cuda_memory_wait(memory);
    device->may_be_raised = false;
    PEN_TRY(pen_cuda_check(
        memory,
        memory->driver->read(device->words_here, device->words, CUDA_WORDS_BYTES, memory->stream),
        "while words were copied from it"));
    PEN_TRY(pen_cuda_memory_wait(memory));
    device->found_number = device->words_here[CUDA_FLAG_WORD];
    return cuda_blame(device);
}

static pen_status cuda_mark(pen_device *base, uint32_t mark) {
    cuda_device *device = cuda_device_of(base);
    return pen_cuda_clock_mark(&device->clock, &device->memory, mark);
}

static pen_status cuda_marked(pen_device *base, uint32_t from, uint32_t to, pen_span *out_span) {
    cuda_device *device = cuda_device_of(base);
    return pen_cuda_clock_marked(&device->clock, &device->memory, from, to, out_span);
}

static pen_status cuda_launch_kernel(const cuda_device *device, const pen_cuda_step *step) {
    const pen_cuda_memory *memory = &device->memory;
    pen_cuda_step own = *step;
    void *arguments[] = {&own.args};
    return pen_cuda_check(memory,
                          memory->driver->launch(device->functions[step->kernel], step->grid[0],
                                                 step->grid[1], step->grid[2], PEN_CUDA_BLOCK, 1, 1,
                                                 0, memory->stream, arguments, NULL),
                          "while a kernel was enqueued");
}

static pen_status cuda_launch_product(const cuda_device *device, const pen_cuda_step *step) {
    const struct cuda_product_args *product = &step->args.product;
    if (!pen_cublas_takes(&device->libraries.cublas, product))
        return cuda_launch_kernel(device, step);
    PEN_TRY(pen_cublas_multiply(&device->libraries.cublas, product, step->grid[2]));
    if (product->c == 0) return PEN_OK;
    const pen_cuda_step addend = pen_cuda_product_addend(product);
    return cuda_launch_kernel(device, &addend);
}

static pen_status cuda_launch_conv(const cuda_device *device, const pen_cuda_step *step) {
    const struct cuda_conv_args *conv = &step->args.conv;
    bool is_done = false;
    if (device->libraries.cudnn.handle != NULL)
        PEN_TRY(pen_cudnn_convolve(&device->libraries.cudnn, conv, &is_done));
    if (!is_done) return cuda_launch_kernel(device, step);
    if (conv->bias == 0) return PEN_OK;
    const pen_cuda_step addend = pen_cuda_conv_addend(conv);
    return cuda_launch_kernel(device, &addend);
}

static bool cuda_is_conv(const pen_cuda_step *step) {
    return step->kernel == PEN_CUDA_KERNEL_conv || step->kernel == PEN_CUDA_KERNEL_conv_narrow ||
           step->kernel == PEN_CUDA_KERNEL_conv_narrow_weight;
}

// What a library takes is its: no other place decides. What is added to it is added then.
pen_status cuda_launch_step(const cuda_device *device, const pen_cuda_step *step) {
    if (step->kernel == PEN_CUDA_KERNEL_product) return cuda_launch_product(device, step);
    if (cuda_is_conv(step)) return cuda_launch_conv(device, step);
    return cuda_launch_kernel(device, step);
}

// The step is copied, since whether it adds differs from run to run.
pen_status cuda_launch_step_of(const cuda_device *device, const cuda_launch *launch,
                               const pen_cuda_step *step, const pen_run_context *run) {
    const cuda_kernel *kernel = launch->kernel;
    pen_cuda_step own = *step;
    own.args.adds = step->only_sets ? 0 : pen_run_adds(kernel->node, run);
    return cuda_launch_step(device, &own);
}

// The kernel takes words for numbers, and their bits without signs for magnitudes. Words count
// targets, or indices: none is the sign alone.
pen_cuda_step cuda_check_step(const cuda_device *device) {
    const uint64_t count = CUDA_WORDS - CUDA_FIRST_WORD;
    return (pen_cuda_step){.kernel = PEN_CUDA_KERNEL_magnitude,
                           .grid = {pen_cuda_blocks_for(count), 1, 1},
                           .args.magnitude = {.count = count,
                                              .x = cuda_word(device, CUDA_FIRST_WORD),
                                              .largest = cuda_word(device, CUDA_FLAG_WORD)}};
}

// Word 0 is not raised by any other kernel, and comes back alone.
static pen_status cuda_magnitude(pen_device *base, pen_operand of, uint64_t bytes,
                                 double *out_magnitude) {
    cuda_device *device = cuda_device_of(base);
    pen_cuda_memory *memory = &device->memory;
    const uint64_t count = bytes / sizeof(float);
    float largest;
    *out_magnitude = 0;
    if (count == 0) return PEN_OK;
    PEN_TRY(pen_cuda_memory_enter(memory));
    PEN_TRY(pen_cuda_check(memory,
                           memory->driver->fill(device->words, 0, sizeof largest, memory->stream),
                           "while memory was set to zeros"));
    const pen_cuda_step step = {
        .kernel = PEN_CUDA_KERNEL_magnitude,
        .grid = {pen_cuda_blocks_for(count), 1, 1},
        .args.magnitude = {.count = count, .x = pen_cuda_address_of(of), .largest = device->words}};
    PEN_TRY(cuda_launch_step(device, &step));
    PEN_TRY(pen_cuda_check(
        memory,
        memory->driver->read(device->words_here, device->words, sizeof largest, memory->stream),
        "while a word was copied from it"));
    PEN_TRY(pen_cuda_memory_wait(memory));
    memcpy(&largest, device->words_here, sizeof largest);
    *out_magnitude = largest < INFINITY ? (double)largest : INFINITY;
    return PEN_OK;
}

// ---- kernels

static bool cuda_supports(pen_device *base, const pen_graph *graph, pen_node_id node) {
    const cuda_device *device = cuda_device_of(base);
    return pen_cuda_entry_find(graph, pen_graph_node(graph, node)) != NULL ||
           pen_cpu_device_kind.supports(device->host.cpu, graph, node);
}

static bool cuda_runs_on_host(pen_device *device, const pen_graph *graph, pen_node_id node) {
    (void)device;
    return pen_cuda_entry_find(graph, pen_graph_node(graph, node)) == NULL;
}

// A word is shared by kernels only when there are more than words.
static uint32_t cuda_take_word(cuda_device *device, const cuda_kernel *kernel) {
    device->next_word += 1;
    if (device->next_word < CUDA_FIRST_WORD || device->next_word == CUDA_WORDS)
        device->next_word = CUDA_FIRST_WORD;
    device->raisers[device->next_word] = kernel;
    return device->next_word;
}

static pen_status cuda_prepare(pen_device *base, const pen_graph *graph, pen_node_id node,
                               pen_arena *arena, pen_kernel **out_kernel) {
    cuda_device *device = cuda_device_of(base);
    cuda_kernel *kernel;
    PEN_TRY(PEN_NEW(arena, 1, &kernel));
    kernel->graph = graph;
    kernel->node = pen_graph_node(graph, node);
    kernel->entry = pen_cuda_entry_find(graph, kernel->node);
    if (kernel->entry == NULL) {
        PEN_TRY(pen_cpu_device_kind.prepare(device->host.cpu, graph, node, arena, &kernel->host));
    } else if (pen_cuda_can_raise(kernel->entry, graph, kernel->node)) {
        kernel->word = cuda_take_word(device, kernel);
    }
    *out_kernel = (pen_kernel *)kernel;
    return PEN_OK;
}

// What a kernel of the host needs is pinned memory.
uint64_t cuda_kernel_workspace(const cuda_kernel *kernel) {
    if (kernel->entry == NULL || kernel->entry->workspace_bytes == NULL) return 0;
    return pen_align_up(kernel->entry->workspace_bytes(kernel->graph, kernel->node), 64);
}

static uint64_t cuda_workspace_bytes(const pen_kernel *kernel) {
    return cuda_kernel_workspace((const cuda_kernel *)kernel);
}

// Where operands are, and words that launches of this device share.
static pen_status cuda_bind_call(const cuda_device *device, const pen_binding *binding,
                                 pen_arena *arena, cuda_launch *launch) {
    const cuda_kernel *kernel = launch->kernel;
    pen_cuda_address *inputs, *outputs;
    PEN_TRY(PEN_NEW(arena, kernel->node->input_count, &inputs));
    PEN_TRY(PEN_NEW(arena, kernel->node->output_count, &outputs));
    for (uint32_t i = 0; i < kernel->node->input_count; i++)
        inputs[i] = pen_cuda_address_of(binding->inputs[i]);
    for (uint32_t i = 0; i < kernel->node->output_count; i++)
        outputs[i] = pen_cuda_address_of(binding->outputs[i]);
    launch->call = (pen_cuda_call){.graph = kernel->graph,
                                   .node = kernel->node,
                                   .inputs = inputs,
                                   .outputs = outputs,
                                   .workspace = pen_cuda_address_of(binding->workspace),
                                   .precision = device->precision,
                                   .has_cudnn = device->libraries.cudnn.handle != NULL,
                                   .random = cuda_random_place(device),
                                   .flag = cuda_word(device, CUDA_FLAG_WORD),
                                   .error = cuda_word(device, kernel->word)};
    return PEN_OK;
}

static pen_status cuda_prepare_convs(cuda_device *device, const cuda_launch *launch) {
    pen_cudnn *cudnn = &device->libraries.cudnn;
    if (cudnn->handle == NULL) return PEN_OK;
    for (uint32_t i = 0; i < launch->step_count; i++) {
        if (!cuda_is_conv(&launch->steps[i])) continue;
        PEN_TRY(pen_cuda_memory_enter(&device->memory));
        PEN_TRY(pen_cudnn_prepare(cudnn, &launch->steps[i].args.conv));
    }
    return PEN_OK;
}

static pen_status cuda_bind(pen_device *base, const pen_kernel *handle, const pen_binding *binding,
                            pen_arena *arena, pen_launch **out_launch) {
    cuda_device *device = cuda_device_of(base);
    const cuda_kernel *kernel = (const cuda_kernel *)handle;
    cuda_launch *launch;
    PEN_TRY(PEN_NEW(arena, 1, &launch));
    launch->kernel = kernel;
    PEN_TRY(cuda_bind_call(device, binding, arena, launch));
    if (kernel->entry != NULL) {
        launch->step_count = kernel->entry->steps(&launch->call, launch->steps);
        PEN_ASSERT(launch->step_count <= PEN_CUDA_STEPS);
        PEN_TRY(cuda_prepare_convs(device, launch));
    } else {
        const pen_cuda_host_node node = {kernel->graph, kernel->node, kernel->host};
        PEN_TRY(pen_cuda_host_bind(&device->host, &node, binding, arena, &launch->host));
    }
    *out_launch = (pen_launch *)launch;
    return PEN_OK;
}

// By itself, not as one of a list: an update looks first whether wrong data was told of.
static pen_status cuda_enqueue(pen_device *base, const pen_launch *handle,
                               const pen_run_context *run) {
    cuda_device *device = cuda_device_of(base);
    const cuda_launch *launch = (const cuda_launch *)handle;
    PEN_TRY(pen_cuda_memory_enter(&device->memory));
    const pen_cuda_flag flag = cuda_flag(device);
    if (launch->host != NULL) return pen_cuda_host_run(&device->host, launch->host, &flag, run);
    if (launch->kernel->entry->draw != NULL) {
        const struct cuda_random drawn = launch->kernel->entry->draw(launch->kernel->node, run);
        PEN_TRY(
            pen_cuda_write_at(&device->memory, cuda_random_place(device), &drawn, sizeof drawn));
    }
    if (launch->kernel->node->op->is_update && device->may_be_raised) {
        const pen_cuda_step check = cuda_check_step(device);
        PEN_TRY(cuda_launch_step(device, &check));
    }
    for (uint32_t i = 0; i < launch->step_count; i++)
        PEN_TRY(cuda_launch_step_of(device, launch, &launch->steps[i], run));
    if (launch->kernel->word > 0) device->may_be_raised = true;
    return PEN_OK;
}

static void cuda_release(pen_device *base, pen_kernel *handle) {
    cuda_device *device = cuda_device_of(base);
    cuda_kernel *kernel = (cuda_kernel *)handle;
    if (kernel == NULL) return;
    if (kernel->host != NULL) pen_cpu_device_kind.release(device->host.cpu, kernel->host);
    kernel->host = NULL;
    if (device->raisers[kernel->word] == kernel) device->raisers[kernel->word] = NULL;
}

const pen_device_kind pen_cuda_device_kind = {
    .name = "cuda",
    .summary = "a GPU of NVIDIA: own kernels, and the host's for what has none",
    .has_own_memory = true,
    .library = "cuBLAS makes matrix products, and cuDNN convolutions, where a machine has them; 32 "
               "MiB of\n             each GPU are for them",
    .precisions = PEN_PRECISION_BIT(PEN_PRECISION_TF32) |
                  PEN_PRECISION_BIT(PEN_PRECISION_BFLOAT16) |
                  PEN_PRECISION_BIT(PEN_PRECISION_FLOAT16),
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .identify = cuda_identify,
    .lacks = cuda_lacks,
    .own_bytes = cuda_own_bytes,
    .pinned_bytes = cuda_pinned_bytes,
    .buffer_create = cuda_buffer_create,
    .buffer_destroy = cuda_list_destroy_buffer,
    .buffer_wrap = cuda_buffer_wrap,
    .write = cuda_write,
    .read = cuda_read,
    .fetch = cuda_fetch,
    .synchronize = cuda_synchronize,
    .place = cuda_place,
    .magnitude = cuda_magnitude,
    .supports = cuda_supports,
    .runs_on_host = cuda_runs_on_host,
    .prepare = cuda_prepare,
    .workspace_bytes = cuda_workspace_bytes,
    .bind = cuda_bind,
    .enqueue = cuda_enqueue,
    .release = cuda_release,
    .list_create = cuda_list_create,
    .list_bytes = cuda_list_bytes,
    .list_room_bytes = CUDA_ROOM_BYTES,
    .list_reserve = cuda_list_reserve,
    .list_enqueue = cuda_list_enqueue,
    .list_destroy = cuda_list_destroy,
    .found = cuda_list_found,
    .host_allocate = cuda_host_allocate,
    .host_free = cuda_host_free,
    .fence_reserve = cuda_fence_reserve,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .reach = cuda_reach,
    .may_reach = pen_cuda_may_reach,
    .copy_across = cuda_copy_across,
    .fence_set = cuda_fence_set,
    .fence_pass = cuda_fence_pass,
    .fence_wait = cuda_fence_wait,
    .mark = cuda_mark,
    .marked = cuda_marked,
    .mark_seconds = PEN_CUDA_CLOCK_SECONDS,
};
