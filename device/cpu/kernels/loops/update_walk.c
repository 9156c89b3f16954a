#include "device/cpu/kernels/loops/update_walk.h"

#include <omp.h>
#include <string.h>

// Tensors are float32; scalars (the learning rate, …) may also be float64. Positions of rows are
// kept as int32.
bool update_supports(const pen_cpu_request *request, uint32_t tensor_count, uint32_t rows) {
    const pen_node *node = request->node;
    if (rows < node->input_count && pen_value_is(node->inputs[rows])) {
        const pen_value *indices = pen_graph_value(request->graph, node->inputs[rows]);
        if (pen_shape_element_count(&indices->type.shape) > INT32_MAX) return false;
    }
    for (uint32_t i = 0; i < tensor_count && i < node->input_count; i++) {
        if (!pen_cpu_is_plain_float(request, node->inputs[i])) return false;
    }
    return true;
}

// All operands before the learning rate are tensors.
bool update_supports_node(const pen_cpu_request *request) {
    const pen_op_update *at = &request->node->op->update;
    return update_supports(request, at->rate, at->rows);
}

// Workspace with rows: the first index of each row, and the one after each index, as int32.
uint64_t update_set_rows(const pen_cpu_request *request, const pen_shape *shape, uint32_t rows,
                         update_state *state) {
    const pen_node *node = request->node;
    if (rows >= node->input_count || !pen_value_is(node->inputs[rows])) return 0;
    const pen_tensor_type *indices = pen_value_type(request->graph, node->inputs[rows]);
    state->has_rows = true;
    state->rows = rows;
    state->rows_are_wide = indices->element == PEN_INT64;
    state->row_count = shape->dims[0];
    state->row_length = pen_shape_count(shape, 1, shape->rank);
    state->index_count = pen_shape_element_count(&indices->shape);
    return (uint64_t)(state->row_count + state->index_count) * sizeof(int32_t);
}

// Scalars may be float or double; rows come where the gradient is that of an embedding.
pen_status update_prepare(const pen_cpu_request *request, void **out_state,
                          uint64_t *out_workspace_bytes) {
    const uint32_t rows = request->node->op->update.rows;
    update_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    const pen_node *node = request->node;
    state->node = node;
    state->input_count = node->input_count;
    state->count = pen_shape_element_count(&pen_value_type(request->graph, node->inputs[0])->shape);
    for (uint32_t i = 0; i < node->input_count && i < UPDATE_OPERANDS; i++) {
        state->is_double[i] =
            pen_value_is(node->inputs[i]) &&
            pen_value_type(request->graph, node->inputs[i])->element == PEN_FLOAT64;
    }
    *out_workspace_bytes = update_set_rows(
        request, &pen_value_type(request->graph, node->inputs[0])->shape, rows, state);
    if (state->has_rows) { // a row for each thread
        *out_workspace_bytes += (uint64_t)state->row_length * request->thread_count * sizeof(float);
    }
    state->own_offset = (*out_workspace_bytes + 7) / 8 * 8;
    *out_state = state;
    return PEN_OK;
}

double update_scalar(const pen_cpu_call *call, uint32_t input, double otherwise) {
    const update_state *state = call->state;
    if (input >= state->input_count || call->inputs[input] == NULL) return otherwise;
    return state->is_double[input] ? *(const double *)call->inputs[input]
                                   : (double)*(const float *)call->inputs[input];
}

double update_rate(const pen_cpu_call *call) {
    const pen_node *node = ((const update_state *)call->state)->node;
    return update_scalar(call, node->op->update.rate, 0) * pen_node_float(node, "lr_scale");
}

static int64_t update_row(const update_state *state, const void *rows, int64_t position) {
    const int64_t row = state->rows_are_wide ? ((const int64_t *)rows)[position]
                                             : (int64_t)((const int32_t *)rows)[position];
    return row < 0 ? row + state->row_count : row;
}

