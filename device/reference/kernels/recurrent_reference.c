// lstm, gru and rnn, one example after the other, in double.

#include <inttypes.h>
#include <math.h>

#include "device/reference/reference_kernel.h"
#include "graph/ops/product/recurrent_geometry.h"

// One example of one direction, on its way through the steps. Vectors of `hidden` elements, but
// where said.
typedef struct recurrent_walk {
    pen_recurrent_geometry g;
    int64_t d, n;
    int64_t length; // steps of this example that count
    double *x;      // [inputs]
    double *h, *c;  // the state before a step; forward: and after it
    double *ax;     // [G * H]: the input's half before the activations
    double *ah;     // [G * H]: the state's half
    double *u;      // gru: what the weights of h are applied to
    // backward
    double *dh, *dc;         // by the state after the step, then by that before
    double *dw, *dr, *db;    // of the whole tensors
    double *dx, *dpeepholes; // likewise
    double *dstate_h;        // [H]: what goes back through the step
} recurrent_walk;

// NULL when there is no such operand.
static const pen_tensor *recurrent_operand(const pen_reference_call *call, uint32_t input) {
    const bool is_there = pen_reference_input(call, input) != NULL;
    return is_there ? &call->inputs[input] : NULL;
}

static const pen_tensor *recurrent_result(const pen_reference_call *call, uint32_t output) {
    const bool is_there = pen_reference_output(call, output) != NULL;
    return is_there ? &call->outputs[output] : NULL;
}

static pen_status recurrent_walk_make(const pen_reference_call *call, recurrent_walk *walk) {
    PEN_TRY(pen_recurrent_geometry_of(call->graph, call->node, &walk->g));
    const size_t h = (size_t)walk->g.hidden, rows = (size_t)walk->g.gates * h;
    PEN_TRY(PEN_NEW(call->scratch, (size_t)walk->g.inputs, &walk->x));
    PEN_TRY(PEN_NEW(call->scratch, h, &walk->h));
    PEN_TRY(PEN_NEW(call->scratch, h, &walk->c));
    PEN_TRY(PEN_NEW(call->scratch, rows, &walk->ax));
    PEN_TRY(PEN_NEW(call->scratch, rows, &walk->ah));
    return PEN_NEW(call->scratch, h, &walk->u);
}

static pen_status recurrent_length(const pen_tensor *lengths, recurrent_walk *walk) {
    walk->length = walk->g.steps;
    if (lengths == NULL) return PEN_OK;
    walk->length = pen_tensor_get_int(lengths, walk->n);
    if (walk->length >= 0 && walk->length <= walk->g.steps) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "the length of sequence %" PRId64 " is %" PRId64 "; it may be 0 to %" PRId64,
                     walk->n, walk->length, walk->g.steps);
}

// The step that comes as number `s`.
static int64_t recurrent_step(const recurrent_walk *walk, int64_t s) {
    return walk->g.is_reverse[walk->d] ? walk->g.steps - 1 - s : s;
}

static void recurrent_read(const pen_tensor *tensor, int64_t row, int64_t count, double *out) {
    for (int64_t i = 0; i < count; i++) {
        out[i] = tensor != NULL ? pen_tensor_get(tensor, row * count + i) : 0;
    }
}

static void recurrent_write(const pen_tensor *tensor, int64_t row, int64_t count,
                            const double *from) {
    for (int64_t i = 0; i < count && tensor != NULL; i++) {
        pen_tensor_set(tensor, row * count + i, from != NULL ? from[i] : 0);
    }
}

static double recurrent_clip(const recurrent_walk *walk, double a) {
    return fmin(walk->g.clip, fmax(-walk->g.clip, a));
}

// Activation `which` (f, g, h) of what was clipped.
static double recurrent_activate(const recurrent_walk *walk, int which, double a) {
    return pen_recurrent_apply(&walk->g.activations[walk->d][which], recurrent_clip(walk, a));
}

// Its derivative by `a`, from what it gave; 0 where `a` was clipped.
static double recurrent_slope(const recurrent_walk *walk, int which, double y) {
    const pen_recurrent_activation *activation = &walk->g.activations[walk->d][which];
    if (walk->g.clip < (double)INFINITY) {
        const double low = pen_recurrent_apply(activation, -walk->g.clip);
        const double high = pen_recurrent_apply(activation, walk->g.clip);
        if (y <= fmin(low, high) || y >= fmax(low, high)) return 0;
    }
    return pen_recurrent_slope(activation, y);
}

