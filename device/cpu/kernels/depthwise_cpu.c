// Gradients of convolutions of one channel each, in blocked layouts.
//
// The channels of a block are the lanes of a vector. The team shares out the blocks of all samples.
// The picture of one is copied band by band between zeros, so that loops need no bounds; a band
// stays in the second cache.
//
// The gradient of the input is a convolution itself; with stride 2 it is four, each of which makes
// every second row and column from every second weight. A tile of positions of a row stays in
// registers while the taps of the window are added.
// For the weights' gradient the sums of a window stay there, and positions are walked over. They
// are added up in float over a few rows, then in double over those and samples, in order. So
// numbers do not depend on the team.
#include <omp.h>
#include <string.h>

#include "base/integer.h"
#include "device/cpu/cpu_kernel.h"
#include "device/cpu/cpu_layout.h"
#include "device/cpu/depthwise.h"
#include "graph/graph.h"
#include "graph/op_known.h"

#ifdef __AVX512F__ // as blocks are at this level, and as many sums as there are registers for
#define DEPTHWISE_LANES 16
#define DEPTHWISE_SUMS 28
#else
#define DEPTHWISE_LANES 8
#define DEPTHWISE_SUMS 12
#endif
#define DEPTHWISE_INLINE static inline __attribute__((always_inline))
#define DEPTHWISE_ROWS 5 // of weights at once, at most
#define DEPTHWISE_TILE 14
#define DEPTHWISE_BAND_FLOATS 16384
#define DEPTHWISE_PIECE 256 // positions that are summed in float
#define DEPTHWISE_TAPS (PEN_DEPTHWISE_ROWS * 7)
// Below this many elements a pass is not worth a team.
#define DEPTHWISE_TEAM_ELEMENTS 16384

typedef float depthwise_vector
    __attribute__((vector_size(4 * DEPTHWISE_LANES), aligned(4), may_alias));
#define DEPTHWISE_AT(place) (*(const depthwise_vector *)(place))
#define DEPTHWISE_STORE(place, vector) (*(depthwise_vector *)(place) = (vector))

// How positions of what is made follow from those of what is read, in one dimension. Position
// `first + j * every` is made from positions j * step - pad + u of the other, for u < taps, with
// weights tap + u * tap_step.
typedef struct depthwise_axis {
    int64_t count, first, every;
    int64_t taps, tap, tap_step;
    int64_t step, pad;
} depthwise_axis;

typedef struct depthwise_state {
    pen_conv_geometry g;
    int64_t blocks; // of channels
    int64_t from_rows, from_columns, to_columns;
    int64_t from_plane, to_plane; // floats of one block of one sample
    depthwise_axis rows[PEN_DEPTHWISE_STRIDE], columns[PEN_DEPTHWISE_STRIDE];
    int64_t phases[2];                           // of rows, of columns
    int64_t copy_before, copy_columns, copy_row; // columns; floats of a row
    int64_t copy_floats;
    int64_t taps;
    bool wants_team;
} depthwise_state;

// One row of what is made, and the first row that it is made from, in the copy.
typedef struct depthwise_line {
    const float *from;
    int64_t from_row;
    const float *weights;
    int64_t rows, columns; // taps
    int64_t weight_row, weight_step;
    float *to;
    int64_t to_step;
    bool adds;
} depthwise_line;

// `count` positions from `at` on, a constant where this is called.
DEPTHWISE_INLINE void depthwise_tile(const depthwise_line *line, int64_t at, const int count) {
    depthwise_vector sums[DEPTHWISE_TILE] = {0};
    const float *from = line->from + at * DEPTHWISE_LANES;
    const float *weights = line->weights;
    for (int64_t r = 0; r < line->rows; r++) {
        for (int64_t u = 0; u < line->columns; u++) {
            const depthwise_vector weight = DEPTHWISE_AT(weights + u * line->weight_step);
            const float *tap = from + u * DEPTHWISE_LANES;
            for (int i = 0; i < count; i++) {
                sums[i] += weight * DEPTHWISE_AT(tap + i * DEPTHWISE_LANES);
            }
        }
        from += line->from_row;
        weights += line->weight_row;
    }
    float *to = line->to + at * line->to_step;
    for (int i = 0; i < count; i++) {
        float *place = to + i * line->to_step;
        if (line->adds) sums[i] += DEPTHWISE_AT(place);
        DEPTHWISE_STORE(place, sums[i]);
    }
}

