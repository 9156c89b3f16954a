// lstm, gru and rnn, forward.
#include <omp.h>
#include <string.h>

#include "device/cpu/kernels/loops/packed_panels.h"
#include "device/cpu/kernels/loops/recurrent_cells.h"
#include "device/cpu/kernels/loops/vector_math.h"

// One direction on its way.
typedef struct recurrent_pass {
    const recurrent_plan *plan;
    int64_t d;
    const int64_t *lengths;
    const float *packed;
    const float *bias; // [slots * H]
    float *rows;       // [S * N, slots * H]
    float *h[2];       // before and after a step; they change places
    float *c;
    float *y;
    float *cells;           // of this direction, or NULL
    const float *peepholes; // likewise
} recurrent_pass;

// Cells with the usual functions.

// The usual cell as one vector loop.
static void lstm_cell(const recurrent_units *u) {
    PEN_ASSERT(u->c != NULL);
    const int64_t h = u->hidden;
    float *gi = u->row, *go = u->row + h, *gf = u->row + 2 * h, *gc = u->row + 3 * h;
    const float *bi = u->bias, *bo = bi + h, *bf = bi + 2 * h, *bc = bi + 3 * h;
    float *c = u->c, *y = u->y, *after = u->after;
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        const float i = vector_sigmoid(gi[j] + bi[j]);
        const float o = vector_sigmoid(go[j] + bo[j]);
        const float f = vector_sigmoid(gf[j] + bf[j]);
        const float fresh = vector_tanh(gc[j] + bc[j]);
        gi[j] = i;
        go[j] = o;
        gf[j] = f;
        gc[j] = fresh;
        c[j] = f * c[j] + i * fresh;
        y[j] = after[j] = o * vector_tanh(c[j]);
    }
    if (u->cells != NULL) memcpy(u->cells, c, (size_t)u->count * sizeof *c);
}

static void gru_cell(const recurrent_units *u) {
    const int64_t h = u->hidden;
    float *gz = u->row, *gr = u->row + h, *gh = u->row + 2 * h, *gq = u->row + 3 * h;
    const float *bz = u->bias, *br = bz + h, *bh = bz + 2 * h, *bq = bz + 3 * h;
    const float *before = u->before;
    float *y = u->y, *after = u->after;
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        const float z = vector_sigmoid(gz[j] + bz[j]);
        const float r = vector_sigmoid(gr[j] + br[j]);
        const float q = gq[j] + bq[j];
        const float fresh = vector_tanh(gh[j] + bh[j] + r * q);
        gz[j] = z;
        gr[j] = r;
        gh[j] = fresh;
        gq[j] = q;
        y[j] = after[j] = (1.0f - z) * fresh + z * before[j];
    }
}

// c takes the state that was reset.
static void gru_reset(const recurrent_units *u) {
    PEN_ASSERT(u->c != NULL);
    float *gz = u->row, *gr = u->row + u->hidden, *c = u->c;
    const float *bz = u->bias, *br = bz + u->hidden, *before = u->before;
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        gz[j] = vector_sigmoid(gz[j] + bz[j]);
        gr[j] = vector_sigmoid(gr[j] + br[j]);
        c[j] = gr[j] * before[j];
    }
}

static void gru_fresh(const recurrent_units *u) {
    const float *gz = u->row, *bh = u->bias + 2 * u->hidden, *before = u->before;
    float *gh = u->row + 2 * u->hidden, *y = u->y, *after = u->after;
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        const float z = gz[j], fresh = vector_tanh(gh[j] + bh[j]);
        gh[j] = fresh;
        y[j] = after[j] = (1.0f - z) * fresh + z * before[j];
    }
}

static void rnn_cell(const recurrent_units *u, bool relu) {
    const float *row = u->row, *bias = u->bias;
    float *y = u->y, *after = u->after;
    if (relu) {
#pragma omp simd
        for (int64_t j = 0; j < u->count; j++) {
            const float a = row[j] + bias[j];
            y[j] = after[j] = a > 0.0f ? a : 0.0f;
        }
        return;
    }
#pragma omp simd
    for (int64_t j = 0; j < u->count; j++) {
        y[j] = after[j] = vector_tanh(row[j] + bias[j]);
    }
}

