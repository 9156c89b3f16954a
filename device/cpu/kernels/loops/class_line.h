// Softmax over one line of numbers that lie `stride` apart.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_CLASS_LINE_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_CLASS_LINE_H

#include <math.h>
#include <stdint.h>

#include "device/cpu/kernels/loops/vector_math.h"

// Lines longer than this are summed in pieces of it, so that sums in float32 stay exact enough.
#define CLASS_LINE_PIECE 1024

static inline float class_line_largest(const float *x, int64_t count, int64_t stride) {
    float best = -INFINITY;
    if (stride == 1) {
#pragma omp simd reduction(max : best)
        for (int64_t i = 0; i < count; i++) {
            best = x[i] > best ? x[i] : best;
        }
        return best;
    }
    for (int64_t i = 0; i < count; i++) {
        best = x[i * stride] > best ? x[i * stride] : best;
    }
    return best;
}

// Sum of exp(x - largest). Not a number in the line makes it one.
static inline double class_line_sum(const float *x, int64_t count, int64_t stride, float largest) {
    double total = 0;
    for (int64_t first = 0; first < count; first += CLASS_LINE_PIECE) {
        const int64_t rest = count - first;
        const int64_t size = rest < CLASS_LINE_PIECE ? rest : CLASS_LINE_PIECE;
        const float *at = x + first * stride;
        float sum = 0;
        if (stride == 1) {
#pragma omp simd reduction(+ : sum)
            for (int64_t i = 0; i < size; i++) {
                sum += vector_exp(at[i] - largest);
            }
        } else {
            for (int64_t i = 0; i < size; i++) {
                sum += vector_exp(at[i * stride] - largest);
            }
        }
        total += (double)sum;
    }
    return total;
}

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_CLASS_LINE_H
