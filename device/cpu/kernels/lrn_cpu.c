// Local response normalisation in the plain layout. With d_c = bias + alpha / size * (sum of the
// squares of channel c's neighbours), and N(j) the channels that count in d_j:
//   y_c = x_c d_c^-beta
//   dx_c = dy_c d_c^-beta - 2 alpha / size beta x_c * sum over j with c in N(j) of
//          dy_j x_j d_j^(-beta - 1)
// Positions are taken in tiles; a tile of all channels stays in the second cache.
#include <math.h>
#include <omp.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"

#define LRN_TILE 64
// Below this many elements a node is not worth a team.
#define LRN_TEAM_ELEMENTS 4096

typedef struct lrn_state {
    int64_t batch;
    int64_t channels;
    int64_t positions;
    int64_t tiles; // of a sample
    int64_t before, after;
    float alpha_of_one; // alpha / size
    float beta;
    float bias;
    bool wants_team;
} lrn_state;

// What channel c counts: [first, last].
static inline int64_t lrn_first(int64_t c, int64_t before) {
    return c > before ? c - before : 0;
}
static inline int64_t lrn_last(int64_t c, int64_t after, int64_t channels) {
    return c + after < channels ? c + after : channels - 1;
}

// d^-beta of a row of a tile, in place.
static void lrn_power(float *d, int64_t count, float beta) {
    if (beta == 0.75f) { // what nearly every model has
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            const float root = 1.0f / sqrtf(d[i]);
            d[i] = root * sqrtf(root);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        d[i] = powf(d[i], -beta);
    }
}

// d of channel c for `count` positions from `x`, which points into channel 0.
static void lrn_divisors(const lrn_state *s, const float *x, int64_t c, int64_t count, float *d) {
    for (int64_t i = 0; i < count; i++) {
        d[i] = 0;
    }
    const int64_t last = lrn_last(c, s->after, s->channels);
    for (int64_t j = lrn_first(c, s->before); j <= last; j++) {
        const float *row = x + j * s->positions;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            d[i] += row[i] * row[i];
        }
    }
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        d[i] = s->bias + s->alpha_of_one * d[i];
    }
}

static void lrn_forward_tile(const lrn_state *s, const float *x, float *y, int64_t count) {
    float d[LRN_TILE];
    for (int64_t c = 0; c < s->channels; c++) {
        lrn_divisors(s, x, c, count, d);
        lrn_power(d, count, s->beta);
        const int64_t row = c * s->positions;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            y[row + i] = x[row + i] * d[i];
        }
    }
}

// `parts` has room for two tiles of all channels.
static void lrn_backward_tile(const lrn_state *s, const float *dy, const float *x, float *dx,
                              int64_t count, float *parts) {
    float *powers = parts, *shares = parts + s->channels * LRN_TILE;
    for (int64_t c = 0; c < s->channels; c++) {
        float d[LRN_TILE];
        float *power = powers + c * LRN_TILE, *share = shares + c * LRN_TILE;
        const int64_t row = c * s->positions;
        lrn_divisors(s, x, c, count, d);
        for (int64_t i = 0; i < count; i++) {
            power[i] = d[i];
        }
        lrn_power(power, count, s->beta);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            share[i] = dy[row + i] * x[row + i] * power[i] / d[i];
        }
    }
    const float factor = 2 * s->alpha_of_one * s->beta;
    for (int64_t c = 0; c < s->channels; c++) {
        float sum[LRN_TILE] = {0};
        const int64_t row = c * s->positions;
        const int64_t last = lrn_last(c, s->before, s->channels);
        for (int64_t j = lrn_first(c, s->after); j <= last; j++) {
            const float *share = shares + j * LRN_TILE;
#pragma omp simd
            for (int64_t i = 0; i < count; i++) {
                sum[i] += share[i];
            }
        }
        const float *power = powers + c * LRN_TILE;
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            dx[row + i] = dy[row + i] * power[i] - factor * x[row + i] * sum[i];
        }
    }
}

static pen_status lrn_run(const pen_cpu_call *call) {
    const lrn_state *s = call->state;
    const float *x = call->inputs[0];
    float *y = call->outputs[0];
#pragma omp parallel for schedule(static) if (s->wants_team)
    for (int64_t t = 0; t < s->batch * s->tiles; t++) {
        const int64_t at = t % s->tiles * LRN_TILE, rest = s->positions - at;
        const int64_t from = t / s->tiles * s->channels * s->positions + at;
        lrn_forward_tile(s, x + from, y + from, rest < LRN_TILE ? rest : LRN_TILE);
    }
    return PEN_OK;
}

static pen_status lrn_backward_run(const pen_cpu_call *call) {
    const lrn_state *s = call->state;
    const float *dy = call->inputs[0], *x = call->inputs[1];
    float *dx = call->outputs[0], *workspace = call->workspace;
#pragma omp parallel for schedule(static) if (s->wants_team)
    for (int64_t t = 0; t < s->batch * s->tiles; t++) {
        const int64_t at = t % s->tiles * LRN_TILE, rest = s->positions - at;
        const int64_t from = t / s->tiles * s->channels * s->positions + at;
        lrn_backward_tile(s, dy + from, x + from, dx + from, rest < LRN_TILE ? rest : LRN_TILE,
                          workspace + omp_get_thread_num() * 2 * s->channels * LRN_TILE);
    }
    return PEN_OK;
}

// Sizes of the window and of tiles of positions that fit the cache.
static pen_status lrn_prepare(const pen_cpu_request *request, void **out_state,
                              uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    const pen_shape *x = &pen_value_type(request->graph, node->inputs[0])->shape;
    const int64_t size = pen_node_int(node, "size");
    lrn_state *s;
    PEN_TRY(PEN_NEW(request->arena, 1, &s));
    s->batch = x->dims[0];
    s->channels = x->dims[1];
    s->positions = pen_shape_count(x, 2, x->rank);
    s->tiles = (s->positions + LRN_TILE - 1) / LRN_TILE;
    s->before = (size - 1) / 2;
    s->after = size / 2;
    s->alpha_of_one = (float)(pen_node_float(node, "alpha") / (double)size);
    s->beta = (float)pen_node_float(node, "beta");
    s->bias = (float)pen_node_float(node, "bias");
    s->wants_team = pen_shape_element_count(x) >= LRN_TEAM_ELEMENTS;
    const bool backward = node->input_count > 1;
    *out_workspace_bytes = backward ? (uint64_t)request->thread_count * 2 * (uint64_t)s->channels *
                                          LRN_TILE * sizeof(float)
                                    : 0;
    *out_state = s;
    return PEN_OK;
}

static const pen_cpu_kernel lrn_kernels[] = {
    {PEN_CPU_ENTRY("lrn", "tiles", NULL, lrn_prepare, lrn_run)},
    {PEN_CPU_ENTRY("lrn_backward", "tiles", NULL, lrn_prepare, lrn_backward_run)},
};

PEN_CPU_FAMILY_OF(lrn);
