// Matrix products: a block makes a tile (tile.cuh) of one of them.

// op(a) at (row, term), of rows that lie `terms` apart, or terms that lie `rows` apart.
DEVICE float product_load(const float *x, uint32_t is_across, uint32_t rows, uint32_t terms,
                          uint32_t row, uint32_t term) {
    if (row >= rows || term >= terms) return 0.0f;
    return is_across ? x[(uint64_t)term * rows + row] : x[(uint64_t)row * terms + term];
}

KERNEL(product, cuda_product_args) {
    SHARED float left[TILE_DEPTH][PEN_CUDA_TILE + 1];
    SHARED float right[TILE_DEPTH][PEN_CUDA_TILE + 1];
    const float *x = a.a + BLOCK_Z * a.stride_a, *z = a.b + BLOCK_Z * a.stride_b;
    const uint32_t top = BLOCK_X * PEN_CUDA_TILE, first = BLOCK_Y * PEN_CUDA_TILE;
    struct tile_sums sums;
    tile_begin(&sums);
    for (uint32_t base = 0; base < a.k; base += TILE_DEPTH) {
        UNROLLED
        for (uint32_t load = 0; load < TILE_LOADS; load++) {
            // neighbours in memory are loaded by neighbours among the threads
            const uint32_t i = THREAD + load * PEN_CUDA_BLOCK;
            const uint32_t row = a.trans_a ? i % PEN_CUDA_TILE : i / TILE_DEPTH;
            const uint32_t term = a.trans_a ? i / PEN_CUDA_TILE : i % TILE_DEPTH;
            left[term][row] = rounded(
                product_load(x, a.trans_a, a.m, a.k, top + row, base + term), a.precision);
            const uint32_t column = a.trans_b ? i / TILE_DEPTH : i % PEN_CUDA_TILE;
            const uint32_t other = a.trans_b ? i % TILE_DEPTH : i / PEN_CUDA_TILE;
            right[other][column] = rounded(
                product_load(z, !a.trans_b, a.n, a.k, first + column, base + other), a.precision);
        }
        barrier();
        tile_multiply(left, right, base, a.k - base, &sums);
        barrier();
    }
    tile_end_piece(&sums);
    const uint32_t y = THREAD / 16, c = THREAD % 16;
    UNROLLED
    for (uint32_t i = 0; i < 4; i++) {
        UNROLLED
        for (uint32_t j = 0; j < 4; j++) {
            const uint32_t row = top + y + 16 * i, column = first + c + 16 * j;
            if (row >= a.m || column >= a.n) continue;
            float value = a.alpha * sums.whole[i][j];
            if (a.c) value += a.beta * a.c[row * a.c_row + column * a.c_column];
            store(a.y, ((uint64_t)BLOCK_Z * a.m + row) * a.n + column, value, a.adds);
        }
    }
}
