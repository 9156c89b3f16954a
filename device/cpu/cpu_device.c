#include "device/cpu/cpu_device.h"

#include <malloc.h>
#include <omp.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "base/integer.h"
#include "base/system/kernel_level.h"
#include "device/cpu/blas.h"
#include "device/cpu/cpu_kernel_list.h"
#include "device/cpu/cpu_layout.h"
#include "device/cpu/layout_choice.h"
#include "device/cpu/onednn/onednn.h"
#include "device/host_buffer.h"
#include "device/run_context.h"
#include "graph/graph.h"
#include "graph/op.h"

#define CPU_PAGE_BYTES 4096u
#define CPU_HUGE_PAGE_BYTES (2u << 20)

typedef struct cpu_device {
    pen_device base;
    pen_arena *arena;
    const char *name;
    int thread_count;
    pen_kernel_level level;
    pen_memory_budget budget;
    pen_layout_rules layout_rules;
} cpu_device;

typedef struct cpu_kernel {
    const pen_graph *graph;
    const pen_node *node;
    const pen_cpu_kernel *entry;
    void *state;
    uint64_t entry_workspace_bytes;
    bool adds; // the entry cannot accumulate: it runs into workspace, and the device adds
} cpu_kernel;

typedef struct cpu_launch {
    const cpu_kernel *kernel;
    pen_cpu_call call;
    void **real_outputs; // [output_count]; NULL unless kernel->adds
} cpu_launch;

void pen_cpu_process_init(void) {
#if defined(__GLIBC__)
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
    omp_set_dynamic(0);
    omp_set_max_active_levels(1);
}

static cpu_device *cpu_device_of(pen_device *device) {
    PEN_ASSERT(device->kind == &pen_cpu_device_kind);
    return (cpu_device *)device;
}

static int cpu_core_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return omp_get_num_procs();
    return CPU_COUNT(&set);
}

// The calling thread's team is this device's. Cheap when it is already.
static inline void cpu_take_team(const cpu_device *device) {
    if (omp_get_max_threads() != device->thread_count) omp_set_num_threads(device->thread_count);
}

static pen_status cpu_choose_layout(void *context, const pen_graph *graph, pen_node_id node,
                                    pen_layout *inputs, pen_layout *outputs) {
    const cpu_device *device = context;
    cpu_take_team(device);
    return pen_cpu_layout_choose(device->level, graph, node, inputs, outputs);
}

static const pen_layout_rules *cpu_layout_rules(pen_device *device) {
    return &cpu_device_of(device)->layout_rules;
}

static uint64_t cpu_value_bytes(pen_device *device, const pen_graph *graph, pen_value_id value) {
    (void)device;
    return pen_cpu_value_bytes(graph, value);
}

// Settles the kernel level of the process: the first device decides, and others must agree.
static pen_status cpu_open_in(const pen_device_options *options, pen_arena *arena,
                              pen_device **out_device) {
    cpu_device *device;
    PEN_TRY(PEN_NEW(arena, 1, &device));
    const char *name = options->name == NULL ? "cpu" : options->name;
    PEN_TRY(pen_arena_copy_text(arena, name, strlen(name), &device->name));
    device->base.kind = &pen_cpu_device_kind;
    device->arena = arena;
    device->budget =
        (pen_memory_budget){.device = device->name, .bytes_limit = options->memory_bytes};
    device->layout_rules = (pen_layout_rules){.context = device, .choose = cpu_choose_layout};
    device->thread_count =
        options->thread_count == 0 ? cpu_core_count() : (int)options->thread_count;
    PEN_TRY(pen_status_add_context(pen_kernel_level_settle(options->level, &device->level),
                                   "while opening device '%s'", name));
    if (!options->only_sizes) PEN_TRY(pen_blas_load(device->level)); // takes no workspace
    PEN_TRY(pen_onednn_start(device->level));
    *out_device = &device->base;
    return PEN_OK;
}

static pen_status cpu_open(const pen_device_options *options, pen_device **out_device) {
    if (options->thread_count > 4096) {
        return pen_error(PEN_INVALID_INPUT, "device '%s': %u threads; 4096 are possible",
                         options->name == NULL ? "cpu" : options->name, options->thread_count);
    }
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = cpu_open_in(options, arena, out_device);
    if (status != PEN_OK) pen_arena_destroy(arena);
    return status;
}

static void cpu_close(pen_device *device) {
    if (device == NULL) return;
    pen_arena_destroy(cpu_device_of(device)->arena);
}

static pen_status cpu_describe(pen_device *base, pen_arena *arena, const char **out_text) {
    const cpu_device *device = cpu_device_of(base);
    return pen_arena_format(
        arena, out_text, "cpu '%s': %d thread%s of %d, kernel level %s, %s, %s", device->name,
        device->thread_count, device->thread_count == 1 ? "" : "s", cpu_core_count(),
        pen_kernel_level_names[device->level], pen_blas_describe(), pen_onednn_describe());
}