static void depthwise_tiles(const depthwise_line *line, int64_t count) {
    int64_t at = 0;
    for (; count - at >= DEPTHWISE_TILE; at += DEPTHWISE_TILE) {
        depthwise_tile(line, at, DEPTHWISE_TILE);
    }
    if (count - at >= 7) {
        depthwise_tile(line, at, 7);
        at += 7;
    }
    if (count - at >= 4) {
        depthwise_tile(line, at, 4);
        at += 4;
    }
    for (; at < count; at++) {
        depthwise_tile(line, at, 1);
    }
}

// Zeros so many columns, and goes behind them. (Few: a call of memset takes longer.)
static inline void depthwise_clear(float **place, int64_t columns) {
    const depthwise_vector none = {0};
    for (int64_t i = 0; i < columns; i++) {
        DEPTHWISE_STORE(*place, none);
        *place += DEPTHWISE_LANES;
    }
}

// Copies rows [row, row + rows) of a plane, from `before` columns before its first on; zeros where
// the plane has nothing.
static void depthwise_copy(const depthwise_state *state, const float *plane, int64_t row,
                           int64_t rows, float *copy) {
    const int64_t begin = pen_max_i64(0, -state->copy_before);
    const int64_t end = pen_min_i64(state->from_columns, state->copy_columns - state->copy_before);
    for (int64_t r = row; r < row + rows; r++, copy += state->copy_row) {
        float *to = copy;
        if (r < 0 || r >= state->from_rows || begin >= end) {
            depthwise_clear(&to, state->copy_columns);
            continue;
        }
        const float *from = plane + (r * state->from_columns + begin) * DEPTHWISE_LANES;
        depthwise_clear(&to, begin + state->copy_before);
        for (int64_t column = begin; column < end; column++) {
            DEPTHWISE_STORE(to, DEPTHWISE_AT(from));
            to += DEPTHWISE_LANES;
            from += DEPTHWISE_LANES;
        }
        depthwise_clear(&to, state->copy_columns - state->copy_before - end);
    }
}

// The rows of a band that one copy can have, of which each takes `taps` rows.
static int64_t depthwise_band(const depthwise_state *state, int64_t taps, int64_t step) {
    const int64_t rows = DEPTHWISE_BAND_FLOATS / state->copy_row;
    return rows <= taps ? 1 : (rows - taps) / step + 1;
}

// ---- the gradient of the input

// A line of each phase of columns, at `row` of what is made.
static void depthwise_row(const depthwise_state *state, const depthwise_axis *y, int64_t row,
                          const float *copy, const float *weights, depthwise_line line) {
    const int64_t kernel = state->g.kernel_size[PEN_DEPTHWISE_X];
    float *to = line.to + (y->first + row * y->every) * state->to_columns * DEPTHWISE_LANES;
    line.from_row = state->copy_row;
    line.rows = y->taps;
    line.weight_row = y->tap_step * kernel * DEPTHWISE_LANES;
    for (int64_t p = 0; p < state->phases[1]; p++) {
        const depthwise_axis *x = &state->columns[p];
        line.from = copy + (state->copy_before - x->pad) * DEPTHWISE_LANES;
        line.columns = x->taps;
        line.weights = weights + (y->tap * kernel + x->tap) * DEPTHWISE_LANES;
        line.weight_step = x->tap_step * DEPTHWISE_LANES;
        line.to = to + x->first * DEPTHWISE_LANES;
        line.to_step = x->every * DEPTHWISE_LANES;
        depthwise_tiles(&line, x->count);
    }
}

