// Updates of parameters in one pass over memory. The formulas are at the top of
// graph/ops/training/optimizer_op.c.
#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/training/optimizer_op.h"

#define OPTIMIZER_TEAM_ELEMENTS 16384
// Elements that one thread updates at a time.
#define OPTIMIZER_PIECE 4096

// An update of `count` elements from `first`; g are their gradients.
typedef struct optimizer_state optimizer_state;
typedef struct optimizer_step optimizer_step;
typedef void (*optimizer_span_fn)(const optimizer_step *s, int64_t first, int64_t count,
                                  const float *g);

struct optimizer_state {
    const pen_node *node;
    int64_t count;
    uint32_t input_count;
    bool gives_velocity;
    // SGD
    float momentum, weight_decay;
    bool nesterov;
    // Adam
    double beta1, beta2;
    float epsilon;
    double weight_decay_double;
    bool decoupled;
    // RMSprop, which has a momentum, too
    double alpha;
    // elements of the scalar operands, by input: float64, else float32
    bool is_double[8];
    // of a gradient of rows
    uint32_t rows; // which operand
    bool has_rows;
    bool rows_are_wide; // int64, else int32
    int64_t row_count, row_length, index_count;
};

// What one run works with. Letters as in graph/ops/training/optimizer_op.c.
struct optimizer_step {
    optimizer_span_fn span;
    const float *p, *m, *v; // SGD: v the velocity, NULL without momentum; RMSprop: m likewise
    const float *a;         // RMSprop: NULL where it is not centered
    float *p_new, *m_new, *v_new, *a_new;
    float rate, scale, decay;
    float momentum, ahead, own;                 // SGD
    float beta1, rest1, beta2, rest2;           // Adam
    float step_size, correction, keep, epsilon; // Adam
    bool may_skip;                              // elements without gradient stay as they are
};

