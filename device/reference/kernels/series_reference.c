// Triangles, running sums and reversed sequences.

#include "device/reference/reference_kernel.h"
#include "device/reference/reference_position.h"
#include "graph/graph.h"
#include "graph/op.h"

// What lies outside of the triangle is zero.
static pen_status trilu_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const pen_shape *shape = &x->type.shape;
    const size_t bytes = pen_element_bytes(x->type.element);
    const bool upper = pen_node_int(call->node, "upper") != 0;
    const bool has_k = pen_reference_input(call, 1) != NULL;
    const int64_t k = has_k ? pen_tensor_get_int(&call->inputs[1], 0) : 0;
    const int64_t rows = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    for (int64_t i = 0; i < pen_tensor_count(x); i++) {
        const int64_t row = i / columns % rows, column = i % columns;
        // compared without row + k, which a huge k would overflow
        const bool keeps = upper ? column - row >= k : column - row <= k;
        if (keeps) {
            reference_copy_element(y, i, x, i);
        } else {
            memset((char *)y->data + (size_t)i * bytes, 0, bytes);
        }
    }
    return PEN_OK;
}

// The running sum of one row whose elements lie `stride` apart, from element `first` on.
static void cum_sum_row(const pen_reference_call *call, int64_t first, int64_t stride,
                        int64_t count) {
    const pen_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const bool exclusive = pen_node_int(call->node, "exclusive") != 0;
    const bool reverse = pen_node_int(call->node, "reverse") != 0;
    const bool is_float = pen_element_is_float(x->type.element);
    double sum = 0;
    uint64_t integer_sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = first + (reverse ? count - 1 - i : i) * stride;
        const double number = is_float ? pen_tensor_get(x, at) : 0;
        const uint64_t integer = is_float ? 0 : (uint64_t)pen_tensor_get_int(x, at);
        if (!exclusive) sum += number;
        if (!exclusive) integer_sum += integer;
        if (is_float) {
            pen_tensor_set(y, at, sum);
        } else {
            pen_tensor_set_int(y, at, (int64_t)integer_sum);
        }
        if (exclusive) sum += number;
        if (exclusive) integer_sum += integer;
    }
}

static pen_status cum_sum_run(const pen_reference_call *call) {
    const pen_shape *shape = &call->inputs[0].type.shape;
    uint32_t axis;
    PEN_TRY(pen_shape_axis(shape->rank, pen_tensor_get_int(&call->inputs[1], 0), &axis));
    const int64_t outer = pen_shape_count(shape, 0, axis);
    const int64_t inner = pen_shape_count(shape, axis + 1, shape->rank);
    const int64_t count = shape->dims[axis];
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            cum_sum_row(call, o * count * inner + i, inner, count);
        }
    }
    return PEN_OK;
}

// Lengths are checked before anything is written: behind a length elements stay where they are.
static pen_status reverse_sequence_run(const pen_reference_call *call) {
    const pen_tensor *x = &call->inputs[0], *lengths = &call->inputs[1], *y = &call->outputs[0];
    const pen_shape *shape = &x->type.shape;
    uint32_t batch, time;
    PEN_TRY(pen_shape_axis(shape->rank, pen_node_int(call->node, "batch_axis"), &batch));
    PEN_TRY(pen_shape_axis(shape->rank, pen_node_int(call->node, "time_axis"), &time));
    for (int64_t b = 0; b < pen_tensor_count(lengths); b++) {
        const int64_t length = pen_tensor_get_int(lengths, b);
        if (length >= 0 && length <= shape->dims[time]) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "reverse_sequence '%s': length %lld at position %lld is not 0 to %lld",
                         call->node->name, (long long)length, (long long)b,
                         (long long)shape->dims[time]);
    }
    for (int64_t i = 0; i < pen_tensor_count(x); i++) {
        int64_t at[PEN_RANK_LIMIT] = {0};
        reference_position_of(shape, i, at);
        const int64_t length = pen_tensor_get_int(lengths, at[batch]);
        if (at[time] < length) at[time] = length - 1 - at[time];
        reference_copy_element(y, i, x, reference_index_of(shape, at));
    }
    return PEN_OK;
}

static const pen_reference_kernel series_kernels[] = {
    {"trilu", trilu_run, NULL},
    {"cum_sum", cum_sum_run, NULL},
    {"reverse_sequence", reverse_sequence_run, NULL},
};

PEN_REFERENCE_FAMILY(series);
