#include "device/reference/reference_device.h"

#include <string.h>

#include "device/host_buffer.h"
#include "device/run_context.h"
#include "graph/graph.h"
#include "graph/node_blame.h"
#include "graph/op.h"

typedef struct reference_device {
    pen_device base;
    pen_arena *arena;
    const char *name;
    pen_memory_budget budget;
} reference_device;

typedef struct reference_launch {
    const pen_reference_node *node;
    pen_tensor *inputs;
    pen_tensor *outputs;
} reference_launch;

static reference_device *reference_device_of(pen_device *device) {
    PEN_ASSERT(device->kind == &pen_reference_device_kind);
    return (reference_device *)device;
}

static pen_status reference_open_in(const pen_device_options *options, pen_arena *arena,
                                    pen_device **out_device) {
    reference_device *device;
    PEN_TRY(PEN_NEW(arena, 1, &device));
    const char *name = options->name == NULL ? "reference" : options->name;
    PEN_TRY(pen_arena_copy_text(arena, name, strlen(name), &device->name));
    device->base.kind = &pen_reference_device_kind;
    device->arena = arena;
    device->budget =
        (pen_memory_budget){.device = device->name, .bytes_limit = options->memory_bytes};
    *out_device = &device->base;
    return PEN_OK;
}

static pen_status reference_open(const pen_device_options *options, pen_device **out_device) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = reference_open_in(options, arena, out_device);
    if (status != PEN_OK) pen_arena_destroy(arena);
    return status;
}

static void reference_close(pen_device *device) {
    if (device == NULL) return;
    pen_arena_destroy(reference_device_of(device)->arena);
}

static pen_status reference_describe(pen_device *device, pen_arena *arena, const char **out_text) {
    return pen_arena_format(arena, out_text, "reference '%s': scalar kernels, 1 thread",
                            reference_device_of(device)->name);
}

static pen_status reference_buffer_create(pen_device *base, uint64_t bytes,
                                          pen_buffer **out_buffer) {
    reference_device *device = reference_device_of(base);
    return pen_host_buffer_create(&device->budget, bytes, pen_host_buffer_allocate, NULL,
                                  out_buffer);
}

static void reference_buffer_destroy(pen_device *device, pen_buffer *buffer) {
    pen_host_buffer_destroy(&reference_device_of(device)->budget, buffer);
}

static bool reference_supports(pen_device *device, const pen_graph *graph, pen_node_id node) {
    (void)device;
    return pen_reference_kernel_find(pen_graph_node(graph, node)->op->name) != NULL;
}

// The bytes of a constant, copied: kernels take mutable tensors, and the file's may lie anyhow.
static pen_status reference_copy_constant(const pen_value *value, pen_arena *arena,
                                          pen_tensor *tensor) {
    if (value->data == NULL) return PEN_OK;
    void *copy = pen_arena_allocate(arena, value->data_bytes, 1, 64);
    if (copy == NULL) return pen_error_out_of_memory();
    pen_value_copy_contents(value, 0, copy, value->data_bytes);
    tensor->data = copy;
    return PEN_OK;
}

static pen_status reference_describe_operand(const pen_reference_node *made, pen_value_id id,
                                             pen_tensor *tensor) {
    if (!pen_value_is(id)) return PEN_OK;
    const pen_value *value = pen_graph_value(made->graph, id);
    if (value->layout != PEN_LAYOUT_PLAIN) {
        return pen_error(PEN_UNSUPPORTED, "%s '%s': '%s' is not in the plain layout",
                         made->node->op->name, made->node->name, value->name);
    }
    tensor->type = value->type;
    return PEN_OK;
}

