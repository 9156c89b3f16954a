#include "tests/cuda/fake_cublas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cublas.h"
#include "tests/cuda/fake_inside.h"
#include "tests/cuda/fake_numbers.h"

void fake_cublas_count(fake_cublas_counts *out_counts);
void fake_cublas_plant(fake_cublas_mistake planted);
#define FAKE_CUBLAS_DECLARE(name, symbol, parameters) pen_cublas_status symbol parameters;
PEN_CUBLAS_FUNCTIONS(FAKE_CUBLAS_DECLARE)

#define BLAS_NOT_INITIALIZED 1u
#define BLAS_INVALID_VALUE 7u
#define BLAS_ARCH_MISMATCH 8u
#define BLAS_EXECUTION_FAILED 13u
#define BLAS_NOT_SUPPORTED 15u

#define BLAS_TOUCHED 4096u // bytes of each end of the workspace that a product writes

struct cublasContext {
    int device;
    pen_cuda_stream *stream;
    uint8_t *workspace; // NULL: none since the stream was set
    size_t workspace_bytes;
    bool has_host_scalars, has_plain_math;
};

// A matrix by columns, or one for each product of a batch.
typedef struct blas_matrix {
    float *at;
    bool is_transposed;
    int leading;
    long long stride;
} blas_matrix;

typedef struct blas_product {
    blas_matrix a, b, c;
    int m, n, k, count;
    float alpha, beta;
    unsigned compute;
    uint8_t *workspace;
    size_t workspace_bytes;
} blas_product;

static fake_cublas_counts counted;
static fake_cublas_mistake mistake;

void fake_cublas_count(fake_cublas_counts *out_counts) {
    (void)pthread_mutex_lock(&fake_lock);
    *out_counts = counted;
    (void)pthread_mutex_unlock(&fake_lock);
}

void fake_cublas_plant(fake_cublas_mistake planted) {
    mistake = planted;
}

__attribute__((destructor)) static void blas_tell(void) {
    if (!fake_settings.is_told) return;
    (void)fprintf(stderr, "fake cuBLAS: %llu products asked for, %llu run\n",
                  (unsigned long long)counted.calls, (unsigned long long)counted.runs);
}

// ---- numbers

static pen_precision blas_precision_of(unsigned compute) {
    if (mistake == FAKE_CUBLAS_NOT_ROUNDED) return PEN_PRECISION_FLOAT32;
    return compute == PEN_CUBLAS_COMPUTE_TF32       ? PEN_PRECISION_TF32
           : compute == PEN_CUBLAS_COMPUTE_BFLOAT16 ? PEN_PRECISION_BFLOAT16
           : compute == PEN_CUBLAS_COMPUTE_FLOAT16  ? PEN_PRECISION_FLOAT16
                                                    : PEN_PRECISION_FLOAT32;
}

// op(x), rows by columns, as the library reads it, by rows. Freed by the caller.
static float *blas_take(const blas_matrix *x, int number, int rows, int columns, unsigned compute) {
    const pen_precision precision = blas_precision_of(compute);
    float *taken = malloc((size_t)rows * (size_t)columns * sizeof *taken);
    const float *from = x->at + number * x->stride;
    for (int i = 0; i < rows && taken != NULL; i++) {
        for (int j = 0; j < columns; j++) {
            const size_t row = (size_t)(x->is_transposed ? j : i);
            const size_t column = (size_t)(x->is_transposed ? i : j);
            taken[(size_t)i * (size_t)columns + (size_t)j] =
                fake_round(from[row + column * (size_t)x->leading], precision);
        }
    }
    return taken;
}

static void blas_multiply(const blas_product *p, int number, double *sums) {
    float *a = blas_take(&p->a, number, p->m, p->k, p->compute);
    float *b = blas_take(&p->b, number, p->k, p->n, p->compute);
    for (int i = 0; i < p->m && a != NULL && b != NULL; i++) {
        memset(sums, 0, (size_t)p->n * sizeof *sums);
        for (int t = 0; t < p->k; t++) {
            const double factor = (double)a[(size_t)i * (size_t)p->k + (size_t)t];
            const float *row = b + (size_t)t * (size_t)p->n;
            for (int j = 0; j < p->n; j++)
                sums[j] += factor * (double)row[j];
        }
        for (int j = 0; j < p->n; j++) {
            float *c = p->c.at + number * p->c.stride + i + (long long)j * p->c.leading;
            const float old = p->beta == 0.0f ? 0.0f : p->beta * *c; // NaN is not read
            *c = p->alpha * (float)sums[j] + old;
        }
    }
    free(a);
    free(b);
}

