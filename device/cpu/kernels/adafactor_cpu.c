// Adafactor, whose variances are rows and columns of means. The formula is at the top of
// graph/ops/training/optimizer_op.c.
//
// Rows, columns and blocks of elements are each summed by one thread, in order and in double: the
// numbers do not depend on how many there are.
#include <math.h>
#include <string.h>

#include "device/cpu/kernels/loops/update_walk.h"
#include "graph/ops/training/optimizer_op.h"

#define FACTOR_COLUMNS 256 // whose sums one thread makes at a time

typedef struct factor_run {
    pen_adafactor_shape shape;
    int64_t count;
    const float *p, *gradient;
    float scale, most; // clipped to; infinite: not
    float share;       // of this step in the variances
    float epsilon;
    const float *rows_old, *columns_old, *variance_old;
    float *rows, *columns, *variance; // variance NULL: rows and columns
    const double *inverse;            // [batches], of the mean of rows
    bool is_wide;                     // worth a team
} factor_run;

// Of what nothing that is written can be a part: a copy of the run.
static inline float factor_gradient(factor_run f, int64_t k) {
    const float g = f.gradient[k] * f.scale;
    const float low = g < -f.most ? -f.most : g; // what is no number stays so
    return low > f.most ? f.most : low;
}

static double factor_sum(const factor_run *whole, int64_t first, int64_t count) {
    const factor_run f = *whole;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = first; k < first + count; k++) {
        const double g = (double)factor_gradient(f, k);
        sum += g * g;
    }
    return sum;
}

static void factor_rows(const factor_run *f) {
    const int64_t count = f->shape.batches * f->shape.rows, columns = f->shape.columns;
#pragma omp parallel for schedule(static) if (f->is_wide)
    for (int64_t i = 0; i < count; i++) {
        const float mean = (float)(factor_sum(f, i * columns, columns) / (double)columns);
        const float old = f->rows_old[i];
        f->rows[i] = old + f->share * (mean - old);
    }
}

// A chunk of columns of one matrix, row after row.
static void factor_column_chunk(const factor_run *whole, int64_t batch, int64_t first) {
    const factor_run f = *whole;
    const int64_t columns = f.shape.columns, rest = columns - first;
    const int64_t count = rest < FACTOR_COLUMNS ? rest : FACTOR_COLUMNS;
    double sums[FACTOR_COLUMNS] = {0};
    for (int64_t r = 0; r < f.shape.rows; r++) {
        const int64_t k = (batch * f.shape.rows + r) * columns + first;
#pragma omp simd
        for (int64_t c = 0; c < count; c++) {
            const double g = (double)factor_gradient(f, k + c);
            sums[c] += g * g;
        }
    }
    for (int64_t c = 0; c < count; c++) {
        const int64_t i = batch * columns + first + c;
        const float mean = (float)(sums[c] / (double)f.shape.rows), old = f.columns_old[i];
        f.columns[i] = old + f.share * (mean - old);
    }
}

static void factor_columns(const factor_run *f) {
    const int64_t chunks = (f->shape.columns + FACTOR_COLUMNS - 1) / FACTOR_COLUMNS;
#pragma omp parallel for schedule(static) if (f->is_wide)
    for (int64_t i = 0; i < f->shape.batches * chunks; i++) {
        factor_column_chunk(f, i / chunks, i % chunks * FACTOR_COLUMNS);
    }
}

static void factor_elements(const factor_run *whole) {
    const factor_run f = *whole;
#pragma omp parallel for simd schedule(static) if (f.is_wide)
    for (int64_t k = 0; k < f.count; k++) {
        const float g = factor_gradient(f, k), old = f.variance_old[k];
        f.variance[k] = old + f.share * (g * g - old);
    }
}

static void factor_invert(const factor_run *f, double *out_inverse) {
    for (int64_t b = 0; b < f->shape.batches; b++) {
        double sum = 0;
        for (int64_t r = 0; r < f->shape.rows; r++) {
            sum += (double)f->rows[b * f->shape.rows + r];
        }
        const double mean = sum / (double)f->shape.rows;
        out_inverse[b] = 1 / (mean < (double)f->epsilon ? (double)f->epsilon : mean);
    }
}

static inline float factor_scaled(float g, float variance, float least) {
    return g / sqrtf(variance < least ? least : variance);
}

