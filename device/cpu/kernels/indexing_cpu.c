// Rows picked by index, and their gradient.
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"

#define INDEXING_TEAM_ELEMENTS 32768

typedef struct indexing_state {
    const pen_node *node;
    int64_t outer; // product of the dimensions in front of the axis
    int64_t dim;   // of the axis
    int64_t inner; // product of the dimensions behind it
    int64_t index_count;
    size_t element_bytes;
    bool is_wide; // int64 indices, else int32
} indexing_state;

static bool indexing_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const pen_value *data = pen_graph_value(request->graph, node->inputs[0]);
    const pen_element_type index = pen_value_type(request->graph, node->inputs[1])->element;
    return (index == PEN_INT32 || index == PEN_INT64) && data->layout == PEN_LAYOUT_PLAIN;
}

static bool indexing_backward_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    if (node->input_count > 2 && pen_value_is(node->inputs[2]) &&
        pen_graph_value(request->graph, node->inputs[2])->layout != PEN_LAYOUT_PLAIN) {
        return false;
    }
    return indexing_supports(request) &&
           pen_value_type(request->graph, node->inputs[0])->element == PEN_FLOAT32;
}

// The shape as outer, indexed and inner dimensions, which is all that the loops need.
static pen_status indexing_prepare_for(const pen_cpu_request *request, pen_value_id data,
                                       void **out_state) {
    indexing_state *state;
    const pen_node *node = request->node;
    const pen_tensor_type *type = pen_value_type(request->graph, data);
    const pen_tensor_type *indices = pen_value_type(request->graph, node->inputs[1]);
    const int64_t given = pen_node_int(node, "axis");
    const uint32_t axis = (uint32_t)(given < 0 ? given + type->shape.rank : given);
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    *state = (indexing_state){
        .node = node,
        .outer = pen_shape_count(&type->shape, 0, axis),
        .dim = type->shape.dims[axis],
        .inner = pen_shape_count(&type->shape, axis + 1, type->shape.rank),
        .index_count = pen_shape_element_count(&indices->shape),
        .element_bytes = pen_element_bytes(type->element),
        .is_wide = indices->element == PEN_INT64,
    };
    *out_state = state;
    return PEN_OK;
}

static pen_status indexing_gather_prepare(const pen_cpu_request *request, void **out_state,
                                          uint64_t *out_workspace_bytes) {
    *out_workspace_bytes = 0;
    return indexing_prepare_for(request, request->node->inputs[0], out_state);
}

static pen_status indexing_backward_prepare(const pen_cpu_request *request, void **out_state,
                                            uint64_t *out_workspace_bytes) {
    *out_workspace_bytes = 0;
    return indexing_prepare_for(request, request->node->outputs[0], out_state);
}

static inline int64_t indexing_at(const indexing_state *state, const void *indices,
                                  int64_t position) {
    const int64_t index = state->is_wide ? ((const int64_t *)indices)[position]
                                         : ((const int32_t *)indices)[position];
    return index < 0 ? index + state->dim : index;
}

// Indices come from data: all are checked before any is used.
static pen_status indexing_check(const indexing_state *state, const void *indices) {
    for (int64_t p = 0; p < state->index_count; p++) {
        const int64_t index = indexing_at(state, indices, p);
        if (index >= 0 && index < state->dim) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "%s '%s': index %lld at position %lld is outside of [%lld, %lld)",
                         state->node->op->name, state->node->name,
                         (long long)(index < 0 ? index - state->dim : index), (long long)p,
                         (long long)-state->dim, (long long)state->dim);
    }
    return PEN_OK;
}

static pen_status indexing_gather_run(const pen_cpu_call *call) {
    const indexing_state *state = call->state;
    const void *indices = call->inputs[1];
    PEN_TRY(indexing_check(state, indices));
    const char *data = call->inputs[0];
    char *y = call->outputs[0];
    const int64_t row_bytes = state->inner * (int64_t)state->element_bytes;
    const int64_t rows = state->outer * state->index_count;
#pragma omp parallel for schedule(static) if (rows * state->inner > INDEXING_TEAM_ELEMENTS)
    for (int64_t row = 0; row < rows; row++) {
        const int64_t outer = row / state->index_count;
        const int64_t index = indexing_at(state, indices, row % state->index_count);
        memcpy(y + row * row_bytes, data + (outer * state->dim + index) * row_bytes,
               (size_t)row_bytes);
    }
    return PEN_OK;
}

// Columns [first, last) of all rows, in order of the indices: the same sums on any team.
static void indexing_add_columns(const pen_cpu_call *call, int64_t first, int64_t last) {
    const indexing_state *state = call->state;
    const void *indices = call->inputs[1];
    const float *dy = call->inputs[0];
    float *dx = call->outputs[0];
    for (int64_t outer = 0; outer < state->outer; outer++) {
        for (int64_t p = 0; p < state->index_count; p++) {
            const int64_t index = indexing_at(state, indices, p);
            const float *from = dy + (outer * state->index_count + p) * state->inner;
            float *to = dx + (outer * state->dim + index) * state->inner;
            for (int64_t i = first; i < last; i++) {
                to[i] += from[i];
            }
        }
    }
}

