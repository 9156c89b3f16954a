// Pools, and sums over all positions, plain and blocked.
//
// A tensor is [planes][positions][lanes]: a plane is one channel of one sample with one lane in the
// plain layout, one block of channels with the block's lanes in a blocked one. Planes are shared
// out over the team; the lanes are the vector. Every element is summed in the order of its taps, so
// numbers do not depend on the team. Backward passes clear a plane and scatter into it while it is
// in cache.
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "device/cpu/cpu_kernel.h"
#include "device/cpu/cpu_layout.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops/product/convolution_geometry.h"

#define POOL_LANES_MOST 16
// Below this many elements a pool is not worth a team.
#define POOL_TEAM_ELEMENTS 16384

typedef enum pool_rule {
    POOL_FORWARD, // a mean, where all positions make one number
    POOL_BACKWARD,
    POOL_SUM,
} pool_rule;

typedef struct pool_state {
    pen_conv_geometry geometry;
    int64_t plane_count;
    int64_t planes_of_sample;
    int64_t lanes;
    int64_t lanes_of_last; // channels in a sample's last plane; the other lanes stay zeros
    int64_t input_positions;
    int64_t output_positions;
    double share; // that each position has in what they make together
    bool count_pads;
    bool wants_team;
} pool_state;

// The window of one output position along one dimension: taps [first, last) lie inside the input,
// tap k at `start + k * dilation`.
typedef struct pool_span {
    int64_t start, first, last;
    int64_t counted; // taps inside the input and its pads
} pool_span;

static inline int64_t pool_ceil_divide(int64_t a, int64_t b) {
    return a <= 0 ? 0 : (a + b - 1) / b;
}

static inline pool_span pool_span_of(const pen_conv_geometry *g, int d, int64_t output) {
    const int64_t start = output * g->stride[d] - g->pad_begin[d];
    const int64_t dilation = g->dilation[d], kernel = g->kernel_size[d];
    const int64_t end = g->input_size[d] - start;
    const int64_t first = pool_ceil_divide(-start, dilation);
    return (pool_span){
        .start = start,
        .first = first,
        .last = pen_max_i64(first, pen_min_i64(kernel, pool_ceil_divide(end, dilation))),
        .counted = pen_min_i64(kernel, pool_ceil_divide(end + g->pad_end[d], dilation)),
    };
}