static double recurrent_peephole(const pen_reference_call *call, uint32_t input,
                                 const recurrent_walk *walk, int64_t index) {
    const pen_tensor *peepholes = recurrent_operand(call, input);
    if (peepholes == NULL) return 0;
    return pen_tensor_get(peepholes, walk->d * 3 * walk->g.hidden + index);
}

// Row `row` of direction d of `weights` times `vector`, [count].
static double recurrent_weigh(const recurrent_walk *walk, const pen_tensor *weights, int64_t row,
                              const double *vector, int64_t count) {
    const int64_t first = (walk->d * walk->g.gates * walk->g.hidden + row) * count;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += pen_tensor_get(weights, first + i) * vector[i];
    }
    return sum;
}

// ---- forward

// Rows [first, last) of the halves before the activations, the state's from `state`.
static void recurrent_products(const pen_reference_call *call, recurrent_walk *walk, int64_t first,
                               int64_t last, const double *state) {
    const pen_recurrent_geometry *g = &walk->g;
    const pen_tensor *b = recurrent_operand(call, PEN_RECURRENT_B);
    const int64_t rows = g->gates * g->hidden;
    for (int64_t row = first; row < last; row++) {
        walk->ax[row] =
            recurrent_weigh(walk, &call->inputs[PEN_RECURRENT_W], row, walk->x, g->inputs);
        walk->ah[row] =
            recurrent_weigh(walk, &call->inputs[PEN_RECURRENT_R], row, state, g->hidden);
        if (b == NULL) continue;
        walk->ax[row] += pen_tensor_get(b, walk->d * 2 * rows + row);
        walk->ah[row] += pen_tensor_get(b, walk->d * 2 * rows + rows + row);
    }
}

static void rnn_forward(const pen_reference_call *call, recurrent_walk *walk) {
    recurrent_products(call, walk, 0, walk->g.hidden, walk->h);
    for (int64_t j = 0; j < walk->g.hidden; j++) {
        walk->h[j] = recurrent_activate(walk, 0, walk->ax[j] + walk->ah[j]);
    }
}

// `saved` is the index of the first gate that is saved.
static void gru_forward(const pen_reference_call *call, recurrent_walk *walk, int64_t saved) {
    const int64_t h = walk->g.hidden;
    const pen_tensor *gates = recurrent_result(call, PEN_RECURRENT_LAST_H + 1);
    recurrent_products(call, walk, 0, 2 * h, walk->h);
    for (int64_t j = 0; j < 2 * h; j++) {
        walk->ax[j] = recurrent_activate(walk, 0, walk->ax[j] + walk->ah[j]);
    }
    for (int64_t j = 0; j < h; j++) {
        walk->u[j] = walk->g.linear_before_reset ? walk->h[j] : walk->ax[h + j] * walk->h[j];
    }
    recurrent_products(call, walk, 2 * h, 3 * h, walk->u);
    for (int64_t j = 0; j < h; j++) {
        const double z = walk->ax[j], r = walk->ax[h + j], q = walk->ah[2 * h + j];
        const double reset = walk->g.linear_before_reset ? r * q : q;
        const double fresh = recurrent_activate(walk, 1, walk->ax[2 * h + j] + reset);
        walk->h[j] = (1 - z) * fresh + z * walk->h[j];
        if (gates == NULL) continue;
        pen_tensor_set(gates, saved + j, z);
        pen_tensor_set(gates, saved + h + j, r);
        pen_tensor_set(gates, saved + 2 * h + j, fresh);
        if (walk->g.linear_before_reset) pen_tensor_set(gates, saved + 3 * h + j, q);
    }
}

