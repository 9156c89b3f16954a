#include "device/cpu/kernels/loops/gemm_one_row.h"

#include <omp.h>
#include <string.h>

#include "device/cpu/onednn/onednn_gemm.h"

#if defined(__AVX512F__)
#define ROW_LANES 16
#elif defined(__AVX2__)
#define ROW_LANES 8
#else
#define ROW_LANES 4
#endif
// Columns are shared out in groups of these, and summed alike in each.
#define ROW_GROUP 16
#define ROW_STRIP 65536 // columns of c that stay in the second cache
#define ROW_DEPTH 8     // rows of b that are added to c at once
#define ROW_DEPTH_MOST 16
#define ROW_SHORT 8192 // up to so many columns, ROW_DEPTH_MOST rows

typedef float row_vector __attribute__((vector_size(4 * ROW_LANES)));

static inline row_vector row_load(const float *from) {
    row_vector vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

static inline void row_store(const pen_gemm *g, int64_t column, float sum) {
    float *c = g->c + column;
    *c = g->beta == 0 ? g->alpha * sum : g->alpha * sum + g->beta * *c;
}

// A row of b times a. Rows are read one after the other, so that there is one stream. Four sums,
// since each would wait for its last addition.
static inline float row_dot(const float *a, const float *b, int64_t depth) {
    row_vector sums[4] = {{0}, {0}, {0}, {0}};
    int64_t k = 0;
    for (; k + 4 * ROW_LANES <= depth; k += 4 * ROW_LANES) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            sums[i] += row_load(a + k + i * ROW_LANES) * row_load(b + k + i * ROW_LANES);
        }
    }
    for (; k + ROW_LANES <= depth; k += ROW_LANES) {
        sums[0] += row_load(a + k) * row_load(b + k);
    }
    const row_vector added = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float lanes[ROW_LANES];
    memcpy(lanes, &added, sizeof lanes);
    for (int width = ROW_LANES / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < width; i++) {
            lanes[i] += lanes[i + width];
        }
    }
    float sum = lanes[0];
    for (; k < depth; k++) {
        sum += a[k] * b[k];
    }
    return sum;
}

// Columns [first, last) of c are rows of b.
static void row_of_dots(const pen_gemm *g, int64_t first, int64_t last) {
    for (int64_t column = first; column < last; column++) {
        row_store(g, column, row_dot(g->a, g->b + column * g->ldb, g->k));
    }
}

// Adds `depth` rows of b, from row k on, to columns of c. One after the other: how many are added
// at once changes no bit.
static inline void row_add(const pen_gemm *g, int64_t k, const int depth, int64_t first,
                           int64_t width) {
    const float *b = g->b + k * g->ldb + first;
    float *restrict c = g->c + first;
    const int64_t ldb = g->ldb;
    float a[ROW_DEPTH_MOST];
    for (int row = 0; row < depth; row++) {
        a[row] = g->alpha * g->a[k + row];
    }
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        float sum = c[i];
#pragma GCC unroll 16
        for (int row = 0; row < depth; row++) {
            sum += a[row] * b[row * ldb + i];
        }
        c[i] = sum;
    }
}

// Columns [first, last) of c as sums of rows of b. Short rows are added more at once, so that
// there is enough to read ahead.
static void row_of_sums(const pen_gemm *g, int64_t first, int64_t last) {
    const int64_t width = last - first;
    for (int64_t i = first; i < last; i++) {
        g->c[i] = g->beta == 0 ? 0 : g->beta * g->c[i];
    }
    int64_t k = 0;
    if (width <= ROW_SHORT) {
        for (; k + ROW_DEPTH_MOST <= g->k; k += ROW_DEPTH_MOST) {
            row_add(g, k, ROW_DEPTH_MOST, first, width);
        }
    }
    for (; k + ROW_DEPTH <= g->k; k += ROW_DEPTH) {
        row_add(g, k, ROW_DEPTH, first, width);
    }
    for (; k < g->k; k++) {
        row_add(g, k, 1, first, width);
    }
}

// Columns [first, last) of c.
static void row_of_columns(const pen_gemm *g, int64_t first, int64_t last) {
    if (g->trans_b) {
        row_of_dots(g, first, last);
        return;
    }
    for (int64_t at = first; at < last; at += ROW_STRIP)
        row_of_sums(g, at, at + ROW_STRIP < last ? at + ROW_STRIP : last);
}

pen_status gemm_one_row_or_library(const pen_gemm *g) {
    if (g->m != 1) return pen_onednn_sgemm(g);
    row_of_columns(g, 0, g->n);
    return PEN_OK;
}

// Each thread has columns that lie side by side, so that it reads b as it lies.
pen_status gemm_one_row_run(const pen_gemm *g) {
    const int64_t groups = (g->n + ROW_GROUP - 1) / ROW_GROUP;
#pragma omp parallel
    {
        const int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
        const int64_t first = groups * thread / team * ROW_GROUP;
        const int64_t end = groups * (thread + 1) / team * ROW_GROUP;
        row_of_columns(g, first, end < g->n ? end : g->n);
    }
    return PEN_OK;
}