// The directions of a block of elements, a row of the parameter after the other.
static void factor_directions(const factor_run *whole, int64_t first, int64_t count, float *out_u) {
    const factor_run f = *whole;
    const float least = f.epsilon * f.epsilon;
    for (int64_t k = first; f.variance != NULL && k < first + count; k++) {
        out_u[k - first] = factor_scaled(factor_gradient(f, k), f.variance[k], least);
    }
    for (int64_t k = first; f.variance == NULL && k < first + count;) {
        const int64_t row = k / f.shape.columns, column = k % f.shape.columns;
        const int64_t batch = row / f.shape.rows, left = first + count - k;
        const int64_t rest = f.shape.columns - column, length = rest < left ? rest : left;
        const float factor = (float)((double)f.rows[row] * f.inverse[batch]);
        const float *columns = f.columns + batch * f.shape.columns + column;
#pragma omp simd
        for (int64_t i = 0; i < length; i++) {
            out_u[k - first + i] =
                factor_scaled(factor_gradient(f, k + i), factor * columns[i], least);
        }
        k += length;
    }
}

static void factor_block_norms(const float *p, const float *u, int64_t count, double out_sums[2]) {
    double parameter = 0, direction = 0;
#pragma omp simd reduction(+ : parameter, direction)
    for (int64_t i = 0; i < count; i++) {
        parameter += (double)p[i] * (double)p[i];
        direction += (double)u[i] * (double)u[i];
    }
    out_sums[0] = parameter;
    out_sums[1] = direction;
}

// The sums of squares of the parameter and of its directions.
static void factor_norms(const factor_run *f, double *sums, double out_totals[2]) {
    const int64_t size = PEN_NORM_BLOCK_ELEMENTS, blocks = (f->count + size - 1) / size;
#pragma omp parallel for schedule(static) if (f->is_wide)
    for (int64_t b = 0; b < blocks; b++) {
        float u[PEN_NORM_BLOCK_ELEMENTS];
        const int64_t rest = f->count - b * size, count = rest < size ? rest : size;
        double totals[2];
        factor_directions(f, b * size, count, u);
        factor_block_norms(f->p + b * size, u, count, totals);
        sums[b] = totals[0];
        sums[blocks + b] = totals[1];
    }
    out_totals[0] = pen_norm_add_pairs(sums, (size_t)blocks);
    out_totals[1] = pen_norm_add_pairs(sums + blocks, (size_t)blocks);
}

static void factor_apply(const factor_run *whole, float keep, float size, float *p_new) {
    const factor_run f = *whole;
    const int64_t each = PEN_NORM_BLOCK_ELEMENTS, blocks = (f.count + each - 1) / each;
#pragma omp parallel for schedule(static) if (f.is_wide)
    for (int64_t b = 0; b < blocks; b++) {
        float u[PEN_NORM_BLOCK_ELEMENTS];
        const int64_t rest = f.count - b * each, count = rest < each ? rest : each;
        factor_directions(whole, b * each, count, u);
#pragma omp simd
        for (int64_t i = 0; i < count; i++) {
            p_new[b * each + i] = f.p[b * each + i] * keep - size * u[i];
        }
    }
}

// Of a gradient of rows: that of the whole parameter, in the workspace.
static pen_status factor_gather(const pen_cpu_call *call, float *whole) {
    const update_state *state = call->state;
    int32_t *heads = call->workspace;
    PEN_TRY(update_list_rows(state, call->inputs[state->rows], heads, heads + state->row_count));
    memset(whole, 0, (size_t)state->count * sizeof *whole);
#pragma omp parallel for schedule(static) if (state->count > UPDATE_TEAM_ELEMENTS)
    for (int64_t row = 0; row < state->row_count; row++) {
        const update_part part = {row, 0, state->row_length};
        update_add_row(state, call->inputs[1], heads, part, whole + row * state->row_length);
    }
    return PEN_OK;
}

typedef struct factor_state {
    update_state update; // first: what update_walk takes for its own
    pen_adafactor_shape shape;
    bool is_factored;
} factor_state;

static int64_t factor_blocks(const factor_state *state) {
    return (state->update.count + PEN_NORM_BLOCK_ELEMENTS - 1) / PEN_NORM_BLOCK_ELEMENTS;
}

