// Updates of parameters, as graph/ops/training/optimizer_op.c has them. A scale below 0 applies
// nothing; it is below 0 where a look has raised the flag.

// A scalar operand.
DEVICE double update_number(const void *number, uint32_t is_wide) {
    return is_wide ? *(const double *)number : (double)*(const float *)number;
}

DEVICE float update_scale(const void *scale, const unsigned int *flag, uint32_t wide) {
    if (flag && *flag) return -1.0f;
    return scale ? (float)update_number(scale, wide & PEN_CUDA_WIDE_SCALE) : 1.0f;
}

DEVICE float update_clip(float g, float most) {
    if (!(most > 0.0f)) return g;
    return g < -most ? -most : g > most ? most : g;
}

// p = p - rate * g.
KERNEL_OF_MANY(sgd, cuda_sgd_args) {
    const float rate = (float)(update_number(a.rate, a.wide & PEN_CUDA_WIDE_RATE) * a.rate_scale);
    const float scale = update_scale(a.scale, a.flag, a.wide);
    EACH_OF(of, i, a.count) {
        const float p = a.p[i];
        float g = a.gradient[i] * scale, v = a.v ? a.v[i] : 0.0f;
        if (!(scale < 0.0f)) {
            g = update_clip(g, a.most);
            g = g + a.decay * p;
            if (a.v) {
                v = a.momentum * v + g;
                g = a.nesterov ? g + a.momentum * v : v;
            }
        }
        a.p_new[i] = scale < 0.0f ? p : p - rate * g;
        if (a.v_new) a.v_new[i] = v;
    }
}

// x^n of a whole n from 1.
DEVICE double update_power(double x, double n) {
    double power = 1.0;
    for (uint64_t left = (uint64_t)n; left > 0; left >>= 1) {
        if (left & 1) power *= x;
        x *= x;
    }
    return power;
}

KERNEL_OF_MANY(adam, cuda_adam_args) {
    const double rate = update_number(a.rate, a.wide & PEN_CUDA_WIDE_RATE) * a.rate_scale;
    const double step = update_number(a.step, a.wide & PEN_CUDA_WIDE_STEP);
    const float size = (float)(rate / (1.0 - update_power(a.beta1, step)));
    const float correction = square_root((float)(1.0 - update_power(a.beta2, step)));
    const float beta1 = (float)a.beta1, beta2 = (float)a.beta2;
    const float rest1 = (float)(1.0 - a.beta1), rest2 = (float)(1.0 - a.beta2);
    const float keeps = a.decoupled ? (float)(1.0 - rate * a.decay) : 1.0f;
    const float decay = a.decoupled ? 0.0f : (float)a.decay;
    const float scale = update_scale(a.scale, a.flag, a.wide);
    EACH_OF(of, i, a.count) {
        float p = a.p[i], m = a.m[i], v = a.v[i];
        if (!(scale < 0.0f)) {
            const float g = update_clip(a.gradient[i] * scale, a.most) + decay * p;
            m = beta1 * m + rest1 * g;
            v = beta2 * v + rest2 * g * g;
            p = p * keeps - size * m / (square_root(v) / correction + a.epsilon);
        }
        a.p_new[i] = p;
        a.m_new[i] = m;
        a.v_new[i] = v;
    }
}

// Of what is infinite or not a number, all bits of the exponent are set.
KERNEL_OF_MANY(look, cuda_look_args) {
    uint32_t is_bad = 0;
    EACH_OF(of, i, a.count) {
        if (a.is_wide)
            is_bad |= (((const uint64_t *)a.x)[i] >> 52 & 0x7ffu) == 0x7ffu;
        else
            is_bad |= (((const uint32_t *)a.x)[i] >> 23 & 0xffu) == 0xffu;
    }
    if (is_bad) raise_to(a.flag, a.number);
}

// The squares of a block of elements, in double.
KERNEL_OF_MANY(norm_blocks, cuda_norm_args) {
    SHARED double room[PEN_CUDA_BLOCK];
    for (uint64_t block = of.block; block * PEN_CUDA_NORM_BLOCK < a.count; block += of.blocks) {
        double sum = 0.0;
        for (uint32_t i = THREAD; i < PEN_CUDA_NORM_BLOCK; i += THREADS) {
            const uint64_t at = block * PEN_CUDA_NORM_BLOCK + i;
            const double x = at < a.count ? (double)a.x[at] : 0.0;
            sum += x * x;
        }
        sum = block_sum_wide(sum, room);
        if (THREAD == 0) a.sums[block] = sum;
    }
}

// The sum of the blocks' sums, by one block: a thread sums those that are as many blocks apart as
// there are threads, which is one order whatever the grid of `norm_blocks` was.
KERNEL_OF_MANY(norm_total, cuda_norm_args) {
    SHARED double room[PEN_CUDA_BLOCK];
    double sum = 0.0;
    if (of.block > 0) return;
    for (uint64_t block = THREAD; block * PEN_CUDA_NORM_BLOCK < a.count; block += THREADS)
        sum += a.sums[block];
    sum = block_sum_wide(sum, room);
    if (THREAD > 0) return;
    if (a.wide)
        *(double *)a.y = sum;
    else
        *(float *)a.y = (float)sum;
}

// How much gradients are scaled by. Threads read a norm each, and one sums them: there are few.
KERNEL(clip_scale, cuda_clip_scale_args) {
    SHARED double norms[PEN_CUDA_NORMS];
    if (BLOCK_X > 0) return;
    if (THREAD < a.count)
        norms[THREAD] = update_number(a.norms[THREAD], (uint32_t)(a.wide >> THREAD & 1));
    barrier();
    if (THREAD > 0) return;
    double sum = a.is_first ? 0.0 : *a.sum;
    for (uint32_t k = 0; k < a.count; k++)
        sum += norms[k];
    if (!a.is_last) {
        *a.sum = sum;
        return;
    }
    const double scale = a.limit / (wide_square_root(sum) + 1e-6);
    double least = scale > 1.0 ? 1.0 : scale; // what is not a number stays so
    if (a.skips && !(sum <= 0x1.fffffffffffffp1023)) least = -1.0;
    if (a.y_is_wide)
        *(double *)a.y = least;
    else
        *(float *)a.y = (float)least;
}
