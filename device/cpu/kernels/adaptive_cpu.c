// Optimizers that adapt the step to each element, but RMSprop (optimizer_cpu.c). The formulas are
// at the top of graph/ops/training/optimizer_op.c.
//
// What is the same for all elements is folded into factors in double, once for a run.
#include <math.h>

#include "device/cpu/kernels/loops/update_walk.h"
#include "graph/ops/training/optimizer_op.h"

static float adaptive_number(const pen_cpu_call *call, const char *attribute) {
    return (float)pen_node_float(((const update_state *)call->state)->node, attribute);
}

// What every update has. The first state is `m`, unless the optimizer says otherwise; decoupled: of
// the weight decay.
static update_step adaptive_step(const pen_cpu_call *call, update_span_fn span, bool decoupled) {
    const pen_node *node = ((const update_state *)call->state)->node;
    const pen_op_update *at = &node->op->update;
    const double rate = update_rate(call);
    const double decay = pen_node_float(node, "weight_decay");
    const bool has_second = at->rate - at->state > 1;
    return (update_step){
        .span = span,
        .p = call->inputs[0],
        .m = call->inputs[at->state],
        .v = has_second ? call->inputs[at->state + 1] : NULL,
        .p_new = call->outputs[0],
        .m_new = call->outputs[1],
        .v_new = has_second ? call->outputs[2] : NULL,
        .rate = (float)rate,
        .scale = (float)update_scalar(call, at->scale, 1),
        .decay = decoupled ? 0 : (float)decay,
        .keep = decoupled ? (float)(1 - rate * decay) : 1,
    };
}

// What those that are like Adam have beside it, in double.
typedef struct adaptive_moments {
    double rate, step, beta1, beta2;
    double correction1, correction2; // 1 - beta^step
} adaptive_moments;

static adaptive_moments adaptive_read(const pen_cpu_call *call, update_step *s) {
    const pen_node *node = ((const update_state *)call->state)->node;
    const pen_op_update *at = &node->op->update;
    const double beta1 = pen_node_float(node, "beta1"), beta2 = pen_node_float(node, "beta2");
    const double step = at->step == 0 ? 1 : update_scalar(call, at->step, 1);
    s->beta1 = (float)beta1;
    s->rest1 = (float)(1 - beta1);
    s->beta2 = (float)beta2;
    s->rest2 = (float)(1 - beta2);
    return (adaptive_moments){.rate = update_rate(call),
                              .step = step,
                              .beta1 = beta1,
                              .beta2 = beta2,
                              .correction1 = 1 - pow(beta1, step),
                              .correction2 = 1 - pow(beta2, step)};
}

// ---- without moments

static void adaptive_adagrad(const update_step *s, int64_t first, int64_t count,
                             const float *gradient) {
    const float *p = s->p + first, *m = s->m + first;
    float *p_new = s->p_new + first, *m_new = s->m_new + first;
    const float scale = s->scale, decay = s->decay, rate = s->step_size, epsilon = s->epsilon;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float sum = m[k] + g * g;
        m_new[k] = sum;
        p_new[k] = p[k] - rate * g / (sqrtf(sum) + epsilon);
    }
}

static pen_status adaptive_adagrad_run(const pen_cpu_call *call) {
    const pen_node *node = ((const update_state *)call->state)->node;
    const pen_op_update *at = &node->op->update;
    const double step = update_scalar(call, at->step, 1);
    const double slower = 1 + (step - 1) * pen_node_float(node, "lr_decay");
    update_step s = adaptive_step(call, adaptive_adagrad, false);
    s.step_size = (float)(update_rate(call) / slower);
    s.epsilon = adaptive_number(call, "epsilon");
    s.may_skip = s.decay == 0 && s.p_new == s.p && s.m_new == s.m;
    return update_run(call, &s);
}

