// Sums, means, norms and extrema over any axes.
//
// The axes are joined into as few alternating dimensions as will do. If the last is reduced, rows
// shrink to numbers; if it is kept, rows are combined element by element. Tasks are bounded by
// sizes alone, and their results combined in order, so the team's size does not change a bit.
#include <math.h>

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/kernels/loops/map_entry.h"
#include "device/cpu/kernels/loops/vector_math.h"
#include "graph/graph.h"
#include "graph/ops/reduction/reduction_axes.h"

#define REDUCTION_TEAM_ELEMENTS 32768
#define REDUCTION_COLUMNS 256 // kept elements of a task
#define REDUCTION_BLOCK 4096  // elements of a row summed in float32
#define REDUCTION_ROWS 64     // rows added in float32
#define REDUCTION_PART_LIMIT 32

typedef enum reduction_rule {
    REDUCTION_SUM,
    REDUCTION_ABSOLUTE,
    REDUCTION_SQUARE,
    REDUCTION_MAX,
    REDUCTION_MIN,
} reduction_rule;

typedef struct reduction_entry {
    reduction_rule rule;
    bool is_mean;
    bool is_root;
} reduction_entry;

// Some dimensions of the operand, walked as one.
typedef struct reduction_dims {
    uint32_t rank;
    int64_t dims[2 * PEN_RANK_LIMIT];
    int64_t strides[2 * PEN_RANK_LIMIT];
    int64_t count;
} reduction_dims;

typedef struct reduction_state {
    reduction_rule rule;
    bool is_root;
    double factor; // 1, or 1 / count for a mean
    bool row_is_reduced;
    int64_t row;            // length of the last dimension
    reduction_dims kept;    // without the last, if that is kept
    reduction_dims reduced; // without the last, if that is reduced
    int64_t output_count;
    int64_t column_tasks; // pieces of a kept row
    int64_t part_count;   // the reduced dimensions are shared out over this many tasks
    int64_t task_count;   // of a part
    int64_t element_count;
} reduction_state;

static double reduction_start(reduction_rule rule) {
    switch (rule) {
    case REDUCTION_MAX:
        return -(double)INFINITY;
    case REDUCTION_MIN:
        return (double)INFINITY;
    case REDUCTION_SUM:
    case REDUCTION_ABSOLUTE:
    case REDUCTION_SQUARE:
        break;
    }
    return 0;
}

// Not a number wins over everything.
static inline float reduction_larger(float best, float x) {
    return x > best || x != x ? x : best;
}
static inline float reduction_smaller(float best, float x) {
    return x < best || x != x ? x : best;
}

static double reduction_combine(reduction_rule rule, double a, double b) {
    switch (rule) {
    case REDUCTION_MAX:
        return b > a || b != b ? b : a;
    case REDUCTION_MIN:
        return b < a || b != b ? b : a;
    case REDUCTION_SUM:
    case REDUCTION_ABSOLUTE:
    case REDUCTION_SQUARE:
        break;
    }
    return a + b;
}

// The sum of f(x) over a block, in four chains so that additions overlap.
#define REDUCTION_DEFINE_BLOCK(name, f)                                                            \
    static double reduction_block_##name(const float *x, int64_t count) {                          \
        const int64_t quarter = count / 4;                                                         \
        const float *x1 = x + quarter, *x2 = x1 + quarter, *x3 = x2 + quarter;                     \
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                      \
        _Pragma("omp simd reduction(+ : s0, s1, s2, s3)") for (int64_t i = 0; i < quarter; i++) {  \
            s0 += f(x[i]);                                                                         \
            s1 += f(x1[i]);                                                                        \
            s2 += f(x2[i]);                                                                        \
            s3 += f(x3[i]);                                                                        \
        }                                                                                          \
        for (int64_t i = 4 * quarter; i < count; i++) {                                            \
            s0 += f(x[i]);                                                                         \
        }                                                                                          \
        return ((double)s0 + (double)s1) + ((double)s2 + (double)s3);                              \
    }

#define REDUCTION_ITSELF(x) (x)
#define REDUCTION_SQUARED(x) ((x) * (x))
REDUCTION_DEFINE_BLOCK(sum, REDUCTION_ITSELF)
REDUCTION_DEFINE_BLOCK(absolute, fabsf)
REDUCTION_DEFINE_BLOCK(square, REDUCTION_SQUARED)