// Behind the end of a sequence the state stays, and what comes out is 0.
static void recurrent_rest(const recurrent_plan *plan, const recurrent_units *u) {
    const size_t bytes = (size_t)u->count * sizeof(float);
    for (int64_t slot = 0; slot < plan->slots; slot++) {
        memset(u->row + slot * u->hidden, 0, bytes);
    }
    memset(u->y, 0, bytes);
    if (u->cells != NULL) memset(u->cells, 0, bytes);
    memcpy(u->after, u->before, bytes);
}

// The state's half of the stage's gates of one panel's units, added to the input's.
static void recurrent_add_state(const recurrent_pass *pass, recurrent_stage stage, int64_t t,
                                int64_t panel, int64_t width) {
    const recurrent_plan *plan = pass->plan;
    const pen_recurrent_geometry *g = &plan->g;
    const int64_t row = plan->slots * g->hidden;
    const bool is_linear = g->kind == PEN_RECURRENT_GRU && !plan->resets_first;
    const int64_t last = stage == STAGE_RESET ? 2 : g->gates;
    panel_product product = {
        .a = stage == STAGE_FRESH ? pass->c : pass->h[0],
        .lda = g->hidden,
        .ldc = row,
        .rows = g->batch,
        .depth = g->hidden,
        .width = width,
    };
    for (int64_t gate = stage == STAGE_FRESH ? 2 : 0; gate < last; gate++) {
        const bool is_apart = is_linear && gate == 2; // the state's half of h, in a slot of its own
        product.panel = pass->packed + (panel * g->gates + gate) * g->hidden * PANEL_WIDTH;
        product.c = pass->rows + t * g->batch * row + (is_apart ? 3 : gate) * g->hidden +
                    panel * PANEL_WIDTH;
        product.adds = !is_apart;
        panel_multiply(&product);
    }
}

// Where the numbers of one step and example lie, for whichever cell it is.
static void recurrent_apply_cell(const recurrent_pass *pass, recurrent_stage stage, int64_t t,
                                 int64_t n, int64_t first, int64_t count) {
    const recurrent_plan *plan = pass->plan;
    const pen_recurrent_geometry *g = &plan->g;
    const int64_t at = (t * g->batch + n) * g->hidden + first, state = n * g->hidden + first;
    const recurrent_units units = {
        .row = pass->rows + (t * g->batch + n) * plan->slots * g->hidden + first,
        .bias = pass->bias + first,
        .before = pass->h[0] + state,
        .after = pass->h[1] + state,
        .c = pass->c != NULL ? pass->c + state : NULL,
        .y = pass->y + pen_recurrent_row_y(g, pass->d, t, n) * g->hidden + first,
        .cells = pass->cells != NULL ? pass->cells + at : NULL,
        .peepholes = pass->peepholes != NULL ? pass->peepholes + first : NULL,
        .activations = g->activations[pass->d],
        .hidden = g->hidden,
        .count = count,
    };
    if (t >= pass->lengths[n]) {
        recurrent_rest(plan, &units);
        return;
    }
    if (plan->is_unusual) {
        recurrent_any_cell(plan, stage, &units);
        return;
    }
    switch (g->kind) {
    case PEN_RECURRENT_RNN:
        rnn_cell(&units, plan->relu);
        break;
    case PEN_RECURRENT_GRU:
        if (stage == STAGE_RESET) gru_reset(&units);
        if (stage == STAGE_FRESH) gru_fresh(&units);
        if (stage == STAGE_WHOLE) gru_cell(&units);
        break;
    case PEN_RECURRENT_LSTM:
        lstm_cell(&units);
        break;
    }
}

// One stage of a step, for the panels of one thread of a team; then waits for the others.
static void recurrent_run_stage(const recurrent_pass *pass, recurrent_stage stage, int64_t t,
                                int64_t first_panel, int64_t last_panel) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    for (int64_t panel = first_panel; panel < last_panel; panel++) {
        const int64_t first = panel * PANEL_WIDTH, rest = g->hidden - first;
        const int64_t count = rest < PANEL_WIDTH ? rest : PANEL_WIDTH;
        recurrent_add_state(pass, stage, t, panel, count);
        for (int64_t n = 0; n < g->batch; n++) {
            recurrent_apply_cell(pass, stage, t, n, first, count);
        }
    }
