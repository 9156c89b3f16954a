// lstm, gru and rnn, backward.
//
// The steps give the gradients of all pre-activations; those of the weights and of x are then one
// product each over the whole sequence.
#include <omp.h>
#include <string.h>

#include "device/cpu/kernels/loops/packed_panels.h"
#include "device/cpu/kernels/loops/recurrent_cells.h"
#include "device/cpu/kernels/loops/vector_math.h"

// One direction on its way back.
typedef struct backward_pass {
    const recurrent_plan *plan;
    int64_t d;
    const int64_t *lengths;
    const float *packed;
    const float *x;         // steps first
    const float *y;         // of all directions
    const float *dy;        // likewise, or NULL
    const float *gates;     // of this direction
    const float *cells;     // likewise
    const float *c0;        // of all directions, or NULL
    const float *before;    // [S * N, H]: the state before each step
    const float *zeros;     // [H]
    float *rows;            // [S * N, slots * H]: gradients of the pre-activations
    float *dbias;           // [slots * H]
    float *dh, *dc;         // [N, H]; gru that resets first: dc is by the state that was reset
    const float *peepholes; // of all directions, or NULL
    float *dpeepholes;      // likewise
} backward_pass;

// Every cell takes dh and dc, by the state after the step, and leaves what goes straight to the
// state before it; the product with the state's weights is then added.

// The usual cell written out, so that the compiler makes one vector loop of it.
static void lstm_cell_back(const backward_units *u) {
    PEN_ASSERT(u->gates != NULL && u->dc != NULL);
    const int64_t h = u->hidden;
    const float *gi = u->gates, *go = gi + h, *gf = gi + 2 * h, *gc = gi + 3 * h;
    const float *c = u->cells, *c_before = u->cells_before, *dy = u->dy;
    float *di = u->row, *dout = di + h, *df = di + 2 * h, *dfresh = di + 3 * h;
    float *bi = u->dbias, *bo = bi + h, *bf = bi + 2 * h, *bc = bi + 3 * h;
    float *dh = u->dh, *dc = u->dc;
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        const float i = gi[j], o = go[j], f = gf[j], fresh = gc[j];
        const float shown = vector_tanh(c[j]);
        const float by_h = dh[j] + dy[j];
        const float by_c = dc[j] + by_h * o * (1.0f - shown * shown);
        const float by_i = by_c * fresh * i * (1.0f - i);
        const float by_o = by_h * shown * o * (1.0f - o);
        const float by_f = by_c * c_before[j] * f * (1.0f - f);
        const float by_fresh = by_c * i * (1.0f - fresh * fresh);
        di[j] = by_i;
        dout[j] = by_o;
        df[j] = by_f;
        dfresh[j] = by_fresh;
        bi[j] += by_i;
        bo[j] += by_o;
        bf[j] += by_f;
        bc[j] += by_fresh;
        dc[j] = by_c * f;
        dh[j] = 0;
    }
}

// As lstm_cell_back, for the form that resets after the product.
static void gru_cell_back(const backward_units *u) {
    PEN_ASSERT(u->gates != NULL);
    const int64_t h = u->hidden;
    const float *gz = u->gates, *gr = gz + h, *gh = gz + 2 * h, *gq = gz + 3 * h;
    const float *before = u->before, *dy = u->dy;
    float *dz = u->row, *dr = dz + h, *dfresh = dz + 2 * h, *dq = dz + 3 * h;
    float *bz = u->dbias, *br = bz + h, *bh = bz + 2 * h, *bq = bz + 3 * h;
    float *dh = u->dh;
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        const float z = gz[j], r = gr[j], fresh = gh[j];
        const float by_h = dh[j] + dy[j];
        const float by_z = by_h * (before[j] - fresh) * z * (1.0f - z);
        const float by_fresh = by_h * (1.0f - z) * (1.0f - fresh * fresh);
        const float by_r = by_fresh * gq[j] * r * (1.0f - r);
        const float by_q = by_fresh * r;
        dz[j] = by_z;
        dr[j] = by_r;
        dfresh[j] = by_fresh;
        dq[j] = by_q;
        bz[j] += by_z;
        br[j] += by_r;
        bh[j] += by_fresh;
        bq[j] += by_q;
        dh[j] = by_h * z;
    }
}

