#include "device/cpu/kernels/loops/gemm_rows.h"

#include <string.h>

// c[i][j] is a dot product over k. A tile of ROWS x COLUMNS of them, as many as a vector has lanes,
// is kept in registers, one vector each, whose lanes are added at the end. k is walked in blocks,
// so that the block of b stays in the first cache while all rows of a pass over it.
#if defined(__AVX512F__)
#define GEMM_LANES 16
#define GEMM_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define GEMM_ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif defined(__AVX2__)
#define GEMM_LANES 8
#define GEMM_EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define GEMM_ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define GEMM_LANES 4
#define GEMM_EVEN 0, 2, 4, 6
#define GEMM_ODD 1, 3, 5, 7
#endif
#define GEMM_ROWS 2
#define GEMM_COLUMNS (GEMM_LANES / 2)
#define GEMM_DEPTH 1024 // of a block of k

// Holds a loaded vector in its register, where the compiler would rather load it again for its
// second use: loads are what bounds the loop.
#if defined(__x86_64__)
#define GEMM_KEEP(vector) __asm__("" : "+v"(vector))
#else
#define GEMM_KEEP(vector) ((void)0)
#endif

typedef float gemm_vector __attribute__((vector_size(4 * GEMM_LANES)));

static inline gemm_vector gemm_load(const float *from) {
    gemm_vector vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

// Lane i of the result is the sum of the lanes of vectors[i]: neighbours are added, of two vectors
// at a time, until one vector is left.
static inline gemm_vector gemm_add_lanes(gemm_vector vectors[GEMM_LANES]) {
    for (int count = GEMM_LANES; count > 1; count /= 2) {
        for (int i = 0; i < count / 2; i++) {
            const gemm_vector a = vectors[2 * i], b = vectors[2 * i + 1];
            vectors[i] =
                __builtin_shufflevector(a, b, GEMM_EVEN) + __builtin_shufflevector(a, b, GEMM_ODD);
        }
    }
    return vectors[0];
}

// One tile over `depth` elements of k, added to or set in c.
typedef struct gemm_tile {
    const float *a;
    const float *b;
    float *c;
    int64_t lda, ldb, ldc;
    int64_t depth;
    float alpha;
    float beta; // of this block: the sum so far counts fully after the first
} gemm_tile;

static inline void gemm_store(const gemm_tile *tile, int64_t row, int64_t column, float sum) {
    float *c = tile->c + row * tile->ldc + column;
    *c = tile->beta == 0 ? tile->alpha * sum : tile->alpha * sum + tile->beta * *c;
}

// A whole tile.
static void gemm_tile_whole(const gemm_tile *tile) {
    gemm_vector sums[GEMM_LANES];
    memset(sums, 0, sizeof sums);
    int64_t k = 0;
    for (; k + GEMM_LANES <= tile->depth; k += GEMM_LANES) {
        const gemm_vector a0 = gemm_load(tile->a + k), a1 = gemm_load(tile->a + tile->lda + k);
#pragma GCC unroll 8
        for (int j = 0; j < GEMM_COLUMNS; j++) {
            gemm_vector b = gemm_load(tile->b + j * tile->ldb + k);
            GEMM_KEEP(b);
            sums[j] += a0 * b;
            sums[GEMM_COLUMNS + j] += a1 * b;
        }
    }
    float totals[GEMM_LANES];
    const gemm_vector added = gemm_add_lanes(sums);
    memcpy(totals, &added, sizeof totals);
    for (int i = 0; i < GEMM_LANES; i++) {
        const int row = i / GEMM_COLUMNS, column = i % GEMM_COLUMNS;
        for (int64_t rest = k; rest < tile->depth; rest++) {
            totals[i] += tile->a[row * tile->lda + rest] * tile->b[column * tile->ldb + rest];
        }
        gemm_store(tile, row, column, totals[i]);
    }
}

// One dot product at a time: the edges.
static void gemm_tile_edge(const gemm_tile *tile, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            const float *a = tile->a + i * tile->lda, *b = tile->b + j * tile->ldb;
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t k = 0; k < tile->depth; k++) {
                sum += a[k] * b[k];
            }
            gemm_store(tile, i, j, sum);
        }
    }
}

// Columns [first, last) of c, at most GEMM_COLUMNS of them, over one block of k.
static void gemm_columns(const pen_gemm *g, int64_t first, int64_t last, int64_t from, int64_t to) {
    const int64_t width = last - first;
    gemm_tile tile = {
        .b = g->b + first * g->ldb + from,
        .lda = g->lda,
        .ldb = g->ldb,
        .ldc = g->ldc,
        .depth = to - from,
        .alpha = g->alpha,
        .beta = from == 0 ? g->beta : 1,
    };
    for (int64_t row = 0; row < g->m;) {
        const int64_t rest = g->m - row;
        tile.a = g->a + row * g->lda + from;
        tile.c = g->c + row * g->ldc + first;
        const int64_t height = rest < GEMM_ROWS ? rest : GEMM_ROWS;
        if (width == GEMM_COLUMNS && height == GEMM_ROWS) {
            gemm_tile_whole(&tile);
        } else {
            gemm_tile_edge(&tile, height, width);
        }
        row += height;
    }
}

pen_status gemm_rows_run(const pen_gemm *g) {
    // blocks of columns whose part of b is read for one block of k after the other
    const int64_t strips = (g->n + GEMM_COLUMNS - 1) / GEMM_COLUMNS;
#pragma omp parallel for schedule(static) if (g->m * g->n * g->k > 200000)
    for (int64_t strip = 0; strip < strips; strip++) {
        const int64_t first = strip * GEMM_COLUMNS;
        const int64_t last = first + GEMM_COLUMNS < g->n ? first + GEMM_COLUMNS : g->n;
        for (int64_t from = 0; from < g->k; from += GEMM_DEPTH) {
            const int64_t to = from + GEMM_DEPTH < g->k ? from + GEMM_DEPTH : g->k;
            gemm_columns(g, first, last, from, to);
        }
    }
    return PEN_OK;
}
