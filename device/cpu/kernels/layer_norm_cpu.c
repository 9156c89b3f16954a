// Layer, instance, group and root mean square normalisation, forward and backward, a row at a time.
//
// A row stays in the first caches between its passes, so the operands are read once from memory.
// Sums for the weights go over rows: rows are cut into parts by sizes alone, each part adds into
// numbers of its own, and these are added in the order of the parts. So the team's size does not
// change a bit.
#include <math.h>
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/reduction/layer_norm_geometry.h"

#define LAYER_NORM_TEAM_ELEMENTS 16384
#define LAYER_NORM_BLOCK 4096 // elements of a row summed in float32
#define LAYER_NORM_PART_LIMIT 32
#define LAYER_NORM_PART_ELEMENTS 32768 // a part has at least so many

typedef struct layer_norm_state {
    pen_layer_norm norm;
    float epsilon;
    bool wants_weights;
    uint32_t input_count, output_count;
    int64_t part_count;
    float *ones;  // [weight_count], for a scale left out
    float *zeros; // [weight_count], for a bias left out
} layer_norm_state;

typedef struct layer_norm_moments {
    float mean;
    float inverse; // of the deviation
} layer_norm_moments;

// The sum of (x - mean)^power over a block, in four chains so that additions overlap.
#define LAYER_NORM_DEFINE_BLOCK(name, result)                                                      \
    static double layer_norm_block_##name(const float *x, int64_t count, float mean) {             \
        const int64_t quarter = count / 4;                                                         \
        const float *x1 = x + quarter, *x2 = x1 + quarter, *x3 = x2 + quarter;                     \
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                      \
        (void)mean;                                                                                \
        _Pragma("omp simd reduction(+ : s0, s1, s2, s3)") for (int64_t i = 0; i < quarter; i++) {  \
            s0 += result(x[i]);                                                                    \
            s1 += result(x1[i]);                                                                   \
            s2 += result(x2[i]);                                                                   \
            s3 += result(x3[i]);                                                                   \
        }                                                                                          \
        for (int64_t i = 4 * quarter; i < count; i++) {                                            \
            s0 += result(x[i]);                                                                    \
        }                                                                                          \
        return ((double)s0 + (double)s1) + ((double)s2 + (double)s3);                              \
    }                                                                                              \
    static double layer_norm_##name(const float *x, int64_t count, float mean) {                   \
        double sum = 0;                                                                            \
        for (int64_t first = 0; first < count; first += LAYER_NORM_BLOCK) {                        \
            const int64_t rest = count - first;                                                    \
            sum += layer_norm_block_##name(                                                        \
                x + first, rest < LAYER_NORM_BLOCK ? rest : LAYER_NORM_BLOCK, mean);               \
        }                                                                                          \
        return sum;                                                                                \
    }
#define LAYER_NORM_ITSELF(v) (v)
#define LAYER_NORM_SQUARED(v) (((v)-mean) * ((v)-mean))
LAYER_NORM_DEFINE_BLOCK(sum, LAYER_NORM_ITSELF)
LAYER_NORM_DEFINE_BLOCK(squares, LAYER_NORM_SQUARED)

static layer_norm_moments layer_norm_find_moments(const layer_norm_state *state, const float *x) {
    const int64_t count = state->norm.columns;
    const double share = 1 / (double)count;
    const float mean = state->norm.is_centred ? (float)(layer_norm_sum(x, count, 0) * share) : 0;
    const double variance = layer_norm_squares(x, count, mean) * share;
    return (layer_norm_moments){mean, (float)(1 / sqrt(variance + (double)state->epsilon))};
}

// Where the weights of row r begin.
static int64_t layer_norm_first_weight(const layer_norm_state *state, int64_t r) {
    return r % state->norm.classes * state->norm.segments;
}

static const float *layer_norm_operand(const layer_norm_state *state, const pen_cpu_call *call,
                                       uint32_t input, const float *absent) {
    const float *given = input < state->input_count ? call->inputs[input] : NULL;
    return given == NULL ? absent : given;
}

static float *layer_norm_output(const layer_norm_state *state, const pen_cpu_call *call,
                                uint32_t output) {
    return output < state->output_count ? call->outputs[output] : NULL;
}

// y = x * factor + offset, for a weight an element.
static void layer_norm_map_row(const float *x, float *y, int64_t count, layer_norm_moments m,
                               const float *const weights[2]) {
    const float *scale = weights[0], *bias = weights[1];
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        y[j] = (x[j] - m.mean) * m.inverse * scale[j] + bias[j];
    }
}

