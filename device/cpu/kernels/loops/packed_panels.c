#include "device/cpu/kernels/loops/packed_panels.h"

#include <string.h>

// A tile of ROWS x PANEL_WIDTH elements of c is kept in registers, two vectors a row; every row of
// the panel is loaded once for all of them. depth is walked in blocks, so that the block of the
// panel stays in the first cache while all rows pass over it.
#define PANEL_DEPTH 256

typedef float panel_vector __attribute__((vector_size(4 * PANEL_LANES)));

static inline panel_vector panel_load(const float *from) {
    panel_vector vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

static inline void panel_store(float *to, panel_vector vector) {
    memcpy(to, &vector, sizeof vector);
}

void panel_pack(const panel_source *s, int64_t panel, float *out) {
    const int64_t first = panel * PANEL_WIDTH;
    const int64_t rest = s->columns - first;
    const int64_t width = rest < PANEL_WIDTH ? rest : PANEL_WIDTH;
    const float *from = s->from + first * s->column_stride;
    for (int64_t row = 0; row < s->rows; row++) {
        float *to = out + row * PANEL_WIDTH;
        for (int64_t i = 0; i < width; i++) {
            to[i] = from[row * s->row_stride + i * s->column_stride];
        }
        for (int64_t i = width; i < PANEL_WIDTH; i++) {
            to[i] = 0;
        }
    }
}

// Sums of one tile, added to c or set in it.
static inline void panel_finish(const panel_product *p, float *c, panel_vector low,
                                panel_vector high) {
    if (p->width == PANEL_WIDTH) {
        if (p->adds) {
            low += panel_load(c);
            high += panel_load(c + PANEL_LANES);
        }
        panel_store(c, low);
        panel_store(c + PANEL_LANES, high);
        return;
    }
    float sums[PANEL_WIDTH];
    panel_store(sums, low);
    panel_store(sums + PANEL_LANES, high);
    for (int64_t i = 0; i < p->width; i++) {
        c[i] = p->adds ? c[i] + sums[i] : sums[i];
    }
}

// `rows` is a number at compile time.
static inline __attribute__((always_inline)) void panel_tile(const panel_product *p, int64_t row,
                                                             const int rows) {
    panel_vector low[8], high[8];
    const float *a = p->a + row * p->lda;
    for (int i = 0; i < rows; i++) {
        low[i] = high[i] = (panel_vector){0};
    }
    for (int64_t k = 0; k < p->depth; k++) {
        const panel_vector b0 = panel_load(p->panel + k * PANEL_WIDTH);
        const panel_vector b1 = panel_load(p->panel + k * PANEL_WIDTH + PANEL_LANES);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            const float x = a[i * p->lda + k];
            low[i] += x * b0;
            high[i] += x * b1;
        }
    }
    for (int i = 0; i < rows; i++) {
        panel_finish(p, p->c + (row + i) * p->ldc, low[i], high[i]);
    }
}

static void panel_block(const panel_product *p) {
    int64_t row = 0;
#if PANEL_LANES == 16
    for (; row + 8 <= p->rows; row += 8) {
        panel_tile(p, row, 8);
    }
#endif
    for (; row + 4 <= p->rows; row += 4) {
        panel_tile(p, row, 4);
    }
    for (; row < p->rows; row++) {
        panel_tile(p, row, 1);
    }
}

void panel_multiply(const panel_product *product) {
    panel_product block = *product;
    for (int64_t k = 0; k < product->depth; k += PANEL_DEPTH) {
        const int64_t rest = product->depth - k;
        block.depth = rest < PANEL_DEPTH ? rest : PANEL_DEPTH;
        block.a = product->a + k;
        block.panel = product->panel + k * PANEL_WIDTH;
        panel_block(&block);
        block.adds = true;
    }
}