// ONNX's formulas with gates in its order i, o, f, c; the gates are kept if a backward pass will
// read them.
static void lstm_forward(const pen_reference_call *call, recurrent_walk *walk, int64_t saved) {
    const int64_t h = walk->g.hidden;
    const uint32_t p = PEN_RECURRENT_PEEPHOLES;
    const pen_tensor *gates = recurrent_result(call, PEN_RECURRENT_LAST_C + 1);
    recurrent_products(call, walk, 0, 4 * h, walk->h);
    for (int64_t j = 0; j < 4 * h; j++) {
        walk->ax[j] += walk->ah[j];
    }
    for (int64_t j = 0; j < h; j++) {
        const double before = walk->c[j];
        const double pi = recurrent_peephole(call, p, walk, j);
        const double po = recurrent_peephole(call, p, walk, h + j);
        const double pf = recurrent_peephole(call, p, walk, 2 * h + j);
        const double i = recurrent_activate(walk, 0, walk->ax[j] + pi * before);
        const double f = walk->g.input_forget
                             ? 1 - i
                             : recurrent_activate(walk, 0, walk->ax[2 * h + j] + pf * before);
        const double fresh = recurrent_activate(walk, 1, walk->ax[3 * h + j]);
        const double c = f * before + i * fresh;
        const double o = recurrent_activate(walk, 0, walk->ax[h + j] + po * c);
        walk->c[j] = c;
        walk->h[j] = o * recurrent_activate(walk, 2, c);
        if (gates == NULL) continue;
        pen_tensor_set(gates, saved + j, i);
        pen_tensor_set(gates, saved + h + j, o);
        pen_tensor_set(gates, saved + 2 * h + j, f);
        pen_tensor_set(gates, saved + 3 * h + j, fresh);
    }
}

static void recurrent_step_forward(const pen_reference_call *call, recurrent_walk *walk,
                                   int64_t t) {
    const pen_recurrent_geometry *g = &walk->g;
    const int64_t row = pen_recurrent_row_saved(g, walk->d, t, walk->n);
    const int64_t saved = row * g->saved * g->hidden;
    recurrent_read(&call->inputs[PEN_RECURRENT_X], pen_recurrent_row_x(g, t, walk->n), g->inputs,
                   walk->x);
    switch (g->kind) {
    case PEN_RECURRENT_RNN:
        rnn_forward(call, walk);
        break;
    case PEN_RECURRENT_GRU:
        gru_forward(call, walk, saved);
        break;
    case PEN_RECURRENT_LSTM:
        lstm_forward(call, walk, saved);
        break;
    }
}

// What comes out of step t: zeros behind the end of the sequence.
static void recurrent_store_step(const pen_reference_call *call, const recurrent_walk *walk,
                                 int64_t t) {
    const pen_recurrent_geometry *g = &walk->g;
    const bool counts = t < walk->length;
    const int64_t row = pen_recurrent_row_saved(g, walk->d, t, walk->n);
    recurrent_write(&call->outputs[PEN_RECURRENT_Y], pen_recurrent_row_y(g, walk->d, t, walk->n),
                    g->hidden, counts ? walk->h : NULL);
    if (g->kind == PEN_RECURRENT_LSTM) {
        recurrent_write(recurrent_result(call, PEN_RECURRENT_LAST_C + 2), row, g->hidden,
                        counts ? walk->c : NULL);
    }
    if (counts || g->saved == 0) return;
    const uint32_t gates =
        g->kind == PEN_RECURRENT_LSTM ? PEN_RECURRENT_LAST_C + 1 : PEN_RECURRENT_LAST_H + 1;
    recurrent_write(recurrent_result(call, gates), row, g->saved * g->hidden, NULL);
}

static void recurrent_example_forward(const pen_reference_call *call, recurrent_walk *walk) {
    const pen_recurrent_geometry *g = &walk->g;
    const int64_t state = pen_recurrent_row_state(g, walk->d, walk->n);
    recurrent_read(recurrent_operand(call, PEN_RECURRENT_INITIAL_H), state, g->hidden, walk->h);
    recurrent_read(recurrent_operand(call, PEN_RECURRENT_INITIAL_C), state, g->hidden, walk->c);
    for (int64_t s = 0; s < g->steps; s++) {
        const int64_t t = recurrent_step(walk, s);
        if (t < walk->length) recurrent_step_forward(call, walk, t);
        recurrent_store_step(call, walk, t);
    }
    recurrent_write(recurrent_result(call, PEN_RECURRENT_LAST_H), state, g->hidden, walk->h);
    if (g->kind != PEN_RECURRENT_LSTM) return;
    recurrent_write(recurrent_result(call, PEN_RECURRENT_LAST_C), state, g->hidden, walk->c);
}

static pen_status recurrent_run(const pen_reference_call *call) {
    recurrent_walk walk = {0};
    PEN_TRY(recurrent_walk_make(call, &walk));
    for (walk.d = 0; walk.d < walk.g.directions; walk.d++) {
        for (walk.n = 0; walk.n < walk.g.batch; walk.n++) {
            PEN_TRY(recurrent_length(recurrent_operand(call, PEN_RECURRENT_LENGTHS), &walk));
            recurrent_example_forward(call, &walk);
        }
    }
    return PEN_OK;
}