// Of gru that resets first: z and h, and what goes straight to the state before.
static void gru_fresh_back(const backward_units *u) {
    PEN_ASSERT(u->gates != NULL);
    const int64_t h = u->hidden;
    const float *gz = u->gates, *gh = gz + 2 * h, *before = u->before, *dy = u->dy;
    float *dz = u->row, *dfresh = dz + 2 * h, *bz = u->dbias, *bh = bz + 2 * h, *dh = u->dh;
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        const float z = gz[j], fresh = gh[j];
        const float by_h = dh[j] + dy[j];
        const float by_z = by_h * (before[j] - fresh) * z * (1.0f - z);
        const float by_fresh = by_h * (1.0f - z) * (1.0f - fresh * fresh);
        dz[j] = by_z;
        dfresh[j] = by_fresh;
        bz[j] += by_z;
        bh[j] += by_fresh;
        dh[j] = by_h * z;
    }
}

// Then r, from dc by the state that was reset.
static void gru_reset_back(const backward_units *u) {
    PEN_ASSERT(u->gates != NULL && u->dc != NULL);
    const float *gr = u->gates + u->hidden, *before = u->before, *dc = u->dc;
    float *dr = u->row + u->hidden, *br = u->dbias + u->hidden, *dh = u->dh;
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        const float by_r = dc[j] * before[j] * gr[j] * (1.0f - gr[j]);
        dr[j] = by_r;
        br[j] += by_r;
        dh[j] += dc[j] * gr[j];
    }
}

static void rnn_cell_back(const backward_units *u, bool relu) {
    const float *y = u->y, *dy = u->dy;
    float *da = u->row, *ba = u->dbias, *dh = u->dh;
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        const float slope = relu ? (y[j] > 0.0f ? 1.0f : 0.0f) : 1.0f - y[j] * y[j];
        const float by_a = (dh[j] + dy[j]) * slope;
        da[j] = by_a;
        ba[j] += by_a;
        dh[j] = 0;
    }
}

// The cell before step t: NULL operands read as zeros.
static const float *backward_cells_before(const backward_pass *pass, int64_t t, int64_t n) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    if (pass->cells == NULL) return NULL;
    const int64_t before = g->is_reverse[pass->d] ? t + 1 : t - 1;
    if (before >= 0 && before < pass->lengths[n]) {
        return pass->cells + (before * g->batch + n) * g->hidden;
    }
    if (pass->c0 == NULL) return pass->zeros;
    return pass->c0 + pen_recurrent_row_state(g, pass->d, n) * g->hidden;
}

// Steps behind an example's length pass the gradient of the state on unchanged.
static void backward_apply_cell(const backward_pass *pass, bool resets, int64_t t, int64_t n,
                                int64_t first, int64_t count) {
    const recurrent_plan *plan = pass->plan;
    const pen_recurrent_geometry *g = &plan->g;
    const int64_t row = t * g->batch + n, width = plan->slots * g->hidden;
    const int64_t y = pen_recurrent_row_y(g, pass->d, t, n) * g->hidden + first;
    float *to = pass->rows + row * width + first;
    if (t >= pass->lengths[n]) { // dh and dc go on as they are
        for (int64_t slot = 0; slot < plan->slots; slot++) {
            memset(to + slot * g->hidden, 0, (size_t)count * sizeof *to);
        }
        return;
    }
    const float *cells_before = backward_cells_before(pass, t, n);
    const int64_t peepholes = pass->d * 3 * g->hidden + first;
    const bool is_lstm = g->kind == PEN_RECURRENT_LSTM;
    const backward_units units = {
        .gates = pass->gates != NULL ? pass->gates + row * width + first : NULL,
        .cells = is_lstm ? pass->cells + row * g->hidden + first : NULL,
        .cells_before = is_lstm ? cells_before + first : NULL,
        .before = pass->before + row * g->hidden + first,
        .y = pass->y + y,
        .dy = pass->dy != NULL ? pass->dy + y : pass->zeros,
        .row = to,
        .dbias = pass->dbias + first,
        .dh = pass->dh + n * g->hidden + first,
        .dc = is_lstm || resets ? pass->dc + n * g->hidden + first : NULL,
        .peepholes = pass->peepholes != NULL ? pass->peepholes + peepholes : NULL,
        .dpeepholes = pass->dpeepholes != NULL ? pass->dpeepholes + peepholes : NULL,
        .activations = g->activations[pass->d],
        .hidden = g->hidden,
        .count = count,
    };
    if (plan->is_unusual) {
        const recurrent_stage stage = resets               ? STAGE_RESET
                                      : plan->resets_first ? STAGE_FRESH
                                                           : STAGE_WHOLE;
        recurrent_any_cell_back(plan, stage, &units);
        return;
    }
    switch (g->kind) {
    case PEN_RECURRENT_RNN:
        rnn_cell_back(&units, plan->relu);
        break;
    case PEN_RECURRENT_GRU:
        if (resets) {
            gru_reset_back(&units);
        } else if (plan->resets_first) {
            gru_fresh_back(&units);
        } else {
            gru_cell_back(&units);
        }
        break;
    case PEN_RECURRENT_LSTM:
        lstm_cell_back(&units);
        break;
    }
}