#define REDUCTION_LANES 32
#define REDUCTION_DEFINE_EXTREMUM(name, better)                                                    \
    static double reduction_block_##name(const float *x, int64_t count) {                          \
        float best[REDUCTION_LANES];                                                               \
        int64_t i = 0;                                                                             \
        for (int lane = 0; lane < REDUCTION_LANES; lane++) {                                       \
            best[lane] = x[0];                                                                     \
        }                                                                                          \
        for (; i + REDUCTION_LANES <= count; i += REDUCTION_LANES) {                               \
            for (int lane = 0; lane < REDUCTION_LANES; lane++) {                                   \
                best[lane] = better(best[lane], x[i + lane]);                                      \
            }                                                                                      \
        }                                                                                          \
        for (; i < count; i++) {                                                                   \
            best[0] = better(best[0], x[i]);                                                       \
        }                                                                                          \
        for (int lane = 1; lane < REDUCTION_LANES; lane++) {                                       \
            best[0] = better(best[0], best[lane]);                                                 \
        }                                                                                          \
        return (double)best[0];                                                                    \
    }
REDUCTION_DEFINE_EXTREMUM(max, reduction_larger)
REDUCTION_DEFINE_EXTREMUM(min, reduction_smaller)

static double reduction_block(reduction_rule rule, const float *x, int64_t count) {
    switch (rule) {
    case REDUCTION_SUM:
        return reduction_block_sum(x, count);
    case REDUCTION_ABSOLUTE:
        return reduction_block_absolute(x, count);
    case REDUCTION_SQUARE:
        return reduction_block_square(x, count);
    case REDUCTION_MAX:
        return reduction_block_max(x, count);
    case REDUCTION_MIN:
        break;
    }
    return reduction_block_min(x, count);
}

static double reduction_row(reduction_rule rule, const float *x, int64_t count) {
    double total = reduction_start(rule);
    for (int64_t first = 0; first < count; first += REDUCTION_BLOCK) {
        const int64_t rest = count - first;
        const int64_t size = rest < REDUCTION_BLOCK ? rest : REDUCTION_BLOCK;
        total = reduction_combine(rule, total, reduction_block(rule, x + first, size));
    }
    return total;
}

#define REDUCTION_COLUMN_LOOP(step)                                                                \
    _Pragma("omp simd") for (int64_t i = 0; i < count; i++) {                                      \
        step;                                                                                      \
    }

// Combines a row into `best`, element by element.
static void reduction_columns(reduction_rule rule, float *best, const float *x, int64_t count) {
    switch (rule) {
    case REDUCTION_SUM:
        REDUCTION_COLUMN_LOOP(best[i] += x[i])
        return;
    case REDUCTION_ABSOLUTE:
        REDUCTION_COLUMN_LOOP(best[i] += fabsf(x[i]))
        return;
    case REDUCTION_SQUARE:
        REDUCTION_COLUMN_LOOP(best[i] += x[i] * x[i])
        return;
    case REDUCTION_MAX:
        REDUCTION_COLUMN_LOOP(best[i] = reduction_larger(best[i], x[i]))
        return;
    case REDUCTION_MIN:
        REDUCTION_COLUMN_LOOP(best[i] = reduction_smaller(best[i], x[i]))
        return;
    }
}

static int64_t reduction_offset(const reduction_dims *dims, int64_t index) {
    int64_t offset = 0;
    for (uint32_t d = dims->rank; d-- > 0;) {
        offset += index % dims->dims[d] * dims->strides[d];
        index /= dims->dims[d];
    }
    return offset;
}

static void reduction_append(reduction_dims *dims, int64_t dim, int64_t stride) {
    dims->dims[dims->rank] = dim;
    dims->strides[dims->rank] = stride;
    dims->rank += 1;
    dims->count *= dim;
}

