// Recurrent layers. Examples do not wait for each other, so a block takes some of them through all
// steps; their states are in shared memory. A thread has one unit of one example at a time: of
// its gates the products with x are there, those with the state it makes.

typedef struct cuda_recurrent_args recurrent_args;

// Where unit j of an example is in one step of one direction.
struct recurrent_place {
    uint64_t x;     // its row of x
    uint64_t y;     // likewise, of y
    uint64_t saved; // likewise, of gates and cells
    uint32_t d, j;
};

DEVICE uint64_t recurrent_state_row(const recurrent_args *a, uint32_t d, uint32_t n) {
    return a->is_batch_first ? (uint64_t)n * a->directions + d : (uint64_t)d * a->batch + n;
}

DEVICE struct recurrent_place recurrent_place_of(const recurrent_args *a, uint32_t d, uint32_t t,
                                                 uint32_t n, uint32_t j) {
    struct recurrent_place place;
    place.d = d;
    place.j = j;
    place.x = a->is_batch_first ? (uint64_t)n * a->steps + t : (uint64_t)t * a->batch + n;
    place.y = a->is_batch_first ? place.x * a->directions + d
                                : ((uint64_t)t * a->directions + d) * a->batch + n;
    place.saved = ((uint64_t)d * a->steps + t) * a->batch + n;
    return place;
}

// The step that comes as number s.
DEVICE uint32_t recurrent_step(const recurrent_args *a, uint32_t d, uint32_t s) {
    return a->reversed >> d & 1 ? a->steps - 1 - s : s;
}

DEVICE int64_t recurrent_length(const recurrent_args *a, uint32_t n) {
    if (!a->lengths) return (int64_t)a->steps;
    return a->lengths_are_wide ? ((const int64_t *)a->lengths)[n]
                               : (int64_t)((const int32_t *)a->lengths)[n];
}

// Whether step t of example n is before its end; of a length that is wrong, all are.
DEVICE uint32_t recurrent_counts(const recurrent_args *a, uint32_t n, uint32_t t) {
    return t < (uint64_t)recurrent_length(a, n);
}

// Where a unit's gate is among the products with x.
DEVICE uint64_t recurrent_product_at(const recurrent_args *a, const struct recurrent_place *at,
                                     uint32_t gate) {
    return ((at->x * a->directions + at->d) * a->gates + gate) * a->hidden + at->j;
}

// ---- forward

// The halves of a unit's gates before the activations: of x, and of the state.
struct recurrent_halves {
    float x[4], h[4];
};

// Of gates from `begin` up to `end`.
DEVICE struct recurrent_halves recurrent_products(const recurrent_args *a,
                                                  const struct recurrent_place *at, uint32_t begin,
                                                  uint32_t end, const float *state) {
    const uint32_t all = a->gates * a->hidden;
    const float *x = a->products + recurrent_product_at(a, at, 0);
    const float *weights = a->weights + (uint64_t)at->d * a->hidden * all + at->j;
    const float *bias = a->bias ? a->bias + (uint64_t)at->d * 2 * all + at->j : 0;
    struct recurrent_halves halves;
    for (uint32_t g = 0; g < 4; g++)
        halves.x[g] = halves.h[g] = 0.0f;
    for (uint32_t k = 0; k < a->hidden; k++) {
        const float h = rounded(state[k], a->precision);
        for (uint32_t g = 0; g < 4; g++) {
            if (g < begin || g >= end) continue;
            const float weight = weights[(uint64_t)k * all + g * a->hidden];
            halves.h[g] = multiply_add(rounded(weight, a->precision), h, halves.h[g]);
        }
    }
    for (uint32_t g = 0; g < 4; g++) {
        if (g < begin || g >= end) continue;
        halves.x[g] = x[g * a->hidden];
        if (!bias) continue;
        halves.x[g] += bias[g * a->hidden];
        halves.h[g] += bias[all + g * a->hidden];
    }
    return halves;
}

DEVICE void recurrent_keep(const recurrent_args *a, const struct recurrent_place *at, uint32_t gate,
                           float value) {
    if (!a->kept_gates) return;
    store(a->kept_gates, (at->saved * a->saved + gate) * a->hidden + at->j, value, a->adds);
}