// On the stream's thread.
static void blas_run(const void *given) {
    blas_product p;
    memcpy(&p, given, sizeof p);
    double *sums = malloc((size_t)p.n * sizeof *sums + 1);
    memset(p.workspace, 0xB1, BLAS_TOUCHED);
    memset(p.workspace + p.workspace_bytes - BLAS_TOUCHED, 0xB1, BLAS_TOUCHED);
    for (int i = 0; i < p.count && sums != NULL; i++)
        blas_multiply(&p, i, sums);
    free(sums);
    (void)pthread_mutex_lock(&fake_lock);
    counted.runs += 1;
    (void)pthread_mutex_unlock(&fake_lock);
}

// ---- what is asked for

// A matrix of so many columns of `rows` numbers that lie `leading` apart, all of it in one
// allocation.
static bool blas_find(blas_matrix *x, const void *place, int rows, int columns, int count) {
    if (x->leading < (rows > 1 ? rows : 1)) return false;
    const long long last = (count - 1) * x->stride + (columns - 1) * (long long)x->leading + rows;
    if (x->stride < 0 || last <= 0) return false;
    x->at = fake_host((uintptr_t)place, (size_t)last * sizeof(float));
    return x->at != NULL;
}

static void blas_make_mistake(blas_product *p) {
    const bool is_transposed = p->a.is_transposed;
    switch (mistake) {
    case FAKE_CUBLAS_SWAPPED_TRANSPOSES:
        p->a.is_transposed = p->b.is_transposed;
        p->b.is_transposed = is_transposed;
        break;
    case FAKE_CUBLAS_WRONG_LEADING:
        p->a.leading = p->b.leading;
        break;
    case FAKE_CUBLAS_WRONG_STRIDES:
        p->a.stride = p->b.stride = 0;
        break;
    case FAKE_CUBLAS_LOST_SUMS:
        p->beta = 0;
        break;
    default:
        break;
    }
}

static bool blas_is_ready(const pen_cublas_handle *handle) {
    return handle != NULL && handle->stream != NULL && handle->workspace != NULL &&
           handle->has_host_scalars && handle->has_plain_math &&
           handle->device == fake_current_device();
}

static bool blas_is_known(unsigned compute) {
    return compute == PEN_CUBLAS_COMPUTE || compute == PEN_CUBLAS_COMPUTE_TF32 ||
           compute == PEN_CUBLAS_COMPUTE_BFLOAT16 || compute == PEN_CUBLAS_COMPUTE_FLOAT16;
}

// The operands' places are in `p`, their contents not yet.
static pen_cublas_status blas_ask(const pen_cublas_handle *handle, blas_product *p, const void *a,
                                  const void *b, void *c) {
    fake_command command = {.kind = FAKE_CALL, .call = blas_run};
    if (!blas_is_ready(handle)) return BLAS_NOT_INITIALIZED;
    if (p->m < 1 || p->n < 1 || p->k < 1 || p->count < 1) return BLAS_INVALID_VALUE;
    if (!blas_is_known(p->compute)) return BLAS_NOT_SUPPORTED;
    if (!blas_find(&p->a, a, p->a.is_transposed ? p->k : p->m, p->a.is_transposed ? p->m : p->k,
                   p->count) ||
        !blas_find(&p->b, b, p->b.is_transposed ? p->n : p->k, p->b.is_transposed ? p->k : p->n,
                   p->count) ||
        !blas_find(&p->c, c, p->m, p->n, p->count)) {
        return BLAS_INVALID_VALUE;
    }
    if (fake_settings.blas_fails != 0) return fake_settings.blas_fails;
    blas_make_mistake(p);
    p->workspace = handle->workspace;
    p->workspace_bytes = handle->workspace_bytes;
    _Static_assert(sizeof *p <= sizeof command.args, "a product is as large as an argument");
    memcpy(command.args, p, sizeof *p);
    (void)pthread_mutex_lock(&fake_lock);
    counted.calls += 1;
    if (p->count > 1) counted.batched += 1;
    (void)pthread_mutex_unlock(&fake_lock);
    return fake_push(handle->stream, &command) == 0 ? 0 : BLAS_EXECUTION_FAILED;
}