// Tensors are float32; scalars (the learning rate, …) may also be float64. Positions of rows are
// kept as int32.
static bool optimizer_supports(const pen_cpu_request *request, uint32_t tensor_count,
                               uint32_t rows) {
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
static bool optimizer_update_supports(const pen_cpu_request *request) {
    const pen_op_update *at = &request->node->op->update;
    return optimizer_supports(request, at->rate, at->rows);
}

// Workspace with rows: the first index of each row, and the one after each index, as int32.
static uint64_t optimizer_set_rows(const pen_cpu_request *request, const pen_shape *shape,
                                   uint32_t rows, optimizer_state *state) {
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
static pen_status optimizer_make_state(const pen_cpu_request *request, optimizer_state **out_state,
                                       uint64_t *out_workspace_bytes) {
    const uint32_t rows = request->node->op->update.rows;
    optimizer_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    const pen_node *node = request->node;
    state->node = node;
    state->input_count = node->input_count;
    state->count = pen_shape_element_count(&pen_value_type(request->graph, node->inputs[0])->shape);
    for (uint32_t i = 0; i < node->input_count && i < 8; i++) {
        state->is_double[i] =
            pen_value_is(node->inputs[i]) &&
            pen_value_type(request->graph, node->inputs[i])->element == PEN_FLOAT64;
    }
    *out_workspace_bytes = optimizer_set_rows(
        request, &pen_value_type(request->graph, node->inputs[0])->shape, rows, state);
    if (state->has_rows) { // a row for each thread
        *out_workspace_bytes += (uint64_t)state->row_length * request->thread_count * sizeof(float);
    }
    *out_state = state;
    return PEN_OK;
}

static double optimizer_scalar(const pen_cpu_call *call, const optimizer_state *state,
                               uint32_t input, double otherwise) {
    if (input >= state->input_count || call->inputs[input] == NULL) return otherwise;
    return state->is_double[input] ? *(const double *)call->inputs[input]
                                   : (double)*(const float *)call->inputs[input];
}

static int64_t optimizer_row(const optimizer_state *state, const void *rows, int64_t position) {
    const int64_t row = state->rows_are_wide ? ((const int64_t *)rows)[position]
                                             : (int64_t)((const int32_t *)rows)[position];
    return row < 0 ? row + state->row_count : row;
}

// Lists the indices of each row, in order: heads [row_count] and next [index_count], ended by -1.
static pen_status optimizer_list_rows(const optimizer_state *state, const void *rows,
                                      int32_t *heads, int32_t *next) {
    memset(heads, 0xff, (size_t)state->row_count * sizeof *heads);
    for (int64_t i = state->index_count; i-- > 0;) {
        const int64_t row = optimizer_row(state, rows, i);
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

// Elements [first, first + count) of a row.
typedef struct optimizer_part {
    int64_t row, first, count;
} optimizer_part;

// Adds to `sum` [part.count] the gradients of a part of a row.
static void optimizer_add_row(const optimizer_state *state, const float *gradients,
                              const int32_t *heads, optimizer_part part, float *sum) {
    const int32_t *next = heads + state->row_count;
    for (int32_t i = heads[part.row]; i >= 0; i = next[i]) {
        const float *g = gradients + i * state->row_length + part.first;
        for (int64_t k = 0; k < part.count; k++) {
            sum[k] += g[k];
        }
    }
}

static pen_status optimizer_run_rows(const pen_cpu_call *call, const optimizer_step *step) {
    const optimizer_state *state = call->state;
    int32_t *heads = call->workspace, *next = heads + state->row_count;
    float *sums = (float *)(void *)(next + state->index_count);
    PEN_TRY(optimizer_list_rows(state, call->inputs[state->rows], heads, next));
    const int64_t length = state->row_length;
#pragma omp parallel for schedule(static) if (state->count > OPTIMIZER_TEAM_ELEMENTS)
    for (int64_t row = 0; row < state->row_count; row++) {
        if (heads[row] < 0 && step->may_skip) continue;
        float *sum = sums + omp_get_thread_num() * length;
        memset(sum, 0, (size_t)length * sizeof *sum);
        optimizer_add_row(state, call->inputs[1], heads, (optimizer_part){row, 0, length}, sum);
        step->span(step, row * length, length, sum);
    }
    return PEN_OK;
}

// There is nothing to apply: what is made is what was there.
static pen_status optimizer_keep(const pen_cpu_call *call) {
    const optimizer_state *state = call->state;
    const pen_op_update *at = &state->node->op->update;
    for (uint32_t i = 0; i < state->node->output_count; i++) {
        const void *old = call->inputs[i == 0 ? 0 : at->state + i - 1];
        if (call->outputs[i] == NULL || old == NULL || old == call->outputs[i]) continue;
        memmove(call->outputs[i], old, (size_t)state->count * sizeof(float));
    }
    return PEN_OK;
}

static pen_status optimizer_run(const pen_cpu_call *call, const optimizer_step *step) {
    const optimizer_state *state = call->state;
    if (step->scale < 0) return optimizer_keep(call);
    if (state->has_rows) return optimizer_run_rows(call, step);
    const float *g = call->inputs[1];
    const int64_t pieces = (state->count + OPTIMIZER_PIECE - 1) / OPTIMIZER_PIECE;
#pragma omp parallel for schedule(static) if (state->count > OPTIMIZER_TEAM_ELEMENTS)
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int64_t first = piece * OPTIMIZER_PIECE, rest = state->count - first;
        step->span(step, first, rest < OPTIMIZER_PIECE ? rest : OPTIMIZER_PIECE, g + first);
    }
    return PEN_OK;
}

static pen_status optimizer_sgd_prepare(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    optimizer_state *state;
    PEN_TRY(optimizer_make_state(request, &state, out_workspace_bytes));
    state->momentum = (float)pen_node_float(node, "momentum");
    state->weight_decay = (float)pen_node_float(node, "weight_decay");
    state->nesterov = pen_node_int(node, "nesterov") != 0;
    state->gives_velocity = node->output_count > 1 && pen_value_is(node->outputs[1]);
    *out_state = state;
    return PEN_OK;
}

static void optimizer_sgd_plain(const optimizer_step *s, int64_t first, int64_t count,
                                const float *gradient) {
    const float *p = s->p + first;
    float *p_new = s->p_new + first;
    const float rate = s->rate, scale = s->scale, decay = s->decay;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        p_new[k] = p[k] - rate * g;
    }
}

static void optimizer_sgd_momentum(const optimizer_step *s, int64_t first, int64_t count,
                                   const float *gradient) {
    const float *p = s->p + first, *v = s->v + first;
    float *p_new = s->p_new + first, *v_new = s->v_new + first;
    const float rate = s->rate, scale = s->scale, decay = s->decay, mu = s->momentum;
    const float ahead = s->ahead, own = s->own;
    // step = nesterov ? g + momentum * v' : v'
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float velocity = mu * v[k] + g;
        const float step = own * g + ahead * velocity;
        v_new[k] = velocity;
        p_new[k] = p[k] - rate * step;
    }
}

// The velocity is read, but not kept.
static void optimizer_sgd_forgetful(const optimizer_step *s, int64_t first, int64_t count,
                                    const float *gradient) {
    for (int64_t k = 0; k < count; k++) {
        const float p = s->p[first + k];
        const float g = gradient[k] * s->scale + s->decay * p;
        const float velocity = s->momentum * s->v[first + k] + g;
        s->p_new[first + k] = p - s->rate * (s->own * g + s->ahead * velocity);
    }
}

// As PyTorch has it; the loop without velocity reads and writes one array less.
static pen_status optimizer_sgd_run(const pen_cpu_call *call) {
    const optimizer_state *state = call->state;
    optimizer_step s = {
        .p = call->inputs[0],
        .v = call->inputs[2],
        .p_new = call->outputs[0],
        .v_new = state->gives_velocity ? call->outputs[1] : NULL,
        .rate = (float)optimizer_scalar(call, state, 3, 0),
        .scale = (float)optimizer_scalar(call, state, 4, 1),
        .decay = state->weight_decay,
        .momentum = state->momentum,
        .ahead = state->nesterov ? state->momentum : 1,
        .own = state->nesterov ? 1 : 0,
    };
    s.span = s.v == NULL       ? optimizer_sgd_plain
             : s.v_new != NULL ? optimizer_sgd_momentum
                               : optimizer_sgd_forgetful;
    s.may_skip = s.v == NULL && s.decay == 0 && s.p_new == s.p;
    return optimizer_run(call, &s);
}

static pen_status optimizer_adam_prepare(const pen_cpu_request *request, void **out_state,
                                         uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    optimizer_state *state;
    PEN_TRY(optimizer_make_state(request, &state, out_workspace_bytes));
    state->beta1 = pen_node_float(node, "beta1");
    state->beta2 = pen_node_float(node, "beta2");
    state->epsilon = (float)pen_node_float(node, "epsilon");
    state->weight_decay_double = pen_node_float(node, "weight_decay");
    state->decoupled = pen_node_int(node, "decoupled") != 0;
    *out_state = state;
    return PEN_OK;
}

static void optimizer_adam(const optimizer_step *s, int64_t first, int64_t count,
                           const float *gradient) {
    const float *p = s->p + first, *m = s->m + first, *v = s->v + first;
    float *p_new = s->p_new + first, *m_new = s->m_new + first, *v_new = s->v_new + first;
    const float scale = s->scale, decay = s->decay, keep = s->keep, epsilon = s->epsilon;
    const float beta1 = s->beta1, rest1 = s->rest1, beta2 = s->beta2, rest2 = s->rest2;
    const float step_size = s->step_size, correction = s->correction;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float mean = beta1 * m[k] + rest1 * g;
        const float second = beta2 * v[k] + rest2 * g * g;
        m_new[k] = mean;
        v_new[k] = second;
        p_new[k] = p[k] * keep - step_size * mean / (sqrtf(second) * correction + epsilon);
    }
}

