// cuDNN, NVIDIA's library of convolutions, as cublas.h is that of matrix products. Used are the
// functions that name an algorithm: one that gives the same bits in each run, and needs no more
// workspace than there is. Where there is none, own kernels make the convolution.
//
// Threads: functions of an open one as in device/device.h, the others any.
#ifndef PEN_DEVICE_CUDA_CUDNN_H
#define PEN_DEVICE_CUDA_CUDNN_H

#include <stdbool.h>

#include "device/cuda/cuda_driver.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/kernels/cuda_args.h"

typedef unsigned pen_cudnn_status; // cudnnStatus_t: 0 is success
typedef struct cudnnContext pen_cudnn_handle;
typedef struct cudnnTensorStruct pen_cudnn_tensor;
typedef struct cudnnFilterStruct pen_cudnn_filter;
typedef struct cudnnConvolutionStruct pen_cudnn_conv;

// cudnnConvolutionFwdAlgoPerf_t, and those of both gradients.
typedef struct pen_cudnn_algorithm {
    unsigned algorithm;
    pen_cudnn_status status;
    float seconds;
    size_t memory;
    unsigned determinism;
    unsigned math;
    int reserved[3];
} pen_cudnn_algorithm;

// Values of its enumerations that are used here.
#define PEN_CUDNN_FLOAT32 0u           // CUDNN_DATA_FLOAT
#define PEN_CUDNN_PLAIN 0u             // CUDNN_TENSOR_NCHW
#define PEN_CUDNN_CROSS_CORRELATION 1u // CUDNN_CROSS_CORRELATION
#define PEN_CUDNN_DETERMINISTIC 1u     // CUDNN_DETERMINISTIC
#define PEN_CUDNN_MATH_DEFAULT 0u      // CUDNN_DEFAULT_MATH: tf32 where there are units for it
#define PEN_CUDNN_MATH_TF32 1u         // CUDNN_TENSOR_OP_MATH
#define PEN_CUDNN_MATH_FLOAT16 2u      // CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION
#define PEN_CUDNN_MATH_FLOAT32 3u      // CUDNN_FMA_MATH

// CUDNN_STATUS_NOT_SUPPORTED: from version 9 on the first of a thousand that say why, before it
// one.
#define PEN_CUDNN_NOT_SUPPORTED 3000u
#define PEN_CUDNN_NOT_SUPPORTED_8 9u

// CUDNN_STATUS_ALLOC_FAILED before version 9, and
// CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED and _DEVICE_ALLOCATION_FAILED from then on.
#define PEN_CUDNN_ALLOC_FAILED_8 2u
#define PEN_CUDNN_ALLOC_FAILED_HOST 4003u
#define PEN_CUDNN_ALLOC_FAILED_DEVICE 4004u

