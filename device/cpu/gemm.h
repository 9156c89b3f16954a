// One matrix product on float32, as every library here takes it.
#ifndef PEN_DEVICE_CPU_GEMM_H
#define PEN_DEVICE_CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

// c = alpha * op(a) * op(b) + beta * c, row-major: op(a) is m x k, op(b) k x n, c m x n. `lda`,
// `ldb`, `ldc` are the row strides of the matrices as stored, in elements. With beta 0, c is not
// read. Dimensions are above 0 and fit an int.
typedef struct pen_gemm {
    int64_t m, n, k;
    bool trans_a, trans_b;
    float alpha, beta;
    const float *a;
    const float *b;
    float *c;
    int64_t lda, ldb, ldc;
} pen_gemm;

#endif // PEN_DEVICE_CPU_GEMM_H