// Corrections for the step are folded into factors in double, once for all elements.
static pen_status optimizer_adam_run(const pen_cpu_call *call) {
    const optimizer_state *state = call->state;
    const double rate = optimizer_scalar(call, state, 4, 0);
    const double step = optimizer_scalar(call, state, 5, 1);
    const optimizer_step s = {
        .span = optimizer_adam,
        .p = call->inputs[0],
        .m = call->inputs[2],
        .v = call->inputs[3],
        .p_new = call->outputs[0],
        .m_new = call->outputs[1],
        .v_new = call->outputs[2],
        .scale = (float)optimizer_scalar(call, state, 6, 1),
        .decay = state->decoupled ? 0 : (float)state->weight_decay_double,
        .keep = state->decoupled ? (float)(1 - rate * state->weight_decay_double) : 1,
        .beta1 = (float)state->beta1,
        .rest1 = (float)(1 - state->beta1),
        .beta2 = (float)state->beta2,
        .rest2 = (float)(1 - state->beta2),
        .step_size = (float)(rate / (1 - pow(state->beta1, step))),
        .correction = (float)(1 / sqrt(1 - pow(state->beta2, step))),
        .epsilon = state->epsilon,
    };
    return optimizer_run(call, &s);
}

static pen_status optimizer_rmsprop_prepare(const pen_cpu_request *request, void **out_state,
                                            uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    optimizer_state *state;
    PEN_TRY(optimizer_make_state(request, &state, out_workspace_bytes));
    state->alpha = pen_node_float(node, "alpha");
    state->epsilon = (float)pen_node_float(node, "epsilon");
    state->momentum = (float)pen_node_float(node, "momentum");
    state->weight_decay = (float)pen_node_float(node, "weight_decay");
    *out_state = state;
    return PEN_OK;
}