// m: the average of squared gradients, v: that of squared steps.
static void adaptive_adadelta(const update_step *s, int64_t first, int64_t count,
                              const float *gradient) {
    const float *p = s->p + first, *m = s->m + first, *v = s->v + first;
    float *p_new = s->p_new + first, *m_new = s->m_new + first, *v_new = s->v_new + first;
    const float scale = s->scale, decay = s->decay, rate = s->rate, epsilon = s->epsilon;
    const float rho = s->beta2, rest = s->rest2;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float square = rho * m[k] + rest * g * g;
        const float step = sqrtf(v[k] + epsilon) / sqrtf(square + epsilon) * g;
        m_new[k] = square;
        v_new[k] = rho * v[k] + rest * step * step;
        p_new[k] = p[k] - rate * step;
    }
}

static pen_status adaptive_adadelta_run(const pen_cpu_call *call) {
    const pen_node *node = ((const update_state *)call->state)->node;
    const double rho = pen_node_float(node, "rho");
    update_step s = adaptive_step(call, adaptive_adadelta, false);
    s.beta2 = (float)rho;
    s.rest2 = (float)(1 - rho);
    s.epsilon = adaptive_number(call, "epsilon");
    return update_run(call, &s);
}

// ---- with them

static bool adaptive_is_decoupled(const pen_cpu_call *call) {
    return pen_node_int(((const update_state *)call->state)->node, "decoupled") != 0;
}

static void adaptive_adam(const update_step *s, int64_t first, int64_t count,
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

static pen_status adaptive_adam_run(const pen_cpu_call *call) {
    update_step s = adaptive_step(call, adaptive_adam, adaptive_is_decoupled(call));
    const adaptive_moments n = adaptive_read(call, &s);
    s.step_size = (float)(n.rate / n.correction1);
    s.correction = (float)(1 / sqrt(n.correction2));
    s.epsilon = adaptive_number(call, "epsilon");
    return update_run(call, &s);
}

// v: the largest gradient.
static void adaptive_adamax(const update_step *s, int64_t first, int64_t count,
                            const float *gradient) {
    const float *p = s->p + first, *m = s->m + first, *v = s->v + first;
    float *p_new = s->p_new + first, *m_new = s->m_new + first, *v_new = s->v_new + first;
    const float scale = s->scale, decay = s->decay, rate = s->step_size, epsilon = s->epsilon;
    const float beta1 = s->beta1, rest1 = s->rest1, beta2 = s->beta2;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float mean = beta1 * m[k] + rest1 * g;
        const float old = beta2 * v[k], own = fabsf(g) + epsilon;
        const float largest = old > own ? old : own; // what is no number stays visible
        m_new[k] = mean;
        v_new[k] = largest;
        p_new[k] = p[k] - rate * mean / largest;
    }
}

static pen_status adaptive_adamax_run(const pen_cpu_call *call) {
    update_step s = adaptive_step(call, adaptive_adamax, false);
    const adaptive_moments n = adaptive_read(call, &s);
    s.step_size = (float)(n.rate / n.correction1);
    s.epsilon = adaptive_number(call, "epsilon");
    return update_run(call, &s);
}

// own: how far the step goes along the gradient itself.
static void adaptive_nadam(const update_step *s, int64_t first, int64_t count,
                           const float *gradient) {
    const float *p = s->p + first, *m = s->m + first, *v = s->v + first;
    float *p_new = s->p_new + first, *m_new = s->m_new + first, *v_new = s->v_new + first;
    const float scale = s->scale, decay = s->decay, keep = s->keep, epsilon = s->epsilon;
    const float beta1 = s->beta1, rest1 = s->rest1, beta2 = s->beta2, rest2 = s->rest2;
    const float step_size = s->step_size, correction = s->correction, own = s->own;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float mean = beta1 * m[k] + rest1 * g;
        const float second = beta2 * v[k] + rest2 * g * g;
        m_new[k] = mean;
        v_new[k] = second;
        p_new[k] =
            p[k] * keep - (own * g + step_size * mean) / (sqrtf(second) * correction + epsilon);
    }
}