// One block of one sample.
static void depthwise_plane(const depthwise_state *state, const float *plane, const float *weights,
                            const depthwise_line *line, float *copy) {
    for (int64_t p = 0; p < state->phases[0]; p++) {
        const depthwise_axis *y = &state->rows[p];
        const int64_t band = depthwise_band(state, y->taps, y->step);
        for (int64_t first = 0; first < y->count; first += band) {
            const int64_t rows = pen_min_i64(band, y->count - first);
            depthwise_copy(state, plane, first * y->step - y->pad, (rows - 1) * y->step + y->taps,
                           copy);
            for (int64_t row = 0; row < rows; row++) {
                depthwise_row(state, y, first + row, copy + row * y->step * state->copy_row,
                              weights, *line);
            }
        }
    }
}

// Weights of a block, tap by tap in vectors.
static void depthwise_pack(const depthwise_state *state, const float *weights, int64_t block,
                           float *packed) {
    for (int64_t lane = 0; lane < DEPTHWISE_LANES; lane++) {
        const int64_t channel = block * DEPTHWISE_LANES + lane;
        const bool is_there = channel < state->g.group_count;
        for (int64_t k = 0; k < state->taps; k++) {
            packed[k * DEPTHWISE_LANES + lane] =
                is_there ? weights[channel * state->taps + k] : 0.0f;
        }
    }
}

// Weights are packed once for all samples; then the team shares out the blocks of samples.
static pen_status depthwise_run_input(const pen_cpu_call *call) {
    const depthwise_state *state = call->state;
    const int64_t packed_floats = state->taps * DEPTHWISE_LANES;
    float *packed = call->workspace, *copies = packed + state->blocks * packed_floats;
#pragma omp parallel if (state->wants_team)
    {
        float *copy = copies + omp_get_thread_num() * state->copy_floats;
#pragma omp for schedule(static)
        for (int64_t block = 0; block < state->blocks; block++) {
            depthwise_pack(state, call->inputs[1], block, packed + block * packed_floats);
        }
#pragma omp for schedule(static)
        for (int64_t unit = 0; unit < state->g.batch * state->blocks; unit++) {
            const float *weights = packed + unit % state->blocks * packed_floats;
            const depthwise_line line = {.to = (float *)call->outputs[0] + unit * state->to_plane,
                                         .adds = call->accumulate};
            depthwise_plane(state, (const float *)call->inputs[0] + unit * state->from_plane,
                            weights, &line, copy);
        }
    }
    return PEN_OK;
}

// ---- the gradient of the weights

// Positions of dy, and what windows at the first of them begin with in the copy.
typedef struct depthwise_walk {
    const float *from, *dy;
    int64_t from_row, from_down, from_step; // floats to the next row; as y goes on; as x does
    int64_t rows, columns;
} depthwise_walk;

// Adds to `sums` what `rows` rows of `columns` weights are given, which are constants where this is
// called.
DEPTHWISE_INLINE void depthwise_add(const depthwise_walk *walk, const int rows, const int columns,
                                    double *sums) {
    depthwise_vector totals[DEPTHWISE_SUMS] = {0};
    const float *dy = walk->dy;
    for (int64_t y = 0; y < walk->rows; y++) {
        // a pointer for each row: offsets from one do not fit the registers
        const float *from[DEPTHWISE_ROWS];
        for (int r = 0; r < rows; r++) {
            from[r] = walk->from + y * walk->from_down + r * walk->from_row;
        }
        for (int64_t x = 0; x < walk->columns; x++) {
            const depthwise_vector d = DEPTHWISE_AT(dy);
            for (int r = 0; r < rows; r++) {
                for (int k = 0; k < columns; k++) {
                    totals[r * columns + k] += d * DEPTHWISE_AT(from[r] + k * DEPTHWISE_LANES);
                }
                from[r] += walk->from_step;
            }
            dy += DEPTHWISE_LANES;
        }
    }
    for (int k = 0; k < rows * columns; k++) {
        for (int lane = 0; lane < DEPTHWISE_LANES; lane++) {
            sums[k * DEPTHWISE_LANES + lane] += (double)totals[k][lane];
        }
    }
}