DEVICE float gru_unit(const recurrent_args *a, const struct recurrent_place *at,
                      const struct recurrent_halves *halves, float before) {
    const float z = sigmoid_of(halves->x[0] + halves->h[0]);
    const float r = sigmoid_of(halves->x[1] + halves->h[1]);
    const float fresh = tangent_h(halves->x[2] + r * halves->h[2]);
    recurrent_keep(a, at, 0, z);
    recurrent_keep(a, at, 1, r);
    recurrent_keep(a, at, 2, fresh);
    recurrent_keep(a, at, 3, halves->h[2]);
    return (1.0f - z) * fresh + z * before;
}

// The first two gates of a gru that resets its state before the product: what is left of the
// unit's state. The first gate is kept in the place of its product with x, which is read no more.
DEVICE float gru_reset(const recurrent_args *a, const struct recurrent_place *at,
                       const float *state) {
    const struct recurrent_halves halves = recurrent_products(a, at, 0, 2, state);
    const float z = sigmoid_of(halves.x[0] + halves.h[0]);
    const float r = sigmoid_of(halves.x[1] + halves.h[1]);
    recurrent_keep(a, at, 0, z);
    recurrent_keep(a, at, 1, r);
    a->products[recurrent_product_at(a, at, 0)] = z;
    return r * state[at->j];
}

// Its third gate, by what is left of all states.
DEVICE float gru_reset_unit(const recurrent_args *a, const struct recurrent_place *at,
                            const float *resets, float before) {
    const struct recurrent_halves halves = recurrent_products(a, at, 2, 3, resets);
    const float z = a->products[recurrent_product_at(a, at, 0)];
    const float fresh = tangent_h(halves.x[2] + halves.h[2]);
    recurrent_keep(a, at, 2, fresh);
    return (1.0f - z) * fresh + z * before;
}

// By what a unit's peephole `which` adds to its gate.
DEVICE float lstm_peep(const recurrent_args *a, const struct recurrent_place *at, uint32_t which,
                       float cell) {
    return a->peepholes[((uint64_t)at->d * 3 + which) * a->hidden + at->j] * cell;
}

// Gates in ONNX's order: i, o, f, c.
DEVICE float lstm_unit(const recurrent_args *a, const struct recurrent_place *at,
                       const struct recurrent_halves *halves, float *cell) {
    float to_i = halves->x[0] + halves->h[0], to_o = halves->x[1] + halves->h[1];
    float to_f = halves->x[2] + halves->h[2];
    if (a->peepholes) {
        to_i += lstm_peep(a, at, 0, *cell);
        to_f += lstm_peep(a, at, 2, *cell);
    }
    const float i = sigmoid_of(to_i), f = sigmoid_of(to_f);
    const float fresh = tangent_h(halves->x[3] + halves->h[3]);
    *cell = f * *cell + i * fresh;
    if (a->peepholes) to_o += lstm_peep(a, at, 1, *cell);
    const float o = sigmoid_of(to_o);
    recurrent_keep(a, at, 0, i);
    recurrent_keep(a, at, 1, o);
    recurrent_keep(a, at, 2, f);
    recurrent_keep(a, at, 3, fresh);
    if (a->kept_cells) store(a->kept_cells, at->saved * a->hidden + at->j, *cell, a->adds);
    return o * tangent_h(*cell);
}

// The unit's state after the step; `state` is its example's before, and `cells` its cells, or what
// is left of states that are reset.
DEVICE float recurrent_unit(const recurrent_args *a, const struct recurrent_place *at,
                            const float *state, float *cells) {
    if (a->what == PEN_CUDA_GRU_RESET) return gru_reset_unit(a, at, cells, state[at->j]);
    const struct recurrent_halves halves = recurrent_products(a, at, 0, a->gates, state);
    float h = halves.x[0] + halves.h[0];
    if (a->what == PEN_CUDA_LSTM)
        h = lstm_unit(a, at, &halves, &cells[at->j]);
    else if (a->what == PEN_CUDA_GRU)
        h = gru_unit(a, at, &halves, state[at->j]);
    else if (a->what == PEN_CUDA_RNN_TANH)
        h = tangent_h(h);
    else
        h = h > 0.0f || h != h ? h : 0.0f;
    return h;
}

// The unit's state before the first step: no number where the example's length is none.
DEVICE float recurrent_first(const recurrent_args *a, uint32_t n, uint64_t at) {
    const int64_t length = recurrent_length(a, n);
    if (length < 0 || length > (int64_t)a->steps) {
        raise_to(a->error, a->batch - n);
        return float_of_bits(0x7fc00000u);
    }
    return a->first_h ? a->first_h[at] : 0.0f;
}

