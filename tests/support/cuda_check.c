#include "tests/support/cuda_check.h"

#include <stdlib.h>

#include "device/cuda/cuda_kernel.h"
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
