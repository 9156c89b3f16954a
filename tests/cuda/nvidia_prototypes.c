// What we say of NVIDIA's libraries is what their own headers say. Only compiled, where the headers
// are (tests/cuda/check_nvidia.sh): it compiles, or a line names what differs.
#include <cuda.h>

#include "device/cuda/cuda_driver.h"

// Pointers to functions are compared as types.
#define SAME_FUNCTION(name, symbol, parameters)                                                    \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&(symbol)),                             \
                                                __typeof__(((pen_cuda_driver *)0)->name)),         \
                   "another function: " #symbol);
PEN_CUDA_FUNCTIONS(SAME_FUNCTION)

#define SAME_NUMBER(theirs, ours) _Static_assert((theirs) == (ours), "another number: " #theirs)
SAME_NUMBER(CUDA_ERROR_OUT_OF_MEMORY, PEN_CUDA_OUT_OF_MEMORY);
SAME_NUMBER(CUDA_ERROR_NO_DEVICE, PEN_CUDA_NO_DEVICE);
SAME_NUMBER(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, PEN_CUDA_NO_PEER);
SAME_NUMBER(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, PEN_CUDA_PEER_ENABLED);
SAME_NUMBER(CUDA_ERROR_TOO_MANY_PEERS, PEN_CUDA_TOO_MANY_PEERS);
SAME_NUMBER(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, PEN_CUDA_PROCESSORS);
SAME_NUMBER(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, PEN_CUDA_MAJOR);
SAME_NUMBER(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, PEN_CUDA_MINOR);
SAME_NUMBER(CU_STREAM_NON_BLOCKING, PEN_CUDA_STREAM_NON_BLOCKING);
SAME_NUMBER(CU_EVENT_BLOCKING_SYNC, PEN_CUDA_EVENT_BLOCKING);
SAME_NUMBER(CU_EVENT_DISABLE_TIMING, PEN_CUDA_EVENT_NO_TIMING);
SAME_NUMBER(CU_MEMHOSTALLOC_PORTABLE, PEN_CUDA_HOST_PORTABLE);
SAME_NUMBER(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, PEN_CUDA_CAPTURE_THREAD_LOCAL);

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>

#include "device/cuda/cublas.h"

#undef SAME_FUNCTION
#define SAME_FUNCTION(name, symbol, parameters)                                                    \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&(symbol)),                             \
                                                __typeof__(((pen_cublas_functions *)0)->name)),    \
                   "another function: " #symbol);
PEN_CUBLAS_FUNCTIONS(SAME_FUNCTION)

SAME_NUMBER(CUBLAS_OP_N, PEN_CUBLAS_AS_IT_IS);
SAME_NUMBER(CUBLAS_OP_T, PEN_CUBLAS_TRANSPOSED);
SAME_NUMBER(CUBLAS_POINTER_MODE_HOST, PEN_CUBLAS_HOST);
SAME_NUMBER(CUBLAS_DEFAULT_MATH, PEN_CUBLAS_MATH);
SAME_NUMBER(CUBLAS_GEMM_DEFAULT, PEN_CUBLAS_ALGORITHM);
SAME_NUMBER(CUDA_R_32F, PEN_CUBLAS_FLOAT32);
SAME_NUMBER(CUBLAS_STATUS_ALLOC_FAILED, PEN_CUBLAS_ALLOC_FAILED);
SAME_NUMBER(CUBLAS_COMPUTE_32F, PEN_CUBLAS_COMPUTE);
SAME_NUMBER(CUBLAS_COMPUTE_32F_FAST_16F, PEN_CUBLAS_COMPUTE_FLOAT16);
SAME_NUMBER(CUBLAS_COMPUTE_32F_FAST_16BF, PEN_CUBLAS_COMPUTE_BFLOAT16);
SAME_NUMBER(CUBLAS_COMPUTE_32F_FAST_TF32, PEN_CUBLAS_COMPUTE_TF32);
#endif

#if __has_include(<cudnn.h>)
#include <stddef.h>

#include <cudnn.h>

#include "device/cuda/cudnn.h"

