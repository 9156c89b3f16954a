// Sums. Always in the same order: none depends on which thread is faster.

// A thread sums a column, in pieces of 64 so that long sums stay exact.
KERNEL(sum_columns, cuda_sum_args) {
    EACH(i, a.outer * a.inner) {
        const float *x = a.x + i / a.inner * a.reduced * a.inner + i % a.inner;
        float sum = 0.0f, piece = 0.0f;
        for (uint64_t r = 0; r < a.reduced; r++) {
            piece += x[r * a.inner];
            if (r % 64 != 63) continue;
            sum += piece;
            piece = 0.0f;
        }
        store(a.y, i, (sum + piece) / a.divisor, a.adds);
    }
}

// A block sums a row.
KERNEL(sum_rows, cuda_sum_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t row = BLOCK_X; row < a.outer; row += BLOCKS_X) {
        float sum = 0.0f;
        for (uint64_t i = THREAD; i < a.reduced; i += THREADS)
            sum += a.x[row * a.reduced + i];
        sum = block_sum(sum, room);
        if (THREAD == 0) store(a.y, row, sum / a.divisor, a.adds);
    }
}

KERNEL(total, cuda_total_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    float sum = 0.0f;
    for (uint64_t i = THREAD; i < a.count; i += THREADS)
        sum += a.x[i];
    sum = block_sum(sum, room);
    if (THREAD == 0) store(a.y, 0, sum * a.factor, a.adds);
}

// The gradient of a sum: a number for each column, or row, for all that were summed.
KERNEL(spread, cuda_sum_args) {
    EACH(i, a.outer * a.reduced * a.inner) {
        const uint64_t from = i / (a.reduced * a.inner) * a.inner + i % a.inner;
        store(a.y, i, a.dy[from] * a.factor, a.adds);
    }
}

// The largest, or least, of each line of elements that lie `inner` apart: a block takes a line.
KERNEL(extremum, cuda_sum_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t line = BLOCK_X; line < a.outer * a.inner; line += BLOCKS_X) {
        const float *x = a.x + line / a.inner * a.reduced * a.inner + line % a.inner;
        float largest = a.is_least ? -x[0] : x[0];
        for (uint64_t r = THREAD; r < a.reduced; r += THREADS) {
            const float found = a.is_least ? -x[r * a.inner] : x[r * a.inner];
            largest = found > largest || found != found ? found : largest;
        }
        largest = block_largest(largest, room);
        if (THREAD == 0) store(a.y, line, a.is_least ? -largest : largest, a.adds);
    }
}

// Equals share the gradient.
KERNEL(extremum_backward, cuda_sum_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t line = BLOCK_X; line < a.outer * a.inner; line += BLOCKS_X) {
        const uint64_t first = line / a.inner * a.reduced * a.inner + line % a.inner;
        float equals = 0.0f;
        for (uint64_t r = THREAD; r < a.reduced; r += THREADS)
            equals += a.x[first + r * a.inner] == a.found[line] ? 1.0f : 0.0f;
        const float share = a.dy[line] / block_sum(equals, room);
        for (uint64_t r = THREAD; r < a.reduced; r += THREADS) {
            const uint64_t at = first + r * a.inner;
            store(a.y, at, a.x[at] == a.found[line] ? share : 0.0f, a.adds);
        }
    }
}
