#include "device/cpu/gemm_parts.h"

// Parts are a power of two: usually PARTS_MOST, as long as each has PARTS_LEAST_FLOPS, and more
// only where each is PARTS_LARGE_FLOPS, since every part copies its rows and columns again.
#define PARTS_MOST 8
#define PARTS_LARGE_MOST 64
#define PARTS_LEAST_FLOPS 2e6
#define PARTS_LARGE_FLOPS 2e9
#define PARTS_LEAST_EXTENT 32 // rows and columns of a part
#define PARTS_ROW_STEP 8      // what the libraries' kernels take at once
#define PARTS_COLUMN_STEP 16

typedef struct gemm_grid {
    int64_t rows, columns; // of a part but the last
    int64_t down, across;  // parts
} gemm_grid;

static int64_t parts_round_up(int64_t size, int64_t parts, int64_t step) {
    const int64_t part = (size + parts - 1) / parts;
    return (part + step - 1) / step * step;
}

static int64_t parts_wanted(const pen_gemm *g) {
    const double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    int64_t parts = 1;
    while (parts < PARTS_LARGE_MOST) {
        const double least = parts < PARTS_MOST ? PARTS_LEAST_FLOPS : PARTS_LARGE_FLOPS;
        if (flops < 2.0 * (double)parts * least) break;
        parts *= 2;
    }
    return parts;
}

// The grid of so many parts, or half of them and so on, whose parts copy least in all.
static gemm_grid parts_grid(const pen_gemm *g) {
    gemm_grid grid = {.rows = g->m, .columns = g->n, .down = 1, .across = 1};
    int64_t least = INT64_MAX;
    for (int64_t parts = parts_wanted(g); parts > 1 && least == INT64_MAX; parts /= 2) {
        for (int64_t down = 1; down <= parts; down *= 2) {
            const int64_t across = parts / down, copied = g->m * across + g->n * down;
            if (down > 1 && g->m < down * PARTS_LEAST_EXTENT) continue;
            if (across > 1 && g->n < across * PARTS_LEAST_EXTENT) continue;
            if (copied >= least) continue;
            least = copied;
            grid.rows = parts_round_up(g->m, down, PARTS_ROW_STEP);
            grid.columns = parts_round_up(g->n, across, PARTS_COLUMN_STEP);
        }
    }
    grid.down = (g->m + grid.rows - 1) / grid.rows;
    grid.across = (g->n + grid.columns - 1) / grid.columns;
    return grid;
}

static pen_status parts_multiply(const pen_gemm *g, const gemm_grid *grid, int64_t part,
                                 pen_gemm_fn multiply) {
    const int64_t row = part % grid->down * grid->rows;
    const int64_t column = part / grid->down * grid->columns;
    pen_gemm own = *g;
    own.m = g->m - row < grid->rows ? g->m - row : grid->rows;
    own.n = g->n - column < grid->columns ? g->n - column : grid->columns;
    own.a += g->trans_a ? row : row * g->lda;
    own.b += g->trans_b ? column * g->ldb : column;
    own.c += row * g->ldc + column;
    return multiply(&own);
}

pen_status pen_gemm_in_parts(const pen_gemm *gemm, pen_gemm_fn multiply) {
    const gemm_grid grid = parts_grid(gemm);
    const int64_t count = grid.down * grid.across;
    if (count == 1) return multiply(gemm);
    pen_status first = PEN_OK;
#pragma omp parallel for schedule(static)
    for (int64_t part = 0; part < count; part++) {
        const pen_status status = parts_multiply(gemm, &grid, part, multiply);
        if (status == PEN_OK) continue;
#pragma omp critical(gemm_parts_status)
        first = pen_status_join(first, status);
    }
    return first;
}
