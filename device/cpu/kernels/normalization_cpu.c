// Batch normalisation, alone and fused with relu or with an addition and relu.
//
// Statistics: mean and squares about the mean of pieces that fit the first cache, joined as in
// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances", 1979, in double.
#include <math.h>

#include "device/cpu/kernels/loops/norm_segments.h"
#include "device/running_statistic.h"
#include "graph/graph.h"
#include "graph/op.h"

// Statistics of one segment, a lane each.
typedef struct norm_moments {
    double count[NORM_LANES];
    double mean[NORM_LANES];
    double squares[NORM_LANES]; // about the mean
} norm_moments;

static inline void norm_join(norm_moments *to, int lane, double count, double mean,
                             double squares) {
    const double total = to->count[lane] + count;
    const double distance = mean - to->mean[lane];
    const double share = count / total;
    to->squares[lane] += squares + distance * distance * to->count[lane] * share;
    to->mean[lane] += distance * share;
    to->count[lane] = total;
}

// Mean and squares of `rows` rows of lanes at `x`; rows > 0.
static inline void norm_piece(const float *x, int64_t rows, float *mean, float *squares) {
    norm_vector a = {0}, b = {0}, c = {0}, d = {0};
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        a += NORM_AT(x, r * NORM_LANES);
        b += NORM_AT(x, (r + 1) * NORM_LANES);
        c += NORM_AT(x, (r + 2) * NORM_LANES);
        d += NORM_AT(x, (r + 3) * NORM_LANES);
    }
    for (; r < rows; r++) {
        a += NORM_AT(x, r * NORM_LANES);
    }
    const norm_vector center = ((a + b) + (c + d)) / (float)rows;
    a = b = c = d = (norm_vector){0};
    for (r = 0; r + 4 <= rows; r += 4) {
        const norm_vector e = NORM_AT(x, r * NORM_LANES) - center;
        const norm_vector f = NORM_AT(x, (r + 1) * NORM_LANES) - center;
        const norm_vector g = NORM_AT(x, (r + 2) * NORM_LANES) - center;
        const norm_vector h = NORM_AT(x, (r + 3) * NORM_LANES) - center;
        a += e * e;
        b += f * f;
        c += g * g;
        d += h * h;
    }
    for (; r < rows; r++) {
        const norm_vector e = NORM_AT(x, r * NORM_LANES) - center;
        a += e * e;
    }
    NORM_STORE(mean, 0, center);
    NORM_STORE(squares, 0, (a + b) + (c + d));
}

static void norm_segment_moments(const float *x, int64_t count, norm_moments *out) {
    memset(out, 0, sizeof *out);
    const int64_t rows = count / NORM_LANES;
    float mean[NORM_LANES], squares[NORM_LANES];
    for (int64_t first = 0; first < rows; first += NORM_PIECE_ROWS) {
        const int64_t some = rows - first < NORM_PIECE_ROWS ? rows - first : NORM_PIECE_ROWS;
        norm_piece(x + first * NORM_LANES, some, mean, squares);
        for (int j = 0; j < NORM_LANES; j++) {
            norm_join(out, j, (double)some, (double)mean[j], (double)squares[j]);
        }
    }
    for (int64_t i = rows * NORM_LANES; i < count; i++) {
        norm_join(out, (int)(i - rows * NORM_LANES), 1, (double)x[i], 0);
    }
}

// The moments of channel `lane` of a group from those of its segments.
static norm_moments norm_channel_moments(const norm_state *state, const norm_moments *segments,
                                         int64_t lane) {
    norm_moments total = {{0}, {0}, {0}};
    for (int64_t n = 0; n < state->batch; n++) {
        for (int64_t j = lane; j < NORM_LANES; j += state->block) {
            if (segments[n].count[j] == 0) continue;
            norm_join(&total, 0, segments[n].count[j], segments[n].mean[j], segments[n].squares[j]);
        }
    }
    return total;
}