// The compiler makes a loop for each choice of momentum and centered. beta2 is alpha.
static void optimizer_rmsprop(const optimizer_step *s, int64_t first, int64_t count,
                              const float *gradient) {
    const bool is_centered = s->a != NULL, has_momentum = s->m != NULL;
    const float *p = s->p + first, *v = s->v + first;
    const float *m = has_momentum ? s->m + first : p, *a = is_centered ? s->a + first : p;
    float *p_new = s->p_new + first, *v_new = s->v_new + first;
    float *m_new = has_momentum ? s->m_new + first : NULL;
    float *a_new = is_centered ? s->a_new + first : NULL;
    const float scale = s->scale, decay = s->decay, rate = s->rate, epsilon = s->epsilon;
    const float alpha = s->beta2, rest = s->rest2, mu = s->momentum;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float second = alpha * v[k] + rest * g * g;
        float spread = second;
        v_new[k] = second;
        if (is_centered) {
            const float mean = alpha * a[k] + rest * g;
            a_new[k] = mean;
            spread = second - mean * mean;
            // below 0 by rounding, of gradients that are all alike; no number where both overflow
            spread = spread > 0 ? spread : 0;
        }
        float step = g / (sqrtf(spread) + epsilon);
        if (has_momentum) m_new[k] = step = mu * m[k] + step;
        p_new[k] = p[k] - rate * step;
    }
}

// As PyTorch has it; arrays for momentum and the mean are read only where the update has them.
static pen_status optimizer_rmsprop_run(const pen_cpu_call *call) {
    const optimizer_state *state = call->state;
    // by its state, not its value: what is not 0 may be so in float, and the state is still written
    const bool has_momentum = call->inputs[3] != NULL,
               is_centered = state->input_count > 4 && call->inputs[4] != NULL;
    const optimizer_step s = {
        .span = optimizer_rmsprop,
        .p = call->inputs[0],
        .v = call->inputs[2],
        .m = has_momentum ? call->inputs[3] : NULL,
        .a = is_centered ? call->inputs[4] : NULL,
        .p_new = call->outputs[0],
        .v_new = call->outputs[1],
        .m_new = has_momentum ? call->outputs[2] : NULL,
        .a_new = is_centered ? call->outputs[3] : NULL,
        .rate = (float)optimizer_scalar(call, state, 5, 0),
        .scale = (float)optimizer_scalar(call, state, 6, 1),
        .decay = state->weight_decay,
        .momentum = state->momentum,
        .beta2 = (float)state->alpha,
        .rest2 = (float)(1 - state->alpha),
        .epsilon = state->epsilon,
    };
    return optimizer_run(call, &s);
}

// ---- norms

static bool optimizer_norm_supports(const pen_cpu_request *request) {
    return optimizer_supports(request, 1, PEN_NORM_ROWS);
}

