#include <string.h>

#include "base/integer.h"
#include "device/reference/reference_kernel.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/movement/slice_range.h"

// Operand `input` as integers: 0 of them where it is left out. The shape rule checked their count.
static const int64_t *slice_integers(const pen_reference_call *call, uint32_t input,
                                     int64_t out_integers[PEN_RANK_LIMIT]) {
    if (pen_reference_input(call, input) == NULL) return NULL;
    for (int64_t k = 0; k < pen_tensor_count(&call->inputs[input]); k++) {
        out_integers[k] = pen_tensor_get_int(&call->inputs[input], k);
    }
    return out_integers;
}

static pen_status slice_resolve(const pen_reference_call *call, const pen_shape *shape,
                                pen_slice_range *out_range) {
    int64_t integers[4][PEN_RANK_LIMIT];
    const pen_slice_spec spec = {
        .count = (uint32_t)pen_tensor_count(&call->inputs[1]),
        .starts = slice_integers(call, 1, integers[0]),
        .ends = slice_integers(call, 2, integers[1]),
        .axes = slice_integers(call, 3, integers[2]),
        .steps = slice_integers(call, 4, integers[3]),
    };
    return pen_slice_resolve(&spec, shape, out_range);
}

// The element of a tensor of `shape` that element `index` of the slice is.
static int64_t slice_source(const pen_slice_range *range, const pen_shape *shape, int64_t index) {
    int64_t at[PEN_RANK_LIMIT];
    reference_position_of(&range->shape, index, at);
    for (uint32_t d = 0; d < shape->rank; d++) {
        at[d] = range->start[d] + at[d] * range->step[d];
    }
    return reference_index_of(shape, at);
}

static pen_status slice_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    pen_slice_range range;
    PEN_TRY(slice_resolve(call, &x->type.shape, &range));
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        reference_copy_element(y, k, x, slice_source(&range, &x->type.shape, k));
    }
    return PEN_OK;
}

static pen_status slice_backward_run(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    pen_slice_range range;
    PEN_TRY(slice_resolve(call, &dx->type.shape, &range));
    reference_fill_zero(dx);
    for (int64_t k = 0; k < pen_tensor_count(dy); k++) {
        reference_copy_element(dx, slice_source(&range, &dx->type.shape, k), dy, k);
    }
    return PEN_OK;
}

// Where coordinate `at`, which may lie outside of [0, dim), is read; -1: nowhere. Reflection goes
// to and fro between the first and the last element, which are not repeated.
static int64_t pad_coordinate(int64_t at, int64_t dim, const char *mode) {
    if (at >= 0 && at < dim) return at;
    if (mode[0] == 'c') return -1;
    if (mode[0] == 'e' || dim == 1) return pen_max_i64(0, pen_min_i64(at, dim - 1));
    const int64_t period = 2 * (dim - 1);
    const int64_t phase = (at % period + period) % period;
    return phase < dim ? phase : period - phase;
}

// The element of a tensor of `shape` that element `index` of the padded one repeats, or -1.
static int64_t pad_source(const pen_reference_call *call, const pen_shape *shape,
                          const pen_shape *padded, int64_t index) {
    const char *mode = pen_node_text(call->node, "mode");
    int64_t at[PEN_RANK_LIMIT] = {0};
    reference_position_of(padded, index, at);
    for (uint32_t d = 0; d < shape->rank; d++) {
        const int64_t before = pen_tensor_get_int(&call->inputs[1], d);
        at[d] = pad_coordinate(at[d] - before, shape->dims[d], mode);
        if (at[d] < 0) return -1;
    }
    return reference_index_of(shape, at);
}

static pen_status pad_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const bool has_value = pen_reference_input(call, 2) != NULL;
    reference_fill_zero(y);
    for (int64_t k = 0; k < pen_tensor_count(y); k++) {
        const int64_t source = pad_source(call, &x->type.shape, &y->type.shape, k);
        if (source >= 0) {
            reference_copy_element(y, k, x, source);
        } else if (has_value) {
            reference_copy_element(y, k, &call->inputs[2], 0);
        }
    }
    return PEN_OK;
}

static pen_status pad_backward_run(const pen_reference_call *call) {
    const pen_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    const int64_t count = pen_tensor_count(dx);
    double *sums;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)count, &sums));
    for (int64_t k = 0; k < pen_tensor_count(dy); k++) {
        const int64_t source = pad_source(call, &dx->type.shape, &dy->type.shape, k);
        if (source >= 0) sums[source] += pen_tensor_get(dy, k);
    }
    reference_store_sums(dx, sums);
    return PEN_OK;
}

// Where the output lies on the input, as that of a state does, nothing else moves.
static pen_status put_position_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *part = &call->inputs[1], *y = &call->outputs[0];
    const pen_shape *shape = &x->type.shape;
    const int64_t given = pen_node_int(call->node, "axis");
    const uint32_t axis = (uint32_t)(given < 0 ? given + shape->rank : given);
    const int64_t place = pen_tensor_get_int(&call->inputs[2], 0), dim = shape->dims[axis];
    if (place < 0 || place >= dim) {
        return pen_error(PEN_INVALID_INPUT, "put_position '%s': position %lld is outside of %lld",
                         call->node->name, (long long)place, (long long)dim);
    }
    const int64_t outer = pen_shape_count(shape, 0, axis);
    const size_t row =
        (size_t)pen_shape_count(shape, axis + 1, shape->rank) * pen_element_bytes(x->type.element);
    if (y->data != x->data) memcpy(y->data, x->data, (size_t)outer * (size_t)dim * row);
    for (int64_t i = 0; i < outer; i++) {
        memcpy((char *)y->data + (size_t)(i * dim + place) * row,
               (const char *)part->data + (size_t)i * row, row);
    }
    return PEN_OK;
}

static const pen_reference_kernel slice_kernels[] = {
    {"slice", slice_run, NULL},
    {"slice_backward", slice_backward_run, NULL},
    {"pad", pad_run, NULL},
    {"pad_backward", pad_backward_run, NULL},
    {"put_position", put_position_run, NULL},
};

PEN_REFERENCE_FAMILY(slice);