// What functions return, by our name, theirs, and their parameters. The three of each kind differ
// in the order of descriptors alone: x, w and y; w, dy and dx; x, dy and dw.
// clang-format off
#define PEN_CUDNN_FUNCTIONS(X)                                                                     \
    X(const char *, error_name, cudnnGetErrorString, (pen_cudnn_status status))                    \
    X(pen_cudnn_status, create, cudnnCreate, (pen_cudnn_handle **handle))                          \
    X(pen_cudnn_status, destroy, cudnnDestroy, (pen_cudnn_handle *handle))                         \
    X(pen_cudnn_status, property, cudnnGetProperty, (unsigned property, int *value))               \
    X(size_t, runtime, cudnnGetCudartVersion, (void))                                              \
    X(pen_cudnn_status, set_stream, cudnnSetStream,                                                \
      (pen_cudnn_handle *handle, pen_cuda_stream *stream))                                         \
    X(pen_cudnn_status, tensor_create, cudnnCreateTensorDescriptor, (pen_cudnn_tensor **tensor))   \
    X(pen_cudnn_status, tensor_set, cudnnSetTensorNdDescriptor,                                    \
      (pen_cudnn_tensor *tensor, unsigned type, int rank, const int *dims, const int *strides))    \
    X(pen_cudnn_status, tensor_destroy, cudnnDestroyTensorDescriptor, (pen_cudnn_tensor *tensor))  \
    X(pen_cudnn_status, filter_create, cudnnCreateFilterDescriptor, (pen_cudnn_filter **filter))   \
    X(pen_cudnn_status, filter_set, cudnnSetFilterNdDescriptor,                                    \
      (pen_cudnn_filter *filter, unsigned type, unsigned format, int rank, const int *dims))       \
    X(pen_cudnn_status, filter_destroy, cudnnDestroyFilterDescriptor, (pen_cudnn_filter *filter))  \
    X(pen_cudnn_status, conv_create, cudnnCreateConvolutionDescriptor, (pen_cudnn_conv **conv))    \
    X(pen_cudnn_status, conv_set, cudnnSetConvolutionNdDescriptor,                                 \
      (pen_cudnn_conv *conv, int rank, const int *pads, const int *strides, const int *dilations,  \
       unsigned mode, unsigned type))                                                              \
    X(pen_cudnn_status, conv_set_groups, cudnnSetConvolutionGroupCount,                            \
      (pen_cudnn_conv *conv, int groups))                                                          \
    X(pen_cudnn_status, conv_set_math, cudnnSetConvolutionMathType,                                \
      (pen_cudnn_conv *conv, unsigned math))                                                       \
    X(pen_cudnn_status, conv_destroy, cudnnDestroyConvolutionDescriptor, (pen_cudnn_conv *conv))   \
    X(pen_cudnn_status, find, cudnnGetConvolutionForwardAlgorithm_v7,                              \
      (pen_cudnn_handle *handle, pen_cudnn_tensor *x, pen_cudnn_filter *w, pen_cudnn_conv *conv,   \
       pen_cudnn_tensor *y, int limit, int *count, pen_cudnn_algorithm *found))                    \
    X(pen_cudnn_status, find_input, cudnnGetConvolutionBackwardDataAlgorithm_v7,                   \
      (pen_cudnn_handle *handle, pen_cudnn_filter *w, pen_cudnn_tensor *dy, pen_cudnn_conv *conv,  \
       pen_cudnn_tensor *dx, int limit, int *count, pen_cudnn_algorithm *found))                   \
    X(pen_cudnn_status, find_weight, cudnnGetConvolutionBackwardFilterAlgorithm_v7,                \
      (pen_cudnn_handle *handle, pen_cudnn_tensor *x, pen_cudnn_tensor *dy, pen_cudnn_conv *conv,  \
       pen_cudnn_filter *dw, int limit, int *count, pen_cudnn_algorithm *found))                   \
    X(pen_cudnn_status, measure, cudnnGetConvolutionForwardWorkspaceSize,                          \
      (pen_cudnn_handle *handle, pen_cudnn_tensor *x, pen_cudnn_filter *w, pen_cudnn_conv *conv,   \
       pen_cudnn_tensor *y, unsigned algorithm, size_t *bytes))                                    \
    X(pen_cudnn_status, measure_input, cudnnGetConvolutionBackwardDataWorkspaceSize,               \
      (pen_cudnn_handle *handle, pen_cudnn_filter *w, pen_cudnn_tensor *dy, pen_cudnn_conv *conv,  \
       pen_cudnn_tensor *dx, unsigned algorithm, size_t *bytes))                                   \
    X(pen_cudnn_status, measure_weight, cudnnGetConvolutionBackwardFilterWorkspaceSize,            \
      (pen_cudnn_handle *handle, pen_cudnn_tensor *x, pen_cudnn_tensor *dy, pen_cudnn_conv *conv,  \
       pen_cudnn_filter *dw, unsigned algorithm, size_t *bytes))                                   \
    X(pen_cudnn_status, convolve, cudnnConvolutionForward,                                         \
      (pen_cudnn_handle *handle, const void *alpha, pen_cudnn_tensor *x, const void *x_at,         \
       pen_cudnn_filter *w, const void *w_at, pen_cudnn_conv *conv, unsigned algorithm,            \
       void *workspace, size_t bytes, const void *beta, pen_cudnn_tensor *y, void *y_at))          \
    X(pen_cudnn_status, convolve_input, cudnnConvolutionBackwardData,                              \
      (pen_cudnn_handle *handle, const void *alpha, pen_cudnn_filter *w, const void *w_at,         \
       pen_cudnn_tensor *dy, const void *dy_at, pen_cudnn_conv *conv, unsigned algorithm,          \
       void *workspace, size_t bytes, const void *beta, pen_cudnn_tensor *dx, void *dx_at))        \
    X(pen_cudnn_status, convolve_weight, cudnnConvolutionBackwardFilter,                           \
      (pen_cudnn_handle *handle, const void *alpha, pen_cudnn_tensor *x, const void *x_at,         \
       pen_cudnn_tensor *dy, const void *dy_at, pen_cudnn_conv *conv, unsigned algorithm,          \
       void *workspace, size_t bytes, const void *beta, pen_cudnn_filter *dw, void *dw_at))