// Adds the gradients of the pre-activations of step t, through the state's weights, to dh.
static void backward_add_state(const backward_pass *pass, int64_t t, int64_t panel, int64_t count) {
    const recurrent_plan *plan = pass->plan;
    const pen_recurrent_geometry *g = &plan->g;
    const int64_t h = g->hidden, width = plan->slots * h;
    const bool is_gru = g->kind == PEN_RECURRENT_GRU;
    panel_product product = {
        .panel = pass->packed + panel * g->gates * h * PANEL_WIDTH,
        .a = pass->rows + t * g->batch * width,
        .c = pass->dh + panel * PANEL_WIDTH,
        .lda = width,
        .ldc = h,
        .rows = g->batch,
        .depth = is_gru ? 2 * h : g->gates * h,
        .width = count,
        .adds = true,
    };
    panel_multiply(&product);
    if (!is_gru || plan->resets_first) return;
    product.panel += 2 * h * PANEL_WIDTH;
    product.a += 3 * h;
    product.depth = h;
    panel_multiply(&product);
}

// Of gru that resets first: dc, by the state that was reset, from the gradients of h.
static void backward_set_reset(const backward_pass *pass, int64_t t, int64_t panel, int64_t count) {
    const recurrent_plan *plan = pass->plan;
    const pen_recurrent_geometry *g = &plan->g;
    const int64_t h = g->hidden, width = plan->slots * h;
    const panel_product product = {
        .panel = pass->packed + (panel * g->gates + 2) * h * PANEL_WIDTH,
        .a = pass->rows + t * g->batch * width + 2 * h,
        .c = pass->dc + panel * PANEL_WIDTH,
        .lda = width,
        .ldc = h,
        .rows = g->batch,
        .depth = h,
        .width = count,
    };
    panel_multiply(&product);
}

// The cells of a step, for the panels of one thread of a team; then waits for the others.
static void backward_cells(const backward_pass *pass, bool resets, int64_t t, int64_t first_panel,
                           int64_t last_panel) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    for (int64_t panel = first_panel; panel < last_panel; panel++) {
        const int64_t first = panel * PANEL_WIDTH, rest = g->hidden - first;
        const int64_t count = rest < PANEL_WIDTH ? rest : PANEL_WIDTH;
        if (resets) backward_set_reset(pass, t, panel, count);
        for (int64_t n = 0; n < g->batch; n++) {
            backward_apply_cell(pass, resets, t, n, first, count);
        }
    }
#pragma omp barrier
}

static void backward_steps(const backward_pass *pass, int64_t first_panel, int64_t last_panel) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    for (int64_t s = g->steps; s-- > 0;) {
        const int64_t t = g->is_reverse[pass->d] ? g->steps - 1 - s : s;
        backward_cells(pass, false, t, first_panel, last_panel);
        if (pass->plan->resets_first) backward_cells(pass, true, t, first_panel, last_panel);
        for (int64_t panel = first_panel; panel < last_panel; panel++) {
            const int64_t rest = g->hidden - panel * PANEL_WIDTH;
            backward_add_state(pass, t, panel, rest < PANEL_WIDTH ? rest : PANEL_WIDTH);
        }
    }
}

// ---- around the steps

// The state before each step, [S * N, H].
static void backward_read_before(const backward_pass *pass, const float *h0, float *before) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    const size_t bytes = (size_t)g->hidden * sizeof(float);
#pragma omp parallel for schedule(static) if (pass->plan->wants_team)
    for (int64_t t = 0; t < g->steps; t++) {
        for (int64_t n = 0; n < g->batch; n++) {
            const int64_t step = g->is_reverse[pass->d] ? t + 1 : t - 1;
            const float *from = pass->zeros;
            if (step >= 0 && step < pass->lengths[n]) {
                from = pass->y + pen_recurrent_row_y(g, pass->d, step, n) * g->hidden;
            } else if (h0 != NULL) {
                from = h0 + pen_recurrent_row_state(g, pass->d, n) * g->hidden;
            }
            memcpy(before + (t * g->batch + n) * g->hidden, from, bytes);
        }
    }
}