// The same for runs of elements that share a weight.
static void layer_norm_map_runs(const layer_norm_state *state, const float *x, float *y,
                                layer_norm_moments m, const float *const weights[2]) {
    const int64_t run = state->norm.run;
    for (int64_t s = 0; s < state->norm.segments; s++) {
        const float scale = weights[0][s], bias = weights[1][s];
        const float *from = x + s * run;
        float *to = y + s * run;
#pragma omp simd
        for (int64_t j = 0; j < run; j++) {
            to[j] = (from[j] - m.mean) * m.inverse * scale + bias;
        }
    }
}

// A row each: moments, then the result; means and inverses are kept where the backward pass asks
// for them.
static pen_status layer_norm_forward_run(const pen_cpu_call *call) {
    const layer_norm_state *state = call->state;
    const pen_layer_norm *norm = &state->norm;
    const float *x = call->inputs[0];
    const float *scale = layer_norm_operand(state, call, 1, state->ones);
    const float *bias = layer_norm_operand(state, call, 2, state->zeros);
    float *y = call->outputs[0];
    float *means = layer_norm_output(state, call, 1), *inverses = layer_norm_output(state, call, 2);
    if (norm->columns == 0) return PEN_OK;
#pragma omp parallel for schedule(static) if (norm->rows * norm->columns > LAYER_NORM_TEAM_ELEMENTS)
    for (int64_t r = 0; r < norm->rows; r++) {
        const int64_t at = r * norm->columns, first = layer_norm_first_weight(state, r);
        const layer_norm_moments m = layer_norm_find_moments(state, x + at);
        const float *const weights[2] = {scale + first, bias + first};
        if (norm->run == 1) {
            layer_norm_map_row(x + at, y + at, norm->columns, m, weights);
        } else {
            layer_norm_map_runs(state, x + at, y + at, m, weights);
        }
        if (means != NULL) means[r] = m.mean;
        if (inverses != NULL) inverses[r] = m.inverse;
    }
    return PEN_OK;
}

// ---- backward

typedef struct layer_norm_back {
    const float *dy, *x, *scale;
    float *dx;
    float *dscale, *dbias; // of the part
} layer_norm_back;

// Sums over a row: of g = dy * scale, and of g times the normalised.
typedef struct layer_norm_sums {
    double g, product;
} layer_norm_sums;

// Sums a block, and adds dy x̂ and dy to the weights' sums.
static layer_norm_sums layer_norm_sum_weighted(const layer_norm_back *b, int64_t count,
                                               layer_norm_moments m) {
    const float *dy = b->dy, *x = b->x, *scale = b->scale;
    float *dscale = b->dscale, *dbias = b->dbias;
    float g_sum = 0, product = 0;
#pragma omp simd reduction(+ : g_sum, product)
    for (int64_t j = 0; j < count; j++) {
        const float normal = (x[j] - m.mean) * m.inverse;
        const float tilted = dy[j] * normal;
        dscale[j] += tilted;
        dbias[j] += dy[j];
        g_sum += dy[j] * scale[j];
        product += tilted * scale[j];
    }
    return (layer_norm_sums){(double)g_sum, (double)product};
}

static layer_norm_sums layer_norm_sum_plain(const layer_norm_back *b, int64_t count,
                                            layer_norm_moments m) {
    const float *dy = b->dy, *x = b->x, *scale = b->scale;
    float g_sum = 0, product = 0;
#pragma omp simd reduction(+ : g_sum, product)
    for (int64_t j = 0; j < count; j++) {
        const float g = dy[j] * scale[j];
        g_sum += g;
        product += g * ((x[j] - m.mean) * m.inverse);
    }
    return (layer_norm_sums){(double)g_sum, (double)product};
}