// clang-format on

#define PEN_CUDNN_MEMBER(returned, name, symbol, parameters) returned(*name) parameters;
typedef struct pen_cudnn_functions {
    PEN_CUDNN_FUNCTIONS(PEN_CUDNN_MEMBER)
} pen_cudnn_functions;

// Loads it, once in a process; `out_numbers` becomes its version, 9, 5, 1 for 9.5.1. The name of
// the library is one for all versions of CUDA: for which it is made, it says itself.
//   UNSUPPORTED  there is none, it lacks a function, it is made for a later major version of CUDA
//                than the driver's, or it has no kernels for the GPU (pen_cuda_gpu_is_old): those
//                for CUDA 13, and from 9.11 on those for CUDA 12
PEN_NODISCARD pen_status pen_cudnn_load(const pen_cuda_gpu *gpu,
                                        const pen_cudnn_functions **out_functions,
                                        int out_numbers[3]);

typedef struct pen_cudnn_choice pen_cudnn_choice;

// Where it works: borrowed, while it is open.
typedef struct pen_cudnn_room {
    pen_cuda_address workspace; // of work on the memory's stream, one after the other
    size_t workspace_bytes;
    pen_arena *arena; // of what is remembered of shapes
} pen_cudnn_room;

typedef struct pen_cudnn {
    const pen_cudnn_functions *functions;
    pen_cudnn_handle *handle; // NULL: it is not used
    int numbers[3];           // its version
    const pen_cuda_memory *memory;
    pen_cuda_address workspace;
    size_t workspace_bytes;
    pen_arena *arena;
    const pen_cudnn_choice *choices; // of each shape that was prepared
    pen_cudnn_tensor *x, *y;         // descriptors, set anew for each convolution
    pen_cudnn_filter *w;
    pen_cudnn_conv *conv;
} pen_cudnn;

// Opens it for the memory's stream of work. After an error it is closed again, and `handle` is
// NULL.
//   UNSUPPORTED  it is not found, or not for this machine
//   OUT_OF_MEMORY, INTERNAL  it does not begin; names the library's status
PEN_NODISCARD pen_status pen_cudnn_open(const pen_cuda_memory *memory, const pen_cuda_gpu *gpu,
                                        pen_cudnn_room room, pen_cudnn *cudnn);
void pen_cudnn_close(pen_cudnn *cudnn);

// Whether its functions can express a convolution, or a gradient of one, that is not in pieces:
// there are as many pads behind as before. So `padding: same` with a stride of 2 is not, where one
// pad is behind alone. Where operands are is not read.
bool pen_cudnn_is_expressible(const struct cuda_conv_args *args);

// Chooses the algorithm for a convolution that is going to be launched, once for each shape, and
// remembers it. What the library says meanwhile is told by pen_cudnn_convolve. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cudnn_prepare(pen_cudnn *cudnn, const struct cuda_conv_args *args);
// Enqueues a convolution, or a gradient of one, without its bias, which the caller adds. `args` are
// those of the kernel `conv`. *out_is_done is false, and nothing is enqueued, where it is one that
// the library does not express, does not support or has no algorithm for.
//   OUT_OF_MEMORY, INTERNAL  names the library's status
PEN_NODISCARD pen_status pen_cudnn_convolve(const pen_cudnn *cudnn,
                                            const struct cuda_conv_args *args, bool *out_is_done);

#endif // PEN_DEVICE_CUDA_CUDNN_H
