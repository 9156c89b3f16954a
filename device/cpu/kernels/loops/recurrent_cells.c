#include "device/cpu/kernels/loops/recurrent_cells.h"

#include <math.h>
#include <string.h>

#include "device/cpu/kernels/loops/packed_panels.h"
#include "device/cpu/kernels/loops/vector_math.h"

// ---- functions of a panel's units

static void cell_clip(float clip, int64_t count, float *x) {
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        x[j] = x[j] > clip ? clip : x[j] < -clip ? -clip : x[j];
    }
}

// In place; what is clipped first.
static void cell_activate(const recurrent_plan *plan, const pen_recurrent_activation *activation,
                          int64_t count, float *x) {
    const float alpha = (float)activation->alpha, beta = (float)activation->beta;
    if (plan->g.clip < (double)INFINITY) cell_clip((float)plan->g.clip, count, x);
    if (activation->function == PEN_RECURRENT_SIGMOID) {
#pragma omp simd
        for (int64_t j = 0; j < count; j++) {
            x[j] = vector_sigmoid(x[j]);
        }
    } else if (activation->function == PEN_RECURRENT_TANH) {
#pragma omp simd
        for (int64_t j = 0; j < count; j++) {
            x[j] = vector_tanh(x[j]);
        }
    } else if (activation->function == PEN_RECURRENT_RELU) {
#pragma omp simd
        for (int64_t j = 0; j < count; j++) {
            x[j] = x[j] > 0.0f ? x[j] : 0.0f;
        }
    } else if (activation->function == PEN_RECURRENT_HARD_SIGMOID) {
#pragma omp simd
        for (int64_t j = 0; j < count; j++) {
            const float line = alpha * x[j] + beta;
            x[j] = line < 0.0f ? 0.0f : line > 1.0f ? 1.0f : line;
        }
    } else {
        for (int64_t j = 0; j < count; j++) {
            x[j] = (float)pen_recurrent_apply(activation, (double)x[j]);
        }
    }
}

// The derivatives, from what the function gave; 0 where its operand was clipped.
static void cell_slopes(const recurrent_plan *plan, const pen_recurrent_activation *activation,
                        int64_t count, const float *y, float *slopes) {
    float least = -INFINITY, most = INFINITY;
    if (plan->g.clip < (double)INFINITY) {
        float ends[2] = {-INFINITY, INFINITY}; // clipped, like operands
        cell_activate(plan, activation, 2, ends);
        least = fminf(ends[0], ends[1]);
        most = fmaxf(ends[0], ends[1]);
    }
    for (int64_t j = 0; j < count; j++) {
        const float slope = (float)pen_recurrent_slope(activation, (double)y[j]);
        slopes[j] = y[j] > least && y[j] < most ? slope : 0.0f;
    }
}

// to = a + b
static void cell_add(int64_t count, const float *a, const float *b, float *to) {
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        to[j] = a[j] + b[j];
    }
}

// to += a * b
static void cell_add_product(int64_t count, const float *a, const float *b, float *to) {
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        to[j] += a[j] * b[j];
    }
}

// ---- forward

// Any activations, peepholes and limits, number by number: slower than the usual cell, which has a
// loop of its own.
static void lstm_any_cell(const recurrent_plan *plan, const recurrent_units *u) {
    const int64_t h = u->hidden, count = u->count;
    float *i = u->row, *o = i + h, *f = i + 2 * h, *fresh = i + 3 * h, *c = u->c;
    const float *p = u->peepholes;
    cell_add(count, i, u->bias, i);
    cell_add(count, o, u->bias + h, o);
    cell_add(count, f, u->bias + 2 * h, f);
    cell_add(count, fresh, u->bias + 3 * h, fresh);
    if (p != NULL) {
        cell_add_product(count, p, c, i);
        cell_add_product(count, p + 2 * h, c, f);
    }
    cell_activate(plan, &u->activations[0], count, i);
    cell_activate(plan, &u->activations[0], count, f);
    cell_activate(plan, &u->activations[1], count, fresh);
    for (int64_t j = 0; plan->g.input_forget && j < count; j++) {
        f[j] = 1.0f - i[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        c[j] = f[j] * c[j] + i[j] * fresh[j];
    }
    if (p != NULL) cell_add_product(count, p + h, c, o);
    cell_activate(plan, &u->activations[0], count, o);
    memcpy(u->after, c, (size_t)count * sizeof *c);
    cell_activate(plan, &u->activations[2], count, u->after);
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        u->y[j] = u->after[j] = o[j] * u->after[j];
    }
    if (u->cells != NULL) memcpy(u->cells, c, (size_t)count * sizeof *c);
}