// ---- backward
//
// Of each step: from dh and dc, by the state after it, the gradients ax and ah by the two halves
// before the activations, and dstate_h and dc by the state before it.

static void rnn_backward(const pen_reference_call *call, recurrent_walk *walk, int64_t y) {
    for (int64_t j = 0; j < walk->g.hidden; j++) {
        const double out = pen_tensor_get(&call->inputs[PEN_RECURRENT_BACKWARD_Y], y + j);
        walk->ax[j] = walk->ah[j] = walk->dh[j] * recurrent_slope(walk, 0, out);
    }
}

// Gradients of z, r and h of one step; where the reset stands decides what the state's product
// receives.
static void gru_backward(const pen_reference_call *call, recurrent_walk *walk, int64_t saved) {
    const int64_t h = walk->g.hidden;
    const bool linear = walk->g.linear_before_reset;
    const pen_tensor *gates = &call->inputs[PEN_RECURRENT_BACKWARD_GATES];
    for (int64_t j = 0; j < h; j++) {
        const double z = pen_tensor_get(gates, saved + j);
        const double fresh = pen_tensor_get(gates, saved + 2 * h + j);
        walk->u[j] = walk->h[j] * pen_tensor_get(gates, saved + h + j);
        walk->ax[j] = walk->dh[j] * (walk->h[j] - fresh) * recurrent_slope(walk, 0, z);
        walk->ax[2 * h + j] = walk->dh[j] * (1 - z) * recurrent_slope(walk, 1, fresh);
        walk->dstate_h[j] = walk->dh[j] * z;
    }
    for (int64_t j = 0; j < h; j++) {
        const double r = pen_tensor_get(gates, saved + h + j);
        const double da = walk->ax[2 * h + j];
        double dr = linear ? da * pen_tensor_get(gates, saved + 3 * h + j) : 0;
        if (!linear) { // by u = r * h
            double du = 0;
            for (int64_t k = 0; k < h; k++) {
                const int64_t row = (walk->d * 3 + 2) * h + k;
                du += walk->ax[2 * h + k] *
                      pen_tensor_get(&call->inputs[PEN_RECURRENT_R], row * h + j);
            }
            dr = du * walk->h[j];
            walk->dstate_h[j] += du * r;
        }
        walk->ax[h + j] = dr * recurrent_slope(walk, 0, r);
        walk->ah[j] = walk->ax[j];
        walk->ah[h + j] = walk->ax[h + j];
        walk->ah[2 * h + j] = linear ? da * r : da;
    }
}

static void lstm_backward_peepholes(const pen_reference_call *call, recurrent_walk *walk, int64_t j,
                                    double after) {
    const int64_t h = walk->g.hidden;
    const uint32_t p = PEN_RECURRENT_BACKWARD_PEEPHOLES;
    const double di = walk->ax[j], dout = walk->ax[h + j], df = walk->ax[2 * h + j];
    walk->dc[j] += di * recurrent_peephole(call, p, walk, j) +
                   df * recurrent_peephole(call, p, walk, 2 * h + j);
    double *dpeepholes = walk->dpeepholes + walk->d * 3 * h;
    dpeepholes[j] += di * walk->c[j];
    dpeepholes[h + j] += dout * after;
    dpeepholes[2 * h + j] += df * walk->c[j];
}

// Gradients of the four gates of one step, and of the cell and peepholes before it.
static void lstm_backward(const pen_reference_call *call, recurrent_walk *walk, int64_t row) {
    const int64_t h = walk->g.hidden, saved = row * 4 * h;
    const pen_tensor *gates = &call->inputs[PEN_RECURRENT_BACKWARD_GATES];
    for (int64_t j = 0; j < h; j++) {
        const double i = pen_tensor_get(gates, saved + j);
        const double o = pen_tensor_get(gates, saved + h + j);
        const double f = pen_tensor_get(gates, saved + 2 * h + j);
        const double fresh = pen_tensor_get(gates, saved + 3 * h + j);
        const double c = pen_tensor_get(&call->inputs[PEN_RECURRENT_BACKWARD_CELLS], row * h + j);
        const double shown = recurrent_activate(walk, 2, c);
        const double po = recurrent_peephole(call, PEN_RECURRENT_BACKWARD_PEEPHOLES, walk, h + j);
        const double dout = walk->dh[j] * shown * recurrent_slope(walk, 0, o);
        const double dc =
            walk->dc[j] + walk->dh[j] * o * recurrent_slope(walk, 2, shown) + dout * po;
        double di = dc * fresh, df = dc * walk->c[j];
        if (walk->g.input_forget) { // f = 1 - i
            di -= df;
            df = 0;
        }
        walk->ax[j] = di * recurrent_slope(walk, 0, i);
        walk->ax[h + j] = dout;
        walk->ax[2 * h + j] = df * recurrent_slope(walk, 0, f);
        walk->ax[3 * h + j] = dc * i * recurrent_slope(walk, 1, fresh);
        walk->dc[j] = dc * f;
        lstm_backward_peepholes(call, walk, j, c);
    }
    for (int64_t k = 0; k < 4 * h; k++) {
        walk->ah[k] = walk->ax[k];
    }
}

