// Optimizers that adapt the step to each element, and averages of parameters, as
// graph/ops/training/optimizer_op.c has them. What is the same for all elements is made in double,
// by each thread for itself; then comes a small function for an element.

// What elements of an update share. Letters as in graph/ops/training/optimizer_op.c.
struct adapt_numbers {
    uint32_t what, keeps; // keeps: nothing is applied
    float scale, most;
    float decay, keep; // of the parameter: added to the gradient, and multiplied by it
    float beta1, rest1, beta2, rest2, epsilon;
    float rate;       // with what is the same for all elements
    float own;        // NAdam: of the gradient; RAdam: 0, the variance is not known
    float correction; // of the second moment's root
    float momentum;   // RMSprop
};

DEVICE double adapt_rate(const struct cuda_adapt_args *a) {
    return update_number(a->rate, a->wide & PEN_CUDA_WIDE_RATE) * a->rate_scale;
}

DEVICE double adapt_step(const struct cuda_adapt_args *a) {
    return a->step ? update_number(a->step, a->wide & PEN_CUDA_WIDE_STEP) : 1.0;
}

// NAdam's momenta of this step and the next, and the product of those up to this one.
DEVICE void adapt_nadam(const struct cuda_adapt_args *a, double step, struct adapt_numbers *n) {
    const double rate = adapt_rate(a), now = update_power(a->extra, step);
    double power = 1.0, product = 1.0;
    for (double t = 1.0; t <= step && product > 1e-18; t += 1.0) {
        power *= a->extra;
        product *= a->beta1 * (1.0 - 0.5 * power);
    }
    const double next = a->beta1 * (1.0 - 0.5 * now * a->extra);
    n->own = (float)(rate * (1.0 - a->beta1 * (1.0 - 0.5 * now)) / (1.0 - product));
    n->rate = (float)(rate * next / (1.0 - product * next));
}

DEVICE float adapt_rectifier(double beta2, double step, double power) {
    const double most = 2.0 / (1.0 - beta2) - 1.0;
    const double length = most - 2.0 * step * power / (1.0 - power);
    if (!(length > 5.0)) return 0.0f;
    return (float)wide_square_root((length - 4.0) * (length - 2.0) * most /
                                   ((most - 4.0) * (most - 2.0) * length));
}

DEVICE struct adapt_numbers adapt_read(const struct cuda_adapt_args *a) {
    const double rate = adapt_rate(a), step = adapt_step(a);
    const double power1 = update_power(a->beta1, step), power2 = update_power(a->beta2, step);
    struct adapt_numbers n;
    n.what = a->what;
    n.scale = update_scale(a->scale, a->flag, a->wide);
    n.keeps = n.scale < 0.0f;
    n.most = a->most;
    n.decay = a->decoupled ? 0.0f : (float)a->decay;
    n.keep = a->decoupled ? (float)(1.0 - rate * a->decay) : 1.0f;
    n.beta1 = (float)a->beta1;
    n.rest1 = (float)(1.0 - a->beta1);
    n.beta2 = (float)a->beta2;
    n.rest2 = (float)(1.0 - a->beta2);
    n.epsilon = a->epsilon;
    n.momentum = (float)a->extra;
    n.rate = (float)rate;
    n.own = 0.0f;
    n.correction = (float)wide_square_root(1.0 - power2);
    if (a->what == PEN_CUDA_ADAGRAD) n.rate = (float)(rate / (1.0 + (step - 1.0) * a->extra));
    if (a->what == PEN_CUDA_ADAMAX || a->what == PEN_CUDA_RADAM)
        n.rate = (float)(rate / (1.0 - power1));
    if (a->what == PEN_CUDA_RADAM) n.own = adapt_rectifier(a->beta2, step, power2);
    if (a->what == PEN_CUDA_NADAM) adapt_nadam(a, step, &n);
    return n;
}

