// Resizing of planes, the last two dimensions: rows are mixed into one, then its elements.
//
// Planes are shared out among the team in fixed pieces, and each is worked on by one thread, in
// order: the numbers do not depend on the team.
#include <string.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/window/resize_geometry.h"

// The taps of one axis, as arrays that loops can run over.
typedef struct resize_line {
    int64_t from, to;
    uint32_t tap_count;
    int32_t *index; // [to][tap_count]
    float *weight;  // [to][tap_count]
} resize_line;

typedef struct resize_state {
    int64_t planes;
    resize_line rows, columns;
    uint32_t piece_count;
} resize_state;

static const pen_shape *resize_small_shape(const pen_cpu_request *request) {
    const bool is_backward = strcmp(request->node->op->name, "resize_backward") == 0;
    const pen_value_id small = is_backward ? request->node->outputs[0] : request->node->inputs[0];
    return &pen_value_type(request->graph, small)->shape;
}

// Only planes change their size, and nothing lies outside.
static bool resize_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const pen_shape *small = resize_small_shape(request);
    pen_resize resize;
    if (!pen_cpu_is_plain_float(request, node->inputs[0]) ||
        !pen_cpu_is_plain_float(request, node->outputs[0]) || small->rank < 2) {
        return false;
    }
    const pen_status status = pen_resize_of(request->graph, node, small, &resize);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the reference kernel will say it");
        return false;
    }
    if (strcmp(resize.coordinate, "tf_crop_and_resize") == 0) return false;
    for (uint32_t d = 0; d + 2 < resize.rank; d++) {
        if (resize.axes[d].from != resize.axes[d].to || resize.axes[d].scale != 1) return false;
    }
    return resize.axes[resize.rank - 1].from <= INT32_MAX &&
           resize.axes[resize.rank - 2].from <= INT32_MAX;
}

// Taps and weights of each row or column are computed once.
static pen_status resize_line_make(const pen_cpu_request *request, const pen_resize *resize,
                                   uint32_t axis, resize_line *line) {
    const size_t to = (size_t)resize->axes[axis].to;
    pen_resize_taps taps = {.count = 1};
    line->from = resize->axes[axis].from;
    line->to = resize->axes[axis].to;
    if (to > 0) pen_resize_find_taps(resize, axis, 0, &taps);
    line->tap_count = taps.count;
    PEN_TRY(PEN_NEW(request->arena, to * taps.count, &line->index));
    PEN_TRY(PEN_NEW(request->arena, to * taps.count, &line->weight));
    for (size_t i = 0; i < to; i++) {
        pen_resize_find_taps(resize, axis, (int64_t)i, &taps);
        PEN_ASSERT(taps.count == line->tap_count);
        for (uint32_t t = 0; t < taps.count; t++) {
            line->index[i * taps.count + t] = (int32_t)taps.index[t];
            line->weight[i * taps.count + t] = (float)taps.weight[t];
        }
    }
    return PEN_OK;
}

static pen_status resize_prepare(const pen_cpu_request *request, void **out_state,
                                 uint64_t *out_workspace_bytes) {
    const pen_shape *small = resize_small_shape(request);
    pen_resize resize;
    resize_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    PEN_TRY(pen_resize_of(request->graph, request->node, small, &resize));
    state->planes = pen_shape_count(small, 0, small->rank - 2);
    PEN_TRY(resize_line_make(request, &resize, small->rank - 2, &state->rows));
    PEN_TRY(resize_line_make(request, &resize, small->rank - 1, &state->columns));
    state->piece_count = request->thread_count > 0 ? request->thread_count : 1;
    *out_state = state;
    *out_workspace_bytes =
        (uint64_t)state->piece_count * (uint64_t)state->columns.from * sizeof(float);
    return PEN_OK;
}