// Any activations and both places of the reset; the usual GRU has a loop of its own.
static void gru_any_cell(const recurrent_plan *plan, recurrent_stage stage,
                         const recurrent_units *u) {
    const int64_t h = u->hidden, count = u->count;
    float *z = u->row, *r = z + h, *fresh = z + 2 * h, *q = z + 3 * h;
    if (stage != STAGE_FRESH) {
        cell_add(count, z, u->bias, z);
        cell_add(count, r, u->bias + h, r);
        cell_activate(plan, &u->activations[0], count, z);
        cell_activate(plan, &u->activations[0], count, r);
    }
    if (stage == STAGE_RESET) {
        PEN_ASSERT(u->c != NULL);
#pragma omp simd
        for (int64_t j = 0; j < count; j++) {
            u->c[j] = r[j] * u->before[j];
        }
        return;
    }
    cell_add(count, fresh, u->bias + 2 * h, fresh);
    if (stage == STAGE_WHOLE) {
        cell_add(count, q, u->bias + 3 * h, q);
        cell_add_product(count, r, q, fresh);
    }
    cell_activate(plan, &u->activations[1], count, fresh);
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        u->y[j] = u->after[j] = (1.0f - z[j]) * fresh[j] + z[j] * u->before[j];
    }
}

static void rnn_any_cell(const recurrent_plan *plan, const recurrent_units *u) {
    cell_add(u->count, u->row, u->bias, u->after);
    cell_activate(plan, &u->activations[0], u->count, u->after);
    memcpy(u->y, u->after, (size_t)u->count * sizeof *u->y);
}

void recurrent_any_cell(const recurrent_plan *plan, recurrent_stage stage,
                        const recurrent_units *units) {
    switch (plan->g.kind) {
    case PEN_RECURRENT_RNN:
        rnn_any_cell(plan, units);
        break;
    case PEN_RECURRENT_GRU:
        gru_any_cell(plan, stage, units);
        break;
    case PEN_RECURRENT_LSTM:
        PEN_ASSERT(units->c != NULL);
        lstm_any_cell(plan, units);
        break;
    }
}

// ---- backward

// Multiplies the gradient by the slopes and adds it to that of the bias.
static void cell_finish(int64_t count, const float *slopes, float *gradient, float *dbias) {
#pragma omp simd
    for (int64_t j = 0; j < count; j++) {
        gradient[j] *= slopes[j];
        dbias[j] += gradient[j];
    }
}

static void lstm_peepholes_back(const backward_units *u) {
    const int64_t h = u->hidden, count = u->count;
    const float *di = u->row, *dout = di + h, *df = di + 2 * h, *p = u->peepholes;
    cell_add_product(count, di, p, u->dc);
    cell_add_product(count, df, p + 2 * h, u->dc);
    if (u->dpeepholes == NULL) return;
    cell_add_product(count, di, u->cells_before, u->dpeepholes);
    cell_add_product(count, dout, u->cells, u->dpeepholes + h);
    cell_add_product(count, df, u->cells_before, u->dpeepholes + 2 * h);
}

