// Gradients of batch normalisation, alone and fused. With d = x - mean, and sums over a channel:
//   dbias = sum(dy), dscale = inverse * sum(dy * d)
//   dx = scale * inverse * (dy - dbias / count - d * inverse * dscale / count)
// of which only the first term is left when the statistics are frozen. Then there may be
//   dmean = -scale * inverse * sum(dy), dvariance = -scale * inverse^3 * sum(dy * d) / 2
#include <math.h>

#include "device/cpu/kernels/loops/norm_segments.h"

// Sums of one segment in a backward pass, a lane each.
typedef struct norm_sums {
    double gradient[NORM_LANES]; // of dy
    double product[NORM_LANES];  // of dy (x - mean)
} norm_sums;

// One row of the gradient that reaches the normalisation, and of x - mean.
#define NORM_GRADIENT(o, l, at, reached, distance)                                                 \
    norm_vector reached = NORM_AT((o)->dy, at);                                                    \
    const norm_vector distance = NORM_AT((o)->x, at) - NORM_AT((l)->mean, 0);                      \
    if (adds_2) reached += NORM_AT((o)->dy_2, at);                                                 \
    if (by_y) reached = NORM_PASS(reached, NORM_AT((o)->y, at));                                   \
    if (by_x) {                                                                                    \
        const norm_vector y = distance * NORM_AT((l)->factor, 0) + NORM_AT((l)->bias, 0);          \
        reached = NORM_PASS(reached, y);                                                           \
    }

// Which gradient reaches the normalisation: all of it, or what the relu after it lets through, by
// the sign of what the normalisation gave (computed again from x) or of y, where two readers of y
// may each bring a part.
typedef enum norm_pass {
    NORM_PLAIN,
    NORM_BY_X,
    NORM_BY_Y,
    NORM_BY_Y_OF_TWO,
} norm_pass;

// Sums of the gradient and of its product with the distance from the mean, two rows at a time to
// hide the latency of adding.
static inline __attribute__((always_inline)) void norm_sum_rows(const norm_operands *o,
                                                                int64_t rows, const norm_lanes *l,
                                                                norm_sums *sums,
                                                                const norm_pass pass) {
    const bool by_x = pass == NORM_BY_X, adds_2 = pass == NORM_BY_Y_OF_TWO;
    const bool by_y = pass == NORM_BY_Y || adds_2;
    for (int64_t first = 0; first < rows; first += NORM_PIECE_ROWS) {
        const int64_t last = rows - first < NORM_PIECE_ROWS ? rows : first + NORM_PIECE_ROWS;
        norm_vector gradient = {0}, product = {0}, gradient_2 = {0}, product_2 = {0};
        int64_t r = first;
        for (; r + 2 <= last; r += 2) {
            NORM_GRADIENT(o, l, r * NORM_LANES, dy, distance)
            NORM_GRADIENT(o, l, (r + 1) * NORM_LANES, dy_b, distance_b)
            if (by_y) NORM_STORE(o->dresidual, r * NORM_LANES, dy);
            if (by_y) NORM_STORE(o->dresidual, (r + 1) * NORM_LANES, dy_b);
            gradient += dy;
            product += dy * distance;
            gradient_2 += dy_b;
            product_2 += dy_b * distance_b;
        }
        for (; r < last; r++) {
            NORM_GRADIENT(o, l, r * NORM_LANES, dy, distance)
            if (by_y) NORM_STORE(o->dresidual, r * NORM_LANES, dy);
            gradient += dy;
            product += dy * distance;
        }
        gradient += gradient_2;
        product += product_2;
        for (int j = 0; j < NORM_LANES; j++) {
            sums->gradient[j] += (double)gradient[j];
            sums->product[j] += (double)product[j];
        }
    }
}

// dx = factor * dy + slope * (x - mean) + offset
static inline __attribute__((always_inline)) void
norm_back_rows(const norm_operands *o, int64_t rows, const norm_lanes *l, const bool by_x) {
    const bool by_y = false, adds_2 = false;
    for (int64_t i = 0; i < rows * NORM_LANES; i += NORM_LANES) {
        NORM_GRADIENT(o, l, i, dy, distance)
        NORM_STORE(o->result, i,
                   dy * NORM_AT(l->factor, 0) +
                       (distance * NORM_AT(l->slope, 0) + NORM_AT(l->offset, 0)));
    }
}

// The operands from element `at` on.
static norm_operands norm_operands_at(const norm_operands *o, int64_t at) {
    norm_operands moved = *o;
    moved.x += at;
    moved.dy += at;
    moved.result += at;
    if (o->y != NULL) moved.y += at;
    if (o->dy_2 != NULL) moved.dy_2 += at;
    if (o->dresidual != NULL) moved.dresidual += at;
    return moved;
}

// Room for the last, incomplete row of a segment.
typedef struct norm_rest {
    float x[NORM_LANES], dy[NORM_LANES], dy_2[NORM_LANES], y[NORM_LANES], result[NORM_LANES],
        dresidual[NORM_LANES];
} norm_rest;