static pen_status adaptive_nadam_run(const pen_cpu_call *call) {
    const pen_node *node = ((const update_state *)call->state)->node;
    update_step s = adaptive_step(call, adaptive_nadam, adaptive_is_decoupled(call));
    const adaptive_moments n = adaptive_read(call, &s);
    const pen_nadam_momentum u =
        pen_nadam_momentum_of(n.beta1, pen_node_float(node, "momentum_decay"), n.step);
    s.own = (float)(n.rate * (1 - u.now) / (1 - u.product));
    s.step_size = (float)(n.rate * u.next / (1 - u.product * u.next));
    s.correction = (float)(1 / sqrt(n.correction2));
    s.epsilon = adaptive_number(call, "epsilon");
    return update_run(call, &s);
}

static void adaptive_radam(const update_step *s, int64_t first, int64_t count,
                           const float *gradient) {
    const float *p = s->p + first, *m = s->m + first, *v = s->v + first;
    float *p_new = s->p_new + first, *m_new = s->m_new + first, *v_new = s->v_new + first;
    const float scale = s->scale, decay = s->decay, keep = s->keep, epsilon = s->epsilon;
    const float beta1 = s->beta1, rest1 = s->rest1, beta2 = s->beta2, rest2 = s->rest2;
    const float step_size = s->step_size;
    const bool divides = s->own != 0;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale + decay * p[k];
        const float mean = beta1 * m[k] + rest1 * g;
        const float second = beta2 * v[k] + rest2 * g * g;
        const float step = step_size * mean;
        m_new[k] = mean;
        v_new[k] = second;
        p_new[k] = p[k] * keep - (divides ? step / (sqrtf(second) + epsilon) : step);
    }
}

static pen_status adaptive_radam_run(const pen_cpu_call *call) {
    update_step s = adaptive_step(call, adaptive_radam, adaptive_is_decoupled(call));
    const adaptive_moments n = adaptive_read(call, &s);
    const double rectifier = pen_radam_rectifier(n.beta2, n.step);
    s.own = rectifier > 0 ? 1 : 0;
    s.step_size = (float)(n.rate / n.correction1);
    if (rectifier > 0) {
        s.step_size = (float)(n.rate / n.correction1 * sqrt(n.correction2) * rectifier);
    }
    s.epsilon = adaptive_number(call, "epsilon");
    return update_run(call, &s);
}

static void adaptive_lion(const update_step *s, int64_t first, int64_t count,
                          const float *gradient) {
    const float *p = s->p + first, *m = s->m + first;
    float *p_new = s->p_new + first, *m_new = s->m_new + first;
    const float scale = s->scale, keep = s->keep, rate = s->rate;
    const float beta1 = s->beta1, rest1 = s->rest1, beta2 = s->beta2, rest2 = s->rest2;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale;
        const float u = beta1 * m[k] + rest1 * g;
        const float down = u < 0 ? -1 : u; // what is no number stays so
        const float sign = u > 0 ? 1 : down;
        m_new[k] = beta2 * m[k] + rest2 * g;
        p_new[k] = p[k] * keep - rate * sign;
    }
}

static pen_status adaptive_lion_run(const pen_cpu_call *call) {
    update_step s = adaptive_step(call, adaptive_lion, true);
    (void)adaptive_read(call, &s);
    return update_run(call, &s);
}

// ---- LAMB: moments, norms of blocks, and then the step, made of the moments both times

static void adaptive_lamb_moments(const update_step *s, int64_t first, int64_t count,
                                  const float *gradient) {
    const float *m = s->m + first, *v = s->v + first;
    float *m_new = s->m_new + first, *v_new = s->v_new + first;
    const float scale = s->scale;
    const float beta1 = s->beta1, rest1 = s->rest1, beta2 = s->beta2, rest2 = s->rest2;
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const float g = gradient[k] * scale;
        m_new[k] = beta1 * m[k] + rest1 * g;
        v_new[k] = beta2 * v[k] + rest2 * g * g;
    }
}

