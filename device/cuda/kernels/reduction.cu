// Sums. Always in the same order: none depends on which thread is faster.

// What an element adds, and what becomes of the sum. `largest` is that of the line, where
// exponentials are summed.
DEVICE float sum_part(const struct cuda_sum_args *a, float x, float largest) {
    switch (a->what) {
    case PEN_CUDA_SUM_SIZES:
        return magnitude_of(x);
    case PEN_CUDA_SUM_SQUARES:
    case PEN_CUDA_SUM_ROOT:
        return x * x;
    case PEN_CUDA_SUM_LOG_EXP:
        return exponential(x - largest);
    default:
        return x;
    }
}

DEVICE float sum_end(const struct cuda_sum_args *a, float sum, float largest) {
    if (a->what == PEN_CUDA_SUM_ROOT) return square_root(sum);
    if (a->what == PEN_CUDA_SUM_LOG) return natural_log(sum);
    if (a->what == PEN_CUDA_SUM_LOG_EXP) return largest + natural_log(sum);
    return sum / a->divisor;
}

// What is infinite is not subtracted from itself.
DEVICE float sum_largest(float largest) {
    return largest - largest == 0.0f ? largest : 0.0f;
}

// A thread sums a column, in pieces of 64 so that long sums stay exact.
KERNEL(sum_columns, cuda_sum_args) {
    EACH(i, a.outer * a.inner) {
        const float *x = a.x + i / a.inner * a.reduced * a.inner + i % a.inner;
        float sum = 0.0f, piece = 0.0f, largest = a.reduced > 0 ? x[0] : 0.0f;
        if (a.what == PEN_CUDA_SUM_LOG_EXP) {
            for (uint64_t r = 1; r < a.reduced; r++)
                largest = x[r * a.inner] > largest ? x[r * a.inner] : largest;
            largest = sum_largest(largest);
        }
        for (uint64_t r = 0; r < a.reduced; r++) {
            piece += sum_part(&a, x[r * a.inner], largest);
            if (r % 64 != 63) continue;
            sum += piece;
            piece = 0.0f;
        }
        store(a.y, i, sum_end(&a, sum + piece, largest), a.adds);
    }
}

// A team of threads sums a row.
KERNEL(sum_rows, cuda_sum_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    EACH_LINE(team, a.outer, a.reduced) {
        const float *x = a.x + team.line * a.reduced;
        float sum = 0.0f, largest = x[0];
        if (a.what == PEN_CUDA_SUM_LOG_EXP) {
            for (uint64_t i = team.lane; i < a.reduced; i += team.size)
                largest = x[i] > largest ? x[i] : largest;
            largest = sum_largest(team_largest(&team, largest, room));
        }
        for (uint64_t i = team.lane; i < a.reduced; i += team.size)
            sum += sum_part(&a, x[i], largest);
        sum = team_sum(&team, sum, room);
        if (team.lane == 0 && team.is_there)
            store(a.y, team.line, sum_end(&a, sum, largest), a.adds);
    }
}

KERNEL(total, cuda_total_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    float sum = 0.0f;
    for (uint64_t i = THREAD; i < a.count; i += THREADS)
        sum += a.x[i];
    sum = block_sum(sum, room);
    sum = sum * a.factor;
    if (a.divisor) sum = (float)((double)sum / *a.divisor);
    if (THREAD == 0) store(a.y, 0, sum, a.adds);
}

// The gradient of a sum: a number for each column, or row, for all that were summed.
KERNEL(spread, cuda_sum_args) {
    EACH(i, a.outer * a.reduced * a.inner) {
        const uint64_t from = i / (a.reduced * a.inner) * a.inner + i % a.inner;
        store(a.y, i, a.dy[from] * a.factor, a.adds);
    }
}

// The gradient where the slope depends on x, and on the result.
KERNEL(spread_slope, cuda_sum_args) {
    EACH(i, a.outer * a.reduced * a.inner) {
        const uint64_t from = i / (a.reduced * a.inner) * a.inner + i % a.inner;
        const float x = a.x[i], dy = a.dy[from], found = a.found ? a.found[from] : 0.0f;
        float slope = 2.0f * x;
        if (a.what == PEN_CUDA_SUM_SIZES) slope = x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f;
        if (a.what == PEN_CUDA_SUM_ROOT) slope = found == 0.0f ? 0.0f : x / found;
        if (a.what == PEN_CUDA_SUM_LOG_EXP) slope = exponential(x - found);
        store(a.y, i, dy * slope, a.adds);
    }
}

// The largest, or least, of each line of elements that lie `inner` apart.
KERNEL(extremum, cuda_sum_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    EACH_LINE(team, a.outer * a.inner, a.reduced) {
        const float *x = a.x + team.line / a.inner * a.reduced * a.inner + team.line % a.inner;
        float largest = a.is_least ? -x[0] : x[0];
        for (uint64_t r = team.lane; r < a.reduced; r += team.size) {
            const float found = a.is_least ? -x[r * a.inner] : x[r * a.inner];
            largest = found > largest || found != found ? found : largest;
        }
        largest = team_largest(&team, largest, room);
        if (team.lane == 0 && team.is_there)
            store(a.y, team.line, a.is_least ? -largest : largest, a.adds);
    }
}