// Calls for every tap of the window (a, b, c), with `at` its offset in the plane.
#define POOL_EACH_TAP(g, a, b, c, lanes, at, ...)                                                  \
    for (int64_t kd = (a).first; kd < (a).last; kd++)                                              \
        for (int64_t kh = (b).first; kh < (b).last; kh++) {                                        \
            const int64_t row = ((a).start + kd * (g)->dilation[0]) * (g)->input_size[1] +         \
                                (b).start + kh * (g)->dilation[1];                                 \
            for (int64_t kw = (c).first; kw < (c).last; kw++) {                                    \
                const int64_t at =                                                                 \
                    (lanes) * (row * (g)->input_size[2] + (c).start + kw * (g)->dilation[2]);      \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }

#define POOL_LANES(l, lanes) _Pragma("omp simd") for (int l = 0; l < (lanes); l++)

// A step of a pass over a plane: one window, output position `to` (an offset of lanes).
typedef struct pool_window {
    const pen_conv_geometry *g;
    pool_span a, b, c;
    int64_t to;
} pool_window;

typedef struct pool_plane {
    const float *x, *y, *dy;
    float *result;
    bool count_pads;
} pool_plane;

static inline void pool_max_window(const pool_window *w, const pool_plane *p, const int lanes) {
    float best[POOL_LANES_MOST];
    POOL_LANES(l, lanes) {
        best[l] = -INFINITY;
    }
    POOL_EACH_TAP(w->g, w->a, w->b, w->c, lanes, at, {
        const float *x = p->x + at;
        POOL_LANES(l, lanes) {
            const int wins = (x[l] > best[l]) | (x[l] != x[l]); // not-a-number does, too
            best[l] = wins ? x[l] : best[l];
        }
    })
    POOL_LANES(l, lanes) {
        p->result[w->to + l] = best[l];
    }
}

// To the first element of the window that is not below its maximum.
static inline void pool_max_back_window(const pool_window *w, const pool_plane *p,
                                        const int lanes) {
    float left[POOL_LANES_MOST]; // what has not found its element
    const float *y = p->y + w->to;
    POOL_LANES(l, lanes) {
        left[l] = p->dy[w->to + l];
    }
    POOL_EACH_TAP(w->g, w->a, w->b, w->c, lanes, at, {
        const float *x = p->x + at;
        float *dx = p->result + at;
        POOL_LANES(l, lanes) {
            const bool is_below = x[l] < y[l];
            dx[l] += is_below ? 0.0f : left[l];
            left[l] = is_below ? left[l] : 0.0f;
        }
    })
}

static inline float pool_share(const pool_window *w, bool count_pads) {
    const int64_t inside =
        (w->a.last - w->a.first) * (w->b.last - w->b.first) * (w->c.last - w->c.first);
    const int64_t counted = count_pads ? w->a.counted * w->b.counted * w->c.counted : inside;
    return 1.0f / (float)(counted > 0 ? counted : 1);
}

static inline void pool_average_window(const pool_window *w, const pool_plane *p, const int lanes) {
    float sum[POOL_LANES_MOST] = {0};
    const float share = pool_share(w, p->count_pads);
    POOL_EACH_TAP(w->g, w->a, w->b, w->c, lanes, at, {
        const float *x = p->x + at;
        POOL_LANES(l, lanes) {
            sum[l] += x[l];
        }
    })
    POOL_LANES(l, lanes) {
        p->result[w->to + l] = sum[l] * share;
    }
}

static inline void pool_average_back_window(const pool_window *w, const pool_plane *p,
                                            const int lanes) {
    float part[POOL_LANES_MOST];
    const float share = pool_share(w, p->count_pads);
    POOL_LANES(l, lanes) {
        part[l] = p->dy[w->to + l] * share;
    }
    POOL_EACH_TAP(w->g, w->a, w->b, w->c, lanes, at, {
        float *dx = p->result + at;
        POOL_LANES(l, lanes) {
            dx[l] += part[l];
        }
    })
}

typedef void (*pool_window_fn)(const pool_window *window, const pool_plane *plane, int lanes);

static inline __attribute__((always_inline)) void pool_plane_run(const pen_conv_geometry *g,
                                                                 const pool_plane *plane,
                                                                 pool_window_fn step,
                                                                 const int lanes) {
    pool_window window = {.g = g};
    for (int64_t d = 0; d < g->output_size[0]; d++) {
        window.a = pool_span_of(g, 0, d);
        for (int64_t h = 0; h < g->output_size[1]; h++) {
            window.b = pool_span_of(g, 1, h);
            for (int64_t w = 0; w < g->output_size[2]; w++) {
                window.c = pool_span_of(g, 2, w);
                step(&window, plane, lanes);
                window.to += lanes;
            }
        }
    }
}

// One function a pass and a count of lanes, so that the lanes are a vector.
#define POOL_PASS(name, step)                                                                      \
    static void name(const pool_state *state, const pool_plane *plane) {                           \
        if (state->lanes == 16) {                                                                  \
            pool_plane_run(&state->geometry, plane, step, 16);                                     \
        } else if (state->lanes == 8) {                                                            \
            pool_plane_run(&state->geometry, plane, step, 8);                                      \
        } else {                                                                                   \
            pool_plane_run(&state->geometry, plane, step, 1);                                      \
        }                                                                                          \
    }

POOL_PASS(pool_max_pass, pool_max_window)
POOL_PASS(pool_max_back_pass, pool_max_back_window)
POOL_PASS(pool_average_pass, pool_average_window)
POOL_PASS(pool_average_back_pass, pool_average_back_window)

typedef void (*pool_pass_fn)(const pool_state *state, const pool_plane *plane);

// The maximum of an empty window is the lowest number, but not in lanes that are no channels.
static void pool_clear_lanes(const pool_state *state, int64_t plane, float *y) {
    if (state->lanes_of_last == state->lanes) return;
    if (plane % state->planes_of_sample != state->planes_of_sample - 1) return;
    for (int64_t i = 0; i < state->output_positions; i++) {
        for (int64_t l = state->lanes_of_last; l < state->lanes; l++) {
            y[i * state->lanes + l] = 0;
        }
    }
}

static void pool_forward(const pen_cpu_call *call, pool_pass_fn pass) {
    const pool_state *state = call->state;
    const float *x = call->inputs[0];
    float *y = call->outputs[0];
    const int64_t input = state->input_positions * state->lanes;
    const int64_t output = state->output_positions * state->lanes;
#pragma omp parallel for schedule(static) if (state->wants_team)
    for (int64_t i = 0; i < state->plane_count; i++) {
        const pool_plane plane = {
            .x = x + i * input, .result = y + i * output, .count_pads = state->count_pads};
        pass(state, &plane);
        if (pass == pool_max_pass) pool_clear_lanes(state, i, y + i * output);
    }
}

// `x` and `y` are NULL for averages.
static void pool_backward(const pen_cpu_call *call, const float *x, const float *y,
                          pool_pass_fn pass) {
    const pool_state *state = call->state;
    const float *dy = call->inputs[0];
    float *dx = call->outputs[0];
    const int64_t input = state->input_positions * state->lanes;
    const int64_t output = state->output_positions * state->lanes;
#pragma omp parallel for schedule(static) if (state->wants_team)
    for (int64_t i = 0; i < state->plane_count; i++) {
        const pool_plane plane = {.x = x == NULL ? NULL : x + i * input,
                                  .y = y == NULL ? NULL : y + i * output,
                                  .dy = dy + i * output,
                                  .result = dx + i * input,
                                  .count_pads = state->count_pads};
        memset(plane.result, 0, (size_t)input * sizeof *dx);
        pass(state, &plane);
    }
}

static pen_status max_pool_run(const pen_cpu_call *call) {
    pool_forward(call, pool_max_pass);
    return PEN_OK;
}

static pen_status average_pool_run(const pen_cpu_call *call) {
    pool_forward(call, pool_average_pass);
    return PEN_OK;
}

static pen_status max_pool_backward_run(const pen_cpu_call *call) {
    pool_backward(call, call->inputs[1], call->inputs[2], pool_max_back_pass);
    return PEN_OK;
}

static pen_status average_pool_backward_run(const pen_cpu_call *call) {
    pool_backward(call, NULL, NULL, pool_average_back_pass);
    return PEN_OK;
}

// Sums of `planes` planes, each in the order of its positions; those of several planes overlap.
static inline __attribute__((always_inline)) void
pool_sum(const float *x, int64_t count, const int planes, const int lanes, double *sum) {
    for (int k = 0; k < planes * lanes; k++) {
        sum[k] = 0;
    }
    for (int64_t i = 0; i < count; i++) {
        for (int p = 0; p < planes; p++) {
            for (int l = 0; l < lanes; l++) {
                sum[p * lanes + l] += (double)x[(p * count + i) * lanes + l];
            }
        }
    }
}

#define POOL_PLANES_AT_ONCE 8 // plain ones

// Of planes [first, first + planes).
static void pool_reduce(const pool_state *state, const float *x, float *y, int64_t first,
                        int64_t planes) {
    double sum[POOL_LANES_MOST] = {0};
    const int64_t count = state->input_positions, lanes = state->lanes;
    const float *from = x + first * count * lanes;
    if (lanes == 16) {
        pool_sum(from, count, 1, 16, sum);
    } else if (lanes == 8) {
        pool_sum(from, count, 1, 8, sum);
    } else if (planes == POOL_PLANES_AT_ONCE) {
        pool_sum(from, count, POOL_PLANES_AT_ONCE, 1, sum);
    } else {
        for (int64_t p = 0; p < planes; p++) {
            pool_sum(from + p * count, count, 1, 1, sum + p);
        }
    }
    for (int64_t k = 0; k < planes * lanes; k++) {
        y[first * lanes + k] = (float)(sum[k] * state->share);
    }
}

// One number of all positions of a channel.
static pen_status pool_reduce_run(const pen_cpu_call *call) {
    const pool_state *state = call->state;
    const int64_t step = state->lanes == 1 ? POOL_PLANES_AT_ONCE : 1;
#pragma omp parallel for schedule(static) if (state->wants_team)
    for (int64_t first = 0; first < state->plane_count; first += step) {
        pool_reduce(state, call->inputs[0], call->outputs[0], first,
                    pen_min_i64(step, state->plane_count - first));
    }
    return PEN_OK;
}

static inline __attribute__((always_inline)) void
pool_spread(const float *dy, float share, int64_t count, const int lanes, float *dx) {
    float part[POOL_LANES_MOST];
    for (int l = 0; l < lanes; l++) {
        part[l] = dy[l] * share;
    }
    for (int64_t i = 0; i < count; i++) {
        for (int l = 0; l < lanes; l++) {
            dx[i * lanes + l] = part[l];
        }
    }
}

// Every position of a plane gets the same share.
static pen_status global_average_pool_backward_run(const pen_cpu_call *call) {
    const pool_state *state = call->state;
    const float *dy = call->inputs[0];
    float *dx = call->outputs[0];
    const int64_t count = state->input_positions;
    const float share = (float)state->share;
#pragma omp parallel for schedule(static) if (state->wants_team)
    for (int64_t i = 0; i < state->plane_count; i++) {
        if (state->lanes == 16) {
            pool_spread(dy + i * 16, share, count, 16, dx + i * count * 16);
        } else if (state->lanes == 8) {
            pool_spread(dy + i * 8, share, count, 8, dx + i * count * 8);
        } else {
            pool_spread(dy + i, share, count, 1, dx + i * count);
        }
    }
    return PEN_OK;
}

static bool pool_suits(const pen_cpu_request *request, pen_value_id id, pen_layout layout) {
    if (!pen_value_is(id)) return false;
    const pen_value *value = pen_graph_value(request->graph, id);
    return value->type.element == PEN_FLOAT32 && value->layout == layout;
}

// Float32 throughout, in one layout, plain or blocked.
static bool pool_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const pen_layout layout = pen_graph_value(request->graph, node->inputs[0])->layout;
    if (layout != PEN_LAYOUT_PLAIN && pen_cpu_layout_block(layout) == 1) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if ((node->op->constant_inputs >> i & 1) != 0) continue; // axes
        if (!pool_suits(request, node->inputs[i], layout)) return false;
    }
    for (uint32_t i = 1; i < node->output_count; i++) {
        if (pen_value_is(node->outputs[i])) return false; // indices
    }
    return pool_suits(request, node->outputs[0], layout);
}

