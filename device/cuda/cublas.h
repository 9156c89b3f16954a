// cuBLAS, NVIDIA's library of matrix products, which is loaded when a device that may use it is
// opened. It uses the GPU's units for tensors; our own kernels do not. Types are our own, so that
// no header of NVIDIA's is needed; they are those of cublas_api.h, with which a test compares them
// where it is.
//
// Products have the same bits in each run: the device has one stream of work, one handle, and a
// workspace of its own, so that nothing depends on what runs at once. A captured call takes no
// memory for the same reason.
//
// Threads: functions of an open one as in device/device.h, the others any.
#ifndef PEN_DEVICE_CUDA_CUBLAS_H
#define PEN_DEVICE_CUDA_CUBLAS_H

#include <stdbool.h>

#include "base/precision.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/kernels/cuda_args.h"

typedef unsigned pen_cublas_status; // cublasStatus_t: 0 is success
typedef struct cublasContext pen_cublas_handle;

// Values of its enumerations that are used here.
#define PEN_CUBLAS_AS_IT_IS 0u     // CUBLAS_OP_N
#define PEN_CUBLAS_TRANSPOSED 1u   // CUBLAS_OP_T
#define PEN_CUBLAS_HOST 0u         // CUBLAS_POINTER_MODE_HOST
#define PEN_CUBLAS_MATH 0u         // CUBLAS_DEFAULT_MATH
#define PEN_CUBLAS_ALGORITHM (-1)  // CUBLAS_GEMM_DEFAULT
#define PEN_CUBLAS_FLOAT32 0u      // CUDA_R_32F
#define PEN_CUBLAS_ALLOC_FAILED 3u // CUBLAS_STATUS_ALLOC_FAILED
// CUBLAS_COMPUTE_32F, and those by which operands may be rounded for units for tensors; sums are
// float32.
#define PEN_CUBLAS_COMPUTE 68u
#define PEN_CUBLAS_COMPUTE_FLOAT16 74u
#define PEN_CUBLAS_COMPUTE_BFLOAT16 75u
#define PEN_CUBLAS_COMPUTE_TF32 77u

// Bytes of the workspace: what NVIDIA recommends for compute capability 9.0, the most there is.
#define PEN_CUBLAS_WORKSPACE_BYTES (32u << 20)
#define PEN_CUBLAS_ALIGNMENT 256u // of the workspace

// Functions by our name, theirs, and their parameters.
// clang-format off
#define PEN_CUBLAS_FUNCTIONS(X)                                                                    \
    X(create, cublasCreate_v2, (pen_cublas_handle **handle))                                       \
    X(destroy, cublasDestroy_v2, (pen_cublas_handle *handle))                                      \
    X(property, cublasGetProperty, (unsigned property, int *value))                                \
    X(set_stream, cublasSetStream_v2, (pen_cublas_handle *handle, pen_cuda_stream *stream))        \
    X(set_workspace, cublasSetWorkspace_v2,                                                        \
      (pen_cublas_handle *handle, void *workspace, size_t bytes))                                  \
    X(set_pointer_mode, cublasSetPointerMode_v2, (pen_cublas_handle *handle, unsigned mode))       \
    X(set_math_mode, cublasSetMathMode, (pen_cublas_handle *handle, unsigned mode))                \
    X(gemm, cublasGemmEx,                                                                          \
      (pen_cublas_handle *handle, unsigned op_a, unsigned op_b, int m, int n, int k,               \
       const void *alpha, const void *a, unsigned type_a, int lda, const void *b,                  \
       unsigned type_b, int ldb, const void *beta, void *c, unsigned type_c, int ldc,              \
       unsigned compute, int algorithm))                                                           \
    X(gemm_batched, cublasGemmStridedBatchedEx,                                                    \
      (pen_cublas_handle *handle, unsigned op_a, unsigned op_b, int m, int n, int k,               \
       const void *alpha, const void *a, unsigned type_a, int lda, long long stride_a,             \
       const void *b, unsigned type_b, int ldb, long long stride_b, const void *beta, void *c,     \
       unsigned type_c, int ldc, long long stride_c, int count, unsigned compute, int algorithm))
// clang-format on

#define PEN_CUBLAS_MEMBER(name, symbol, parameters) pen_cublas_status(*name) parameters;
typedef struct pen_cublas_functions {
    PEN_CUBLAS_FUNCTIONS(PEN_CUBLAS_MEMBER)
} pen_cublas_functions;

typedef struct pen_cublas_version {
    int numbers[3]; // 12, 4, 5: 12.4.5
} pen_cublas_version;

// Loads it, once in a process: the newest that goes with the GPU and its driver. A library of a
// later major version than the driver's does not run; that of 13 has no kernels for old GPUs
// (pen_cuda_gpu_is_old).
//   UNSUPPORTED  there is none, or it lacks a function; says which files were looked for
PEN_NODISCARD pen_status pen_cublas_load(const pen_cuda_gpu *gpu,
                                         const pen_cublas_functions **out_functions,
                                         pen_cublas_version *out_version);
// Whether libcublas.so.13 is not looked for because of the GPU, though its driver runs it.
bool pen_cublas_passes_over(const pen_cuda_gpu *gpu);
// "CUBLAS_STATUS_NOT_SUPPORTED"; never NULL.
const char *pen_cublas_status_name(pen_cublas_status status);

typedef struct pen_cublas {
    const pen_cublas_functions *functions;
    pen_cublas_handle *handle; // NULL: it is not used
    pen_cublas_version version;
    const pen_cuda_memory *memory;
    pen_cuda_address workspace; // borrowed
} pen_cublas;

// Opens it for the memory's stream of work, with a workspace of PEN_CUBLAS_WORKSPACE_BYTES. After
// an error it is closed again, and `handle` is NULL.
//   UNSUPPORTED  it is not found, or not for this machine
//   OUT_OF_MEMORY, INTERNAL  it does not begin; names the library's status
PEN_NODISCARD pen_status pen_cublas_open(const pen_cuda_memory *memory, const pen_cuda_gpu *gpu,
                                         pen_cuda_address workspace, pen_cublas *cublas);
void pen_cublas_close(pen_cublas *cublas);

// Whether it does a product: all that its functions can express. `args` are those of the kernel
// `product`.
bool pen_cublas_takes(const pen_cublas *cublas, const struct cuda_product_args *args);
// Enqueues `count` products without their operand c, which the caller adds. Errors as above.
PEN_NODISCARD pen_status pen_cublas_multiply(const pen_cublas *cublas,
                                             const struct cuda_product_args *args, uint32_t count);

#endif // PEN_DEVICE_CUDA_CUBLAS_H
