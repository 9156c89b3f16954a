#include "device/cuda/cublas.h"

#include <stdint.h>

#include "base/system/library.h"

#define CUBLAS_NEWEST 13 // whose functions are known here
#define CUBLAS_OLDEST 11

#define CUBLAS_NEWEST_OF_OLD 12 // that has kernels for GPUs below 7.5
#define CUBLAS_COUNT (CUBLAS_NEWEST - CUBLAS_OLDEST + 1)

// By the newest that may be taken. Made once each, and only read then.
static pen_cublas_functions cublas_functions[CUBLAS_COUNT];

// The newest major version for the GPU and its driver.
static int cublas_newest(const pen_cuda_gpu *gpu) {
    const int newest = pen_cuda_gpu_is_old(gpu) ? CUBLAS_NEWEST_OF_OLD : CUBLAS_NEWEST;
    return gpu->driver / 1000 < newest ? gpu->driver / 1000 : newest;
}

// Files of major versions that the driver and the GPU can run, the newest first, of which the first
// that is there is taken.
static pen_status cublas_load_library(const pen_cuda_gpu *gpu,
                                      const pen_cublas_functions **out_functions) {
    static pen_library_once once[CUBLAS_COUNT];
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                        NULL};
#define CUBLAS_SYMBOL(name, symbol, parameters) #symbol,
    static const char *const symbols[] = {PEN_CUBLAS_FUNCTIONS(CUBLAS_SYMBOL)};
    const int newest = cublas_newest(gpu);
    if (newest < CUBLAS_OLDEST) {
        return pen_error(PEN_UNSUPPORTED, "the driver is of CUDA %d.%d, cuBLAS needs one of %d",
                         gpu->driver / 1000, gpu->driver % 1000 / 10, CUBLAS_OLDEST);
    }
    const pen_library wanted = {.purpose = newest == 13   ? "libcublas.so.13, .12 or .11"
                                           : newest == 12 ? "libcublas.so.12 or .11"
                                                          : "libcublas.so.11",
                                .names = names + (CUBLAS_NEWEST - newest),
                                .symbols = symbols,
                                .symbol_count = sizeof symbols / sizeof *symbols};
    pen_cublas_functions *functions = &cublas_functions[newest - CUBLAS_OLDEST];
    PEN_TRY(pen_library_find_once(&once[newest - CUBLAS_OLDEST], &wanted, functions));
    *out_functions = functions;
    return PEN_OK;
}

bool pen_cublas_passes_over(const pen_cuda_gpu *gpu) {
    return pen_cuda_gpu_is_old(gpu) && gpu->driver / 1000 > CUBLAS_NEWEST_OF_OLD;
}

pen_status pen_cublas_load(const pen_cuda_gpu *gpu, const pen_cublas_functions **out_functions,
                           pen_cublas_version *out_version) {
    const pen_cublas_functions *functions;
    pen_cublas_version version;
    PEN_TRY(cublas_load_library(gpu, &functions));
    for (int i = 0; i < 3; i++) {
        const pen_cublas_status status = functions->property((unsigned)i, &version.numbers[i]);
        if (status == 0) continue;
        return pen_error(PEN_UNSUPPORTED, "libcublas does not say its version: %s",
                         pen_cublas_status_name(status));
    }
    *out_functions = functions;
    *out_version = version;
    return PEN_OK;
}

const char *pen_cublas_status_name(pen_cublas_status status) {
    static const char *const names[] = {
        [0] = "CUBLAS_STATUS_SUCCESS",           [1] = "CUBLAS_STATUS_NOT_INITIALIZED",
        [3] = "CUBLAS_STATUS_ALLOC_FAILED",      [7] = "CUBLAS_STATUS_INVALID_VALUE",
        [8] = "CUBLAS_STATUS_ARCH_MISMATCH",     [11] = "CUBLAS_STATUS_MAPPING_ERROR",
        [13] = "CUBLAS_STATUS_EXECUTION_FAILED", [14] = "CUBLAS_STATUS_INTERNAL_ERROR",
        [15] = "CUBLAS_STATUS_NOT_SUPPORTED",    [16] = "CUBLAS_STATUS_LICENSE_ERROR",
    };
    const bool is_known = status < sizeof names / sizeof *names && names[status] != NULL;
    return is_known ? names[status] : "an unknown status of cuBLAS";
}

static pen_status cublas_check(const pen_cublas *cublas, pen_cublas_status status,
                               const char *doing) {
    if (status == 0) return PEN_OK;
    return pen_cuda_library_error(
        cublas->memory, status == PEN_CUBLAS_ALLOC_FAILED ? PEN_OUT_OF_MEMORY : PEN_INTERNAL,
        "cuBLAS", pen_cublas_status_name(status), doing);
}