static pen_status pool_prepare_state(const pen_cpu_request *request, const pen_shape *input,
                                     pool_state **out_state) {
    pool_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    const int64_t block =
        pen_cpu_layout_block(pen_graph_value(request->graph, request->node->inputs[0])->layout);
    const int64_t channels = input->dims[1];
    state->lanes = block;
    state->planes_of_sample = (channels + block - 1) / block;
    state->plane_count = input->dims[0] * state->planes_of_sample;
    state->lanes_of_last = channels - (state->planes_of_sample - 1) * block;
    state->input_positions = pen_shape_count(input, 2, input->rank);
    state->output_positions = 1;
    state->share = 1.0 / (double)state->input_positions;
    state->wants_team = pen_shape_element_count(input) >= POOL_TEAM_ELEMENTS;
    *out_state = state;
    return PEN_OK;
}

static pen_status pool_prepare(const pen_cpu_request *request, void **out_state,
                               uint64_t *out_workspace_bytes) {
    const bool is_backward = *(const pool_rule *)request->rule == POOL_BACKWARD;
    pen_conv_geometry geometry = {0};
    pool_state *state;
    PEN_TRY((is_backward ? pen_pool_backward_geometry
                         : pen_pool_geometry)(request->graph, request->node, &geometry));
    const pen_shape input = pen_conv_input_shape(&geometry);
    const pen_shape output = pen_conv_output_shape(&geometry);
    PEN_TRY(pool_prepare_state(request, &input, &state));
    state->geometry = geometry;
    state->output_positions = pen_shape_count(&output, 2, output.rank);
    if (strstr(request->node->op->name, "average") != NULL) {
        state->count_pads = pen_node_int(request->node, "count_include_pad") != 0;
    }
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static pen_status pool_prepare_global(const pen_cpu_request *request, void **out_state,
                                      uint64_t *out_workspace_bytes) {
    const pool_rule rule = *(const pool_rule *)request->rule;
    const pen_node *node = request->node;
    const pen_value_id whole = rule == POOL_BACKWARD ? node->outputs[0] : node->inputs[0];
    pool_state *state;
    PEN_TRY(pool_prepare_state(request, &pen_value_type(request->graph, whole)->shape, &state));
    if (rule == POOL_SUM) state->share = 1;
    *out_state = state;
    *out_workspace_bytes = 0;
    return PEN_OK;
}

static bool pool_reduces_positions(const pen_cpu_request *request) {
    return pool_supports(request) && pen_cpu_reduces_positions(request->graph, request->node);
}

#define POOL_ENTRY(op, prepare, run, rule_op)                                                      \
    PEN_CPU_ENTRY(op, "lanes", pool_supports, prepare, run),                                       \
        .rule = PEN_CPU_RULE(pool_rule, rule_op)
// Those of reduction_cpu.c have another order of sums, and numbers must not depend on the layout.
#define POOL_REDUCTION(op, rule_op)                                                                \
    PEN_CPU_ENTRY(op, "lanes", pool_reduces_positions, pool_prepare_global, pool_reduce_run),      \
        .prefers = pool_reduces_positions, .rule = PEN_CPU_RULE(pool_rule, rule_op)

static const pen_cpu_kernel pooling_kernels[] = {
    {POOL_ENTRY("max_pool", pool_prepare, max_pool_run, POOL_FORWARD)},
    {POOL_ENTRY("average_pool", pool_prepare, average_pool_run, POOL_FORWARD)},
    {POOL_ENTRY("global_average_pool", pool_prepare_global, pool_reduce_run, POOL_FORWARD)},
    {POOL_ENTRY("max_pool_backward", pool_prepare, max_pool_backward_run, POOL_BACKWARD)},
    {POOL_ENTRY("average_pool_backward", pool_prepare, average_pool_backward_run, POOL_BACKWARD)},
    {POOL_ENTRY("global_average_pool_backward", pool_prepare_global,
                global_average_pool_backward_run, POOL_BACKWARD)},
    {POOL_REDUCTION("reduce_sum", POOL_SUM)},
    {POOL_REDUCTION("reduce_mean", POOL_FORWARD)},
};

PEN_CPU_FAMILY_OF(pooling);
