// Dropout.
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/loops/random_lines.h"
#include "graph/graph.h"
#include "graph/op.h"

#define DROPOUT_TEAM_ELEMENTS 8192
#define DROPOUT_PIECE 4096

typedef struct dropout_state {
    const pen_node *node;
    int64_t count;
    bool drops;
    float threshold; // smallest number that is kept, exactly
    float keep;      // 1 - ratio
    bool has_seed;
    uint64_t seed;
} dropout_state;

static bool dropout_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const pen_value *x = pen_graph_value(request->graph, node->inputs[0]);
    const pen_value *y = pen_graph_value(request->graph, node->outputs[0]);
    // in the plain layout alone: which element gets which number is part of what dropout means
    return x->type.element == PEN_FLOAT32 && x->layout == PEN_LAYOUT_PLAIN &&
           y->layout == PEN_LAYOUT_PLAIN;
}

static pen_status dropout_read_ratio(const pen_cpu_request *request, double *out_ratio) {
    const pen_node *node = request->node;
    double training = 0;
    *out_ratio = 0;
    if (node->input_count > 2 && pen_value_is(node->inputs[2])) {
        PEN_TRY(pen_value_read_number(request->graph, node->inputs[2], &training));
    }
    if (training == 0) return PEN_OK;
    *out_ratio = 0.5;
    if (!pen_value_is(node->inputs[1])) return PEN_OK;
    return pen_value_read_number(request->graph, node->inputs[1], out_ratio);
}

static pen_status dropout_prepare(const pen_cpu_request *request, void **out_state,
                                  uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    dropout_state *state;
    double ratio;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    PEN_TRY(dropout_read_ratio(request, &ratio));
    state->node = node;
    state->drops = ratio != 0;
    state->threshold = random_threshold(ratio);
    state->keep = (float)(1 - ratio);
    state->count = pen_shape_element_count(&pen_value_type(request->graph, node->inputs[0])->shape);
    state->has_seed = pen_node_has(node, "seed");
    if (state->has_seed) state->seed = (uint64_t)pen_node_int(node, "seed");
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

// Elements [first, last); first is a multiple of RANDOM_LINE. `mask` may be NULL.
static void dropout_piece(const dropout_state *state, pen_random_key key, const float *x, float *y,
                          uint8_t *mask, const int64_t range[2]) {
    const float keep = state->keep;
    const float threshold = state->threshold;
    for (int64_t at = range[0]; at < range[1]; at += RANDOM_LINE) {
        float uniform[RANDOM_LINE];
        random_line(key, (uint64_t)at / 4, uniform);
        const int64_t rest = range[1] - at;
        const int64_t size = rest < RANDOM_LINE ? rest : RANDOM_LINE;
        for (int64_t i = 0; i < size; i++) {
            const int keeps = uniform[i] >= threshold;
            y[at + i] = keeps ? x[at + i] / keep : 0.0f;
        }
        for (int64_t i = 0; mask != NULL && i < size; i++) {
            mask[at + i] = uniform[i] >= threshold;
        }
    }
}

// The mask follows from seed, node, step and microbatch by counters, so pieces can be made in any
// order by any thread.
static pen_status dropout_run(const pen_cpu_call *call) {
    const dropout_state *state = call->state;
    const float *x = call->inputs[0];
    float *y = call->outputs[0];
    uint8_t *mask = state->node->output_count > 1 ? call->outputs[1] : NULL;
    if (!state->drops) {
        if (state->count > 0) memmove(y, x, (size_t)state->count * sizeof *y);
        if (mask != NULL) memset(mask, 1, (size_t)state->count);
        return PEN_OK;
    }
    const pen_random_key key = {
        state->has_seed ? state->seed : call->run->seed,
        pen_random_stream(pen_node_stream(state->node), call->run->step, call->run->microbatch)};
#pragma omp parallel for schedule(static) if (state->count > DROPOUT_TEAM_ELEMENTS)
    for (int64_t first = 0; first < state->count; first += DROPOUT_PIECE) {
        const int64_t last = first + DROPOUT_PIECE;
        const int64_t range[2] = {first, last < state->count ? last : state->count};
        dropout_piece(state, key, x, y, mask, range);
    }
    return PEN_OK;
}

static pen_status dropout_backward_prepare(const pen_cpu_request *request, void **out_state,
                                           uint64_t *out_workspace_bytes) {
    dropout_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->node = request->node;
    state->keep = (float)(1 - pen_node_float(request->node, "ratio"));
    state->count =
        pen_shape_element_count(&pen_value_type(request->graph, request->node->inputs[0])->shape);
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static pen_status dropout_backward_run(const pen_cpu_call *call) {
    const dropout_state *state = call->state;
    const float *dy = call->inputs[0];
    const uint8_t *mask = call->inputs[1];
    float *dx = call->outputs[0];
    const float keep = state->keep;
#pragma omp parallel for simd schedule(static) if (state->count > 4 * DROPOUT_TEAM_ELEMENTS)
    for (int64_t i = 0; i < state->count; i++) {
        dx[i] = mask[i] != 0 ? dy[i] / keep : 0.0f;
    }
    return PEN_OK;
}

static const pen_cpu_kernel dropout_kernels[] = {
    {PEN_CPU_ENTRY("dropout", "cpu", dropout_supports, dropout_prepare, dropout_run)},
    {PEN_CPU_ENTRY("dropout_backward", "cpu", dropout_supports, dropout_backward_prepare,
                   dropout_backward_run)},
};

PEN_CPU_FAMILY_OF(dropout);