pen_status update_list_rows(const update_state *state, const void *rows, int32_t *heads,
                            int32_t *next) {
    memset(heads, 0xff, (size_t)state->row_count * sizeof *heads);
    for (int64_t i = state->index_count; i-- > 0;) {
        const int64_t row = update_row(state, rows, i);
        if (row < 0 || row >= state->row_count) {
            return pen_error(PEN_INVALID_INPUT,
                             "%s '%s': row %lld at position %lld is outside of [%lld, %lld)",
                             state->node->op->name, state->node->name,
                             (long long)(row < 0 ? row - state->row_count : row), (long long)i,
                             (long long)-state->row_count, (long long)state->row_count);
        }
        next[i] = heads[row];
        heads[row] = (int32_t)i;
    }
    return PEN_OK;
}

void update_add_row(const update_state *state, const float *gradients, const int32_t *heads,
                    update_part part, float *sum) {
    const int32_t *next = heads + state->row_count;
    for (int32_t i = heads[part.row]; i >= 0; i = next[i]) {
        const float *g = gradients + i * state->row_length + part.first;
        for (int64_t k = 0; k < part.count; k++) {
            sum[k] += g[k];
        }
    }
}

// A gradient is scaled before it is clipped. What is no number stays so.
static void update_clip(const float *gradient, int64_t count, float scale, float most,
                        float *out_clipped) {
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale;
        const float low = g < -most ? -most : g;
        out_clipped[k] = low > most ? most : low;
    }
}

// What the step is of gradients that are clipped to `*out_most`; the step itself where that is 0.
static update_step update_clipped(const pen_cpu_call *call, const update_step *step,
                                  float *out_most) {
    const update_state *state = call->state;
    update_step clipped = *step;
    *out_most = (float)pen_node_float(state->node, "clip_value");
    if (*out_most > 0) clipped.scale = 1;
    return clipped;
}

// Rows of one index add up before they are clipped.
static pen_status update_run_rows(const pen_cpu_call *call, const update_step *step) {
    const update_state *state = call->state;
    int32_t *heads = call->workspace, *next = heads + state->row_count;
    float *sums = (float *)(void *)(next + state->index_count);
    PEN_TRY(update_list_rows(state, call->inputs[state->rows], heads, next));
    const int64_t length = state->row_length;
    float most;
    const update_step own = update_clipped(call, step, &most);
#pragma omp parallel for schedule(static) if (state->count > UPDATE_TEAM_ELEMENTS)
    for (int64_t row = 0; row < state->row_count; row++) {
        if (heads[row] < 0 && step->may_skip) continue;
        float *sum = sums + omp_get_thread_num() * length;
        memset(sum, 0, (size_t)length * sizeof *sum);
        update_add_row(state, call->inputs[1], heads, (update_part){row, 0, length}, sum);
        if (most > 0) update_clip(sum, length, step->scale, most, sum);
        own.span(&own, row * length, length, sum);
    }
    return PEN_OK;
}

bool update_is_kept(const pen_cpu_call *call) {
    const update_state *state = call->state;
    const pen_op_update *at = &state->node->op->update;
    if (!(update_scalar(call, at->scale, 1) < 0)) return false;
    for (uint32_t i = 0; i < state->node->output_count; i++) {
        const void *old = call->inputs[i == 0 ? 0 : at->state + i - 1];
        if (call->outputs[i] == NULL || old == NULL || old == call->outputs[i]) continue;
        memmove(call->outputs[i], old, (size_t)state->count * sizeof(float));
    }
    return true;
}

pen_status update_run(const pen_cpu_call *call, const update_step *step) {
    const update_state *state = call->state;
    if (update_is_kept(call)) return PEN_OK;
    if (state->has_rows) return update_run_rows(call, step);
    const float *g = call->inputs[1];
    const int64_t pieces = (state->count + UPDATE_PIECE - 1) / UPDATE_PIECE;
    float most;
    const update_step own = update_clipped(call, step, &most);
#pragma omp parallel for schedule(static) if (state->count > UPDATE_TEAM_ELEMENTS)
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int64_t first = piece * UPDATE_PIECE, rest = state->count - first;
        const int64_t count = rest < UPDATE_PIECE ? rest : UPDATE_PIECE;
        float clipped[UPDATE_PIECE];
        if (most > 0) update_clip(g + first, count, step->scale, most, clipped);
        own.span(&own, first, count, most > 0 ? clipped : g + first);
    }
    return PEN_OK;
}