// Rows of weights whose sums fit the registers.
static int64_t depthwise_rows_at_once(const depthwise_state *state) {
    return pen_min_i64(DEPTHWISE_SUMS / state->g.kernel_size[PEN_DEPTHWISE_X], DEPTHWISE_ROWS);
}

#define DEPTHWISE_ADD(rows, columns)                                                               \
    if ((rows) * (columns) <= DEPTHWISE_SUMS) depthwise_add(walk, rows, columns, sums)

static void depthwise_add_5(const depthwise_walk *walk, int64_t rows, double *sums) {
    if (rows == 1) DEPTHWISE_ADD(1, 5);
    if (rows == 2) DEPTHWISE_ADD(2, 5);
    if (rows == 3) DEPTHWISE_ADD(3, 5);
    if (rows == 4) DEPTHWISE_ADD(4, 5);
    if (rows == 5) DEPTHWISE_ADD(5, 5);
}

static void depthwise_add_7(const depthwise_walk *walk, int64_t rows, double *sums) {
    if (rows == 1) DEPTHWISE_ADD(1, 7);
    if (rows == 2) DEPTHWISE_ADD(2, 7);
    if (rows == 3) DEPTHWISE_ADD(3, 7);
    if (rows == 4) DEPTHWISE_ADD(4, 7);
}

// One block of one sample, and a thread's room for copies.
typedef struct depthwise_unit {
    const float *x, *dy;
    float *copy;
} depthwise_unit;

// What the unit gives `count` rows of weights from `first` on.
static void depthwise_sum_rows(const depthwise_state *state, const depthwise_unit *unit,
                               int64_t first, int64_t count, double *sums) {
    const depthwise_axis *y = &state->rows[0];
    const int64_t width = state->g.kernel_size[PEN_DEPTHWISE_X];
    const int64_t band = depthwise_band(state, count, y->step);
    const int64_t piece = pen_max_i64(1, DEPTHWISE_PIECE / state->to_columns);
    for (int64_t row = 0; row < y->count; row += band) {
        const int64_t rows = pen_min_i64(band, y->count - row);
        depthwise_copy(state, unit->x, row * y->step - y->pad + first, (rows - 1) * y->step + count,
                       unit->copy);
        for (int64_t at = 0; at < rows; at += piece) {
            const depthwise_walk walk = {
                .from = unit->copy + at * y->step * state->copy_row,
                .dy = unit->dy + (row + at) * state->to_columns * DEPTHWISE_LANES,
                .from_row = state->copy_row,
                .from_down = y->step * state->copy_row,
                .from_step = state->columns[0].step * DEPTHWISE_LANES,
                .rows = pen_min_i64(piece, rows - at),
                .columns = state->to_columns,
            };
            if (width == 5) depthwise_add_5(&walk, count, sums);
            if (width == 7) depthwise_add_7(&walk, count, sums);
        }
    }
}

// Adds up what the samples give the weights of a block.
static void depthwise_join(const depthwise_state *state, const double *sums, int64_t block,
                           bool adds, float *out) {
    const int64_t first = block * DEPTHWISE_LANES;
    const int64_t lanes = pen_min_i64(DEPTHWISE_LANES, state->g.group_count - first);
    for (int64_t k = 0; k < state->taps; k++) {
        double totals[DEPTHWISE_LANES] = {0};
        for (int64_t n = 0; n < state->g.batch; n++) {
            const double *of =
                sums + ((n * state->blocks + block) * state->taps + k) * DEPTHWISE_LANES;
            for (int lane = 0; lane < DEPTHWISE_LANES; lane++) {
                totals[lane] += of[lane];
            }
        }
        for (int64_t lane = 0; lane < lanes; lane++) {
            float *place = out + (first + lane) * state->taps + k;
            *place = (float)(adds ? (double)*place + totals[lane] : totals[lane]);
        }
    }
}