static norm_operands norm_rest_of(const norm_operands *o, int64_t count, const norm_lanes *l,
                                  norm_rest *rest) {
    const size_t bytes = (size_t)count * sizeof(float);
    memset(rest, 0, sizeof *rest);
    memcpy(rest->x, l->mean, sizeof rest->x); // lanes behind the end are at no distance
    memcpy(rest->x, o->x, bytes);
    memcpy(rest->dy, o->dy, bytes);
    if (o->y != NULL) memcpy(rest->y, o->y, bytes);
    if (o->dy_2 != NULL) memcpy(rest->dy_2, o->dy_2, bytes);
    norm_operands moved = *o;
    moved.x = rest->x;
    moved.dy = rest->dy;
    moved.y = o->y != NULL ? rest->y : NULL;
    moved.dy_2 = o->dy_2 != NULL ? rest->dy_2 : NULL;
    moved.result = rest->result;
    moved.dresidual = rest->dresidual;
    return moved;
}

static void norm_sum_some(const norm_state *state, const norm_operands *o, int64_t rows,
                          const norm_lanes *l, norm_sums *sums) {
    if (state->adds && o->dy_2 != NULL) {
        norm_sum_rows(o, rows, l, sums, NORM_BY_Y_OF_TWO);
    } else if (state->adds) {
        norm_sum_rows(o, rows, l, sums, NORM_BY_Y);
    } else if (state->relu) {
        norm_sum_rows(o, rows, l, sums, NORM_BY_X);
    } else {
        norm_sum_rows(o, rows, l, sums, NORM_PLAIN);
    }
}

static void norm_sum_segment(const norm_state *state, const norm_operands *all, int64_t at,
                             const norm_lanes *l, norm_sums *out) {
    const norm_operands o = norm_operands_at(all, at);
    const int64_t rows = state->segment / NORM_LANES, left = state->segment % NORM_LANES;
    memset(out, 0, sizeof *out);
    norm_sum_some(state, &o, rows, l, out);
    if (left == 0) return;
    norm_rest rest;
    const norm_operands end = norm_operands_at(&o, rows * NORM_LANES);
    const norm_operands last = norm_rest_of(&end, left, l, &rest);
    norm_sum_some(state, &last, 1, l, out);
    if (end.dresidual != NULL) memcpy(end.dresidual, rest.dresidual, (size_t)left * sizeof(float));
}

static void norm_back_some(const norm_state *state, const norm_operands *o, int64_t rows,
                           const norm_lanes *l) {
    if (state->relu && !state->adds) {
        norm_back_rows(o, rows, l, true);
    } else {
        norm_back_rows(o, rows, l, false);
    }
}

static void norm_back_segment(const norm_state *state, const norm_operands *all, int64_t at,
                              const norm_lanes *l) {
    norm_operands o = norm_operands_at(all, at);
    const int64_t rows = state->segment / NORM_LANES, left = state->segment % NORM_LANES;
    if (o.dresidual != NULL) o.dy = o.dresidual; // masked and summed already
    norm_back_some(state, &o, rows, l);
    if (left == 0) return;
    norm_rest rest;
    const norm_operands end = norm_operands_at(&o, rows * NORM_LANES);
    const norm_operands last = norm_rest_of(&end, left, l, &rest);
    norm_back_some(state, &last, 1, l);
    memcpy(end.result, rest.result, (size_t)left * sizeof(float));
}

// What is known of group g before its sums.
static void norm_backward_lanes(const norm_state *state, const norm_operands *o, int64_t g,
                                norm_lanes *lanes) {
    memset(lanes, 0, sizeof *lanes);
    for (int64_t lane = 0; lane < state->block; lane++) {
        const int64_t c = g * state->block + lane;
        if (c >= state->channels) continue;
        double inverse = (double)o->variance[c];
        if (!state->training) inverse = (double)(float)(1 / sqrt(inverse + state->epsilon));
        norm_set_lanes(state, lane, o->mean[c], lanes->mean);
        norm_set_lanes(state, lane, (float)((double)o->scale[c] * inverse), lanes->factor);
        if (o->bias != NULL) norm_set_lanes(state, lane, o->bias[c], lanes->bias);
    }
}

// From sums of segments, in order and in double, to the factors of the last pass.
static void norm_settle_backward(const norm_state *state, const norm_operands *o, int64_t g,
                                 const norm_sums *segments, norm_lanes *lanes) {
    const int64_t size = state->segment / state->block; // of a sample's channel
    const double count = (double)(size * state->batch);
    for (int64_t lane = 0; lane < state->block; lane++) {
        const int64_t c = g * state->block + lane;
        if (c >= state->channels) continue;
        double gradient = 0, product = 0;
        for (int64_t n = 0; n < state->batch; n++) {
            for (int64_t j = lane; j < NORM_LANES; j += state->block) {
                gradient += segments[n].gradient[j];
                product += segments[n].product[j];
            }
        }
        double inverse = (double)o->variance[c];
        if (!state->training) inverse = 1 / sqrt(inverse + state->epsilon);
        norm_set_output(o->outputs[0], c, product * inverse);
        norm_set_output(o->outputs[1], c, gradient);
        const double factor = (double)o->scale[c] * inverse;
        norm_set_output(o->outputs[2], c, -factor * gradient);
        norm_set_output(o->outputs[3], c, -factor * inverse * inverse * product / 2);
        if (!state->training) continue;
        norm_set_lanes(state, lane, (float)(-factor * inverse * inverse * product / count),
                       lanes->slope);
        norm_set_lanes(state, lane, (float)(-factor * gradient / count), lanes->offset);
    }
}