#pragma omp barrier
}

static void recurrent_steps(recurrent_pass pass, int64_t first_panel, int64_t last_panel) {
    const pen_recurrent_geometry *g = &pass.plan->g;
    for (int64_t s = 0; s < g->steps; s++) {
        const int64_t t = g->is_reverse[pass.d] ? g->steps - 1 - s : s;
        if (pass.plan->resets_first) {
            recurrent_run_stage(&pass, STAGE_RESET, t, first_panel, last_panel);
            recurrent_run_stage(&pass, STAGE_FRESH, t, first_panel, last_panel);
        } else {
            recurrent_run_stage(&pass, STAGE_WHOLE, t, first_panel, last_panel);
        }
        float *before = pass.h[0];
        pass.h[0] = pass.h[1];
        pass.h[1] = before;
    }
}

// ---- around the steps

// Row by row between a state of ours, [N, H], and those of all directions.
static void recurrent_copy_state(const recurrent_pass *pass, const float *from, float *to) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    const size_t bytes = (size_t)g->hidden * sizeof(float);
    for (int64_t n = 0; n < g->batch; n++) {
        const int64_t row = pen_recurrent_row_state(g, pass->d, n) * g->hidden;
        if (from == NULL) {
            memset(to + n * g->hidden, 0, bytes);
        } else {
            memcpy(to + n * g->hidden, from + row, bytes);
        }
    }
}

static void recurrent_give_state(const recurrent_pass *pass, const float *from, float *to) {
    const pen_recurrent_geometry *g = &pass->plan->g;
    for (int64_t n = 0; n < g->batch && to != NULL; n++) {
        memcpy(to + pen_recurrent_row_state(g, pass->d, n) * g->hidden, from + n * g->hidden,
               (size_t)g->hidden * sizeof(float));
    }
}

// Both halves' biases in one, but for the state's half of h where gru has it apart.
static void recurrent_add_biases(const recurrent_plan *plan, const float *b, int64_t d,
                                 float *bias) {
    const int64_t h = plan->g.hidden, rows = plan->g.gates * h;
    memset(bias, 0, (size_t)(plan->slots * h) * sizeof *bias);
    if (b == NULL) return;
    const float *of_x = b + d * 2 * rows, *of_h = of_x + rows;
    for (int64_t k = 0; k < rows; k++) {
        const bool is_apart = plan->slots > plan->g.gates && k >= 2 * h;
        bias[k] = is_apart ? of_x[k] : of_x[k] + of_h[k];
        if (is_apart) bias[k + h] = of_h[k];
    }
}

// The inputs' half of all steps is one product; then each step adds the state's half and applies
// the cell.
static pen_status recurrent_direction(const pen_cpu_call *call, recurrent_pass *pass,
                                      const float *x) {
    const recurrent_plan *plan = pass->plan;
    const pen_recurrent_geometry *g = &plan->g;
    float *workspace = call->workspace;
    const pen_gemm inputs = {
        .m = g->steps * g->batch,
        .n = g->gates * g->hidden,
        .k = g->inputs,
        .trans_b = true,
        .alpha = 1,
        .a = x,
        .b = (const float *)call->inputs[PEN_RECURRENT_W] +
             pass->d * g->gates * g->hidden * g->inputs,
        .c = pass->rows,
        .lda = g->inputs,
        .ldb = g->inputs,
        .ldc = plan->slots * g->hidden,
    };
    PEN_TRY(recurrent_sgemm(&inputs));
    float *packed = workspace + plan->packed, *bias = workspace + plan->bias;
    recurrent_pack_forward(plan, call->inputs[PEN_RECURRENT_R], pass->d, packed);
    recurrent_add_biases(plan, recurrent_input(plan, call, PEN_RECURRENT_B), pass->d, bias);
    pass->packed = packed;
    pass->bias = bias;
    pass->h[0] = workspace + plan->h;
    pass->h[1] = pass->h[0] + g->batch * g->hidden;
    recurrent_copy_state(pass, recurrent_input(plan, call, PEN_RECURRENT_INITIAL_H), pass->h[0]);
    if (plan->resets_first) pass->c = workspace + plan->c;
    if (g->kind == PEN_RECURRENT_LSTM) {
        pass->c = workspace + plan->c;
        recurrent_copy_state(pass, recurrent_input(plan, call, PEN_RECURRENT_INITIAL_C), pass->c);
    }
#pragma omp parallel if (plan->wants_team)
    {
        const int64_t team = omp_get_num_threads(), own = omp_get_thread_num();
        recurrent_steps(*pass, plan->panels * own / team, plan->panels * (own + 1) / team);
    }
    recurrent_give_state(pass, pass->h[g->steps % 2],
                         recurrent_output(plan, call, PEN_RECURRENT_LAST_H));
    if (g->kind == PEN_RECURRENT_LSTM) {
        recurrent_give_state(pass, pass->c, recurrent_output(plan, call, PEN_RECURRENT_LAST_C));
    }
    return PEN_OK;
}