// What the rows are added to: zeros, or operand 2, which may lie there already.
static void indexing_backward_begin(const pen_cpu_call *call, int64_t count) {
    const indexing_state *state = call->state;
    const float *sum = state->node->input_count > 2 ? call->inputs[2] : NULL;
    float *dx = call->outputs[0];
    if (sum == NULL) {
        if (!call->accumulate) memset(dx, 0, (size_t)count * sizeof *dx);
    } else if (call->accumulate) {
#pragma omp parallel for simd schedule(static) if (count > INDEXING_TEAM_ELEMENTS)
        for (int64_t i = 0; i < count; i++) {
            dx[i] += sum[i];
        }
    } else if (sum != dx) {
        memcpy(dx, sum, (size_t)count * sizeof *dx);
    }
}

static pen_status indexing_backward_run(const pen_cpu_call *call) {
    const indexing_state *state = call->state;
    PEN_TRY(indexing_check(state, call->inputs[1]));
    const int64_t count = state->outer * state->dim * state->inner;
    if (count > 0) indexing_backward_begin(call, count);
    const int64_t added = state->outer * state->index_count * state->inner;
    const int64_t piece = 64;
    const int64_t pieces = (state->inner + piece - 1) / piece;
#pragma omp parallel for schedule(static) if (added > INDEXING_TEAM_ELEMENTS && pieces > 1)
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t last = (p + 1) * piece;
        indexing_add_columns(call, p * piece, last < state->inner ? last : state->inner);
    }
    return PEN_OK;
}

typedef struct stack_state {
    const pen_node *node;
    pen_element_type element;
    int64_t first; // microbatch
    int64_t each;  // elements from one microbatch to the next
    int64_t count, all;
} stack_state;

static bool stack_supports(const pen_cpu_request *request) {
    const pen_value *x = pen_graph_value(request->graph, request->node->inputs[0]);
    const pen_element_type element = x->type.element;
    return x->layout == PEN_LAYOUT_PLAIN &&
           (element == PEN_FLOAT32 || element == PEN_INT32 || element == PEN_INT64);
}

static pen_status stack_prepare(const pen_cpu_request *request, void **out_state,
                                uint64_t *out_workspace_bytes) {
    stack_state *state;
    const pen_node *node = request->node;
    const pen_tensor_type *type = pen_value_type(request->graph, node->outputs[0]);
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    *state = (stack_state){
        .node = node,
        .element = type->element,
        .first = pen_node_int(node, "first"),
        .each = pen_node_int(node, "each") * pen_shape_count(&type->shape, 1, type->shape.rank),
        .count = pen_shape_element_count(&pen_value_type(request->graph, node->inputs[0])->shape),
        .all = pen_shape_element_count(&type->shape),
    };
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

#define STACK_ADD(name, type)                                                                      \
    static void name(const void *from, void *to, int64_t at, int64_t count) {                      \
        const type *x = from;                                                                      \
        type *y = (type *)to + at;                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                      \
            y[i] += x[i];                                                                          \
        }                                                                                          \
    }
STACK_ADD(stack_add_float32, float)
STACK_ADD(stack_add_int32, uint32_t)
STACK_ADD(stack_add_int64, uint64_t)

static pen_status stack_run(const pen_cpu_call *call) {
    const stack_state *state = call->state;
    const size_t bytes = pen_element_bytes(state->element);
    const int64_t at = ((int64_t)call->run->microbatch - state->first) * state->each;
    if (at < 0 || at > state->all - state->count) {
        return pen_error(PEN_INTERNAL, "'%s' has no room for microbatch %llu", state->node->name,
                         (unsigned long long)call->run->microbatch);
    }
    void *y = call->outputs[0];
    if (!call->accumulate && state->all > 0) memset(y, 0, (size_t)state->all * bytes);
    if (state->element == PEN_FLOAT32) {
        stack_add_float32(call->inputs[0], y, at, state->count);
    } else if (state->element == PEN_INT32) {
        stack_add_int32(call->inputs[0], y, at, state->count);
    } else {
        stack_add_int64(call->inputs[0], y, at, state->count);
    }
    return PEN_OK;
}

static const pen_cpu_kernel indexing_kernels[] = {
    {PEN_CPU_ENTRY("gather", "cpu", indexing_supports, indexing_gather_prepare,
                   indexing_gather_run)},
    {PEN_CPU_ENTRY("stack_rows", "cpu", stack_supports, stack_prepare, stack_run),
     .can_accumulate = true},
    {PEN_CPU_ENTRY("gather_backward", "cpu", indexing_backward_supports, indexing_backward_prepare,
                   indexing_backward_run),
     .can_accumulate = true},
};

PEN_CPU_FAMILY_OF(indexing);
