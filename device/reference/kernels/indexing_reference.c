#include <string.h>

// Reads and writes where a tensor of indices says. Indices come from data: each is checked.

#include "device/reference/reference_kernel.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"

// Element `position` of the indices, which points into a dimension of `dim` elements.
static pen_status indexing_read(const pen_reference_call *call, int64_t position, int64_t dim,
                                int64_t *out_index) {
    const int64_t index = pen_tensor_get_int(&call->inputs[1], position);
    if (index < -dim || index >= dim) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s '%s': index %lld at position %lld is outside of [%lld, %lld)",
                         call->node->op->name, call->node->name, (long long)index,
                         (long long)position, (long long)-dim, (long long)dim);
    }
    *out_index = index < 0 ? index + dim : index;
    return PEN_OK;
}

// The element of data that element `k` of data[…, indices, …] is.
static pen_status gather_source(const pen_reference_call *call, const pen_shape *data, int64_t k,
                                int64_t *out_source) {
    const uint32_t axis = reference_axis(call, data);
    const int64_t inner = pen_shape_count(data, axis + 1, data->rank);
    const int64_t index_count = pen_tensor_count(&call->inputs[1]);
    const int64_t dim = data->dims[axis];
    int64_t index;
    PEN_TRY(indexing_read(call, k / inner % index_count, dim, &index));
    *out_source = (k / (inner * index_count) * dim + index) * inner + k % inner;
    return PEN_OK;
}

static pen_status gather_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        int64_t source;
        PEN_TRY(gather_source(call, &x->type.shape, k, &source));
        reference_copy_element(y, k, x, source);
    }
    return PEN_OK;
}

static pen_status stack_rows_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const int64_t each = pen_node_int(call->node, "each");
    const int64_t row = pen_shape_count(&y->type.shape, 1, y->type.shape.rank);
    const int64_t turn = (int64_t)call->microbatch - pen_node_int(call->node, "first");
    const int64_t first = turn * each * row, count = pen_tensor_count(x);
    if (turn < 0 || first > pen_tensor_count(y) - count) {
        return pen_error(PEN_INTERNAL, "'%s' has no room for microbatch %llu", call->node->name,
                         (unsigned long long)call->microbatch);
    }
    memset(y->data, 0, (size_t)pen_tensor_type_bytes(&y->type));
    memcpy((char *)y->data + (size_t)first * pen_element_bytes(y->type.element), x->data,
           (size_t)pen_tensor_type_bytes(&x->type));
    return PEN_OK;
}

static pen_status gather_backward_run(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    const int64_t count = pen_tensor_count(dx);
    double *sums;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)count, &sums));
    const bool adds = pen_reference_input(call, 2) != NULL;
    for (int64_t k = 0; adds && k < count; k++) {
        sums[k] = pen_tensor_get(&call->inputs[2], k);
    }
    for (int64_t k = 0; k < pen_tensor_count(dy); k++) {
        int64_t source;
        PEN_TRY(gather_source(call, &dx->type.shape, k, &source));
        sums[source] += pen_tensor_get(dy, k);
    }
    reference_store_sums(dx, sums);
    return PEN_OK;
}

// The element of data that element `k` of the indices picks along the axis.
static pen_status elements_source(const pen_reference_call *call, const pen_shape *data, int64_t k,
                                  int64_t *out_source) {
    const uint32_t axis = reference_axis(call, data);
    int64_t at[PEN_RANK_LIMIT];
    reference_position_of(&call->inputs[1].type.shape, k, at);
    PEN_TRY(indexing_read(call, k, data->dims[axis], &at[axis]));
    *out_source = reference_index_of(data, at);
    return PEN_OK;
}

// The element of data that element `k` of a gather_nd is.
static pen_status nd_source(const pen_reference_call *call, const pen_shape *data, int64_t k,
                            int64_t *out_source) {
    const pen_shape *indices = &call->inputs[1].type.shape;
    const uint32_t batch = (uint32_t)pen_node_int(call->node, "batch_dims");
    const uint32_t depth = (uint32_t)indices->dims[indices->rank - 1];
    const int64_t inner = pen_shape_count(data, batch + depth, data->rank);
    const int64_t tuple = k / inner;
    const int64_t tuples_per_batch = pen_shape_count(indices, batch, indices->rank - 1);
    int64_t source = tuple / tuples_per_batch;
    for (uint32_t d = 0; d < depth; d++) {
        const int64_t dim = data->dims[batch + d];
        int64_t index;
        PEN_TRY(indexing_read(call, tuple * depth + d, dim, &index));
        source = source * dim + index;
    }
    *out_source = source * inner + k % inner;
    return PEN_OK;
}

static pen_status indexing_source(const pen_reference_call *call, const pen_shape *data, int64_t k,
                                  int64_t *out_source) {
    const bool by_element = strstr(call->node->op->name, "elements") != NULL;
    return by_element ? elements_source(call, data, k, out_source)
                      : nd_source(call, data, k, out_source);
}

static pen_status gather_at_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        int64_t source;
        PEN_TRY(indexing_source(call, &x->type.shape, k, &source));
        reference_copy_element(y, k, x, source);
    }
    return PEN_OK;
}

// Combines element `place` of the result with an update, as the reduction (not "none") says.
static void scatter_reduce(const pen_tensor *y, int64_t place, const pen_tensor *updates, int64_t k,
                           const char *reduction) {
    if (pen_element_is_float(y->type.element)) {
        const double a = pen_tensor_get(y, place), b = pen_tensor_get(updates, k);
        const double larger = a > b ? a : b, smaller = a > b ? b : a;
        pen_tensor_set(y, place,
                       reduction[0] == 'a'   ? a + b
                       : reduction[1] == 'u' ? a * b
                       : reduction[1] == 'a' ? larger
                                             : smaller);
        return;
    }
    const int64_t a = pen_tensor_get_int(y, place), b = pen_tensor_get_int(updates, k);
    const bool is_wide = y->type.element == PEN_UINT64;
    const bool above = is_wide ? (uint64_t)a > (uint64_t)b : a > b;
    pen_tensor_set_int(y, place,
                       reduction[0] == 'a'   ? (int64_t)((uint64_t)a + (uint64_t)b)
                       : reduction[1] == 'u' ? (int64_t)((uint64_t)a * (uint64_t)b)
                       : reduction[1] == 'a' ? (above ? a : b)
                                             : (above ? b : a));
}

static pen_status scatter_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *updates = &call->inputs[2], *y = &call->outputs[0];
    const char *reduction = pen_node_text(call->node, "reduction");
    const size_t bytes = (size_t)pen_tensor_type_bytes(&x->type);
    if (bytes > 0) memmove(y->data, x->data, bytes);
    for (int64_t k = 0; k < pen_tensor_count(updates); k++) {
        int64_t place;
        PEN_TRY(indexing_source(call, &x->type.shape, k, &place));
        if (reduction[0] == 'n') {
            reference_copy_element(y, place, updates, k);
        } else {
            scatter_reduce(y, place, updates, k, reduction);
        }
    }
    return PEN_OK;
}

static const pen_reference_kernel indexing_kernels[] = {
    {"gather", gather_run, NULL},         {"gather_backward", gather_backward_run, NULL},
    {"stack_rows", stack_rows_run, NULL}, {"gather_elements", gather_at_run, NULL},
    {"gather_nd", gather_at_run, NULL},   {"scatter_elements", scatter_run, NULL},
    {"scatter_nd", scatter_run, NULL},
};

PEN_REFERENCE_FAMILY(indexing);