static inline float adaptive_lamb_direction(update_step s, int64_t k) {
    return s.step_size * s.m_new[k] / (sqrtf(s.v_new[k]) * s.correction + s.epsilon) +
           s.decay * s.p[k];
}

static void adaptive_lamb_norms(const update_step *whole, int64_t first, int64_t count,
                                double out_norms[2]) {
    const update_step s = *whole; // which nothing that is written can be a part of
    double parameter = 0, step = 0;
#pragma omp simd reduction(+ : parameter, step)
    for (int64_t k = first; k < first + count; k++) {
        const double p = (double)s.p[k], u = (double)adaptive_lamb_direction(s, k);
        parameter += p * p;
        step += u * u;
    }
    out_norms[0] = parameter;
    out_norms[1] = step;
}

static void adaptive_lamb_apply(const update_step *whole, int64_t first, int64_t count,
                                float rate) {
    const update_step s = *whole;
#pragma omp simd
    for (int64_t k = first; k < first + count; k++) {
        s.p_new[k] = s.p[k] - rate * adaptive_lamb_direction(s, k);
    }
}

// Workspace: the sums of the blocks, of parameter and step.
static pen_status adaptive_lamb_prepare(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes) {
    PEN_TRY(update_prepare(request, out_state, out_workspace_bytes));
    const update_state *state = *out_state;
    const int64_t blocks = (state->count + PEN_NORM_BLOCK_ELEMENTS - 1) / PEN_NORM_BLOCK_ELEMENTS;
    *out_workspace_bytes = state->own_offset + (uint64_t)blocks * 2 * sizeof(double);
    return PEN_OK;
}

// Blocks of fixed size, added in order: the norms are the same on any number of threads.
static pen_status adaptive_lamb_run(const pen_cpu_call *call) {
    const update_state *state = call->state;
    update_step s = adaptive_step(call, adaptive_lamb_moments, false);
    const adaptive_moments n = adaptive_read(call, &s);
    const int64_t size = PEN_NORM_BLOCK_ELEMENTS, blocks = (state->count + size - 1) / size;
    double *sums = (double *)(void *)((char *)call->workspace + state->own_offset);
    s.step_size = (float)(1 / n.correction1);
    s.correction = (float)(1 / sqrt(n.correction2));
    s.epsilon = adaptive_number(call, "epsilon");
    if (update_is_kept(call)) return PEN_OK;
    PEN_TRY(update_run(call, &s));
#pragma omp parallel for schedule(static) if (blocks > 4)
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t rest = state->count - b * size;
        double norms[2];
        adaptive_lamb_norms(&s, b * size, rest < size ? rest : size, norms);
        sums[b] = norms[0];
        sums[blocks + b] = norms[1];
    }
    const double ratio = pen_lamb_ratio(pen_norm_add_pairs(sums, (size_t)blocks),
                                        pen_norm_add_pairs(sums + blocks, (size_t)blocks));
#pragma omp parallel for schedule(static) if (blocks > 4)
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t rest = state->count - b * size;
        adaptive_lamb_apply(&s, b * size, rest < size ? rest : size, (float)(n.rate * ratio));
    }
    return PEN_OK;
}

#define ADAPTIVE_ENTRY(name)                                                                       \
    {                                                                                              \
        PEN_CPU_ENTRY(#name "_update", "cpu", update_supports_node, update_prepare,                \
                      adaptive_##name##_run)                                                       \
    }

static const pen_cpu_kernel adaptive_kernels[] = {
    ADAPTIVE_ENTRY(adagrad),
    ADAPTIVE_ENTRY(adadelta),
    ADAPTIVE_ENTRY(adam),
    ADAPTIVE_ENTRY(adamax),
    ADAPTIVE_ENTRY(nadam),
    ADAPTIVE_ENTRY(radam),
    ADAPTIVE_ENTRY(lion),
    {PEN_CPU_ENTRY("lamb_update", "cpu", update_supports_node, adaptive_lamb_prepare,
                   adaptive_lamb_run)},
};

PEN_CPU_FAMILY_OF(adaptive);