DEVICE float adapt_gradient(const struct adapt_numbers *n, float gradient) {
    return update_clip(gradient * n->scale, n->most);
}

DEVICE void adapt_moments(const struct adapt_numbers *n, float g, float *s) {
    s[0] = n->beta1 * s[0] + n->rest1 * g;
    s[1] = n->beta2 * s[1] + n->rest2 * g * g;
}

// s: squares, momentum, average.
DEVICE float adapt_rmsprop(const struct adapt_numbers *n, uint32_t has, float p, float g,
                           float *s) {
    s[0] = n->beta2 * s[0] + n->rest2 * g * g;
    float d = s[0];
    if (has & 4u) {
        s[2] = n->beta2 * s[2] + n->rest2 * g;
        d = d - s[2] * s[2];
        d = d > 0.0f ? d : 0.0f; // below 0 by rounding; no number where both overflow
    }
    float u = g / (square_root(d) + n->epsilon);
    if (has & 2u) {
        u = n->momentum * s[1] + u;
        s[1] = u;
    }
    return p - n->rate * u;
}

// The new value of an element p with gradient g. s: its states, made new; `has`: a bit for each.
DEVICE float adapt_element(const struct adapt_numbers *n, uint32_t has, float p, float g,
                           float *s) {
    switch (n->what) {
    case PEN_CUDA_RMSPROP:
        return adapt_rmsprop(n, has, p, g, s);
    case PEN_CUDA_ADAGRAD:
        s[0] = s[0] + g * g;
        return p - n->rate * g / (square_root(s[0]) + n->epsilon);
    case PEN_CUDA_ADADELTA: {
        s[0] = n->beta2 * s[0] + n->rest2 * g * g;
        const float u = square_root(s[1] + n->epsilon) / square_root(s[0] + n->epsilon) * g;
        s[1] = n->beta2 * s[1] + n->rest2 * u * u;
        return p - n->rate * u;
    }
    case PEN_CUDA_ADAMAX: {
        const float old = n->beta2 * s[1], own = magnitude_of(g) + n->epsilon;
        s[0] = n->beta1 * s[0] + n->rest1 * g;
        s[1] = old > own ? old : own; // what is no number stays visible
        return p - n->rate * s[0] / s[1];
    }
    case PEN_CUDA_NADAM: {
        adapt_moments(n, g, s);
        const float d = square_root(s[1]) / n->correction + n->epsilon;
        return p - n->own * g / d - n->rate * s[0] / d;
    }
    case PEN_CUDA_RADAM: {
        adapt_moments(n, g, s);
        const float u =
            n->own == 0.0f ? 1.0f : n->correction / (square_root(s[1]) + n->epsilon) * n->own;
        return p - n->rate * s[0] * u;
    }
    case PEN_CUDA_LION: {
        const float u = n->beta1 * s[0] + n->rest1 * g;
        s[0] = n->beta2 * s[0] + n->rest2 * g;
        return p - n->rate * (u > 0.0f ? 1.0f : u < 0.0f ? -1.0f : u);
    }
    default: // LAMB, whose parameter follows when its norms are known
        adapt_moments(n, g, s);
        return p;
    }
}

KERNEL_OF_MANY(adapt, cuda_adapt_args) {
    const struct adapt_numbers n = adapt_read(&a);
    const uint32_t has =
        (a.states[0] ? 1u : 0u) | (a.states[1] ? 2u : 0u) | (a.states[2] ? 4u : 0u);
    EACH_OF(of, i, a.count) {
        float p = a.p[i], s[3];
        UNROLLED
        for (uint32_t k = 0; k < 3; k++)
            s[k] = has >> k & 1u ? a.states[k][i] : 0.0f;
        if (!n.keeps) {
            const float g = adapt_gradient(&n, a.gradient[i]);
            const uint32_t is_lamb = a.what == PEN_CUDA_LAMB; // decays by itself
            p = adapt_element(&n, has, p * n.keep, is_lamb ? g : g + n.decay * p, s);
        }
        a.p_new[i] = p;
        UNROLLED
        for (uint32_t k = 0; k < 3; k++)
            if (has >> k & 1u) a.states_new[k][i] = s[k];
    }
}