// Behind the end of an example there are zeros, and its states stay.
DEVICE void recurrent_leave_out(const recurrent_args *a, const struct recurrent_place *at) {
    for (uint32_t gate = 0; gate < a->saved; gate++)
        recurrent_keep(a, at, gate, 0.0f);
    if (a->kept_cells) store(a->kept_cells, at->saved * a->hidden + at->j, 0.0f, a->adds);
}

// States before and after a step are apart, so that one barrier a step is enough; a gru that resets
// its states before the product needs all of these first.
KERNEL(recurrent, cuda_recurrent_args) {
    SHARED float states[2][PEN_CUDA_RECURRENT_ROOM];
    SHARED float cells[PEN_CUDA_RECURRENT_ROOM];
    const uint32_t groups = (a.batch + a.group - 1) / a.group;
    for (uint32_t block = BLOCK_X; block < groups * a.directions; block += BLOCKS_X) {
        const uint32_t d = block / groups, first = block % groups * a.group;
        const uint32_t examples = a.batch - first < a.group ? a.batch - first : a.group;
        const uint32_t count = examples * a.hidden;
        for (uint32_t i = THREAD; i < count; i += THREADS) {
            const uint64_t row = recurrent_state_row(&a, d, first + i / a.hidden);
            const uint64_t at = row * a.hidden + i % a.hidden;
            states[0][i] = recurrent_first(&a, first + i / a.hidden, at);
            cells[i] = a.first_c ? a.first_c[at] : 0.0f;
        }
        barrier();
        for (uint32_t s = 0; s < a.steps; s++) {
            const uint32_t t = recurrent_step(&a, d, s);
            for (uint32_t i = THREAD; i < count && a.what == PEN_CUDA_GRU_RESET; i += THREADS) {
                const uint32_t n = first + i / a.hidden;
                const struct recurrent_place at = recurrent_place_of(&a, d, t, n, i % a.hidden);
                if (recurrent_counts(&a, n, t))
                    cells[i] = gru_reset(&a, &at, &states[s % 2][i - at.j]);
            }
            if (a.what == PEN_CUDA_GRU_RESET) barrier();
            for (uint32_t i = THREAD; i < count; i += THREADS) {
                const uint32_t n = first + i / a.hidden;
                const struct recurrent_place at = recurrent_place_of(&a, d, t, n, i % a.hidden);
                const uint32_t counts = recurrent_counts(&a, n, t);
                float h = states[s % 2][i];
                if (counts)
                    h = recurrent_unit(&a, &at, &states[s % 2][i - at.j], &cells[i - at.j]);
                else
                    recurrent_leave_out(&a, &at);
                if (a.y) store(a.y, at.y * a.hidden + at.j, counts ? h : 0.0f, a.adds);
                states[(s + 1) % 2][i] = h;
            }
            barrier();
        }
        for (uint32_t i = THREAD; i < count; i += THREADS) {
            const uint64_t row = recurrent_state_row(&a, d, first + i / a.hidden);
            const uint64_t at = row * a.hidden + i % a.hidden;
            if (a.last_h) store(a.last_h, at, states[a.steps % 2][i], a.adds);
            if (a.last_c) store(a.last_c, at, cells[i], a.adds);
        }
        barrier(); // the states are used again
    }
}

// ---- backward

// The gradients by a unit's gates before the activations: by the two halves; and by its state, and
// cell, before the step, as far as they do not go through the gates.
struct recurrent_slopes {
    float x[4], h[4], state, cell;
};

DEVICE float recurrent_kept(const recurrent_args *a, const struct recurrent_place *at,
                            uint32_t gate) {
    return a->kept_gates[(at->saved * a->saved + gate) * a->hidden + at->j];
}

DEVICE void gru_slopes(const recurrent_args *a, const struct recurrent_place *at, float dh,
                       float before, struct recurrent_slopes *slopes) {
    const float z = recurrent_kept(a, at, 0), r = recurrent_kept(a, at, 1);
    const float fresh = recurrent_kept(a, at, 2), q = recurrent_kept(a, at, 3);
    slopes->x[0] = dh * (before - fresh) * (z * (1.0f - z));
    slopes->x[2] = dh * (1.0f - z) * (1.0f - fresh * fresh);
    slopes->x[1] = slopes->x[2] * q * (r * (1.0f - r));
    slopes->h[0] = slopes->x[0];
    slopes->h[1] = slopes->x[1];
    slopes->h[2] = slopes->x[2] * r;
    slopes->state = dh * z;
}