// Types and rules are looked up once, when the node is prepared; addresses come when it is bound.
pen_status pen_reference_node_make(const pen_graph *graph, pen_node_id id, pen_arena *arena,
                                   pen_reference_node **out_node) {
    const pen_node *node = pen_graph_node(graph, id);
    if (pen_reference_kernel_find(node->op->name) == NULL) {
        return pen_error(PEN_UNSUPPORTED, "%s '%s': no device kernel for this op", node->op->name,
                         node->name);
    }
    pen_reference_node *made;
    PEN_TRY(PEN_NEW(arena, 1, &made));
    made->graph = graph;
    made->node = node;
    PEN_TRY(pen_arena_create_within(arena, &made->scratch));
    PEN_TRY(PEN_NEW(arena, node->input_count, &made->inputs));
    PEN_TRY(PEN_NEW(arena, node->output_count, &made->outputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        PEN_TRY(reference_describe_operand(made, node->inputs[i], &made->inputs[i]));
        const bool is_constant = i < 64 && (node->op->constant_inputs >> i & 1) != 0;
        if (is_constant && pen_value_is(node->inputs[i])) {
            PEN_TRY(reference_copy_constant(pen_graph_value(graph, node->inputs[i]), arena,
                                            &made->inputs[i]));
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        PEN_TRY(reference_describe_operand(made, node->outputs[i], &made->outputs[i]));
    }
    *out_node = made;
    return PEN_OK;
}

// What is known of the task is handed on: operators that draw numbers or sum lanes go by it.
pen_status pen_reference_node_run(const pen_reference_node *node, const pen_tensor *inputs,
                                  const pen_tensor *outputs, const pen_run_context *run,
                                  bool accumulate) {
    const pen_reference_call call = {
        .graph = node->graph,
        .node = node->node,
        .inputs = inputs,
        .outputs = outputs,
        .scratch = node->scratch,
        .seed = run->seed,
        .step = run->step,
        .microbatch = run->microbatch,
        .lane = run->lane,
        .lane_count = run->lane_count,
        .microbatch_count = run->microbatch_count,
        .order = run->order,
        .ends_lane = run->ends_lane,
    };
    const pen_status status = pen_reference_run(&call, !accumulate);
    pen_arena_reset(node->scratch);
    return pen_node_blame(node->graph, node->node, status);
}

static pen_status reference_prepare(pen_device *device, const pen_graph *graph, pen_node_id node,
                                    pen_arena *arena, pen_kernel **out_kernel) {
    (void)device;
    pen_reference_node *made;
    PEN_TRY(pen_reference_node_make(graph, node, arena, &made));
    *out_kernel = (pen_kernel *)made;
    return PEN_OK;
}

static uint64_t reference_workspace_bytes(const pen_kernel *kernel) {
    (void)kernel;
    return 0;
}

// Buffers of this device are host memory, so that an operand is an address.
static pen_status reference_bind(pen_device *device, const pen_kernel *kernel,
                                 const pen_binding *binding, pen_arena *arena,
                                 pen_launch **out_launch) {
    const pen_reference_node *node = (const pen_reference_node *)kernel;
    const uint32_t input_count = node->node->input_count;
    const uint32_t output_count = node->node->output_count;
    reference_launch *launch;
    (void)device;
    PEN_TRY(PEN_NEW(arena, 1, &launch));
    PEN_TRY(PEN_NEW(arena, input_count, &launch->inputs));
    PEN_TRY(PEN_NEW(arena, output_count, &launch->outputs));
    launch->node = node;
    for (uint32_t i = 0; i < input_count; i++) {
        launch->inputs[i] = node->inputs[i];
        void *address = pen_host_buffer_address(binding->inputs[i]);
        if (address != NULL) launch->inputs[i].data = address;
    }
    for (uint32_t i = 0; i < output_count; i++) {
        launch->outputs[i] = node->outputs[i];
        launch->outputs[i].data = pen_host_buffer_address(binding->outputs[i]);
    }
    *out_launch = (pen_launch *)launch;
    return PEN_OK;
}

static pen_status reference_enqueue(pen_device *device, const pen_launch *handle,
                                    const pen_run_context *run) {
    (void)device;
    const reference_launch *launch = (const reference_launch *)handle;
    const bool accumulate = pen_run_adds(launch->node->node, run);
    return pen_reference_node_run(launch->node, launch->inputs, launch->outputs, run, accumulate);
}

static void reference_release(pen_device *device, pen_kernel *kernel) {
    (void)device;
    (void)kernel;
}

const pen_device_kind pen_reference_device_kind = {
    .name = "reference",
    .summary = "scalar kernels written to be read; the oracle of every other device",
    .open = reference_open,
    .close = reference_close,
    .describe = reference_describe,
    .buffer_create = reference_buffer_create,
    .buffer_destroy = reference_buffer_destroy,
    .buffer_wrap = pen_host_buffer_wrap,
    .write = pen_host_buffer_write,
    .read = pen_host_buffer_read,
    .fetch = pen_host_buffer_read,
    .synchronize = pen_host_buffer_synchronize,
    .place = pen_host_buffer_place,
    .supports = reference_supports,
    .prepare = reference_prepare,
    .workspace_bytes = reference_workspace_bytes,
    .bind = reference_bind,
    .enqueue = reference_enqueue,
    .release = reference_release,
};