// Of gru that resets first, in place: the state that was reset, before each step.
static void backward_reset_before(const backward_pass *pass, float *before) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    const int64_t h = g->hidden;
#pragma omp parallel for schedule(static) if (pass->plan->wants_team)
    for (int64_t row = 0; row < g->steps * g->batch; row++) {
        const float *r = pass->gates + (row * pass->plan->slots + 1) * h;
        float *state = before + row * h;
#pragma omp simd
        for (int64_t j = 0; j < h; j++) {
            state[j] *= r[j];
        }
    }
}

// dw and dr of `gates` gates, whose gradients lie from slot `slot` on.
static pen_status backward_weights(const backward_pass *pass, int64_t slot, int64_t gates,
                                   const float *factor, int64_t columns, float *out) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    const pen_gemm product = {
        .m = gates * g->hidden,
        .n = columns,
        .k = g->steps * g->batch,
        .trans_a = true,
        .alpha = 1,
        .a = pass->rows + slot * g->hidden,
        .b = factor,
        .c = out,
        .lda = pass->plan->slots * g->hidden,
        .ldb = columns,
        .ldc = columns,
    };
    return recurrent_sgemm(&product);
}

static pen_status backward_all_weights(const backward_pass *pass, float *before, float *dw,
                                       float *dr) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    const int64_t h = g->hidden, rows = pass->d * g->gates * h;
    PEN_TRY(backward_weights(pass, 0, g->gates, pass->x, g->inputs, dw + rows * g->inputs));
    if (dr == NULL) return PEN_OK;
    if (g->kind != PEN_RECURRENT_GRU) {
        return backward_weights(pass, 0, g->gates, before, h, dr + rows * h);
    }
    PEN_TRY(backward_weights(pass, 0, 2, before, h, dr + rows * h));
    if (pass->plan->resets_first) backward_reset_before(pass, before);
    const int64_t slot = pass->plan->resets_first ? 2 : 3;
    return backward_weights(pass, slot, 1, before, h, dr + (rows + 2 * h) * h);
}

// Of the direction's own, or added to that of the other one.
static pen_status backward_x(const backward_pass *pass, const float *w, float *dx) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    const pen_gemm product = {
        .m = g->steps * g->batch,
        .n = g->inputs,
        .k = g->gates * g->hidden,
        .alpha = 1,
        .beta = pass->d > 0 ? 1.0f : 0.0f,
        .a = pass->rows,
        .b = w + pass->d * g->gates * g->hidden * g->inputs,
        .c = dx,
        .lda = pass->plan->slots * g->hidden,
        .ldb = g->inputs,
        .ldc = g->inputs,
    };
    return recurrent_sgemm(&product);
}

// Both halves' gradients: the same, but for h where gru has the state's half apart.
static void backward_give_biases(const backward_pass *pass, float *db) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    const int64_t h = g->hidden, rows = g->gates * h;
    if (db == NULL) return;
    float *of_x = db + pass->d * 2 * rows, *of_h = of_x + rows;
    memcpy(of_x, pass->dbias, (size_t)rows * sizeof *of_x);
    memcpy(of_h, pass->dbias, (size_t)rows * sizeof *of_h);
    if (pass->plan->slots == g->gates) return;
    memcpy(of_h + 2 * h, pass->dbias + 3 * h, (size_t)h * sizeof *of_h);
}

static void backward_read_state(const backward_pass *pass, const float *from, float *to) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    for (int64_t n = 0; n < g->batch; n++) {
        const float *row = pass->zeros;
        if (from != NULL) row = from + pen_recurrent_row_state(g, pass->d, n) * g->hidden;
        memcpy(to + n * g->hidden, row, (size_t)g->hidden * sizeof *to);
    }
}

static void backward_give_state(const backward_pass *pass, const float *from, float *to) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    for (int64_t n = 0; n < g->batch && to != NULL; n++) {
        memcpy(to + pen_recurrent_row_state(g, pass->d, n) * g->hidden, from + n * g->hidden,
               (size_t)g->hidden * sizeof *to);
    }
}