// Of a gru that resets its state before the product: but for the second gate.
DEVICE void gru_reset_slopes(const recurrent_args *a, const struct recurrent_place *at, float dh,
                             float before, struct recurrent_slopes *slopes) {
    const float z = recurrent_kept(a, at, 0), fresh = recurrent_kept(a, at, 2);
    slopes->x[0] = dh * (before - fresh) * (z * (1.0f - z));
    slopes->x[1] = 0.0f;
    slopes->x[2] = dh * (1.0f - z) * (1.0f - fresh * fresh);
    for (uint32_t g = 0; g < 3; g++)
        slopes->h[g] = slopes->x[g];
    slopes->state = dh * z;
}

DEVICE void lstm_slopes(const recurrent_args *a, const struct recurrent_place *at, float dh,
                        float before, struct recurrent_slopes *slopes) {
    const float i = recurrent_kept(a, at, 0), o = recurrent_kept(a, at, 1);
    const float f = recurrent_kept(a, at, 2), fresh = recurrent_kept(a, at, 3);
    const float shown = tangent_h(a->kept_cells[at->saved * a->hidden + at->j]);
    float dc = slopes->cell + dh * o * (1.0f - shown * shown);
    slopes->x[1] = dh * shown * (o * (1.0f - o));
    if (a->peepholes) dc += lstm_peep(a, at, 1, slopes->x[1]);
    slopes->x[0] = dc * fresh * (i * (1.0f - i));
    slopes->x[2] = dc * before * (f * (1.0f - f));
    slopes->x[3] = dc * i * (1.0f - fresh * fresh);
    for (uint32_t g = 0; g < 4; g++)
        slopes->h[g] = slopes->x[g];
    slopes->cell = dc * f;
    if (a->peepholes)
        slopes->cell += lstm_peep(a, at, 0, slopes->x[0]) + lstm_peep(a, at, 2, slopes->x[2]);
}

// The state, or cell, before the step at `at`, which came as number s.
DEVICE float recurrent_before(const recurrent_args *a, const struct recurrent_place *at, uint32_t s,
                              uint32_t n, uint32_t is_cell) {
    const float *first = is_cell ? a->first_c : a->first_h;
    const uint32_t t = s > 0 ? recurrent_step(a, at->d, s - 1) : 0;
    if (s == 0 || !recurrent_counts(a, n, t))
        return first ? first[recurrent_state_row(a, at->d, n) * a->hidden + at->j] : 0.0f;
    const struct recurrent_place last = recurrent_place_of(a, at->d, t, n, at->j);
    return is_cell ? a->kept_cells[last.saved * a->hidden + at->j]
                   : a->y[last.y * a->hidden + at->j];
}

// Where the gradient by the state's half of a unit's gate is.
DEVICE uint64_t recurrent_dstate_at(const recurrent_args *a, const struct recurrent_place *at,
                                    uint32_t gate) {
    const uint64_t rows = (uint64_t)a->steps * a->batch, first = at->d * rows * a->gates;
    if (a->what != PEN_CUDA_GRU_RESET) return (first + at->x * a->gates + gate) * a->hidden + at->j;
    if (gate < 2) return (first + at->x * 2 + gate) * a->hidden + at->j;
    return (first + rows * 2 + at->x) * a->hidden + at->j;
}

DEVICE uint64_t recurrent_before_at(const recurrent_args *a, const struct recurrent_place *at) {
    return ((uint64_t)at->d * a->steps * a->batch + at->x) * a->hidden + at->j;
}