// Three functions fill a struct, theirs and ours: of these the other parameters are compared here.
#define SAME_TYPE(symbol, other)                                                                   \
    __builtin_types_compatible_p(__typeof__(&(symbol)), __typeof__(other))
#define SAME_FINDER(symbol, ours, first, second, third, theirs)                                    \
    typedef pen_cudnn_status ours(pen_cudnn_handle *, first *, second *, pen_cudnn_conv *,         \
                                  third *, int, int *, theirs *);                                  \
    _Static_assert(SAME_TYPE(symbol, (ours *)0), "another function: " #symbol);
SAME_FINDER(cudnnGetConvolutionForwardAlgorithm_v7, finder, pen_cudnn_tensor, pen_cudnn_filter,
            pen_cudnn_tensor, cudnnConvolutionFwdAlgoPerf_t)
SAME_FINDER(cudnnGetConvolutionBackwardDataAlgorithm_v7, input_finder, pen_cudnn_filter,
            pen_cudnn_tensor, pen_cudnn_tensor, cudnnConvolutionBwdDataAlgoPerf_t)
SAME_FINDER(cudnnGetConvolutionBackwardFilterAlgorithm_v7, weight_finder, pen_cudnn_tensor,
            pen_cudnn_tensor, pen_cudnn_filter, cudnnConvolutionBwdFilterAlgoPerf_t)
// and what we call is of those three, or the same function
#define IS_FINDER(symbol)                                                                          \
    (SAME_TYPE(symbol, (finder *)0) || SAME_TYPE(symbol, (input_finder *)0) ||                     \
     SAME_TYPE(symbol, (weight_finder *)0))
#undef SAME_FUNCTION
#define SAME_FUNCTION(returned, name, symbol, parameters)                                          \
    _Static_assert(SAME_TYPE(symbol, ((pen_cudnn_functions *)0)->name) || IS_FINDER(symbol),       \
                   "another function: " #symbol);
PEN_CUDNN_FUNCTIONS(SAME_FUNCTION)

#define SAME_MEMBER(theirs, member, ours)                                                          \
    SAME_NUMBER(offsetof(theirs, member), offsetof(pen_cudnn_algorithm, ours))
#define SAME_STRUCT(theirs)                                                                        \
    SAME_NUMBER(sizeof(theirs), sizeof(pen_cudnn_algorithm));                                      \
    SAME_MEMBER(theirs, algo, algorithm);                                                          \
    SAME_MEMBER(theirs, status, status);                                                           \
    SAME_MEMBER(theirs, memory, memory);                                                           \
    SAME_MEMBER(theirs, determinism, determinism);                                                 \
    SAME_MEMBER(theirs, mathType, math)
SAME_STRUCT(cudnnConvolutionFwdAlgoPerf_t);
SAME_STRUCT(cudnnConvolutionBwdDataAlgoPerf_t);
SAME_STRUCT(cudnnConvolutionBwdFilterAlgoPerf_t);

SAME_NUMBER(CUDNN_DATA_FLOAT, PEN_CUDNN_FLOAT32);
SAME_NUMBER(CUDNN_TENSOR_NCHW, PEN_CUDNN_PLAIN);
SAME_NUMBER(CUDNN_CROSS_CORRELATION, PEN_CUDNN_CROSS_CORRELATION);
SAME_NUMBER(CUDNN_DETERMINISTIC, PEN_CUDNN_DETERMINISTIC);
SAME_NUMBER(CUDNN_STATUS_NOT_SUPPORTED, PEN_CUDNN_NOT_SUPPORTED);
SAME_NUMBER(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, PEN_CUDNN_ALLOC_FAILED_HOST);
SAME_NUMBER(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, PEN_CUDNN_ALLOC_FAILED_DEVICE);
SAME_NUMBER(CUDNN_DEFAULT_MATH, PEN_CUDNN_MATH_DEFAULT);
SAME_NUMBER(CUDNN_TENSOR_OP_MATH, PEN_CUDNN_MATH_TF32);
SAME_NUMBER(CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, PEN_CUDNN_MATH_FLOAT16);
SAME_NUMBER(CUDNN_FMA_MATH, PEN_CUDNN_MATH_FLOAT32);
#endif