// Steps backwards, then the products for inputs and weights over all steps at once.
static pen_status backward_direction(const pen_cpu_call *call, backward_pass *pass, float *dx) {
    const recurrent_plan *plan = pass->plan;
    const pen_recurrent_geometry *g = &plan->g;
    float *workspace = call->workspace;
    float *packed = workspace + plan->packed, *before = workspace + plan->before;
    const bool is_lstm = g->kind == PEN_RECURRENT_LSTM;
    recurrent_pack_backward(plan, call->inputs[PEN_RECURRENT_R], pass->d, packed);
    backward_read_before(pass, recurrent_input(plan, call, PEN_RECURRENT_BACKWARD_INITIAL_H),
                         before);
    pass->packed = packed;
    pass->before = before;
    memset(pass->dbias, 0, (size_t)(plan->slots * g->hidden) * sizeof *pass->dbias);
    backward_read_state(pass, recurrent_input(plan, call, PEN_RECURRENT_BACKWARD_DH), pass->dh);
    if (is_lstm) {
        backward_read_state(pass, recurrent_input(plan, call, PEN_RECURRENT_BACKWARD_DC), pass->dc);
    }
#pragma omp parallel if (plan->wants_team)
    {
        const int64_t team = omp_get_num_threads(), own = omp_get_thread_num();
        backward_steps(pass, plan->panels * own / team, plan->panels * (own + 1) / team);
    }
    backward_give_state(pass, pass->dh, recurrent_output(plan, call, PEN_RECURRENT_DINITIAL_H));
    if (is_lstm) {
        backward_give_state(pass, pass->dc, recurrent_output(plan, call, PEN_RECURRENT_DINITIAL_C));
    }
    backward_give_biases(pass, recurrent_output(plan, call, PEN_RECURRENT_DB));
    if (dx != NULL) PEN_TRY(backward_x(pass, call->inputs[PEN_RECURRENT_W], dx));
    return backward_all_weights(pass, before, call->outputs[PEN_RECURRENT_DW],
                                recurrent_output(plan, call, PEN_RECURRENT_DR));
}

static void backward_give_batch_first(const recurrent_plan *plan, const float *from, float *dx) {
    const pen_recurrent_geometry *g = &plan->g;
#pragma omp parallel for schedule(static) if (plan->wants_team)
    for (int64_t n = 0; n < g->batch; n++) {
        for (int64_t t = 0; t < g->steps; t++) {
            memcpy(dx + (n * g->steps + t) * g->inputs, from + (t * g->batch + n) * g->inputs,
                   (size_t)g->inputs * sizeof *dx);
        }
    }
}

// Directions one after the other: they share the workspace.
pen_status recurrent_backward_run(const pen_cpu_call *call) {
    const recurrent_plan *plan = call->state;
    const pen_recurrent_geometry *g = &plan->g;
    const int64_t states = g->steps * g->batch * g->hidden;
    float *workspace = call->workspace;
    int64_t *lengths = (int64_t *)(void *)(workspace + plan->lengths);
    PEN_TRY(recurrent_read_lengths(
        plan, recurrent_input(plan, call, PEN_RECURRENT_BACKWARD_LENGTHS), lengths));
    float *zeros = workspace + plan->h + g->batch * g->hidden; // behind dh
    memset(zeros, 0, (size_t)g->hidden * sizeof *zeros);
    const float *gates = recurrent_input(plan, call, PEN_RECURRENT_BACKWARD_GATES);
    const float *cells = recurrent_input(plan, call, PEN_RECURRENT_BACKWARD_CELLS);
    float *dx = recurrent_output(plan, call, PEN_RECURRENT_DX);
    backward_pass pass = {
        .plan = plan,
        .lengths = lengths,
        .x = recurrent_steps_first(plan, call->inputs[PEN_RECURRENT_X], workspace + plan->x),
        .y = call->inputs[PEN_RECURRENT_BACKWARD_Y],
        .dy = recurrent_input(plan, call, PEN_RECURRENT_BACKWARD_DY),
        .c0 = recurrent_input(plan, call, PEN_RECURRENT_BACKWARD_INITIAL_C),
        .zeros = zeros,
        .rows = workspace + plan->rows,
        .dbias = workspace + plan->bias,
        .dh = workspace + plan->h,
        .dc = workspace + plan->c,
        .peepholes = recurrent_input(plan, call, PEN_RECURRENT_BACKWARD_PEEPHOLES),
        .dpeepholes = recurrent_output(plan, call, PEN_RECURRENT_DPEEPHOLES),
    };
    if (pass.dpeepholes != NULL) {
        memset(pass.dpeepholes, 0,
               (size_t)(g->directions * 3 * g->hidden) * sizeof *pass.dpeepholes);
    }
    for (pass.d = 0; pass.d < g->directions; pass.d++) {
        pass.gates = gates != NULL ? gates + pass.d * states * plan->slots : NULL;
        pass.cells = cells != NULL ? cells + pass.d * states : NULL;
        PEN_TRY(backward_direction(call, &pass,
                                   dx != NULL && g->is_batch_first ? workspace + plan->dx : dx));
    }
    if (dx != NULL && g->is_batch_first) backward_give_batch_first(plan, workspace + plan->dx, dx);
    return PEN_OK;
}