// Of a unit in a step; `slopes` comes with the gradient by its cell after the step.
DEVICE void recurrent_unit_slopes(const recurrent_args *a, const struct recurrent_place *at,
                                  uint32_t s, uint32_t n, float dh,
                                  struct recurrent_slopes *slopes) {
    const float before = recurrent_before(a, at, s, n, 0);
    a->before[recurrent_before_at(a, at)] = before;
    slopes->state = 0.0f;
    if (a->what == PEN_CUDA_LSTM) {
        lstm_slopes(a, at, dh, recurrent_before(a, at, s, n, 1), slopes);
    } else if (a->what == PEN_CUDA_GRU_RESET) {
        gru_reset_slopes(a, at, dh, before, slopes);
    } else if (a->what == PEN_CUDA_GRU) {
        gru_slopes(a, at, dh, before, slopes);
    } else {
        const float y = a->y[at->y * a->hidden + at->j];
        const float slope = a->what == PEN_CUDA_RNN_TANH ? 1.0f - y * y : y > 0.0f ? 1.0f : 0.0f;
        slopes->x[0] = slopes->h[0] = dh * slope;
    }
}

// Behind the end of an example nothing has a gradient but what was before it.
DEVICE void recurrent_no_slopes(const recurrent_args *a, const struct recurrent_place *at, float dh,
                                struct recurrent_slopes *slopes) {
    for (uint32_t g = 0; g < 4; g++)
        slopes->x[g] = slopes->h[g] = 0.0f;
    slopes->state = dh;
    a->before[recurrent_before_at(a, at)] = 0.0f;
    if (a->resets) a->resets[recurrent_before_at(a, at)] = 0.0f;
}

DEVICE void recurrent_store_slopes(const recurrent_args *a, const struct recurrent_place *at,
                                   uint32_t gate, float x, float h) {
    a->products[recurrent_product_at(a, at, gate)] = x;
    if (a->dstates) a->dstates[recurrent_dstate_at(a, at, gate)] = h;
}

// The gradient by a unit's state before a step, through gates from `begin` up to `end` of all units
// of its example.
DEVICE float recurrent_through(const recurrent_args *a, uint32_t d, uint32_t j, uint32_t begin,
                               uint32_t end, const float *slopes) {
    const float *weights = a->weights + (uint64_t)d * a->gates * a->hidden * a->hidden + j;
    float sum = 0.0f;
    for (uint32_t k = begin * a->hidden; k < end * a->hidden; k++)
        sum = multiply_add(rounded(weights[(uint64_t)k * a->hidden], a->precision),
                           rounded(slopes[k], a->precision), sum);
    return sum;
}

// The second gate of a gru that resets its state before the product, by what the third one's
// product says of the state that was reset; returns what goes on to the state before. `gates` are
// those of the unit's example.
DEVICE float gru_reset_through(const recurrent_args *a, const struct recurrent_place *at,
                               uint32_t s, uint32_t n, float *gates) {
    const float r = recurrent_kept(a, at, 1), before = recurrent_before(a, at, s, n, 0);
    const float du = recurrent_through(a, at->d, at->j, 2, 3, gates);
    const float slope = du * before * (r * (1.0f - r));
    gates[a->hidden + at->j] = slope;
    recurrent_store_slopes(a, at, 1, slope, slope);
    a->resets[recurrent_before_at(a, at)] = r * before;
    return du * r;
}