// Where an address is, as it says it.
static void *cublas_place(pen_cuda_address address) {
    return (void *)(uintptr_t)address;
}

// A stream that is set takes the workspace away again: the workspace comes after it.
static pen_status cublas_begin(pen_cublas *cublas) {
    const pen_cublas_functions *f = cublas->functions;
    const pen_cuda_memory *memory = cublas->memory;
    PEN_TRY(cublas_check(cublas, f->create(&cublas->handle), NULL));
    PEN_TRY(cublas_check(cublas, f->set_stream(cublas->handle, memory->stream), NULL));
    PEN_TRY(cublas_check(cublas,
                         f->set_workspace(cublas->handle, cublas_place(cublas->workspace),
                                          PEN_CUBLAS_WORKSPACE_BYTES),
                         NULL));
    PEN_TRY(cublas_check(cublas, f->set_pointer_mode(cublas->handle, PEN_CUBLAS_HOST), NULL));
    return cublas_check(cublas, f->set_math_mode(cublas->handle, PEN_CUBLAS_MATH), NULL);
}

pen_status pen_cublas_open(const pen_cuda_memory *memory, const pen_cuda_gpu *gpu,
                           pen_cuda_address workspace, pen_cublas *cublas) {
    *cublas = (pen_cublas){.memory = memory, .workspace = workspace};
    pen_status status = pen_cublas_load(gpu, &cublas->functions, &cublas->version);
    if (status == PEN_OK) status = cublas_begin(cublas);
    if (status != PEN_OK) pen_cublas_close(cublas);
    return status;
}

// What it says is not heard, as what the driver says.
void pen_cublas_close(pen_cublas *cublas) {
    if (cublas->handle != NULL) (void)cublas->functions->destroy(cublas->handle);
    *cublas = (pen_cublas){0};
}

// ---- products

// A sum of no terms has no leading dimensions that it would take. With an alpha of 0 it does not
// read the operands, so that what is not a number in them would be lost.
bool pen_cublas_takes(const pen_cublas *cublas, const struct cuda_product_args *args) {
    return cublas->handle != NULL && args->k > 0 && args->alpha != 0.0f && args->m <= INT32_MAX &&
           args->n <= INT32_MAX && args->k <= INT32_MAX;
}

static unsigned cublas_compute_of(uint32_t precision) {
    static const unsigned computes[] = {
        [PEN_PRECISION_FLOAT32] = PEN_CUBLAS_COMPUTE,
        [PEN_PRECISION_TF32] = PEN_CUBLAS_COMPUTE_TF32,
        [PEN_PRECISION_BFLOAT16] = PEN_CUBLAS_COMPUTE_BFLOAT16,
        [PEN_PRECISION_FLOAT16] = PEN_CUBLAS_COMPUTE_FLOAT16,
    };
    return computes[precision];
}

// It takes matrices by columns. Read so, a matrix of ours is its transpose: y' = op(b)' op(a)',
// and what is stored as n x k or k x m is transposed in both ways of reading.
pen_status pen_cublas_multiply(const pen_cublas *cublas, const struct cuda_product_args *args,
                               uint32_t count) {
    const pen_cublas_functions *f = cublas->functions;
    const int m = (int)args->m, n = (int)args->n, k = (int)args->k;
    const unsigned op_b = args->trans_b ? PEN_CUBLAS_TRANSPOSED : PEN_CUBLAS_AS_IT_IS;
    const unsigned op_a = args->trans_a ? PEN_CUBLAS_TRANSPOSED : PEN_CUBLAS_AS_IT_IS;
    const unsigned compute = cublas_compute_of(args->precision), type = PEN_CUBLAS_FLOAT32;
    const int ldb = args->trans_b ? k : n, lda = args->trans_a ? m : k;
    const void *const a = cublas_place(args->a), *const b = cublas_place(args->b);
    void *const y = cublas_place(args->y);
    const float alpha = args->alpha, beta = args->adds ? 1.0f : 0.0f;
    const pen_cublas_status status =
        count == 1 ? f->gemm(cublas->handle, op_b, op_a, n, m, k, &alpha, b, type, ldb, a, type,
                             lda, &beta, y, type, n, compute, PEN_CUBLAS_ALGORITHM)
                   : f->gemm_batched(cublas->handle, op_b, op_a, n, m, k, &alpha, b, type, ldb,
                                     (long long)args->stride_b, a, type, lda,
                                     (long long)args->stride_a, &beta, y, type, n, (long long)m * n,
                                     (int)count, compute, PEN_CUBLAS_ALGORITHM);
    return cublas_check(cublas, status, "while a product was enqueued");
}