// Adds what ax and ah say to the gradients of the weights, of x, and of the state before.
static void recurrent_spread(const pen_reference_call *call, recurrent_walk *walk, int64_t x) {
    const pen_recurrent_geometry *g = &walk->g;
    const int64_t h = g->hidden, rows = g->gates * h;
    const bool resets = g->kind == PEN_RECURRENT_GRU && !g->linear_before_reset;
    for (int64_t k = 0; k < rows; k++) {
        const int64_t row = walk->d * rows + k;
        const bool is_reset = resets && k >= 2 * h;
        for (int64_t i = 0; i < g->inputs; i++) {
            const int64_t at = row * g->inputs + i;
            walk->dw[at] += walk->ax[k] * walk->x[i];
            walk->dx[x + i] += walk->ax[k] * pen_tensor_get(&call->inputs[PEN_RECURRENT_W], at);
        }
        for (int64_t j = 0; j < h; j++) {
            const int64_t at = row * h + j;
            walk->dr[at] += walk->ah[k] * (is_reset ? walk->u[j] : walk->h[j]);
            if (is_reset) continue;
            walk->dstate_h[j] += walk->ah[k] * pen_tensor_get(&call->inputs[PEN_RECURRENT_R], at);
        }
        walk->db[walk->d * 2 * rows + k] += walk->ax[k];
        walk->db[walk->d * 2 * rows + rows + k] += walk->ah[k];
    }
}

// The state before step t: what came out of the step before, or the initial state.
static void recurrent_read_before(const pen_reference_call *call, recurrent_walk *walk, int64_t t) {
    const pen_recurrent_geometry *g = &walk->g;
    const int64_t before = g->is_reverse[walk->d] ? t + 1 : t - 1;
    if (before < 0 || before >= walk->length) {
        const int64_t state = pen_recurrent_row_state(g, walk->d, walk->n);
        recurrent_read(recurrent_operand(call, PEN_RECURRENT_BACKWARD_INITIAL_H), state, g->hidden,
                       walk->h);
        recurrent_read(recurrent_operand(call, PEN_RECURRENT_BACKWARD_INITIAL_C), state, g->hidden,
                       walk->c);
        return;
    }
    recurrent_read(&call->inputs[PEN_RECURRENT_BACKWARD_Y],
                   pen_recurrent_row_y(g, walk->d, before, walk->n), g->hidden, walk->h);
    recurrent_read(recurrent_operand(call, PEN_RECURRENT_BACKWARD_CELLS),
                   pen_recurrent_row_saved(g, walk->d, before, walk->n), g->hidden, walk->c);
}

// From the gates' gradients to those of the step's input, state, weights and biases.
static void recurrent_step_backward(const pen_reference_call *call, recurrent_walk *walk,
                                    int64_t t) {
    const pen_recurrent_geometry *g = &walk->g;
    const int64_t x = pen_recurrent_row_x(g, t, walk->n);
    const int64_t y = pen_recurrent_row_y(g, walk->d, t, walk->n) * g->hidden;
    const int64_t row = pen_recurrent_row_saved(g, walk->d, t, walk->n);
    const pen_tensor *dy = recurrent_operand(call, PEN_RECURRENT_BACKWARD_DY);
    recurrent_read(&call->inputs[PEN_RECURRENT_X], x, g->inputs, walk->x);
    recurrent_read_before(call, walk, t);
    for (int64_t j = 0; j < g->hidden; j++) {
        if (dy != NULL) walk->dh[j] += pen_tensor_get(dy, y + j);
        walk->dstate_h[j] = 0;
    }
    switch (g->kind) {
    case PEN_RECURRENT_RNN:
        rnn_backward(call, walk, y);
        break;
    case PEN_RECURRENT_GRU:
        gru_backward(call, walk, row * g->saved * g->hidden);
        break;
    case PEN_RECURRENT_LSTM:
        lstm_backward(call, walk, row);
        break;
    }
    recurrent_spread(call, walk, x * g->inputs);
    for (int64_t j = 0; j < g->hidden; j++) {
        walk->dh[j] = walk->dstate_h[j];
    }
}