// Settles the statistics of group `g` and what they make of its channels.
static void norm_settle_group(const norm_state *state, const norm_operands *o, int64_t g,
                              const norm_moments *segments, norm_lanes *lanes) {
    memset(lanes, 0, sizeof *lanes);
    for (int64_t lane = 0; lane < state->block; lane++) {
        const int64_t c = g * state->block + lane;
        if (c >= state->channels) continue;
        double mean = (double)o->mean[c], variance = (double)o->variance[c];
        if (state->training) {
            const norm_moments total = norm_channel_moments(state, segments, lane);
            const double count = total.count[0];
            mean = total.mean[0];
            variance = total.squares[0] / count;
            const double kept = state->unbiased ? total.squares[0] / (count - 1) : variance;
            const double momentum = state->momentum;
            if (o->batch[0] != NULL) o->batch[0][c] = mean;
            if (o->batch[1] != NULL) o->batch[1][c] = kept;
            norm_set_output(o->outputs[0], c,
                            pen_running_statistic((double)o->mean[c], momentum, mean));
            norm_set_output(o->outputs[1], c,
                            pen_running_statistic((double)o->variance[c], momentum, kept));
        }
        const double inverse = 1 / sqrt(variance + state->epsilon);
        norm_set_output(o->outputs[2], c, mean);
        norm_set_output(o->outputs[3], c, inverse);
        norm_set_lanes(state, lane, (float)mean, lanes->mean);
        norm_set_lanes(state, lane, (float)((double)o->scale[c] * (double)(float)inverse),
                       lanes->factor);
        norm_set_lanes(state, lane, o->bias[c], lanes->bias);
    }
}

static inline __attribute__((always_inline)) void norm_map_rows(const float *x,
                                                                const float *residual, float *y,
                                                                int64_t count, const norm_lanes *l,
                                                                const bool relu) {
    for (int64_t i = 0; i < count; i += NORM_LANES) {
        norm_vector v = NORM_MAP(NORM_AT(x, i), l);
        if (residual != NULL) v += NORM_AT(residual, i);
        if (relu) v = NORM_RELU(v);
        NORM_STORE(y, i, v);
    }
}

static inline __attribute__((always_inline)) void norm_map_some(const float *x,
                                                                const float *residual, float *y,
                                                                int64_t count, const norm_lanes *l,
                                                                const bool relu) {
    const int64_t whole = count / NORM_LANES * NORM_LANES;
    const size_t rest = (size_t)(count - whole) * sizeof(float);
    norm_map_rows(x, residual, y, whole, l, relu);
    if (rest == 0) return;
    float last_x[NORM_LANES] = {0}, last_residual[NORM_LANES] = {0}, last_y[NORM_LANES];
    memcpy(last_x, x + whole, rest);
    if (residual != NULL) memcpy(last_residual, residual + whole, rest);
    norm_map_rows(last_x, last_residual, last_y, NORM_LANES, l, relu);
    memcpy(y + whole, last_y, rest);
}

static void norm_map_segment(const norm_state *state, const norm_operands *o, int64_t at,
                             const norm_lanes *l) {
    const float *x = o->x + at;
    float *y = o->result + at;
    if (state->adds) {
        norm_map_some(x, o->residual + at, y, state->segment, l, true);
    } else if (state->relu) {
        norm_map_some(x, NULL, y, state->segment, l, true);
    } else {
        norm_map_some(x, NULL, y, state->segment, l, false);
    }
}

static void norm_forward_groups(const norm_state *state, const norm_operands *o,
                                norm_moments *all) {
#pragma omp parallel for schedule(static) if (state->wants_team)
    for (int64_t g = 0; g < state->groups; g++) {
        norm_moments *segments = all + g * state->batch;
        for (int64_t n = 0; state->training && n < state->batch; n++) {
            norm_segment_moments(o->x + norm_at(state, n, g), state->segment, &segments[n]);
        }
        norm_lanes lanes;
        norm_settle_group(state, o, g, segments, &lanes);
        // backwards: what was read last is still in cache
        for (int64_t n = state->batch; n-- > 0;) {
            norm_map_segment(state, o, norm_at(state, n, g), &lanes);
        }
    }
}

