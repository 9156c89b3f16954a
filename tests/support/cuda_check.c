#include "tests/support/cuda_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "device/cuda/cuda_kernel.h"
#include "device/device.h"
#include "tests/support/check.h"
#include "tests/support/device_check.h"
#include "tests/support/fake_cuda.h"

static const char *const cuda_orders[] = {"order=0", "order=1", "order=2"};

void cuda_check_driver(void) {
    CHECK(getenv("PEN_TEST_GPU") != NULL || fake_cuda_is_here(), "no fake driver");
    (void)cuda_has_real_libraries();
}

bool cuda_has_real_libraries(void) {
    static bool was_checked;
    const pen_device_options options = {.name = "g", .libraries = op_check_libraries()};
    if (getenv("PEN_TEST_GPU") == NULL || options.libraries == PEN_LIBRARIES_NONE) return false;
    if (was_checked) return true;
    const pen_device_kind *kind;
    pen_device *device;
    const char *identity;
    pen_arena *arena = check_arena();
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    CHECK_OK(kind->open(&options, &device));
    CHECK_OK(kind->identify(device, arena, &identity));
    CHECK(strstr(identity, ", cuBLAS ") != NULL || strstr(identity, ", cuDNN ") != NULL,
          "no library is used by '%s'", identity);
    kind->close(device);
    pen_arena_destroy(arena);
    was_checked = true;
    return true;
}

void cuda_check_place(const op_case *c, bool on_gpu) {
    op_built built;
    CHECK_OK(op_build(c, &built));
    const bool found =
        pen_cuda_entry_find(built.graph, pen_graph_node(built.graph, built.node)) != NULL;
    CHECK(found == on_gpu, "%s runs %s", c->op, found ? "on the GPU" : "on the host");
    op_built_free(&built);
}

void cuda_check(const op_case *c, uint64_t seed, double tolerance) {
    cuda_check_driver();
    cuda_check_place(c, true);
    setenv("FAKE_CUDA", cuda_orders[seed % 3], 1);
    op_check_device(c, seed, tolerance);
}

void cuda_check_refuses(const op_case *c, const void *wrong, const void *right, size_t bytes,
                        const char *text) {
    cuda_check_refuses_at(c, 1, wrong, right, bytes, text);
}

// Operands lie 512 bytes apart, and the workspace behind them.
void cuda_check_refuses_at(const op_case *c, uint32_t input, const void *wrong, const void *right,
                           size_t bytes, const char *text) {
    pen_operand inputs[OP_CASE_INPUTS], outputs[OP_CASE_OUTPUTS];
    const pen_device_kind *kind;
    pen_device *device;
    pen_buffer *buffer;
    pen_kernel *kernel;
    pen_launch *launch;
    op_built built;
    uint64_t end = 0;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "g"}, &device));
    CHECK_OK(kind->prepare(device, built.graph, built.node, built.arena, &kernel));
    const pen_node *node = pen_graph_node(built.graph, built.node);
    const uint64_t all = (node->input_count + node->output_count) * (uint64_t)512;
    CHECK_OK(kind->buffer_create(device, all + kind->workspace_bytes(kernel) + 512, &buffer));
    for (uint32_t i = 0; i < node->input_count; i++, end += 512)
        inputs[i] = (pen_operand){pen_value_is(node->inputs[i]) ? buffer : NULL, end};
    for (uint32_t i = 0; i < node->output_count; i++, end += 512)
        outputs[i] = (pen_operand){buffer, end};
    const pen_binding binding = {inputs, outputs, {buffer, end}};
    CHECK_OK(kind->bind(device, kernel, &binding, built.arena, &launch));
    CHECK_OK(kind->write(device, inputs[input], wrong, bytes));
    CHECK_OK(kind->enqueue(device, launch, &(pen_run_context){0}));
    CHECK_ERROR(kind->synchronize(device), PEN_INVALID_INPUT, text);
    CHECK_OK(kind->synchronize(device));
    CHECK_OK(kind->write(device, inputs[input], right, bytes));
    CHECK_OK(kind->enqueue(device, launch, &(pen_run_context){0}));
    CHECK_OK(kind->synchronize(device));
    kind->release(device, kernel);
    kind->buffer_destroy(device, buffer);
    kind->close(device);
    op_built_free(&built);
}

static pen_operand cuda_operand(pen_device *device, const run_graph *run, pen_value_id value) {
    pen_operand operand = {NULL, 0};
    if (!pen_value_is(value)) return operand;
    const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(run->graph, value));
    CHECK_OK(device->kind->buffer_create(device, bytes, &operand.buffer));
    CHECK_OK(device->kind->write(device, operand, run->tensors[value.index].data, bytes));
    CHECK_OK(device->kind->synchronize(device));
    return operand;
}

void cuda_run(const op_built *built, pen_precision precision, uint64_t seed, run_graph *run) {
    cuda_run_with(built, precision, seed, cuda_orders[seed % 3], run);
}

// Each operand has a buffer of its own.
void cuda_run_with(const op_built *built, pen_precision precision, uint64_t seed,
                   const char *settings, run_graph *run) {
    const pen_node *node = pen_graph_node(built->graph, built->node);
    pen_operand inputs[OP_CASE_INPUTS], outputs[OP_CASE_OUTPUTS], workspace = {NULL, 0};
    const pen_device_kind *kind;
    pen_device *device;
    pen_kernel *kernel;
    pen_launch *launch;
    cuda_check_driver();
    CHECK(pen_cuda_entry_find(built->graph, node) != NULL, "%s runs on the host", node->op->name);
    setenv("FAKE_CUDA", settings, 1);
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    const pen_device_options options = {
        .name = "g", .precision = precision, .libraries = op_check_libraries()};
    CHECK_OK(kind->open(&options, &device));
    CHECK_OK(kind->prepare(device, built->graph, built->node, built->arena, &kernel));
    for (uint32_t i = 0; i < node->input_count; i++)
        inputs[i] = cuda_operand(device, run, node->inputs[i]);
    for (uint32_t i = 0; i < node->output_count; i++)
        outputs[i] = cuda_operand(device, run, node->outputs[i]);
    CHECK_OK(kind->buffer_create(device, kind->workspace_bytes(kernel), &workspace.buffer));
    const pen_binding binding = {inputs, outputs, workspace};
    CHECK_OK(kind->bind(device, kernel, &binding, built->arena, &launch));
    CHECK_OK(kind->enqueue(device, launch, &(pen_run_context){.first_microbatch = true}));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (outputs[i].buffer == NULL) continue;
        pen_tensor *found = &run->tensors[node->outputs[i].index];
        const uint64_t bytes = pen_tensor_type_bytes(&found->type);
        CHECK_OK(kind->read(device, outputs[i], found->data, bytes));
        op_check_record(node->op->name, seed, precision, i, pen_checksum_whole(found->data, bytes));
        kind->buffer_destroy(device, outputs[i].buffer);
    }
    for (uint32_t i = 0; i < node->input_count; i++)
        if (inputs[i].buffer != NULL) kind->buffer_destroy(device, inputs[i].buffer);
    kind->buffer_destroy(device, workspace.buffer);
    kind->release(device, kernel);
    kind->close(device);
}