// ---- LAMB and Adafactor, whose steps depend on the sizes of all elements

// How much of Adafactor's variances is of this step.
DEVICE float factor_share(const struct cuda_adapt_args *a) {
    return (float)wide_exp(a->extra * wide_log((float)adapt_step(a)));
}

// The mean of the squares of a row of a matrix, taken into what is known of it.
KERNEL(factor_rows, cuda_adapt_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    const struct adapt_numbers n = adapt_read(&a);
    const float share = factor_share(&a);
    EACH_LINE(team, a.batches * a.rows, a.columns) {
        const float old = a.states[0][team.line];
        float sum = 0.0f;
        for (uint64_t c = team.lane; c < a.columns; c += team.size) {
            const float g = adapt_gradient(&n, a.gradient[team.line * a.columns + c]);
            sum += g * g;
        }
        const float mean = team_sum(&team, sum, room) / (float)a.columns;
        if (team.lane == 0 && team.is_there)
            a.states_new[0][team.line] = n.keeps ? old : old + share * (mean - old);
    }
}

// The same of a column, by a thread, in pieces of 64.
KERNEL(factor_columns, cuda_adapt_args) {
    const struct adapt_numbers n = adapt_read(&a);
    const float share = factor_share(&a);
    EACH(i, a.batches * a.columns) {
        const float *column = a.gradient + i / a.columns * a.rows * a.columns + i % a.columns;
        const float old = a.states[1][i];
        float sum = 0.0f, piece = 0.0f;
        for (uint64_t r = 0; r < a.rows; r++) {
            const float g = adapt_gradient(&n, column[r * a.columns]);
            piece += g * g;
            if (r % 64 != 63) continue;
            sum += piece;
            piece = 0.0f;
        }
        const float mean = (sum + piece) / (float)a.rows;
        a.states_new[1][i] = n.keeps ? old : old + share * (mean - old);
    }
}

// Of a vector each element has a variance of its own.
KERNEL(factor_elements, cuda_adapt_args) {
    const struct adapt_numbers n = adapt_read(&a);
    const float share = factor_share(&a);
    EACH(i, a.count) {
        const float g = adapt_gradient(&n, a.gradient[i]), old = a.states[2][i];
        a.states_new[2][i] = n.keeps ? old : old + share * (g * g - old);
    }
}

// The mean of the rows' variances of each matrix: a block takes one.
KERNEL(factor_means, cuda_adapt_args) {
    SHARED double room[PEN_CUDA_BLOCK];
    for (uint64_t b = BLOCK_X; b < a.batches; b += BLOCKS_X) {
        double sum = 0.0;
        for (uint64_t r = THREAD; r < a.rows; r += THREADS)
            sum += (double)a.states_new[0][b * a.rows + r];
        sum = block_sum_wide(sum, room) / (double)a.rows;
        if (THREAD == 0) a.means[b] = sum < (double)a.epsilon ? (double)a.epsilon : sum;
    }
}

// The direction of element k, of states that are new.
DEVICE float whole_direction(const struct cuda_adapt_args *a, const struct adapt_numbers *n,
                             float correction1, uint64_t k) {
    if (a->what == PEN_CUDA_LAMB) {
        const float m = a->states_new[0][k] / correction1;
        return m / (square_root(a->states_new[1][k]) / n->correction + a->epsilon) +
               n->decay * a->p[k];
    }
    const float least = a->epsilon * a->epsilon;
    float v = a->states_new[2] ? a->states_new[2][k] : 0.0f;
    if (!a->states_new[2]) {
        const uint64_t row = k / a->columns, batch = row / a->rows;
        const double of_row = (double)a->states_new[0][row] / a->means[batch];
        v = (float)of_row * a->states_new[1][batch * a->columns + k % a->columns];
    }
    return adapt_gradient(n, a->gradient[k]) / square_root(v < least ? least : v);
}