// Each block of each sample has sums of its own; then the team shares out the blocks of weights.
static pen_status depthwise_run_weight(const pen_cpu_call *call) {
    const depthwise_state *state = call->state;
    const int64_t rows = state->g.kernel_size[PEN_DEPTHWISE_Y];
    const int64_t width = state->g.kernel_size[PEN_DEPTHWISE_X];
    const int64_t units = state->g.batch * state->blocks, most = depthwise_rows_at_once(state);
    const int64_t unit_sums = state->taps * DEPTHWISE_LANES;
    double *sums = call->workspace;
    float *copies = (void *)(sums + units * unit_sums);
#pragma omp parallel if (state->wants_team)
    {
        float *copy = copies + omp_get_thread_num() * state->copy_floats;
#pragma omp for schedule(static)
        for (int64_t unit = 0; unit < units; unit++) {
            const depthwise_unit of = {
                .x = (const float *)call->inputs[0] + unit * state->from_plane,
                .dy = (const float *)call->inputs[1] + unit * state->to_plane,
                .copy = copy,
            };
            double *own = sums + unit * unit_sums;
            memset(own, 0, (size_t)unit_sums * sizeof *own);
            for (int64_t first = 0; first < rows; first += most) {
                depthwise_sum_rows(state, &of, first, pen_min_i64(most, rows - first),
                                   own + first * width * DEPTHWISE_LANES);
            }
        }
#pragma omp for schedule(static)
        for (int64_t block = 0; block < state->blocks; block++) {
            depthwise_join(state, sums, block, call->accumulate, call->outputs[0]);
        }
    }
    return PEN_OK;
}

// ---- kernels

static depthwise_axis depthwise_forward_axis(const pen_conv_geometry *g, int d) {
    return (depthwise_axis){.count = g->output_size[d],
                            .every = 1,
                            .taps = g->kernel_size[d],
                            .tap_step = 1,
                            .step = g->stride[d],
                            .pad = g->pad_begin[d]};
}

// Positions `phase`, `phase` + stride, … of the input. Those taps of the window count that it meets
// at some position of the output; the last of them comes from the first such position.
static depthwise_axis depthwise_backward_axis(const pen_conv_geometry *g, int d, int64_t phase) {
    const int64_t stride = g->stride[d], from = phase + g->pad_begin[d];
    const int64_t tap = ((from % stride) + stride) % stride;
    const int64_t kernel = g->kernel_size[d];
    const int64_t taps = tap < kernel ? (kernel - tap + stride - 1) / stride : 0;
    return (depthwise_axis){.count = (g->input_size[d] - phase + stride - 1) / stride,
                            .first = phase,
                            .every = stride,
                            .taps = taps,
                            .tap = taps > 0 ? tap + (taps - 1) * stride : 0,
                            .tap_step = -stride,
                            .step = 1,
                            .pad = taps - 1 - (from - tap) / stride};
}

// The axes of one dimension, and how many there are.
static int64_t depthwise_axes(const pen_conv_geometry *g, int d, bool is_backward,
                              depthwise_axis *out_axes) {
    if (!is_backward) {
        out_axes[0] = depthwise_forward_axis(g, d);
        return 1;
    }
    for (int64_t phase = 0; phase < g->stride[d]; phase++) {
        out_axes[phase] = depthwise_backward_axis(g, d, phase);
    }
    return g->stride[d];
}

// The width of copies: from the first column that any phase reads to the last.
static void depthwise_set_copy(depthwise_state *state) {
    int64_t rows = 1, behind = 1;
    state->copy_before = state->columns[0].pad;
    for (int64_t p = 1; p < state->phases[1]; p++) {
        state->copy_before = pen_max_i64(state->copy_before, state->columns[p].pad);
    }
    for (int64_t p = 0; p < state->phases[1]; p++) {
        const depthwise_axis *x = &state->columns[p];
        behind = pen_max_i64(behind, (x->count - 1) * x->step + x->taps - x->pad);
    }
    state->copy_columns = pen_max_i64(1, state->copy_before + behind);
    state->copy_row = state->copy_columns * DEPTHWISE_LANES;
    for (int64_t p = 0; p < state->phases[0]; p++) {
        rows = pen_max_i64(rows, state->rows[p].taps);
    }
    const int64_t least = rows * state->copy_row;
    state->copy_floats = pen_max_i64(least, DEPTHWISE_BAND_FLOATS);
}