// Gates and cells are kept only where a backward pass reads them.
static pen_status recurrent_forward_run(const pen_cpu_call *call) {
    const recurrent_plan *plan = call->state;
    const pen_recurrent_geometry *g = &plan->g;
    float *workspace = call->workspace;
    int64_t *lengths = (int64_t *)(void *)(workspace + plan->lengths);
    PEN_TRY(
        recurrent_read_lengths(plan, recurrent_input(plan, call, PEN_RECURRENT_LENGTHS), lengths));
    const float *x =
        recurrent_steps_first(plan, call->inputs[PEN_RECURRENT_X], workspace + plan->x);
    const bool is_lstm = g->kind == PEN_RECURRENT_LSTM;
    const uint32_t own = is_lstm ? PEN_RECURRENT_LAST_C + 1 : PEN_RECURRENT_LAST_H + 1;
    float *gates = g->saved > 0 ? recurrent_output(plan, call, own) : NULL;
    float *cells = is_lstm ? recurrent_output(plan, call, own + 1) : NULL;
    const float *peepholes = is_lstm ? recurrent_input(plan, call, PEN_RECURRENT_PEEPHOLES) : NULL;
    for (int64_t d = 0; d < g->directions; d++) {
        const int64_t states = g->steps * g->batch * g->hidden;
        recurrent_pass pass = {
            .plan = plan,
            .d = d,
            .lengths = lengths,
            .rows = gates != NULL ? gates + d * states * plan->slots : workspace + plan->rows,
            .y = call->outputs[PEN_RECURRENT_Y],
            .cells = cells != NULL ? cells + d * states : NULL,
            .peepholes = peepholes != NULL ? peepholes + d * 3 * g->hidden : NULL,
        };
        PEN_TRY(recurrent_direction(call, &pass, x));
    }
    return PEN_OK;
}

static const pen_cpu_kernel recurrent_kernels[] = {
    {PEN_CPU_ENTRY("lstm", "panels", recurrent_forward_supports, recurrent_forward_prepare,
                   recurrent_forward_run)},
    {PEN_CPU_ENTRY("gru", "panels", recurrent_forward_supports, recurrent_forward_prepare,
                   recurrent_forward_run)},
    {PEN_CPU_ENTRY("rnn", "panels", recurrent_forward_supports, recurrent_forward_prepare,
                   recurrent_forward_run)},
    {PEN_CPU_ENTRY("lstm_backward", "panels", recurrent_backward_supports,
                   recurrent_backward_prepare, recurrent_backward_run)},
    {PEN_CPU_ENTRY("gru_backward", "panels", recurrent_backward_supports,
                   recurrent_backward_prepare, recurrent_backward_run)},
    {PEN_CPU_ENTRY("rnn_backward", "panels", recurrent_backward_supports,
                   recurrent_backward_prepare, recurrent_backward_run)},
};

PEN_CPU_FAMILY_OF(recurrent);