// Two passes over a row: sums, then the gradient; weights' gradients are added up on the way.
static void layer_norm_back_row(const layer_norm_state *state, const layer_norm_back *row) {
    const int64_t columns = state->norm.columns;
    const layer_norm_moments m = layer_norm_find_moments(state, row->x);
    layer_norm_sums total = {0, 0};
    for (int64_t first = 0; first < columns; first += LAYER_NORM_BLOCK) {
        const int64_t rest = columns - first;
        const int64_t count = rest < LAYER_NORM_BLOCK ? rest : LAYER_NORM_BLOCK;
        layer_norm_back b = *row;
        b.dy += first;
        b.x += first;
        b.scale += first;
        layer_norm_sums some;
        if (state->wants_weights) {
            b.dscale += first;
            b.dbias += first;
            some = layer_norm_sum_weighted(&b, count, m);
        } else {
            some = layer_norm_sum_plain(&b, count, m);
        }
        total.g += some.g;
        total.product += some.product;
    }
    const float shift = state->norm.is_centred ? (float)(total.g / (double)columns) : 0;
    const float tilt = (float)(total.product / (double)columns);
    const float *dy = row->dy, *x = row->x, *scale = row->scale;
    float *dx = row->dx;
#pragma omp simd
    for (int64_t j = 0; j < columns; j++) {
        const float normal = (x[j] - m.mean) * m.inverse;
        dx[j] = (dy[j] * scale[j] - shift - normal * tilt) * m.inverse;
    }
}

// The sums of dy and of dy times the normalised over a run.
static layer_norm_sums layer_norm_sum_run(const float *dy, const float *x, int64_t run,
                                          layer_norm_moments m) {
    layer_norm_sums total = {0, 0};
    for (int64_t first = 0; first < run; first += LAYER_NORM_BLOCK) {
        const int64_t end = run - first < LAYER_NORM_BLOCK ? run : first + LAYER_NORM_BLOCK;
        float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (int64_t j = first; j < end; j++) {
            sum += dy[j];
            product += dy[j] * ((x[j] - m.mean) * m.inverse);
        }
        total.g += (double)sum;
        total.product += (double)product;
    }
    return total;
}

// As layer_norm_back_row, where a weight serves a run of elements: sums of a run are made once, and
// serve the gradients of its weight and, scaled by it, those of the whole row.
static void layer_norm_back_runs(const layer_norm_state *state, const layer_norm_back *row) {
    const int64_t run = state->norm.run, segments = state->norm.segments;
    const layer_norm_moments m = layer_norm_find_moments(state, row->x);
    layer_norm_sums total = {0, 0};
    for (int64_t s = 0; s < segments; s++) {
        const layer_norm_sums some =
            layer_norm_sum_run(row->dy + s * run, row->x + s * run, run, m);
        total.g += some.g * (double)row->scale[s];
        total.product += some.product * (double)row->scale[s];
        if (!state->wants_weights) continue;
        row->dscale[s] += (float)some.product;
        row->dbias[s] += (float)some.g;
    }
    const float shift = (float)(total.g / (double)state->norm.columns);
    const float tilt = (float)(total.product / (double)state->norm.columns);
    for (int64_t s = 0; s < segments; s++) {
        const float *dy = row->dy + s * run, *x = row->x + s * run;
        const float scale = row->scale[s];
        float *dx = row->dx + s * run;
#pragma omp simd
        for (int64_t j = 0; j < run; j++) {
            const float normal = (x[j] - m.mean) * m.inverse;
            dx[j] = (dy[j] * scale - shift - normal * tilt) * m.inverse;
        }
    }
}

// A fixed share of the rows with sums of its own, which are added in order afterwards.
static void layer_norm_back_part(const layer_norm_state *state, const pen_cpu_call *call,
                                 int64_t part) {
    const pen_layer_norm *norm = &state->norm;
    const float *scale = layer_norm_operand(state, call, 2, state->ones);
    float *sums = (float *)call->workspace + part * 2 * norm->weight_count;
    if (state->wants_weights) memset(sums, 0, 2 * (size_t)norm->weight_count * sizeof *sums);
    const int64_t end = norm->rows * (part + 1) / state->part_count;
    for (int64_t r = norm->rows * part / state->part_count; r < end; r++) {
        const int64_t at = r * norm->columns, first = layer_norm_first_weight(state, r);
        const layer_norm_back row = {
            .dy = (const float *)call->inputs[0] + at,
            .x = (const float *)call->inputs[1] + at,
            .scale = scale + first,
            .dx = (float *)call->outputs[0] + at,
            .dscale = sums + first,
            .dbias = sums + norm->weight_count + first,
        };
        if (norm->run == 1) {
            layer_norm_back_row(state, &row);
        } else {
            layer_norm_back_runs(state, &row);
        }
    }
}