// Maps memory, whole huge pages of it when it is large, and lets the team touch every page once.
static pen_status cpu_buffer_map(const cpu_device *device, pen_host_buffer *buffer) {
    const bool is_huge = buffer->size >= CPU_HUGE_PAGE_BYTES;
    const uint64_t page = is_huge ? CPU_HUGE_PAGE_BYTES : CPU_PAGE_BYTES;
    uint64_t bytes;
    if (!pen_u64_add(buffer->size, 2 * page, &bytes) || bytes > SIZE_MAX / 2) {
        return pen_error_out_of_memory();
    }
    buffer->mapping_size = (size_t)bytes;
    buffer->mapping = mmap(NULL, buffer->mapping_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (buffer->mapping == MAP_FAILED) return pen_error_out_of_memory();
    uint8_t *const start = buffer->mapping;
    const uint64_t gap =
        pen_align_up((uint64_t)(uintptr_t)start, page) - (uint64_t)(uintptr_t)start;
    buffer->bytes = start + gap;
    // advice alone: without huge pages everything still works
    if (is_huge) (void)madvise(buffer->bytes, pen_align_up(buffer->size, page), MADV_HUGEPAGE);
    cpu_take_team(device);
    volatile uint8_t *const touched = buffer->bytes;
#pragma omp parallel for schedule(static) if (is_huge)
    for (uint64_t at = 0; at < buffer->size; at += CPU_PAGE_BYTES) {
        touched[at] = 0;
    }
    return PEN_OK;
}

static pen_status cpu_buffer_fill(void *device, pen_host_buffer *buffer) {
#if defined(__SANITIZE_ADDRESS__)
    (void)cpu_buffer_map; // the sanitizer watches the ends of heap blocks only
    return pen_host_buffer_allocate(device, buffer);
#else
    return cpu_buffer_map(device, buffer);
#endif
}

static pen_status cpu_buffer_create(pen_device *base, uint64_t bytes, pen_buffer **out_buffer) {
    cpu_device *device = cpu_device_of(base);
    return pen_host_buffer_create(&device->budget, bytes, cpu_buffer_fill, device, out_buffer);
}

static void cpu_buffer_destroy(pen_device *device, pen_buffer *buffer) {
    pen_host_buffer_destroy(&cpu_device_of(device)->budget, buffer);
}

static bool cpu_supports(pen_device *base, const pen_graph *graph, pen_node_id node) {
    const cpu_device *device = cpu_device_of(base);
    const pen_cpu_request request = {
        .device = base,
        .graph = graph,
        .node = pen_graph_node(graph, node),
        .node_id = node,
        .thread_count = (uint32_t)device->thread_count,
        .level = device->level,
    };
    const pen_cpu_kernel *entries[PEN_CPU_CANDIDATE_LIMIT];
    return pen_cpu_candidates(&request, entries) > 0 || pen_cpu_fallback_kernel.supports(&request);
}

// The kernel with the best rule for the shape; what has none gets the reference kernel.
static pen_status cpu_prepare(pen_device *base, const pen_graph *graph, pen_node_id node,
                              pen_arena *arena, pen_kernel **out_kernel) {
    const cpu_device *device = cpu_device_of(base);
    cpu_take_team(device);
    pen_cpu_request request = {
        .device = base,
        .graph = graph,
        .node = pen_graph_node(graph, node),
        .node_id = node,
        .arena = arena,
        .thread_count = (uint32_t)device->thread_count,
        .level = device->level,
    };
    cpu_kernel *kernel;
    PEN_TRY(PEN_NEW(arena, 1, &kernel));
    kernel->graph = graph;
    kernel->node = request.node;
    kernel->entry = pen_cpu_choose(&request);
    request.rule = kernel->entry->rule;
    kernel->adds = request.node->accumulates && !kernel->entry->can_accumulate;
    if (kernel->entry->prepare != NULL) {
        PEN_TRY(pen_status_add_context(
            kernel->entry->prepare(&request, &kernel->state, &kernel->entry_workspace_bytes),
            "while preparing %s '%s' on device '%s'", request.node->op->name, request.node->name,
            device->name));
    }
    *out_kernel = (pen_kernel *)kernel;
    return PEN_OK;
}

// Bytes in workspace for one output of a kernel that cannot accumulate.
static uint64_t cpu_shadow_bytes(const cpu_kernel *kernel, uint32_t output) {
    const pen_value_id value = kernel->node->outputs[output];
    if (!pen_value_is(value)) return 0;
    return pen_align_up(pen_tensor_type_bytes(pen_value_type(kernel->graph, value)), 64);
}

static uint64_t cpu_workspace_bytes(const pen_kernel *handle) {
    const cpu_kernel *kernel = (const cpu_kernel *)handle;
    uint64_t bytes = pen_align_up(kernel->entry_workspace_bytes, 64);
    for (uint32_t i = 0; kernel->adds && i < kernel->node->output_count; i++) {
        bytes += cpu_shadow_bytes(kernel, i);
    }
    return bytes;
}

// Points the outputs into workspace, behind the entry's own.
static pen_status cpu_bind_shadows(const cpu_kernel *kernel, pen_arena *arena, void **outputs,
                                   cpu_launch *launch) {
    const uint32_t count = kernel->node->output_count;
    PEN_TRY(PEN_NEW(arena, count, &launch->real_outputs));
    uint8_t *at = launch->call.workspace;
    at += pen_align_up(kernel->entry_workspace_bytes, 64);
    for (uint32_t i = 0; i < count; i++) {
        launch->real_outputs[i] = outputs[i];
        if (outputs[i] != NULL) outputs[i] = at;
        at += cpu_shadow_bytes(kernel, i);
    }
    return PEN_OK;
}

// Buffers are host memory, so operands become plain addresses once.
static pen_status cpu_bind(pen_device *device, const pen_kernel *handle, const pen_binding *binding,
                           pen_arena *arena, pen_launch **out_launch) {
    const cpu_kernel *kernel = (const cpu_kernel *)handle;
    cpu_launch *launch;
    void **inputs, **outputs;
    (void)device;
    PEN_TRY(PEN_NEW(arena, 1, &launch));
    PEN_TRY(PEN_NEW(arena, kernel->node->input_count, &inputs));
    PEN_TRY(PEN_NEW(arena, kernel->node->output_count, &outputs));
    for (uint32_t i = 0; i < kernel->node->input_count; i++) {
        inputs[i] = pen_host_buffer_address(binding->inputs[i]);
    }
    for (uint32_t i = 0; i < kernel->node->output_count; i++) {
        outputs[i] = pen_host_buffer_address(binding->outputs[i]);
    }
    launch->kernel = kernel;
    launch->call = (pen_cpu_call){
        .state = kernel->state,
        .inputs = inputs,
        .outputs = outputs,
        .workspace = pen_host_buffer_address(binding->workspace),
    };
    if (kernel->adds) PEN_TRY(cpu_bind_shadows(kernel, arena, outputs, launch));
    *out_launch = (pen_launch *)launch;
    return PEN_OK;
}

static void cpu_add_floats(float *sum, const float *fresh, int64_t count) {
#pragma omp parallel for simd schedule(static) if (count > 32768)
    for (int64_t k = 0; k < count; k++) {
        sum[k] += fresh[k];
    }
}

static void cpu_add_doubles(double *sum, const double *fresh, int64_t count) {
#pragma omp parallel for simd schedule(static) if (count > 32768)
    for (int64_t k = 0; k < count; k++) {
        sum[k] += fresh[k];
    }
}

// After a kernel that cannot accumulate: outputs = (first ? 0 : outputs) + workspace.
static pen_status cpu_enqueue_adding(const cpu_launch *launch, const pen_cpu_call *call) {
    const cpu_kernel *kernel = launch->kernel;
    if (!pen_run_adds(kernel->node, call->run)) {
        pen_cpu_call direct = *call;
        direct.outputs = launch->real_outputs;
        return kernel->entry->run(&direct);
    }
    PEN_TRY(kernel->entry->run(call));
    for (uint32_t i = 0; i < kernel->node->output_count; i++) {
        if (call->outputs[i] == NULL) continue;
        const pen_tensor_type *type = pen_value_type(kernel->graph, kernel->node->outputs[i]);
        const int64_t count = pen_shape_element_count(&type->shape);
        if (type->element == PEN_FLOAT32) {
            cpu_add_floats(launch->real_outputs[i], call->outputs[i], count);
        } else {
            cpu_add_doubles(launch->real_outputs[i], call->outputs[i], count);
        }
    }
    return PEN_OK;
}

static pen_status cpu_enqueue(pen_device *device, const pen_launch *handle,
                              const pen_run_context *run) {
    const cpu_launch *launch = (const cpu_launch *)handle;
    const cpu_kernel *kernel = launch->kernel;
    cpu_take_team((const cpu_device *)device);
    pen_cpu_call call = launch->call;
    call.run = run;
    if (kernel->adds) return cpu_enqueue_adding(launch, &call);
    call.accumulate = pen_run_adds(kernel->node, run);
    return kernel->entry->run(&call);
}

static void cpu_release(pen_device *device, pen_kernel *handle) {
    (void)device;
    cpu_kernel *kernel = (cpu_kernel *)handle;
    if (kernel == NULL || kernel->state == NULL) return;
    if (kernel->entry->release != NULL) kernel->entry->release(kernel->state);
    kernel->state = NULL;
}

const pen_device_kind pen_cpu_device_kind = {
    .name = "cpu",
    .summary = "the host's cores: vectorised kernels, OpenBLAS and oneDNN on one OpenMP team",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .buffer_create = cpu_buffer_create,
    .buffer_destroy = cpu_buffer_destroy,
    .buffer_wrap = pen_host_buffer_wrap,
    .write = pen_host_buffer_write,
    .read = pen_host_buffer_read,
    .fetch = pen_host_buffer_read,
    .synchronize = pen_host_buffer_synchronize,
    .place = pen_host_buffer_place,
    .value_bytes = cpu_value_bytes,
    .layout_rules = cpu_layout_rules,
    .supports = cpu_supports,
    .prepare = cpu_prepare,
    .workspace_bytes = cpu_workspace_bytes,
    .bind = cpu_bind,
    .enqueue = cpu_enqueue,
    .release = cpu_release,
};
