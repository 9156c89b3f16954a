#include "device/cpu/kernels/loops/recurrent_plan.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "device/cpu/gemm_parts.h"
#include "device/cpu/kernels/loops/packed_panels.h"
#include "device/cpu/onednn/onednn_gemm.h"
#include "graph/graph.h"

#define RECURRENT_TEAM_FLOPS 1000000 // of a step

static bool recurrent_is_plain(const pen_cpu_request *request, pen_value_id id, bool is_length) {
    if (!pen_value_is(id)) return true;
    const pen_value *value = pen_graph_value(request->graph, id);
    if (value->layout != PEN_LAYOUT_PLAIN) return false;
    return is_length ? value->type.element == PEN_INT32 || value->type.element == PEN_INT64
                     : value->type.element == PEN_FLOAT32;
}

static bool recurrent_is_default(const pen_recurrent_geometry *g, int which,
                                 pen_recurrent_function function) {
    for (int64_t d = 0; d < g->directions; d++) {
        if (g->activations[d][which].function != function) return false;
    }
    return true;
}

static bool recurrent_is_usual(const pen_recurrent_geometry *g) {
    if (g->clip < (double)INFINITY || g->input_forget) return false;
    switch (g->kind) {
    case PEN_RECURRENT_RNN:
        return recurrent_is_default(g, 0, PEN_RECURRENT_TANH) ||
               recurrent_is_default(g, 0, PEN_RECURRENT_RELU);
    case PEN_RECURRENT_GRU:
        return recurrent_is_default(g, 0, PEN_RECURRENT_SIGMOID) &&
               recurrent_is_default(g, 1, PEN_RECURRENT_TANH);
    case PEN_RECURRENT_LSTM:
        return recurrent_is_default(g, 0, PEN_RECURRENT_SIGMOID) &&
               recurrent_is_default(g, 1, PEN_RECURRENT_TANH) &&
               recurrent_is_default(g, 2, PEN_RECURRENT_TANH);
    }
    return false;
}

static bool recurrent_supports(const pen_cpu_request *request, uint32_t lengths) {
    const pen_node *node = request->node;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!recurrent_is_plain(request, node->inputs[i], i == lengths)) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!recurrent_is_plain(request, node->outputs[i], false)) return false;
    }
    pen_recurrent_geometry g;
    const pen_status status = pen_recurrent_geometry_of(request->graph, node, &g);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the fallback reports it");
        return false;
    }
    const int64_t most = INT_MAX;
    const bool fits = g.steps > 0 && g.batch > 0 && g.inputs > 0 && g.steps <= most / g.batch &&
                      g.inputs <= most && g.hidden <= most / 8;
    return fits;
}

bool recurrent_forward_supports(const pen_cpu_request *request) {
    return recurrent_supports(request, PEN_RECURRENT_LENGTHS);
}

bool recurrent_backward_supports(const pen_cpu_request *request) {
    return recurrent_supports(request, PEN_RECURRENT_BACKWARD_LENGTHS);
}

// Takes `floats` of the workspace; every part begins at a cache line.
static int64_t recurrent_take(recurrent_plan *plan, int64_t floats) {
    const int64_t at = plan->total;
    plan->total += (floats + 15) / 16 * 16;
    return at;
}

// What lies where in the workspace, for both passes.
static pen_status recurrent_plan_make(const pen_cpu_request *request, uint32_t lengths,
                                      uint32_t peepholes, recurrent_plan **out_plan) {
    const pen_node *node = request->node;
    recurrent_plan *plan;
    PEN_TRY(PEN_NEW(request->arena, 1, &plan));
    PEN_TRY(pen_recurrent_geometry_of(request->graph, node, &plan->g));
    const pen_recurrent_geometry *g = &plan->g;
    plan->input_count = node->input_count;
    plan->output_count = node->output_count;
    const bool peeps = peepholes < node->input_count && pen_value_is(node->inputs[peepholes]);
    plan->is_unusual = !recurrent_is_usual(g) || (g->kind == PEN_RECURRENT_LSTM && peeps);
    plan->relu = g->activations[0][0].function == PEN_RECURRENT_RELU;
    plan->slots = g->saved > 0 ? g->saved : 1;
    plan->resets_first = g->kind == PEN_RECURRENT_GRU && !g->linear_before_reset;
    plan->panels = panel_count(g->hidden);
    const double flops =
        2.0 * (double)g->batch * (double)g->gates * (double)g->hidden * (double)g->hidden;
    plan->wants_team = request->thread_count > 1 && flops > RECURRENT_TEAM_FLOPS;
    if (lengths < node->input_count && pen_value_is(node->inputs[lengths])) {
        plan->wide_lengths =
            pen_value_type(request->graph, node->inputs[lengths])->element == PEN_INT64;
    }
    const int64_t states = g->batch * g->hidden;
    plan->lengths = recurrent_take(plan, 2 * g->batch);
    if (g->is_batch_first) plan->x = recurrent_take(plan, g->steps * g->batch * g->inputs);
    plan->packed = recurrent_take(plan, plan->panels * PANEL_WIDTH * g->gates * g->hidden);
    plan->bias = recurrent_take(plan, plan->slots * g->hidden);
    plan->h = recurrent_take(plan, 2 * states);
    const bool has_c = g->kind == PEN_RECURRENT_LSTM || plan->resets_first;
    plan->c = recurrent_take(plan, has_c ? states : 0);
    *out_plan = plan;
    return PEN_OK;
}

