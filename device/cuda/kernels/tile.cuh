// What products that go through shared memory have in common: a block makes a tile of 64 x 64, a
// thread 4 x 4 of it, in steps of 16 terms. A sum takes its terms in order, in pieces of 128 so
// that long sums stay exact; each is rounded once.

#define TILE_DEPTH 16
#define TILE_LOADS (PEN_CUDA_TILE * TILE_DEPTH / PEN_CUDA_BLOCK)
#define TILE_PIECE 128 // terms

// A thread's part of the tile: rows THREAD / 16 + 16 i, columns THREAD % 16 + 16 j.
struct tile_sums {
    float whole[4][4], piece[4][4];
};

DEVICE void tile_begin(struct tile_sums *sums) {
    UNROLLED
    for (uint32_t i = 0; i < 4; i++) {
        UNROLLED
        for (uint32_t j = 0; j < 4; j++)
            sums->whole[i][j] = sums->piece[i][j] = 0.0f;
    }
}

DEVICE void tile_end_piece(struct tile_sums *sums) {
    UNROLLED
    for (uint32_t i = 0; i < 4; i++) {
        UNROLLED
        for (uint32_t j = 0; j < 4; j++) {
            sums->whole[i][j] += sums->piece[i][j];
            sums->piece[i][j] = 0.0f;
        }
    }
}

// Adds a step of `terms`, the first of which is term `first` of all.
DEVICE void tile_multiply(float (*left)[PEN_CUDA_TILE + 1], float (*right)[PEN_CUDA_TILE + 1],
                          uint32_t first, uint32_t terms, struct tile_sums *sums) {
    for (uint32_t term = 0; term < TILE_DEPTH && term < terms; term++) {
        const float *x = &left[term][THREAD / 16], *z = &right[term][THREAD % 16];
        UNROLLED
        for (uint32_t i = 0; i < 4; i++) {
            UNROLLED
            for (uint32_t j = 0; j < 4; j++)
                sums->piece[i][j] = multiply_add(x[16 * i], z[16 * j], sums->piece[i][j]);
        }
    }
    if (first % TILE_PIECE == TILE_PIECE - TILE_DEPTH) tile_end_piece(sums);
}