// Splits the operand's dimensions into kept and reduced ones, neighbours of a kind joined.
static void reduction_split(reduction_state *state, const pen_shape *shape, const bool *reduced) {
    int64_t dims[2 * PEN_RANK_LIMIT];
    bool flags[2 * PEN_RANK_LIMIT];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] == 1) continue;
        if (rank > 0 && flags[rank - 1] == reduced[d]) {
            dims[rank - 1] *= shape->dims[d];
            continue;
        }
        dims[rank] = shape->dims[d];
        flags[rank++] = reduced[d];
    }
    if (rank == 0) {
        dims[rank] = 1;
        flags[rank++] = true;
    }
    // a single long row is cut, so that it can be shared out
    const int64_t last = dims[rank - 1];
    if (flags[rank - 1] && last >= 4 * REDUCTION_BLOCK && last % REDUCTION_BLOCK == 0) {
        dims[rank - 1] = last / REDUCTION_BLOCK;
        dims[rank] = REDUCTION_BLOCK;
        flags[rank++] = true;
    }
    state->row_is_reduced = flags[rank - 1];
    state->row = dims[rank - 1];
    state->kept.count = state->reduced.count = 1;
    int64_t stride = pen_shape_element_count(shape);
    for (uint32_t d = 0; d + 1 < rank; d++) {
        stride /= dims[d] == 0 ? 1 : dims[d];
        reduction_append(flags[d] ? &state->reduced : &state->kept, dims[d], stride);
    }
}

// How the reduced rows are divided into parts is settled here, by sizes and team.
static pen_status reduction_prepare(const pen_cpu_request *request, void **out_state,
                                    uint64_t *out_workspace_bytes) {
    const pen_node *node = request->node;
    const reduction_entry *entry = request->rule;
    const pen_shape *shape = &pen_value_type(request->graph, node->inputs[0])->shape;
    uint32_t axis_count = 0;
    const int64_t *integers = NULL;
    if (node->input_count > 1 && pen_value_is(node->inputs[1])) {
        PEN_TRY(pen_value_read_ints(request->graph, node->inputs[1], &axis_count, &integers));
    }
    pen_reduction_axes axes;
    reduction_state *state;
    PEN_TRY(pen_reduction_axes_find(node, shape, axis_count, integers, &axes));
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->rule = entry->rule;
    state->is_root = entry->is_root;
    state->factor = entry->is_mean ? 1.0 / (double)axes.count : 1;
    state->element_count = pen_shape_element_count(shape);
    state->output_count = pen_shape_element_count(&axes.kept);
    reduction_split(state, shape, axes.reduced);
    state->column_tasks =
        state->row_is_reduced ? 1 : (state->row + REDUCTION_COLUMNS - 1) / REDUCTION_COLUMNS;
    state->task_count = state->kept.count * state->column_tasks;
    state->part_count = 1;
    if (state->task_count < 8 && state->element_count > REDUCTION_TEAM_ELEMENTS) {
        const int64_t rows = state->reduced.count;
        state->part_count = rows < REDUCTION_PART_LIMIT ? rows : REDUCTION_PART_LIMIT;
    }
    if (state->part_count < 1) state->part_count = 1;
    *out_state = state;
    *out_workspace_bytes = (uint64_t)(state->part_count * state->output_count) * sizeof(double);
    return PEN_OK;
}

// Reduces rows [first, last) of the reduced dimensions for one task.
static void reduction_task(const reduction_state *state, const float *x, int64_t task,
                           int64_t first, int64_t last, double *out) {
    const int64_t kept = task / state->column_tasks;
    const int64_t column = task % state->column_tasks * REDUCTION_COLUMNS;
    const float *base = x + reduction_offset(&state->kept, kept) + column;
    if (state->row_is_reduced) {
        double total = reduction_start(state->rule);
        for (int64_t row = first; row < last; row++) {
            const float *at = base + reduction_offset(&state->reduced, row);
            total =
                reduction_combine(state->rule, total, reduction_row(state->rule, at, state->row));
        }
        out[kept] = total;
        return;
    }
    const int64_t rest = state->row - column;
    const int64_t width = rest < REDUCTION_COLUMNS ? rest : REDUCTION_COLUMNS;
    double *totals = out + kept * state->row + column;
    const double start = reduction_start(state->rule);
    for (int64_t i = 0; i < width; i++) {
        totals[i] = start;
    }
    for (int64_t row = first; row < last;) {
        float best[REDUCTION_COLUMNS];
        for (int64_t i = 0; i < width; i++) {
            best[i] = (float)start;
        }
        const int64_t end = row + REDUCTION_ROWS < last ? row + REDUCTION_ROWS : last;
        for (; row < end; row++) {
            reduction_columns(state->rule, best, base + reduction_offset(&state->reduced, row),
                              width);
        }
        for (int64_t i = 0; i < width; i++) {
            totals[i] = reduction_combine(state->rule, totals[i], (double)best[i]);
        }
    }
}