// Derivatives from the kept gates; a limit that cut a value passes no gradient on.
static void lstm_any_cell_back(const recurrent_plan *plan, const backward_units *u) {
    const int64_t h = u->hidden, count = u->count;
    const float *i = u->gates, *o = i + h, *f = i + 2 * h, *fresh = i + 3 * h;
    float *di = u->row, *dout = di + h, *df = di + 2 * h, *dfresh = di + 3 * h, *dc = u->dc;
    const pen_recurrent_activation *a = u->activations;
    float shown[PANEL_WIDTH], slopes[PANEL_WIDTH];
    memcpy(shown, u->cells, (size_t)count * sizeof *shown);
    cell_activate(plan, &a[2], count, shown);
    for (int64_t j = 0; j < count; j++) {
        dout[j] = (u->dh[j] + u->dy[j]) * shown[j];
    }
    cell_slopes(plan, &a[0], count, o, slopes);
    cell_finish(count, slopes, dout, u->dbias + h);
    cell_slopes(plan, &a[2], count, shown, slopes);
    for (int64_t j = 0; j < count; j++) {
        dc[j] += (u->dh[j] + u->dy[j]) * o[j] * slopes[j];
        if (u->peepholes != NULL) dc[j] += dout[j] * u->peepholes[h + j];
        di[j] = dc[j] * fresh[j];
        df[j] = dc[j] * u->cells_before[j];
        dfresh[j] = dc[j] * i[j];
        dc[j] *= f[j];
        u->dh[j] = 0;
    }
    for (int64_t j = 0; plan->g.input_forget && j < count; j++) { // f = 1 - i
        di[j] -= df[j];
        df[j] = 0;
    }
    cell_slopes(plan, &a[0], count, i, slopes);
    cell_finish(count, slopes, di, u->dbias);
    cell_slopes(plan, &a[0], count, f, slopes);
    cell_finish(count, slopes, df, u->dbias + 2 * h);
    cell_slopes(plan, &a[1], count, fresh, slopes);
    cell_finish(count, slopes, dfresh, u->dbias + 3 * h);
    if (u->peepholes != NULL) lstm_peepholes_back(u);
}

// Of gru that resets first: r, from dc by the state that was reset.
static void gru_any_reset_back(const recurrent_plan *plan, const backward_units *u) {
    const int64_t h = u->hidden, count = u->count;
    const float *r = u->gates + h;
    float *dr = u->row + h, slopes[PANEL_WIDTH];
    for (int64_t j = 0; j < count; j++) {
        dr[j] = u->dc[j] * u->before[j];
        u->dh[j] += u->dc[j] * r[j];
    }
    cell_slopes(plan, &u->activations[0], count, r, slopes);
    cell_finish(count, slopes, dr, u->dbias + h);
}

// As gru_any_cell, backwards: where the reset stands decides what the state's product receives.
static void gru_any_cell_back(const recurrent_plan *plan, recurrent_stage stage,
                              const backward_units *u) {
    const int64_t h = u->hidden, count = u->count;
    const float *z = u->gates, *r = z + h, *fresh = z + 2 * h, *q = z + 3 * h;
    float *dz = u->row, *dr = dz + h, *dfresh = dz + 2 * h, *dq = dz + 3 * h;
    float slopes[PANEL_WIDTH];
    for (int64_t j = 0; j < count; j++) {
        const float by_h = u->dh[j] + u->dy[j];
        dz[j] = by_h * (u->before[j] - fresh[j]);
        dfresh[j] = by_h * (1.0f - z[j]);
        u->dh[j] = by_h * z[j];
    }
    cell_slopes(plan, &u->activations[0], count, z, slopes);
    cell_finish(count, slopes, dz, u->dbias);
    cell_slopes(plan, &u->activations[1], count, fresh, slopes);
    cell_finish(count, slopes, dfresh, u->dbias + 2 * h);
    if (stage != STAGE_WHOLE) return;
    for (int64_t j = 0; j < count; j++) {
        dr[j] = dfresh[j] * q[j];
        dq[j] = dfresh[j] * r[j];
        u->dbias[3 * h + j] += dq[j];
    }
    cell_slopes(plan, &u->activations[0], count, r, slopes);
    cell_finish(count, slopes, dr, u->dbias + h);
}

static void rnn_any_cell_back(const recurrent_plan *plan, const backward_units *u) {
    float slopes[PANEL_WIDTH];
    cell_slopes(plan, &u->activations[0], u->count, u->y, slopes);
    cell_add(u->count, u->dh, u->dy, u->row);
    cell_finish(u->count, slopes, u->row, u->dbias);
    memset(u->dh, 0, (size_t)u->count * sizeof *u->dh);
}

// The kind of cell is looked up once per step and example, not per number.
void recurrent_any_cell_back(const recurrent_plan *plan, recurrent_stage stage,
                             const backward_units *units) {
    switch (plan->g.kind) {
    case PEN_RECURRENT_RNN:
        rnn_any_cell_back(plan, units);
        break;
    case PEN_RECURRENT_GRU:
        PEN_ASSERT(units->gates != NULL);
        if (stage == STAGE_RESET) {
            gru_any_reset_back(plan, units);
        } else {
            gru_any_cell_back(plan, stage, units);
        }
        break;
    case PEN_RECURRENT_LSTM:
        PEN_ASSERT(units->gates != NULL && units->dc != NULL);
        lstm_any_cell_back(plan, units);
        break;
    }
}