DEVICE float whole_correction(const struct cuda_adapt_args *a) {
    return (float)(1.0 - update_power(a->beta1, adapt_step(a)));
}

// The squares of a block of elements: of the parameter, and of its directions.
KERNEL(whole_norms, cuda_adapt_args) {
    SHARED double room[PEN_CUDA_BLOCK];
    const struct adapt_numbers n = adapt_read(&a);
    const float correction1 = whole_correction(&a);
    for (uint64_t block = BLOCK_X; block < a.blocks; block += BLOCKS_X) {
        double of_p = 0.0, of_u = 0.0;
        for (uint32_t i = THREAD; i < PEN_CUDA_NORM_BLOCK; i += THREADS) {
            const uint64_t k = block * PEN_CUDA_NORM_BLOCK + i;
            if (k >= a.count) continue;
            const float p = a.p[k], u = whole_direction(&a, &n, correction1, k);
            of_p += (double)p * (double)p;
            of_u += (double)u * (double)u;
        }
        of_p = block_sum_wide(of_p, room);
        of_u = block_sum_wide(of_u, room);
        if (THREAD == 0) a.sums[block] = of_p;
        if (THREAD == 0) a.sums[a.blocks + block] = of_u;
    }
}

// What steps are multiplied by, of the squared norms of the parameter and of its directions.
DEVICE double whole_size(const struct cuda_adapt_args *a, double of_p, double of_u) {
    const double rate = adapt_rate(a);
    if (a->what == PEN_CUDA_LAMB)
        return rate *
               (of_p == 0.0 || of_u == 0.0 ? 1.0 : wide_square_root(of_p) / wide_square_root(of_u));
    const double slow = 1.0 / wide_square_root(adapt_step(a)), most = rate < slow ? rate : slow;
    const double size = wide_square_root(of_p / (double)a->count);
    const double excess = wide_square_root(of_u / (double)a->count) / a->threshold;
    return most * (size > a->epsilon2 ? size : a->epsilon2) / (excess <= 1.0 ? 1.0 : excess);
}

// By one block; the first of the sums becomes the size.
KERNEL(whole_sizes, cuda_adapt_args) {
    SHARED double room[PEN_CUDA_BLOCK];
    double of_p = 0.0, of_u = 0.0;
    for (uint64_t block = THREAD; block < a.blocks; block += THREADS) {
        of_p += a.sums[block];
        of_u += a.sums[a.blocks + block];
    }
    of_p = block_sum_wide(of_p, room);
    of_u = block_sum_wide(of_u, room);
    if (THREAD == 0) a.sums[0] = whole_size(&a, of_p, of_u);
}

KERNEL(whole_apply, cuda_adapt_args) {
    const struct adapt_numbers n = adapt_read(&a);
    const float correction1 = whole_correction(&a), size = (float)a.sums[0];
    EACH(k, a.count) {
        const float p = a.p[k];
        a.p_new[k] = n.keeps ? p : p * n.keep - size * whole_direction(&a, &n, correction1, k);
    }
}

// ---- averages of parameters

KERNEL_OF_MANY(average, cuda_average_args) {
    const double step = update_number(a.step, a.step_is_wide);
    const float weight = step <= a.from + 1.0 ? 1.0f : (float)(1.0 - a.decay);
    const float rest = step <= a.from + 1.0 ? 0.0f : (float)a.decay;
    const uint32_t keeps = update_scale(a.scale, a.flag, a.wide) < 0.0f;
    EACH_OF(of, i, a.count) {
        const float p = a.p[i], old = a.old[i];
        if (keeps)
            a.y[i] = old;
        else
            a.y[i] = weight < 0.5f ? old + weight * (p - old) : p - (p - old) * rest;
    }
}
