#include "tests/support/cuda_check.h"

#include <stdlib.h>

#include "device/cuda/cuda_kernel.h"
#include "device/device.h"
#include "tests/support/check.h"
#include "tests/support/device_check.h"
#include "tests/support/fake_cuda.h"

static const char *const cuda_orders[] = {"order=0", "order=1", "order=2"};

void cuda_check_place(const op_case *c, bool on_gpu) {
    op_built built;
    CHECK_OK(op_build(c, &built));
    const bool found =
        pen_cuda_entry_find(built.graph, pen_graph_node(built.graph, built.node)) != NULL;
    CHECK(found == on_gpu, "%s runs %s", c->op, found ? "on the GPU" : "on the host");
    op_built_free(&built);
}

void cuda_check(const op_case *c, uint64_t seed, double tolerance) {
    CHECK(fake_cuda_is_here(), "no fake driver");
    cuda_check_place(c, true);
    setenv("FAKE_CUDA", cuda_orders[seed % 3], 1);
    op_check_device(c, seed, tolerance);
}

void cuda_check_refuses(const op_case *c, const void *wrong, const void *right, size_t bytes,
                        const char *text) {
    const pen_device_kind *kind;
    pen_device *device;
    pen_buffer *buffer;
    pen_kernel *kernel;
    pen_launch *launch;
    op_built built;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(pen_device_kind_find("cuda", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "g"}, &device));
    CHECK_OK(kind->prepare(device, built.graph, built.node, built.arena, &kernel));
    CHECK_OK(kind->buffer_create(device, 4096, &buffer));
    const pen_operand inputs[] = {{buffer, 0}, {buffer, 512}};
    const pen_operand outputs[] = {{buffer, 1024}, {buffer, 1536}};
    const pen_binding binding = {inputs, outputs, {buffer, 2048}};
    CHECK_OK(kind->bind(device, kernel, &binding, built.arena, &launch));
    CHECK_OK(kind->write(device, inputs[1], wrong, bytes));
    CHECK_OK(kind->enqueue(device, launch, &(pen_run_context){0}));
    CHECK_ERROR(kind->synchronize(device), PEN_INVALID_INPUT, text);
    CHECK_OK(kind->synchronize(device));
    CHECK_OK(kind->write(device, inputs[1], right, bytes));
    CHECK_OK(kind->enqueue(device, launch, &(pen_run_context){0}));
    CHECK_OK(kind->synchronize(device));
    kind->release(device, kernel);
    kind->buffer_destroy(device, buffer);
    kind->close(device);
    op_built_free(&built);
}
