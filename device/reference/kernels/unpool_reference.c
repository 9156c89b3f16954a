// The way back from a maximum pool.

#include "device/reference/reference_kernel.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/window/unpool_shape.h"

// Where in the output element `k` of the operand is put.
static pen_status unpool_place(const pen_reference_call *call, const pen_unpool_shape *shape,
                               int64_t k, int64_t *out_place) {
    const int64_t index = pen_tensor_get_int(&call->inputs[1], k);
    const int64_t count = pen_shape_element_count(&shape->pooled);
    int64_t at[PEN_RANK_LIMIT] = {0};
    if (index < 0 || index >= count) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s '%s': index %lld at position %lld is outside of [0, %lld)",
                         call->node->op->name, call->node->name, (long long)index, (long long)k,
                         (long long)count);
    }
    reference_position_of(&shape->pooled, index, at);
    *out_place = reference_index_of(&shape->output, at);
    return PEN_OK;
}

static pen_status max_unpool_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    pen_unpool_shape shape;
    PEN_TRY(pen_unpool_shape_of(call->graph, call->node, &x->type.shape, &shape));
    reference_fill_zero(y);
    for (int64_t k = 0; k < pen_tensor_count(x); k++) {
        int64_t place;
        PEN_TRY(unpool_place(call, &shape, k, &place));
        reference_copy_element(y, place, x, k);
    }
    return PEN_OK;
}

static pen_status max_unpool_backward_run(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    pen_unpool_shape shape;
    PEN_TRY(pen_unpool_shape_of(call->graph, call->node, &dx->type.shape, &shape));
    for (int64_t k = 0; k < pen_tensor_count(dx); k++) {
        int64_t place;
        PEN_TRY(unpool_place(call, &shape, k, &place));
        reference_copy_element(dx, k, dy, place);
    }
    return PEN_OK;
}

static const pen_reference_kernel unpool_kernels[] = {
    {"max_unpool", max_unpool_run, NULL},
    {"max_unpool_backward", max_unpool_backward_run, NULL},
};

PEN_REFERENCE_FAMILY(unpool);