// Equals share the gradient.
KERNEL(extremum_backward, cuda_sum_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    EACH_LINE(team, a.outer * a.inner, a.reduced) {
        const uint64_t line = team.line;
        const uint64_t first = line / a.inner * a.reduced * a.inner + line % a.inner;
        float equals = 0.0f;
        for (uint64_t r = team.lane; r < a.reduced; r += team.size)
            equals += a.x[first + r * a.inner] == a.found[line] ? 1.0f : 0.0f;
        const float share = a.dy[line] / team_sum(&team, equals, room);
        for (uint64_t r = team.lane; r < a.reduced && team.is_there; r += team.size) {
            const uint64_t at = first + r * a.inner;
            store(a.y, at, a.x[at] == a.found[line] ? share : 0.0f, a.adds);
        }
    }
}

// The product of each such line: what is too large on the way may be small at the end.
KERNEL(multiply, cuda_sum_args) {
    SHARED struct long_product room[PEN_CUDA_BLOCK / 32];
    EACH_LINE(team, a.outer * a.inner, a.reduced) {
        const float *x = a.x + team.line / a.inner * a.reduced * a.inner + team.line % a.inner;
        struct long_product product = {1.0, 0};
        for (uint64_t r = team.lane; r < a.reduced; r += team.size)
            product = long_product_of(product.size * (double)x[r * a.inner], product.exponent);
        product = team_product(&team, product, room);
        if (team.lane == 0 && team.is_there) store(a.y, team.line, float_of_long(product), a.adds);
    }
}

// By the product of the others: of all that are not 0, divided by x, if none of the others is 0.
KERNEL(multiply_backward, cuda_sum_args) {
    SHARED struct long_product room[PEN_CUDA_BLOCK / 32];
    SHARED float zeros_room[PEN_CUDA_BLOCK / 32];
    EACH_LINE(team, a.outer * a.inner, a.reduced) {
        const uint64_t line = team.line;
        const uint64_t first = line / a.inner * a.reduced * a.inner + line % a.inner;
        struct long_product product = {1.0, 0};
        float zeros = 0.0f;
        for (uint64_t r = team.lane; r < a.reduced; r += team.size) {
            const float x = a.x[first + r * a.inner];
            if (x != 0.0f) product = long_product_of(product.size * (double)x, product.exponent);
            zeros += x == 0.0f ? 1.0f : 0.0f;
        }
        product = team_product(&team, product, room);
        zeros = team_sum(&team, zeros, zeros_room);
        for (uint64_t r = team.lane; r < a.reduced && team.is_there; r += team.size) {
            const uint64_t at = first + r * a.inner;
            const float x = a.x[at];
            struct long_product others = product;
            if (x != 0.0f) others = long_divided(product, long_product_of((double)x, 0));
            if (zeros > (x == 0.0f ? 1.0f : 0.0f)) others.size = 0.0;
            others = long_product_of(others.size * (double)a.dy[line], others.exponent);
            store(a.y, at, float_of_long(others), a.adds);
        }
    }
}

// ---- integers

DEVICE int64_t whole_joined(uint32_t what, int64_t a, int64_t b) {
    if (what == PEN_CUDA_WHOLE_SUM) return (int64_t)((uint64_t)a + (uint64_t)b);
    if (what == PEN_CUDA_WHOLE_PRODUCT) return (int64_t)((uint64_t)a * (uint64_t)b);
    return what == PEN_CUDA_WHOLE_MAX ? (a > b ? a : b) : (a < b ? a : b);
}

DEVICE int64_t lanes_joined(uint32_t what, int64_t v, int lanes) {
    for (int o = lanes / 2; o > 0; o >>= 1)
        v = whole_joined(what, v, (int64_t)whole_from_lane_xor((uint64_t)v, o));
    return v;
}

// A team of threads takes a line. The order makes no difference to integers.
KERNEL(reduce_whole, cuda_whole_args) {
    SHARED int64_t room[PEN_CUDA_BLOCK / 32];
    const int64_t most = (int64_t)(~(uint64_t)0 >> 1);
    const int64_t none = a.what == PEN_CUDA_WHOLE_SUM       ? 0
                         : a.what == PEN_CUDA_WHOLE_PRODUCT ? 1
                         : a.what == PEN_CUDA_WHOLE_MAX     ? -most - 1
                                                            : most;
    EACH_LINE(team, a.outer * a.inner, a.reduced) {
        const uint64_t first = team.line / a.inner * a.reduced * a.inner + team.line % a.inner;
        int64_t found = none;
        for (uint64_t r = team.lane; r < a.reduced; r += team.size)
            found = whole_joined(a.what, found, read_whole(a.x, a.type, first + r * a.inner));
        found = lanes_joined(a.what, found, team.size > 32 ? 32 : (int)team.size);
        if (team.size > 32) {
            if (THREAD % 32 == 0) room[THREAD / 32] = found;
            barrier();
            found = lanes_joined(a.what, room[THREAD % (THREADS / 32)], PEN_CUDA_BLOCK / 32);
            barrier(); // the room is used again
        }
        if (team.lane == 0 && team.is_there) write_whole(a.y, a.type, team.line, found);
    }
}