// mixed = the rows of `plane` that row `row` of the result is made of.
static void resize_mix_rows(const resize_state *state, const float *plane, int64_t row,
                            float *mixed) {
    const resize_line *rows = &state->rows;
    const int64_t width = state->columns.from;
    for (uint32_t t = 0; t < rows->tap_count; t++) {
        const float weight = rows->weight[row * rows->tap_count + t];
        const float *from = plane + rows->index[row * rows->tap_count + t] * width;
        if (t == 0) {
            for (int64_t i = 0; i < width; i++) {
                mixed[i] = weight * from[i];
            }
        } else {
            for (int64_t i = 0; i < width; i++) {
                mixed[i] += weight * from[i];
            }
        }
    }
}

static void resize_plane(const resize_state *state, const float *x, float *mixed, float *y) {
    const resize_line *columns = &state->columns;
    for (int64_t row = 0; row < state->rows.to; row++) {
        resize_mix_rows(state, x, row, mixed);
        const int32_t *index = columns->index;
        const float *weight = columns->weight;
        for (int64_t i = 0; i < columns->to; i++) {
            float sum = weight[0] * mixed[index[0]];
            for (uint32_t t = 1; t < columns->tap_count; t++) {
                sum += weight[t] * mixed[index[t]];
            }
            *y++ = sum;
            index += columns->tap_count;
            weight += columns->tap_count;
        }
    }
}

// Spreads gradients back over the taps, columns first, then rows.
static void resize_plane_backward(const resize_state *state, const float *dy, float *mixed,
                                  float *dx) {
    const resize_line *rows = &state->rows, *columns = &state->columns;
    const int64_t width = columns->from;
    memset(dx, 0, (size_t)(rows->from * width) * sizeof *dx);
    for (int64_t row = 0; row < rows->to; row++) {
        memset(mixed, 0, (size_t)width * sizeof *mixed);
        for (int64_t i = 0; i < columns->to; i++) {
            const float gradient = *dy++;
            for (uint32_t t = 0; t < columns->tap_count; t++) {
                const int64_t at = i * columns->tap_count + t;
                mixed[columns->index[at]] += columns->weight[at] * gradient;
            }
        }
        for (uint32_t t = 0; t < rows->tap_count; t++) {
            const float weight = rows->weight[row * rows->tap_count + t];
            float *to = dx + rows->index[row * rows->tap_count + t] * width;
            for (int64_t i = 0; i < width; i++) {
                to[i] += weight * mixed[i];
            }
        }
    }
}

// Planes are shared out in fixed pieces, each with a line of scratch.
static pen_status resize_run_all(const pen_cpu_call *call, bool is_backward) {
    const resize_state *state = call->state;
    const float *in = call->inputs[0];
    float *out = call->outputs[0], *workspace = call->workspace;
    const int64_t small = state->rows.from * state->columns.from;
    const int64_t large = state->rows.to * state->columns.to;
    const int64_t pieces = state->piece_count;
#pragma omp parallel for schedule(static) if (pieces > 1 && state->planes > 1)
    for (int64_t p = 0; p < pieces; p++) {
        float *mixed = workspace + p * state->columns.from;
        for (int64_t plane = state->planes * p / pieces; plane < state->planes * (p + 1) / pieces;
             plane++) {
            if (is_backward) {
                resize_plane_backward(state, in + plane * large, mixed, out + plane * small);
            } else {
                resize_plane(state, in + plane * small, mixed, out + plane * large);
            }
        }
    }
    return PEN_OK;
}

static pen_status resize_run(const pen_cpu_call *call) {
    return resize_run_all(call, false);
}

static pen_status resize_backward_run(const pen_cpu_call *call) {
    return resize_run_all(call, true);
}

static const pen_cpu_kernel resize_kernels[] = {
    {PEN_CPU_ENTRY("resize", "cpu", resize_supports, resize_prepare, resize_run)},
    {PEN_CPU_ENTRY("resize_backward", "cpu", resize_supports, resize_prepare, resize_backward_run)},
};

PEN_CPU_FAMILY_OF(resize);