// NOLINTNEXTLINE(readability-function-size): the parameters are NVIDIA's
pen_cublas_status cublasGemmStridedBatchedEx(pen_cublas_handle *handle, unsigned op_a,
                                             unsigned op_b, int m, int n, int k, const void *alpha,
                                             const void *a, unsigned type_a, int lda,
                                             long long stride_a, const void *b, unsigned type_b,
                                             int ldb, long long stride_b, const void *beta, void *c,
                                             unsigned type_c, int ldc, long long stride_c,
                                             int count, unsigned compute, int algorithm) {
    if (op_a > PEN_CUBLAS_TRANSPOSED || op_b > PEN_CUBLAS_TRANSPOSED) return BLAS_INVALID_VALUE;
    if (type_a != PEN_CUBLAS_FLOAT32 || type_b != PEN_CUBLAS_FLOAT32 ||
        type_c != PEN_CUBLAS_FLOAT32 || algorithm != PEN_CUBLAS_ALGORITHM) {
        return BLAS_NOT_SUPPORTED;
    }
    blas_product p = {.m = m,
                      .n = n,
                      .k = k,
                      .count = count,
                      .compute = compute,
                      .a = {NULL, op_a == PEN_CUBLAS_TRANSPOSED, lda, stride_a},
                      .b = {NULL, op_b == PEN_CUBLAS_TRANSPOSED, ldb, stride_b},
                      .c = {NULL, false, ldc, stride_c}};
    memcpy(&p.alpha, alpha, sizeof p.alpha);
    memcpy(&p.beta, beta, sizeof p.beta);
    return blas_ask(handle, &p, a, b, c);
}

// NOLINTNEXTLINE(readability-function-size): the parameters are NVIDIA's
pen_cublas_status cublasGemmEx(pen_cublas_handle *handle, unsigned op_a, unsigned op_b, int m,
                               int n, int k, const void *alpha, const void *a, unsigned type_a,
                               int lda, const void *b, unsigned type_b, int ldb, const void *beta,
                               void *c, unsigned type_c, int ldc, unsigned compute, int algorithm) {
    return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b,
                                      type_b, ldb, 0, beta, c, type_c, ldc, 0, 1, compute,
                                      algorithm);
}

// ---- handles

pen_cublas_status cublasCreate_v2(pen_cublas_handle **handle) {
    if (fake_major() > 12 && fake_settings.capability < 75) return BLAS_ARCH_MISMATCH;
    if (fake_settings.blas_begins != 0 && fake_begins_wrong()) return fake_settings.blas_begins;
    if (fake_capturing != NULL || fake_current_device() < 0) return BLAS_NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    if (*handle == NULL) return PEN_CUBLAS_ALLOC_FAILED;
    (*handle)->device = fake_current_device();
    (void)pthread_mutex_lock(&fake_lock);
    fake_count(&fake_counted.blocks, 1);
    (void)pthread_mutex_unlock(&fake_lock);
    return 0;
}

pen_cublas_status cublasDestroy_v2(pen_cublas_handle *handle) {
    if (handle == NULL) return BLAS_NOT_INITIALIZED;
    free(handle);
    (void)pthread_mutex_lock(&fake_lock);
    fake_count(&fake_counted.blocks, -1);
    (void)pthread_mutex_unlock(&fake_lock);
    return 0;
}

pen_cublas_status cublasGetProperty(unsigned property, int *value) {
    const int numbers[] = {fake_major(), 4, 5};
    if (property > 2) return BLAS_INVALID_VALUE;
    *value = numbers[property];
    return 0;
}

// The library goes back to memory of its own.
pen_cublas_status cublasSetStream_v2(pen_cublas_handle *handle, pen_cuda_stream *stream) {
    if (stream == NULL || stream->device != handle->device) return BLAS_INVALID_VALUE;
    handle->stream = stream;
    handle->workspace = NULL;
    return 0;
}

#ifndef FAKE_OLD
pen_cublas_status cublasSetWorkspace_v2(pen_cublas_handle *handle, void *workspace, size_t bytes) {
    const uintptr_t address = (uintptr_t)workspace;
    if (address % PEN_CUBLAS_ALIGNMENT != 0 || bytes < 2 * (size_t)BLAS_TOUCHED ||
        fake_device_of(address) != handle->device) {
        return BLAS_INVALID_VALUE;
    }
    handle->workspace = fake_host(address, bytes);
    handle->workspace_bytes = bytes;
    return handle->workspace == NULL ? BLAS_INVALID_VALUE : 0;
}
#endif

pen_cublas_status cublasSetPointerMode_v2(pen_cublas_handle *handle, unsigned mode) {
    handle->has_host_scalars = mode == PEN_CUBLAS_HOST;
    return 0;
}

pen_cublas_status cublasSetMathMode(pen_cublas_handle *handle, unsigned mode) {
    handle->has_plain_math = mode == PEN_CUBLAS_MATH;
    return 0;
}