// Adds the parts' sums up in their order.
static void layer_norm_add_parts(const layer_norm_state *state, const float *sums, float *out) {
    const int64_t count = state->norm.weight_count;
    for (int64_t w = 0; w < count; w++) {
        double sum = 0;
        for (int64_t part = 0; part < state->part_count; part++) {
            sum += (double)sums[part * 2 * count + w];
        }
        out[w] = (float)sum;
    }
}

// Parts are as many as were settled when the kernel was prepared, so sums do not depend on which
// thread is faster.
static pen_status layer_norm_backward_run(const pen_cpu_call *call) {
    const layer_norm_state *state = call->state;
    const pen_layer_norm *norm = &state->norm;
    if (norm->columns > 0) {
#pragma omp parallel for schedule(static) if (norm->rows * norm->columns > LAYER_NORM_TEAM_ELEMENTS)
        for (int64_t part = 0; part < state->part_count; part++) {
            layer_norm_back_part(state, call, part);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        float *out = layer_norm_output(state, call, i + 1);
        const float *sums = (const float *)call->workspace + (int64_t)i * norm->weight_count;
        if (out == NULL) continue;
        if (norm->columns > 0) {
            layer_norm_add_parts(state, sums, out);
        } else {
            memset(out, 0, (size_t)norm->weight_count * sizeof *out);
        }
    }
    return PEN_OK;
}

// ---- preparing

// Weights that repeat within a row are left to the reference kernel.
static bool layer_norm_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    if (!pen_cpu_is_all_plain_float(request)) return false;
    pen_layer_norm norm;
    pen_layer_norm_of(request->graph, node, &norm);
    return norm.segments * norm.run == norm.columns;
}

static int64_t layer_norm_parts(const pen_layer_norm *norm) {
    const int64_t wished = norm->rows * norm->columns / LAYER_NORM_PART_ELEMENTS;
    const int64_t held = wished > LAYER_NORM_PART_LIMIT ? LAYER_NORM_PART_LIMIT : wished;
    return held < 1 ? 1 : held > norm->rows && norm->rows > 0 ? norm->rows : held;
}

// Missing weights become ones and zeros, so that the loops have no cases.
static pen_status layer_norm_prepare(const pen_cpu_request *request, void **out_state,
                                     uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    layer_norm_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    pen_layer_norm_of(request->graph, node, &state->norm);
    const size_t weight_count = (size_t)state->norm.weight_count;
    const bool is_backward = pen_layer_norm_is_backward(node);
    const uint32_t scale = is_backward ? 2 : 1;
    state->epsilon = (float)pen_node_float(node, "epsilon");
    state->input_count = node->input_count;
    state->output_count = node->output_count;
    if (node->input_count <= scale || !pen_value_is(node->inputs[scale])) {
        PEN_TRY(PEN_NEW(request->arena, weight_count, &state->ones));
        for (size_t w = 0; w < weight_count; w++) {
            state->ones[w] = 1;
        }
    }
    if (!is_backward && (node->input_count < 3 || !pen_value_is(node->inputs[2]))) {
        PEN_TRY(PEN_NEW(request->arena, weight_count, &state->zeros));
    }
    state->part_count = layer_norm_parts(&state->norm);
    state->wants_weights = is_backward && node->output_count > 1;
    *out_state = state;
    *out_workspace_bytes =
        state->wants_weights ? (uint64_t)state->part_count * 2 * weight_count * sizeof(float) : 0;
    return PEN_OK;
}

#define LAYER_NORM_ENTRY(op, run)                                                                  \
    PEN_CPU_ENTRY(op, "rows", layer_norm_supports, layer_norm_prepare, run)

static const pen_cpu_kernel layer_norm_kernels[] = {
    {LAYER_NORM_ENTRY("layer_normalization", layer_norm_forward_run)},
    {LAYER_NORM_ENTRY("layer_normalization_backward", layer_norm_backward_run)},
    {LAYER_NORM_ENTRY("rms_normalization", layer_norm_forward_run)},
    {LAYER_NORM_ENTRY("rms_normalization_backward", layer_norm_backward_run)},
    {LAYER_NORM_ENTRY("instance_normalization", layer_norm_forward_run)},
    {LAYER_NORM_ENTRY("instance_normalization_backward", layer_norm_backward_run)},
    {LAYER_NORM_ENTRY("group_normalization", layer_norm_forward_run)},
    {LAYER_NORM_ENTRY("group_normalization_backward", layer_norm_backward_run)},
};

PEN_CPU_FAMILY_OF(layer_norm);
