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
        store(a.y, i, sum + piece, a.adds);
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
        if (THREAD == 0) store(a.y, row, sum, a.adds);
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
