// Updates of parameters in one pass over memory. The formulas are at the top of
// graph/ops/optimizer_op.c.
#include "device/cpu/cpu_kernel.h"
#include "graph/ops/optimizer_op.h"

#include <math.h>

#define OPTIMIZER_TEAM_ELEMENTS 16384

typedef struct optimizer_state {
    int64_t count;
    // SGD
    float momentum, weight_decay;
    bool nesterov;
    // Adam
    double beta1, beta2;
    float epsilon;
    double weight_decay_double;
    bool decoupled;
    // elements of the scalar operands, by input: float64, else float32
    bool is_double[8];
} optimizer_state;

static bool optimizer_is_float(const pen_cpu_request *request, pen_value_id id) {
    if (!pen_value_is(id)) return true;
    const pen_value *value = pen_graph_value(request->graph, id);
    return value->type.element == PEN_FLOAT32 && value->layout == PEN_LAYOUT_PLAIN;
}

// Tensors are float32; scalars (the learning rate, …) may also be float64.
static bool optimizer_supports(const pen_cpu_request *request, uint32_t tensor_count) {
    for (uint32_t i = 0; i < tensor_count && i < request->node->input_count; i++) {
        if (!optimizer_is_float(request, request->node->inputs[i])) return false;
    }
    return true;
}

static bool optimizer_sgd_supports(const pen_cpu_request *request) {
    return optimizer_supports(request, 3);
}

static bool optimizer_adam_supports(const pen_cpu_request *request) {
    return optimizer_supports(request, 4);
}

static pen_status optimizer_make_state(const pen_cpu_request *request,
                                       optimizer_state **out_state) {
    optimizer_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    const pen_node *node = request->node;
    state->count = pen_shape_element_count(&pen_value_type(request->graph, node->inputs[0])->shape);
    for (uint32_t i = 0; i < node->input_count && i < 8; i++) {
        state->is_double[i] =
            pen_value_is(node->inputs[i]) &&
            pen_value_type(request->graph, node->inputs[i])->element == PEN_FLOAT64;
    }
    *out_state = state;
    return PEN_OK;
}

static double optimizer_scalar(const pen_cpu_call *call, const optimizer_state *state,
                               uint32_t input, uint32_t input_count, double otherwise) {
    if (input >= input_count || call->inputs[input] == NULL) return otherwise;
    return state->is_double[input] ? *(const double *)call->inputs[input]
                                   : (double)*(const float *)call->inputs[input];
}

typedef struct optimizer_sgd_state {
    optimizer_state base;
    uint32_t input_count;
    bool gives_velocity;
} optimizer_sgd_state;

static pen_status optimizer_sgd_prepare(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    optimizer_sgd_state *state;
    optimizer_state *base;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    PEN_TRY(optimizer_make_state(request, &base));
    state->base = *base;
    state->base.momentum = (float)pen_node_float(node, "momentum");
    state->base.weight_decay = (float)pen_node_float(node, "weight_decay");
    state->base.nesterov = pen_node_int(node, "nesterov") != 0;
    state->input_count = node->input_count;
    state->gives_velocity = node->output_count > 1 && pen_value_is(node->outputs[1]);
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

typedef struct optimizer_sgd {
    const float *p, *g, *v; // v NULL: no momentum
    float *p_new, *v_new;   // v_new NULL: not kept
    float rate, scale, momentum, weight_decay;
    bool nesterov;
} optimizer_sgd;

static void optimizer_sgd_plain(const optimizer_sgd *s, int64_t count) {
    const float *p = s->p, *gradient = s->g;
    float *p_new = s->p_new;
    const float rate = s->rate, scale = s->scale, decay = s->weight_decay;
#pragma omp parallel for simd schedule(static) if (count > OPTIMIZER_TEAM_ELEMENTS)
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        p_new[k] = p[k] - rate * g;
    }
}

static void optimizer_sgd_momentum(const optimizer_sgd *s, int64_t count) {
    const float *p = s->p, *gradient = s->g, *v = s->v;
    float *p_new = s->p_new, *v_new = s->v_new;
    const float rate = s->rate, scale = s->scale, decay = s->weight_decay, mu = s->momentum;
    const float ahead = s->nesterov ? mu : 1, own = s->nesterov ? 1 : 0;
    // step = nesterov ? g + momentum * v' : v'
#pragma omp parallel for simd schedule(static) if (count > OPTIMIZER_TEAM_ELEMENTS)
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float velocity = mu * v[k] + g;
        const float step = own * g + ahead * velocity;
        v_new[k] = velocity;
        p_new[k] = p[k] - rate * step;
    }
}

// The velocity is read, but not kept.
static void optimizer_sgd_forgetful(const optimizer_sgd *s, int64_t count) {
    const float ahead = s->nesterov ? s->momentum : 1, own = s->nesterov ? 1 : 0;
    for (int64_t k = 0; k < count; k++) {
        const float g = s->g[k] * s->scale + s->weight_decay * s->p[k];
        s->p_new[k] = s->p[k] - s->rate * (own * g + ahead * (s->momentum * s->v[k] + g));
    }
}