// Partial results in double, joined in the order of the parts.
static pen_status reduction_run(const pen_cpu_call *call) {
    const reduction_state *state = call->state;
    double *partial = call->workspace;
    float *y = call->outputs[0];
    const int64_t parts = state->part_count, tasks = parts * state->task_count;
    const int64_t rows = state->reduced.count;
#pragma omp parallel for schedule(static) if (state->element_count > REDUCTION_TEAM_ELEMENTS &&    \
                                              tasks > 1)
    for (int64_t t = 0; t < tasks; t++) {
        const int64_t part = t / state->task_count;
        reduction_task(state, call->inputs[0], t % state->task_count, rows * part / parts,
                       rows * (part + 1) / parts, partial + part * state->output_count);
    }
    for (int64_t k = 0; k < state->output_count; k++) {
        double total = partial[k];
        for (int64_t part = 1; part < parts; part++) {
            total = reduction_combine(state->rule, total, partial[part * state->output_count + k]);
        }
        total *= state->factor;
        if (state->is_root) total = sqrt(total);
        y[k] = call->accumulate ? y[k] + (float)total : (float)total;
    }
    return PEN_OK;
}

// Gradients, repeated over the reduced dimensions: a is dy, b is x, c is y.
#define REDUCTION_BACKWARDS_1(ROW)                                                                 \
    ROW(reduce_sum_backward, (a * p[0]), .attribute_names = {"scale"})
#define REDUCTION_BACKWARDS_2(ROW)                                                                 \
    ROW(reduce_l1_backward, (a * ((float)(b > 0.0f) - (float)(b < 0.0f))), MAP_PLAIN)              \
    ROW(reduce_sum_square_backward, (a * 2.0f * b), MAP_PLAIN)
#define REDUCTION_BACKWARDS_3(ROW)                                                                 \
    ROW(reduce_l2_backward, (c == 0.0f ? 0.0f : a * b / c), MAP_PLAIN)                             \
    ROW(reduce_log_sum_exp_backward, (a * vector_exp(b - c)), MAP_PLAIN)

REDUCTION_BACKWARDS_1(MAP_DEFINE_1)
REDUCTION_BACKWARDS_2(MAP_DEFINE_2)
REDUCTION_BACKWARDS_3(MAP_DEFINE_3)

#define REDUCTION_ENTRY(op, ...)                                                                   \
    PEN_CPU_ENTRY(op, "cpu", NULL, reduction_prepare, reduction_run),                              \
        .can_accumulate = true, .rule = PEN_CPU_RULE(reduction_entry, __VA_ARGS__)

static const pen_cpu_kernel reduction_kernels[] = {
    // clang-format off
    REDUCTION_BACKWARDS_1(MAP_KERNEL_1)
    REDUCTION_BACKWARDS_2(MAP_KERNEL_2)
    REDUCTION_BACKWARDS_3(MAP_KERNEL_3)
    // clang-format on
    {REDUCTION_ENTRY("reduce_sum", .rule = REDUCTION_SUM)},
    {REDUCTION_ENTRY("reduce_mean", .rule = REDUCTION_SUM, .is_mean = true)},
    {REDUCTION_ENTRY("reduce_l1", .rule = REDUCTION_ABSOLUTE)},
    {REDUCTION_ENTRY("reduce_l2", .rule = REDUCTION_SQUARE, .is_root = true)},
    {REDUCTION_ENTRY("reduce_sum_square", .rule = REDUCTION_SQUARE)},
    {REDUCTION_ENTRY("reduce_max", .rule = REDUCTION_MAX)},
    {REDUCTION_ENTRY("reduce_min", .rule = REDUCTION_MIN)},
};

PEN_CPU_FAMILY_OF(reduction);
