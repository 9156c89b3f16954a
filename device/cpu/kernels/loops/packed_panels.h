// Products with one matrix again and again, as the steps of a recurrent net need: c = a * b or
// c += a * b, where b was copied into panels once. Libraries copy b for every product, which costs
// as much as the product itself when a has only some dozens of rows.
//
// A panel is PANEL_WIDTH columns of b, row after row; the last one is filled up with zeros.
//
// Threads: pure functions. An element of c is summed in one order, whatever rows and panels a call
// has.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_PACKED_PANELS_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_PACKED_PANELS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cpu/cpu_kernel.h"

#if defined(__AVX512F__)
#define PANEL_LANES 16
#elif defined(__AVX2__)
#define PANEL_LANES 8
#else
#define PANEL_LANES 4
#endif
#define PANEL_WIDTH (2 * PANEL_LANES)

static inline int64_t panel_count(int64_t columns) {
    return (columns + PANEL_WIDTH - 1) / PANEL_WIDTH;
}

// Element (row, column) of b is at from[row * row_stride + column * column_stride].
typedef struct panel_source {
    const float *from;
    int64_t row_stride, column_stride;
    int64_t rows, columns;
} panel_source;

#define panel_pack PEN_CPU_JOIN(pen_panel_pack, PEN_CPU_LEVEL)
// Copies panel `panel` of b; `out` has room for rows * PANEL_WIDTH.
void panel_pack(const panel_source *source, int64_t panel, float *out);

// Rows [0, rows) of c in the columns of one panel.
typedef struct panel_product {
    const float *panel; // [depth][PANEL_WIDTH]
    const float *a;
    float *c;
    int64_t lda, ldc; // strides of rows
    int64_t rows, depth;
    int64_t width; // columns of c to be written: PANEL_WIDTH, or fewer in the last panel
    bool adds;     // to c
} panel_product;

#define panel_multiply PEN_CPU_JOIN(pen_panel_multiply, PEN_CPU_LEVEL)
void panel_multiply(const panel_product *product);

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_PACKED_PANELS_H