// Workspace, behind that of rows: sums of blocks, inverse means, and the gradient of rows.
static pen_status factor_prepare(const pen_cpu_request *request, void **out_state,
                                 uint64_t *out_workspace_bytes) {
    const pen_shape *shape = &pen_value_type(request->graph, request->node->inputs[0])->shape;
    factor_state *state;
    void *update;
    PEN_TRY(update_prepare(request, &update, out_workspace_bytes));
    PEN_TRY(PEN_NEW(request->arena, 1, &state));
    state->update = *(const update_state *)update;
    state->shape = pen_adafactor_shape_of(shape);
    state->is_factored = shape->rank > 1;
    const uint64_t doubles = (uint64_t)(2 * factor_blocks(state) + state->shape.batches);
    *out_workspace_bytes = state->update.own_offset + doubles * sizeof(double);
    if (state->update.has_rows) {
        *out_workspace_bytes += (uint64_t)state->update.count * sizeof(float);
    }
    *out_state = state;
    return PEN_OK;
}

// Where there is nothing to apply; states have sizes of their own.
static bool factor_is_kept(const pen_cpu_call *call) {
    const factor_state *state = call->state;
    const pen_node *node = state->update.node;
    const int64_t rows = state->shape.batches * state->shape.rows;
    const int64_t columns = state->shape.batches * state->shape.columns;
    const int64_t counts[] = {state->update.count, rows, columns, columns};
    if (!(update_scalar(call, node->op->update.scale, 1) < 0)) return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const void *old = call->inputs[i == 0 ? 0 : PEN_ADAFACTOR_ROWS + i - 1];
        if (call->outputs[i] == NULL || old == NULL || old == call->outputs[i]) continue;
        memmove(call->outputs[i], old, (size_t)counts[i] * sizeof(float));
    }
    return true;
}

// Variances first, then the sizes of parameter and step, and then the step.
static pen_status factor_update_run(const pen_cpu_call *call) {
    const factor_state *state = call->state;
    const pen_node *node = state->update.node;
    double *sums = (double *)(void *)((char *)call->workspace + state->update.own_offset);
    double *inverse = sums + 2 * factor_blocks(state), totals[2];
    const double step = update_scalar(call, node->op->update.step, 1), rate = update_rate(call);
    const double clip_value = pen_node_float(node, "clip_value");
    factor_run f = {.shape = state->shape,
                    .count = state->update.count,
                    .p = call->inputs[0],
                    .gradient = call->inputs[1],
                    .scale = (float)update_scalar(call, node->op->update.scale, 1),
                    .most = clip_value > 0 ? (float)clip_value : INFINITY,
                    .share = (float)pow(step, pen_node_float(node, "beta2_decay")),
                    .epsilon = (float)pen_node_float(node, "epsilon"),
                    .inverse = inverse,
                    .is_wide = state->update.count > UPDATE_TEAM_ELEMENTS};
    if (factor_is_kept(call)) return PEN_OK;
    if (state->update.has_rows) {
        float *whole = (float *)(void *)(inverse + state->shape.batches);
        PEN_TRY(factor_gather(call, whole));
        f.gradient = whole;
    }
    if (state->is_factored) {
        f.rows_old = call->inputs[PEN_ADAFACTOR_ROWS];
        f.columns_old = call->inputs[PEN_ADAFACTOR_COLUMNS];
        f.rows = call->outputs[1];
        f.columns = call->outputs[2];
        factor_rows(&f);
        factor_columns(&f);
        factor_invert(&f, inverse);
    } else {
        f.variance_old = call->inputs[PEN_ADAFACTOR_VARIANCE];
        f.variance = call->outputs[3];
        factor_elements(&f);
    }
    factor_norms(&f, sums, totals);
    const double size =
        pen_adafactor_size(rate, step, pen_node_float(node, "epsilon2"),
                           pen_node_float(node, "clip_threshold"), totals, (double)f.count);
    const double keep = 1 - rate * pen_node_float(node, "weight_decay");
    factor_apply(&f, (float)keep, (float)size, call->outputs[0]);
    return PEN_OK;
}

static const pen_cpu_kernel adafactor_kernels[] = {
    {PEN_CPU_ENTRY("adafactor_update", "cpu", update_supports_node, factor_prepare,
                   factor_update_run)},
};

PEN_CPU_FAMILY_OF(adafactor);