static pen_status recurrent_backward_make(const pen_reference_call *call, recurrent_walk *walk) {
    PEN_TRY(recurrent_walk_make(call, walk));
    const pen_recurrent_geometry *g = &walk->g;
    const size_t h = (size_t)g->hidden, rows = (size_t)(g->directions * g->gates) * h;
    const size_t x_count = (size_t)pen_tensor_count(&call->inputs[PEN_RECURRENT_X]);
    PEN_TRY(PEN_NEW(call->scratch, h, &walk->dh));
    PEN_TRY(PEN_NEW(call->scratch, h, &walk->dc));
    PEN_TRY(PEN_NEW(call->scratch, h, &walk->dstate_h));
    PEN_TRY(PEN_NEW(call->scratch, rows * (size_t)g->inputs, &walk->dw));
    PEN_TRY(PEN_NEW(call->scratch, rows * h, &walk->dr));
    PEN_TRY(PEN_NEW(call->scratch, 2 * rows, &walk->db));
    PEN_TRY(PEN_NEW(call->scratch, x_count, &walk->dx));
    return PEN_NEW(call->scratch, (size_t)g->directions * 3 * h, &walk->dpeepholes);
}

static void recurrent_example_backward(const pen_reference_call *call, recurrent_walk *walk) {
    const pen_recurrent_geometry *g = &walk->g;
    const int64_t state = pen_recurrent_row_state(g, walk->d, walk->n);
    recurrent_read(recurrent_operand(call, PEN_RECURRENT_BACKWARD_DH), state, g->hidden, walk->dh);
    recurrent_read(recurrent_operand(call, PEN_RECURRENT_BACKWARD_DC), state, g->hidden, walk->dc);
    for (int64_t s = g->steps; s-- > 0;) {
        const int64_t t = recurrent_step(walk, s);
        if (t < walk->length) recurrent_step_backward(call, walk, t);
    }
    recurrent_write(recurrent_result(call, PEN_RECURRENT_DINITIAL_H), state, g->hidden, walk->dh);
    recurrent_write(recurrent_result(call, PEN_RECURRENT_DINITIAL_C), state, g->hidden, walk->dc);
}

// Weights' gradients are added over all examples and steps in double, and written at the end.
static pen_status recurrent_backward_run(const pen_reference_call *call) {
    recurrent_walk walk = {0};
    PEN_TRY(recurrent_backward_make(call, &walk));
    const pen_tensor *lengths = recurrent_operand(call, PEN_RECURRENT_BACKWARD_LENGTHS);
    for (walk.d = 0; walk.d < walk.g.directions; walk.d++) {
        for (walk.n = 0; walk.n < walk.g.batch; walk.n++) {
            PEN_TRY(recurrent_length(lengths, &walk));
            recurrent_example_backward(call, &walk);
        }
    }
    const struct {
        uint32_t output;
        const double *from;
    } sums[] = {{PEN_RECURRENT_DW, walk.dw},
                {PEN_RECURRENT_DR, walk.dr},
                {PEN_RECURRENT_DX, walk.dx},
                {PEN_RECURRENT_DB, walk.db},
                {PEN_RECURRENT_DPEEPHOLES, walk.dpeepholes}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const pen_tensor *result = recurrent_result(call, sums[i].output);
        if (result != NULL) recurrent_write(result, 0, pen_tensor_count(result), sums[i].from);
    }
    return PEN_OK;
}

static const pen_reference_kernel recurrent_kernels[] = {
    {"lstm", recurrent_run, NULL},
    {"gru", recurrent_run, NULL},
    {"rnn", recurrent_run, NULL},
    {"lstm_backward", recurrent_backward_run, NULL},
    {"gru_backward", recurrent_backward_run, NULL},
    {"rnn_backward", recurrent_backward_run, NULL},
};

PEN_REFERENCE_FAMILY(recurrent);