// Workspace: the sums of the blocks; with rows then the lists of these, and a block for each
// thread.
static pen_status optimizer_norm_prepare(const pen_cpu_request *request, void **out_state,
                                         uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    optimizer_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    pen_shape shape = pen_value_type(request->graph, node->inputs[0])->shape;
    const bool has_rows = node->input_count > PEN_NORM_ROWS;
    if (has_rows) {
        const int64_t *dims = pen_node_ints(node, "shape", &shape.rank);
        memcpy(shape.dims, dims, shape.rank * sizeof *shape.dims);
    }
    state->node = node;
    state->count = pen_shape_element_count(&shape);
    const int64_t blocks = (state->count + PEN_NORM_BLOCK_ELEMENTS - 1) / PEN_NORM_BLOCK_ELEMENTS;
    *out_workspace_bytes = (uint64_t)blocks * sizeof(double);
    if (has_rows) {
        *out_workspace_bytes += optimizer_set_rows(request, &shape, PEN_NORM_ROWS, state);
        *out_workspace_bytes +=
            (uint64_t)request->thread_count * PEN_NORM_BLOCK_ELEMENTS * sizeof(float);
    }
    *out_state = state;
    return PEN_OK;
}

static double optimizer_norm_block(const float *x, int64_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < count; k++) {
        sum += (double)x[k] * (double)x[k];
    }
    return sum;
}

// The sum of a block, elements [first, last) of the gradient that the rows are of: as if it were
// there. `block` is the thread's.
static double optimizer_norm_rows(const pen_cpu_call *call, const int32_t *heads, int64_t first,
                                  int64_t last, float *block) {
    const optimizer_state *state = call->state;
    const int64_t length = state->row_length;
    bool any = false;
    for (int64_t row = first / length; row * length < last; row++) {
        if (heads[row] < 0) continue;
        if (!any) memset(block, 0, (size_t)(last - first) * sizeof *block);
        any = true;
        const int64_t at = row * length;
        const int64_t from = at > first ? at : first;
        const int64_t to = at + length < last ? at + length : last;
        optimizer_add_row(state, call->inputs[0], heads,
                          (optimizer_part){row, from - at, to - from}, block + (from - first));
    }
    return any ? optimizer_norm_block(block, last - first) : 0;
}

// Blocks of fixed size, added in order: the norm is the same wherever the gradient was made.
static pen_status optimizer_norm_run(const pen_cpu_call *call) {
    const optimizer_state *state = call->state;
    const float *x = call->inputs[0];
    double *sums = call->workspace;
    const int64_t size = PEN_NORM_BLOCK_ELEMENTS, blocks = (state->count + size - 1) / size;
    int32_t *heads = (int32_t *)(void *)(sums + blocks);
    float *lanes = (float *)(void *)(heads + state->row_count + state->index_count);
    if (state->has_rows) {
        PEN_TRY(optimizer_list_rows(state, call->inputs[PEN_NORM_ROWS], heads,
                                    heads + state->row_count));
    }
#pragma omp parallel for schedule(static) if (blocks > 4)
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t first = b * size;
        const int64_t last = first + size < state->count ? first + size : state->count;
        if (!state->has_rows) {
            sums[b] = optimizer_norm_block(x + first, last - first);
            continue;
        }
        sums[b] =
            optimizer_norm_rows(call, heads, first, last, lanes + omp_get_thread_num() * size);
    }
    *(float *)call->outputs[0] = (float)pen_norm_add_pairs(sums, (size_t)blocks);
    return PEN_OK;
}

static const pen_cpu_kernel optimizer_kernels[] = {
    {PEN_CPU_ENTRY("sgd_update", "cpu", optimizer_update_supports, optimizer_sgd_prepare,
                   optimizer_sgd_run)},
    {PEN_CPU_ENTRY("adam_update", "cpu", optimizer_update_supports, optimizer_adam_prepare,
                   optimizer_adam_run)},
    {PEN_CPU_ENTRY("rmsprop_update", "cpu", optimizer_update_supports, optimizer_rmsprop_prepare,
                   optimizer_rmsprop_run)},
    {PEN_CPU_ENTRY("squared_norm", "cpu", optimizer_norm_supports, optimizer_norm_prepare,
                   optimizer_norm_run)},
};

PEN_CPU_FAMILY_OF(optimizer);