// Moments of segments, factors of groups, then the result, by one team.
static void norm_forward_segments(const norm_state *state, const norm_operands *o,
                                  norm_moments *all, norm_lanes *lanes) {
    const int64_t count = state->groups * state->batch;
#pragma omp parallel if (state->wants_team)
    {
        if (state->training) {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < count; i++) {
                const int64_t g = i / state->batch, n = i % state->batch;
                norm_segment_moments(o->x + norm_at(state, n, g), state->segment, &all[i]);
            }
        }
#pragma omp for schedule(static)
        for (int64_t g = 0; g < state->groups; g++) {
            norm_settle_group(state, o, g, all + g * state->batch, &lanes[g]);
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++) {
            const int64_t g = i / state->batch, n = i % state->batch;
            norm_map_segment(state, o, norm_at(state, n, g), &lanes[g]);
        }
    }
}

// Operands by name; outputs that nobody reads are NULL.
static pen_status norm_forward_run(const pen_cpu_call *call) {
    const norm_prepared *prepared = call->state;
    const norm_state *state = &prepared->state;
    norm_operands o = {
        .x = call->inputs[0],
        .scale = call->inputs[1],
        .bias = call->inputs[2],
        .mean = call->inputs[3],
        .variance = call->inputs[4],
        .residual = state->adds ? call->inputs[5] : NULL,
        .result = call->outputs[0],
    };
    for (uint32_t i = 0; i < 4; i++) {
        o.outputs[i] = norm_output(call, i + 1, prepared->output_count);
    }
    for (uint32_t i = 0; i < 2; i++) {
        o.batch[i] = (double *)(void *)norm_output(call, i + 5, prepared->output_count);
    }
    if (state->by_segments) {
        norm_forward_segments(state, &o, call->workspace,
                              norm_workspace_lanes(state, call, sizeof(norm_moments)));
    } else {
        norm_forward_groups(state, &o, call->workspace);
    }
    return PEN_OK;
}

static pen_status norm_forward_prepare(const pen_cpu_request *request, void **out_state,
                                       uint64_t *out_workspace_bytes) {
    return norm_prepare(request, sizeof(norm_moments), out_state, out_workspace_bytes);
}

// ---- running statistics from those of microbatches (graph/ops/training/tree_op.c: fold_rows)

typedef struct norm_fold {
    double momentum;
    int64_t count; // elements
    int64_t rows;  // at most
} norm_fold;

static bool norm_fold_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const pen_value *x = pen_graph_value(request->graph, node->inputs[0]);
    const pen_value *rows = pen_graph_value(request->graph, node->inputs[1]);
    return x->type.element == PEN_FLOAT32 && x->layout == PEN_LAYOUT_PLAIN &&
           rows->layout == PEN_LAYOUT_PLAIN;
}

static pen_status norm_fold_prepare(const pen_cpu_request *request, void **out_state,
                                    uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    norm_fold *fold;
    PEN_TRY(PEN_NEW(request->arena, 1, &fold));
    *fold = (norm_fold){
        .momentum = pen_node_float(node, "momentum"),
        .count = pen_shape_element_count(&pen_value_type(request->graph, node->inputs[0])->shape),
        .rows = pen_value_type(request->graph, node->inputs[1])->shape.dims[0]};
    *out_state = fold;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static pen_status norm_fold_run(const pen_cpu_call *call) {
    const norm_fold *fold = call->state;
    const float *x = call->inputs[0];
    const double *rows = call->inputs[1];
    float *y = call->outputs[0];
    const int64_t step = call->run->microbatch_count;
    const int64_t count = step < fold->rows ? step : fold->rows;
    for (int64_t k = 0; k < fold->count; k++) {
        float running = x[k];
        for (int64_t m = 0; m < count; m++) {
            running = (float)pen_running_statistic((double)running, fold->momentum,
                                                   rows[m * fold->count + k]);
        }
        y[k] = running;
    }
    return PEN_OK;
}

static const pen_cpu_kernel normalization_kernels[] = {
    {PEN_CPU_ENTRY("fold_rows", "rows", norm_fold_supports, norm_fold_prepare, norm_fold_run)},
    {PEN_CPU_ENTRY("batch_normalization", "segments", norm_supports, norm_forward_prepare,
                   norm_forward_run)},
    {PEN_CPU_ENTRY("batch_normalization_relu", "segments", norm_supports, norm_forward_prepare,
                   norm_forward_run)},
    {PEN_CPU_ENTRY("batch_normalization_add_relu", "segments", norm_supports, norm_forward_prepare,
                   norm_forward_run)},
};

PEN_CPU_FAMILY_OF(normalization);