// From the last step to the first: gradients by the gates of all units, then by the states before.
KERNEL(recurrent_backward, cuda_recurrent_args) {
    SHARED float gates[4 * PEN_CUDA_RECURRENT_ROOM];
    SHARED float dh[PEN_CUDA_RECURRENT_ROOM];
    SHARED float dc[PEN_CUDA_RECURRENT_ROOM];
    const uint32_t groups = (a.batch + a.group - 1) / a.group, all = a.gates * a.hidden;
    for (uint32_t block = BLOCK_X; block < groups * a.directions; block += BLOCKS_X) {
        const uint32_t d = block / groups, first = block % groups * a.group;
        const uint32_t examples = a.batch - first < a.group ? a.batch - first : a.group;
        const uint32_t count = examples * a.hidden;
        for (uint32_t i = THREAD; i < count; i += THREADS) {
            const uint64_t row = recurrent_state_row(&a, d, first + i / a.hidden);
            const uint64_t at = row * a.hidden + i % a.hidden;
            dh[i] = a.dh ? a.dh[at] : 0.0f;
            dc[i] = a.dc ? a.dc[at] : 0.0f;
        }
        for (uint32_t s = a.steps; s-- > 0;) {
            const uint32_t t = recurrent_step(&a, d, s);
            for (uint32_t i = THREAD; i < count; i += THREADS) {
                const uint32_t n = first + i / a.hidden, j = i % a.hidden;
                const struct recurrent_place at = recurrent_place_of(&a, d, t, n, j);
                struct recurrent_slopes slopes;
                const float dy = a.dy ? a.dy[at.y * a.hidden + j] : 0.0f;
                slopes.cell = dc[i];
                if (recurrent_counts(&a, n, t))
                    recurrent_unit_slopes(&a, &at, s, n, dh[i] + dy, &slopes);
                else
                    recurrent_no_slopes(&a, &at, dh[i], &slopes);
                for (uint32_t g = 0; g < 4; g++) {
                    if (g >= a.gates) continue;
                    recurrent_store_slopes(&a, &at, g, slopes.x[g], slopes.h[g]);
                    gates[i / a.hidden * all + g * a.hidden + j] = slopes.h[g];
                }
                dh[i] = slopes.state;
                dc[i] = slopes.cell;
            }
            barrier();
            for (uint32_t i = THREAD; i < count && a.what == PEN_CUDA_GRU_RESET; i += THREADS) {
                const uint32_t n = first + i / a.hidden, j = i % a.hidden;
                const struct recurrent_place at = recurrent_place_of(&a, d, t, n, j);
                if (recurrent_counts(&a, n, t))
                    dh[i] += gru_reset_through(&a, &at, s, n, &gates[i / a.hidden * all]);
            }
            if (a.what == PEN_CUDA_GRU_RESET) barrier();
            for (uint32_t i = THREAD; i < count; i += THREADS) {
                const uint32_t end = a.what == PEN_CUDA_GRU_RESET ? 2 : a.gates;
                dh[i] += recurrent_through(&a, d, i % a.hidden, 0, end, &gates[i / a.hidden * all]);
            }
            barrier();
        }
        for (uint32_t i = THREAD; i < count; i += THREADS) {
            const uint64_t row = recurrent_state_row(&a, d, first + i / a.hidden);
            const uint64_t at = row * a.hidden + i % a.hidden;
            if (a.dfirst_h) store(a.dfirst_h, at, dh[i], a.adds);
            if (a.dfirst_c) store(a.dfirst_c, at, dc[i], a.adds);
        }
    }
}

// Gradients of the biases: of the input's half, then of the state's. A thread sums a column, in
// pieces of 64 rows.
KERNEL(recurrent_bias, cuda_recurrent_args) {
    const uint32_t all = a.gates * a.hidden;
    const uint64_t rows = (uint64_t)a.steps * a.batch;
    EACH(i, (uint64_t)a.directions * 2 * all) {
        const uint64_t d = i / (2 * all), k = i % all;
        const uint32_t has_own = a.dstates && a.what != PEN_CUDA_GRU_RESET; // else they are equal
        const uint32_t is_state = has_own && i % (2 * all) >= all;
        const float *x = is_state ? a.dstates + d * rows * all + k : a.products + d * all + k;
        const uint64_t step = is_state ? all : (uint64_t)a.directions * all;
        float sum = 0.0f, piece = 0.0f;
        for (uint64_t row = 0; row < rows; row++) {
            piece += x[row * step];
            if (row % 64 != 63) continue;
            sum += piece;
            piece = 0.0f;
        }
        store(a.dbias, i, sum + piece, a.adds);
    }
}

// Gradients of the peepholes, of i, o and f: a thread sums one, in pieces of 64 rows. That of o
// sees the cell behind the step, the others that before it.
KERNEL(recurrent_peepholes, cuda_recurrent_args) {
    EACH(i, (uint64_t)a.directions * 3 * a.hidden) {
        const uint32_t j = (uint32_t)(i % a.hidden), which = (uint32_t)(i / a.hidden % 3);
        const uint32_t d = (uint32_t)(i / a.hidden / 3);
        float sum = 0.0f, piece = 0.0f;
        for (uint64_t row = 0; row < (uint64_t)a.steps * a.batch; row++) {
            const uint32_t s = (uint32_t)(row / a.batch), n = (uint32_t)(row % a.batch);
            const struct recurrent_place at =
                recurrent_place_of(&a, d, recurrent_step(&a, d, s), n, j);
            const float cell = which == 1 ? a.kept_cells[at.saved * a.hidden + j]
                                          : recurrent_before(&a, &at, s, n, 1);
            piece += a.products[recurrent_product_at(&a, &at, which)] * cell;
            if (row % 64 != 63) continue;
            sum += piece;
            piece = 0.0f;
        }
        store(a.dpeepholes, i, sum + piece, a.adds);
    }
}