pen_status recurrent_forward_prepare(const pen_cpu_request *request, void **out_state,
                                     uint64_t *out_workspace_bytes) {
    recurrent_plan *plan;
    PEN_TRY(recurrent_plan_make(request, PEN_RECURRENT_LENGTHS, PEN_RECURRENT_PEEPHOLES, &plan));
    const pen_recurrent_geometry *g = &plan->g;
    const uint32_t gates =
        g->kind == PEN_RECURRENT_LSTM ? PEN_RECURRENT_LAST_C + 1 : PEN_RECURRENT_LAST_H + 1;
    const pen_node *node = request->node;
    const bool saves = node->output_count > gates && pen_value_is(node->outputs[gates]);
    const int64_t floats = g->steps * g->batch * plan->slots * g->hidden;
    plan->rows = recurrent_take(plan, saves ? 0 : floats);
    *out_state = plan;
    *out_workspace_bytes = (uint64_t)plan->total * sizeof(float);
    return PEN_OK;
}

pen_status recurrent_backward_prepare(const pen_cpu_request *request, void **out_state,
                                      uint64_t *out_workspace_bytes) {
    recurrent_plan *plan;
    PEN_TRY(recurrent_plan_make(request, PEN_RECURRENT_BACKWARD_LENGTHS,
                                PEN_RECURRENT_BACKWARD_PEEPHOLES, &plan));
    const pen_recurrent_geometry *g = &plan->g;
    const int64_t steps = g->steps * g->batch;
    plan->rows = recurrent_take(plan, steps * plan->slots * g->hidden);
    plan->before = recurrent_take(plan, steps * g->hidden);
    if (g->is_batch_first) plan->dx = recurrent_take(plan, steps * g->inputs);
    *out_state = plan;
    *out_workspace_bytes = (uint64_t)plan->total * sizeof(float);
    return PEN_OK;
}

pen_status recurrent_read_lengths(const recurrent_plan *plan, const void *given,
                                  int64_t *out_lengths) {
    const int64_t steps = plan->g.steps;
    for (int64_t n = 0; n < plan->g.batch; n++) {
        int64_t length = steps;
        if (given != NULL && plan->wide_lengths) length = ((const int64_t *)given)[n];
        if (given != NULL && !plan->wide_lengths) length = ((const int32_t *)given)[n];
        if (length < 0 || length > steps) {
            return pen_error(PEN_INVALID_INPUT,
                             "the length of sequence %" PRId64 " is %" PRId64
                             "; it may be 0 to %" PRId64,
                             n, length, steps);
        }
        out_lengths[n] = length;
    }
    return PEN_OK;
}

void recurrent_pack_forward(const recurrent_plan *plan, const float *r, int64_t d, float *packed) {
    const int64_t h = plan->g.hidden, gates = plan->g.gates;
#pragma omp parallel for schedule(static) if (plan->wants_team)
    for (int64_t i = 0; i < plan->panels * gates; i++) {
        const int64_t gate = i % gates;
        const panel_source source = {
            .from = r + (d * gates + gate) * h * h,
            .row_stride = 1,
            .column_stride = h,
            .rows = h,
            .columns = h,
        };
        panel_pack(&source, i / gates, packed + i * h * PANEL_WIDTH);
    }
}

void recurrent_pack_backward(const recurrent_plan *plan, const float *r, int64_t d, float *packed) {
    const int64_t h = plan->g.hidden, rows = plan->g.gates * h;
    const panel_source source = {
        .from = r + d * rows * h, .row_stride = h, .column_stride = 1, .rows = rows, .columns = h};
#pragma omp parallel for schedule(static) if (plan->wants_team)
    for (int64_t i = 0; i < plan->panels; i++) {
        panel_pack(&source, i, packed + i * rows * PANEL_WIDTH);
    }
}

const float *recurrent_steps_first(const recurrent_plan *plan, const float *x, float *workspace) {
    const pen_recurrent_geometry *g = &plan->g;
    if (!g->is_batch_first) return x;
#pragma omp parallel for schedule(static) if (plan->wants_team)
    for (int64_t t = 0; t < g->steps; t++) {
        for (int64_t n = 0; n < g->batch; n++) {
            memcpy(workspace + (t * g->batch + n) * g->inputs, x + (n * g->steps + t) * g->inputs,
                   (size_t)g->inputs * sizeof(float));
        }
    }
    return workspace;
}

pen_status recurrent_sgemm(const pen_gemm *gemm) {
    return pen_gemm_in_parts(gemm, pen_onednn_sgemm);
}