static void norm_backward_groups(const norm_state *state, const norm_operands *o, norm_sums *all) {
#pragma omp parallel for schedule(static) if (state->wants_team)
    for (int64_t g = 0; g < state->groups; g++) {
        norm_sums *segments = all + g * state->batch;
        norm_lanes lanes;
        norm_backward_lanes(state, o, g, &lanes);
        for (int64_t n = 0; n < state->batch; n++) {
            norm_sum_segment(state, o, norm_at(state, n, g), &lanes, &segments[n]);
        }
        norm_settle_backward(state, o, g, segments, &lanes);
        for (int64_t n = state->batch; n-- > 0;) {
            norm_back_segment(state, o, norm_at(state, n, g), &lanes);
        }
    }
}

// One team for three loops with barriers between, since starting a team costs as much as a small
// loop.
static void norm_backward_segments(const norm_state *state, const norm_operands *o, norm_sums *all,
                                   norm_lanes *lanes) {
    const int64_t count = state->groups * state->batch;
#pragma omp parallel if (state->wants_team)
    {
#pragma omp for schedule(static)
        for (int64_t g = 0; g < state->groups; g++) {
            norm_backward_lanes(state, o, g, &lanes[g]);
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++) {
            const int64_t g = i / state->batch, n = i % state->batch;
            norm_sum_segment(state, o, norm_at(state, n, g), &lanes[g], &all[i]);
        }
#pragma omp for schedule(static)
        for (int64_t g = 0; g < state->groups; g++) {
            norm_settle_backward(state, o, g, all + g * state->batch, &lanes[g]);
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++) {
            const int64_t g = i / state->batch, n = i % state->batch;
            norm_back_segment(state, o, norm_at(state, n, g), &lanes[g]);
        }
    }
}

static pen_status norm_backward_with(const pen_cpu_call *call, const norm_operands *o) {
    const norm_prepared *prepared = call->state;
    const norm_state *state = &prepared->state;
    if (state->by_segments) {
        norm_backward_segments(state, o, call->workspace,
                               norm_workspace_lanes(state, call, sizeof(norm_sums)));
    } else {
        norm_backward_groups(state, o, call->workspace);
    }
    return PEN_OK;
}

// (dy, x, scale, [bias,] mean, inverse) → dx, dscale, dbias, dmean, dvariance
static pen_status norm_backward_run(const pen_cpu_call *call) {
    const norm_prepared *prepared = call->state;
    const uint32_t mean = prepared->state.relu ? 4 : 3;
    norm_operands o = {
        .dy = call->inputs[0],
        .x = call->inputs[1],
        .scale = call->inputs[2],
        .bias = prepared->state.relu ? call->inputs[3] : NULL,
        .mean = call->inputs[mean],
        .variance = call->inputs[mean + 1],
        .result = call->outputs[0],
    };
    for (uint32_t i = 0; i < 4; i++) {
        o.outputs[i] = norm_output(call, i + 1, prepared->output_count);
    }
    return norm_backward_with(call, &o);
}

// (dy, y, x, scale, mean, inverse, dy_2) → dresidual, dx, dscale, dbias, dmean, dvariance
static pen_status norm_add_backward_run(const pen_cpu_call *call) {
    const norm_prepared *prepared = call->state;
    norm_operands o = {
        .dy = call->inputs[0],
        .y = call->inputs[1],
        .x = call->inputs[2],
        .scale = call->inputs[3],
        .mean = call->inputs[4],
        .variance = call->inputs[5],
        .dy_2 = prepared->input_count > 6 ? call->inputs[6] : NULL,
        .dresidual = call->outputs[0],
        .result = call->outputs[1],
    };
    for (uint32_t i = 0; i < 4; i++) {
        o.outputs[i] = norm_output(call, i + 2, prepared->output_count);
    }
    return norm_backward_with(call, &o);
}

static pen_status norm_backward_prepare(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes) {
    return norm_prepare(request, sizeof(norm_sums), out_state, out_workspace_bytes);
}

static const pen_cpu_kernel normalization_backward_kernels[] = {
    {PEN_CPU_ENTRY("batch_normalization_backward", "segments", norm_supports, norm_backward_prepare,
                   norm_backward_run)},
    {PEN_CPU_ENTRY("batch_normalization_relu_backward", "segments", norm_supports,
                   norm_backward_prepare, norm_backward_run)},
    {PEN_CPU_ENTRY("batch_normalization_add_relu_backward", "segments", norm_supports,
                   norm_backward_prepare, norm_add_backward_run)},
};

PEN_CPU_FAMILY_OF(normalization_backward);
