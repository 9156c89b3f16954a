// SGD, Adam and RMSprop, and the norm that gradients are clipped by. The formulas are at the top of
// graph/ops/training/optimizer_op.c.
#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/kernels/loops/update_walk.h"
#include "graph/ops/training/optimizer_op.h"

static void optimizer_sgd_plain(const update_step *s, int64_t first, int64_t count,
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

static void optimizer_sgd_momentum(const update_step *s, int64_t first, int64_t count,
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
static void optimizer_sgd_forgetful(const update_step *s, int64_t first, int64_t count,
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
    const pen_node *node = ((const update_state *)call->state)->node;
    const bool gives_velocity = node->output_count > 1 && pen_value_is(node->outputs[1]);
    const bool nesterov = pen_node_int(node, "nesterov") != 0;
    const float momentum = (float)pen_node_float(node, "momentum");
    update_step s = {
        .p = call->inputs[0],
        .v = call->inputs[2],
        .p_new = call->outputs[0],
        .v_new = gives_velocity ? call->outputs[1] : NULL,
        .rate = (float)update_rate(call),
        .scale = (float)update_scalar(call, 4, 1),
        .decay = (float)pen_node_float(node, "weight_decay"),
        .momentum = momentum,
        .ahead = nesterov ? momentum : 1,
        .own = nesterov ? 1 : 0,
    };
    s.span = s.v == NULL       ? optimizer_sgd_plain
             : s.v_new != NULL ? optimizer_sgd_momentum
                               : optimizer_sgd_forgetful;
    s.may_skip = s.v == NULL && s.decay == 0 && s.p_new == s.p;
    return update_run(call, &s);
}

// The compiler makes a loop for each choice of momentum and centered. beta2 is alpha.
static void optimizer_rmsprop(const update_step *s, int64_t first, int64_t count,
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
    const update_state *state = call->state;
    const pen_node *node = state->node;
    const double alpha = pen_node_float(node, "alpha");
    // by its state, not its value: what is not 0 may be so in float, and the state is still written
    const bool has_momentum = call->inputs[3] != NULL,
               is_centered = state->input_count > 4 && call->inputs[4] != NULL;
    const update_step s = {
        .span = optimizer_rmsprop,
        .p = call->inputs[0],
        .v = call->inputs[2],
        .m = has_momentum ? call->inputs[3] : NULL,
        .a = is_centered ? call->inputs[4] : NULL,
        .p_new = call->outputs[0],
        .v_new = call->outputs[1],
        .m_new = has_momentum ? call->outputs[2] : NULL,
        .a_new = is_centered ? call->outputs[3] : NULL,
        .rate = (float)update_rate(call),
        .scale = (float)update_scalar(call, 6, 1),
        .decay = (float)pen_node_float(node, "weight_decay"),
        .momentum = (float)pen_node_float(node, "momentum"),
        .beta2 = (float)alpha,
        .rest2 = (float)(1 - alpha),
        .epsilon = (float)pen_node_float(node, "epsilon"),
    };
    return update_run(call, &s);
}

// ---- averages

static bool optimizer_average_supports(const pen_cpu_request *request) {
    return update_supports(request, PEN_AVERAGE_STEP, UINT32_MAX);
}

static pen_status optimizer_average_prepare(const pen_cpu_request *request, void **out_state,
                                            uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    update_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->node = node;
    state->input_count = node->input_count;
    state->count = pen_shape_element_count(&pen_value_type(request->graph, node->inputs[0])->shape);
    for (uint32_t i = PEN_AVERAGE_STEP; i < node->input_count; i++) {
        if (!pen_value_is(node->inputs[i])) continue;
        state->is_double[i] =
            pen_value_type(request->graph, node->inputs[i])->element == PEN_FLOAT64;
    }
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

// As torch.lerp: from the nearer end. A weight of 1 gives the parameter itself, whatever there was.
static pen_status optimizer_average_run(const pen_cpu_call *call) {
    const update_state *state = call->state;
    const double weight = pen_average_weight(pen_node_float(state->node, "decay"),
                                             (double)pen_node_int(state->node, "from"),
                                             update_scalar(call, PEN_AVERAGE_STEP, 1));
    const float *p = call->inputs[PEN_AVERAGE_PARAMETER], *old = call->inputs[PEN_AVERAGE_OLD];
    float *made = call->outputs[0];
    const bool is_skipped = update_scalar(call, PEN_AVERAGE_SCALE, 1) < 0;
    const bool is_near = is_skipped || weight < 0.5;
    const float share = is_skipped ? 0 : (float)(is_near ? weight : 1 - weight);
#pragma omp parallel for simd schedule(static) if (state->count > UPDATE_TEAM_ELEMENTS)
    for (int64_t k = 0; k < state->count; k++) {
        const float way = p[k] - old[k];
        made[k] = is_near ? old[k] + share * way : p[k] - share * way;
    }
    return PEN_OK;
}

// ---- norms

static bool optimizer_norm_supports(const pen_cpu_request *request) {
    return update_supports(request, 1, PEN_NORM_ROWS);
}

// Workspace: the sums of the blocks; with rows then the lists of these, and a block for each
// thread.
static pen_status optimizer_norm_prepare(const pen_cpu_request *request, void **out_state,
                                         uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    update_state *state;
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
        *out_workspace_bytes += update_set_rows(request, &shape, PEN_NORM_ROWS, state);
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
    const update_state *state = call->state;
    const int64_t length = state->row_length;
    bool any = false;
    for (int64_t row = first / length; row * length < last; row++) {
        if (heads[row] < 0) continue;
        if (!any) memset(block, 0, (size_t)(last - first) * sizeof *block);
        any = true;
        const int64_t at = row * length;
        const int64_t from = at > first ? at : first;
        const int64_t to = at + length < last ? at + length : last;
        update_add_row(state, call->inputs[0], heads, (update_part){row, from - at, to - from},
                       block + (from - first));
    }
    return any ? optimizer_norm_block(block, last - first) : 0;
}

// Blocks of fixed size, added in order: the norm is the same wherever the gradient was made.
static pen_status optimizer_norm_run(const pen_cpu_call *call) {
    const update_state *state = call->state;
    const float *x = call->inputs[0];
    double *sums = call->workspace;
    const int64_t size = PEN_NORM_BLOCK_ELEMENTS, blocks = (state->count + size - 1) / size;
    int32_t *heads = (int32_t *)(void *)(sums + blocks);
    float *lanes = (float *)(void *)(heads + state->row_count + state->index_count);
    if (state->has_rows) {
        PEN_TRY(
            update_list_rows(state, call->inputs[PEN_NORM_ROWS], heads, heads + state->row_count));
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
    {PEN_CPU_ENTRY("sgd_update", "cpu", update_supports_node, update_prepare, optimizer_sgd_run)},
    {PEN_CPU_ENTRY("rmsprop_update", "cpu", update_supports_node, update_prepare,
                   optimizer_rmsprop_run)},
    {PEN_CPU_ENTRY("average_update", "cpu", optimizer_average_supports, optimizer_average_prepare,
                   optimizer_average_run)},
    {PEN_CPU_ENTRY("squared_norm", "cpu", optimizer_norm_supports, optimizer_norm_prepare,
                   optimizer_norm_run)},
};

PEN_CPU_FAMILY_OF(optimizer);