static bool depthwise_lies_well(const pen_cpu_request *request, pen_value_id id) {
    return pen_cpu_layout_block(pen_graph_value(request->graph, id)->layout) == DEPTHWISE_LANES;
}

static bool depthwise_supports(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const bool is_weight = node->op == PEN_OP(conv_backward_weight);
    pen_conv_geometry g;
    return pen_depthwise_is(request->graph, node, &g) &&
           depthwise_lies_well(request, node->inputs[0]) &&
           depthwise_lies_well(request, is_weight ? node->inputs[1] : node->outputs[0]) &&
           pen_cpu_is_plain_float(request, is_weight ? node->outputs[0] : node->inputs[1]) &&
           (node->input_count < 3 || pen_cpu_is_plain_float(request, node->inputs[2]));
}

// Workspace: packed weights, or sums for each block of each sample; then a copy for each thread.
static pen_status depthwise_prepare(const pen_cpu_request *request, void **out_state,
                                    uint64_t *out_workspace_bytes) {
    depthwise_state *state;
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    pen_conv_geometry *g = &state->g;
    const bool is_there = pen_depthwise_is(request->graph, request->node, g);
    PEN_ASSERT(is_there);
    const bool is_backward = request->node->op == PEN_OP(conv_backward_input);
    const bool is_weight = request->node->op == PEN_OP(conv_backward_weight);
    const int64_t *from = is_backward ? g->output_size : g->input_size;
    const int64_t *to = is_backward ? g->input_size : g->output_size;
    state->blocks = (g->group_count + DEPTHWISE_LANES - 1) / DEPTHWISE_LANES;
    state->taps = g->kernel_size[PEN_DEPTHWISE_Y] * g->kernel_size[PEN_DEPTHWISE_X];
    PEN_ASSERT(state->taps <= DEPTHWISE_TAPS);
    state->from_rows = from[PEN_DEPTHWISE_Y];
    state->from_columns = from[PEN_DEPTHWISE_X];
    state->to_columns = to[PEN_DEPTHWISE_X];
    state->from_plane = state->from_rows * state->from_columns * DEPTHWISE_LANES;
    state->to_plane = to[PEN_DEPTHWISE_Y] * state->to_columns * DEPTHWISE_LANES;
    state->phases[0] = depthwise_axes(g, PEN_DEPTHWISE_Y, is_backward, state->rows);
    state->phases[1] = depthwise_axes(g, PEN_DEPTHWISE_X, is_backward, state->columns);
    depthwise_set_copy(state);
    const int64_t units = g->batch * state->blocks;
    state->wants_team =
        units * pen_max_i64(state->from_plane, state->to_plane) > DEPTHWISE_TEAM_ELEMENTS;
    const uint64_t copies = (uint64_t)state->copy_floats * request->thread_count * sizeof(float);
    const uint64_t packed = (uint64_t)(state->blocks * state->taps) * sizeof(float);
    const uint64_t sums = (uint64_t)(units * state->taps) * sizeof(double);
    *out_state = state;
    *out_workspace_bytes = copies + (is_weight ? sums : packed) * DEPTHWISE_LANES;
    return PEN_OK;
}

static bool depthwise_prefers(const pen_cpu_request *request) {
    (void)request;
    return true;
}

#define DEPTHWISE_KERNEL(op, run)                                                                  \
    {                                                                                              \
        PEN_CPU_ENTRY(op, "depthwise", depthwise_supports, depthwise_prepare, run),                \
            .can_accumulate = true, .prefers = depthwise_prefers                                   \
    }

static const pen_cpu_kernel depthwise_kernels[] = {
    DEPTHWISE_KERNEL("conv_backward_input", depthwise_run_input),
    DEPTHWISE_KERNEL("conv_backward_weight", depthwise_run_weight),
};

PEN_CPU_FAMILY_OF(depthwise);