static pen_status optimizer_sgd_run(const pen_cpu_call *call) {
    const optimizer_sgd_state *state = call->state;
    const optimizer_state *base = &state->base;
    const optimizer_sgd s = {
        .p = call->inputs[0],
        .g = call->inputs[1],
        .v = call->inputs[2],
        .p_new = call->outputs[0],
        .v_new = state->gives_velocity ? call->outputs[1] : NULL,
        .rate = (float)optimizer_scalar(call, base, 3, state->input_count, 0),
        .scale = (float)optimizer_scalar(call, base, 4, state->input_count, 1),
        .momentum = base->momentum,
        .weight_decay = base->weight_decay,
        .nesterov = base->nesterov,
    };
    if (s.v == NULL) {
        optimizer_sgd_plain(&s, base->count);
    } else if (s.v_new != NULL) {
        optimizer_sgd_momentum(&s, base->count);
    } else {
        optimizer_sgd_forgetful(&s, base->count);
    }
    return PEN_OK;
}

static pen_status optimizer_adam_prepare(const pen_cpu_request *request, void **out_state,
                                         uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    optimizer_sgd_state *state;
    optimizer_state *base;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    PEN_TRY(optimizer_make_state(request, &base));
    state->base = *base;
    state->base.beta1 = pen_node_float(node, "beta1");
    state->base.beta2 = pen_node_float(node, "beta2");
    state->base.epsilon = (float)pen_node_float(node, "epsilon");
    state->base.weight_decay_double = pen_node_float(node, "weight_decay");
    state->base.decoupled = pen_node_int(node, "decoupled") != 0;
    state->input_count = node->input_count;
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static pen_status optimizer_adam_run(const pen_cpu_call *call) {
    const optimizer_sgd_state *state = call->state;
    const optimizer_state *base = &state->base;
    const double rate = optimizer_scalar(call, base, 4, state->input_count, 0);
    const double step = optimizer_scalar(call, base, 5, state->input_count, 1);
    const float scale = (float)optimizer_scalar(call, base, 6, state->input_count, 1);
    const float step_size = (float)(rate / (1 - pow(base->beta1, step)));
    const float correction = (float)(1 / sqrt(1 - pow(base->beta2, step)));
    const float keep = base->decoupled ? (float)(1 - rate * base->weight_decay_double) : 1;
    const float decay = base->decoupled ? 0 : (float)base->weight_decay_double;
    const float beta1 = (float)base->beta1, rest1 = (float)(1 - base->beta1);
    const float beta2 = (float)base->beta2, rest2 = (float)(1 - base->beta2);
    const float epsilon = base->epsilon;
    const float *p = call->inputs[0], *gradient = call->inputs[1];
    const float *m = call->inputs[2], *v = call->inputs[3];
    float *p_new = call->outputs[0], *m_new = call->outputs[1], *v_new = call->outputs[2];
    const int64_t count = base->count;
#pragma omp parallel for simd schedule(static) if (count > OPTIMIZER_TEAM_ELEMENTS)
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float first = beta1 * m[k] + rest1 * g;
        const float second = beta2 * v[k] + rest2 * g * g;
        m_new[k] = first;
        v_new[k] = second;
        p_new[k] = p[k] * keep - step_size * first / (sqrtf(second) * correction + epsilon);
    }
    return PEN_OK;
}

typedef struct optimizer_norm_state {
    int64_t count;
    int64_t block_count;
} optimizer_norm_state;

static pen_status optimizer_norm_prepare(const pen_cpu_request *request, void **out_state,
                                         uint64_t *out_workspace_bytes) {
    optimizer_norm_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->count =
        pen_shape_element_count(&pen_value_type(request->graph, request->node->inputs[0])->shape);
    state->block_count = (state->count + PEN_NORM_BLOCK_ELEMENTS - 1) / PEN_NORM_BLOCK_ELEMENTS;
    *out_state = state;
    *out_workspace_bytes = (uint64_t)state->block_count * sizeof(double);
    return PEN_OK;
}

static pen_status optimizer_norm_run(const pen_cpu_call *call) {
    const optimizer_norm_state *state = call->state;
    const float *x = call->inputs[0];
    double *sums = call->workspace;
    const int64_t blocks = state->block_count;
#pragma omp parallel for schedule(static) if (blocks > 4)
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t first = block * PEN_NORM_BLOCK_ELEMENTS;
        const int64_t rest = state->count - first;
        const int64_t size = rest < PEN_NORM_BLOCK_ELEMENTS ? rest : PEN_NORM_BLOCK_ELEMENTS;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t k = 0; k < size; k++) {
            sum += (double)x[first + k] * (double)x[first + k];
        }
        sums[block] = sum;
    }
    *(float *)call->outputs[0] = (float)pen_norm_add_pairs(sums, (size_t)blocks);
    return PEN_OK;
}

static const pen_cpu_kernel optimizer_kernels[] = {
    {
        .op_name = "sgd_update",
        .name = "cpu",
        .supports = optimizer_sgd_supports,
        .prepare = optimizer_sgd_prepare,
        .run = optimizer_sgd_run,
    },
    {
        .op_name = "adam_update",
        .name = "cpu",
        .supports = optimizer_adam_supports,
        .prepare = optimizer_adam_prepare,
        .run = optimizer_adam_run,
    },
    {
        .op_name = "squared_norm",
        .name = "cpu",
        .prepare = optimizer_norm_prepare,
        .run = optimizer_norm_run,
    },
};

extern const pen_cpu_family PEN_CPU_FAMILY(optimizer);
const pen_cpu_family PEN_CPU_FAMILY(optimizer) = {optimizer_kernels, sizeof optimizer_kernels /
                                                                         sizeof *optimizer_kernels};
