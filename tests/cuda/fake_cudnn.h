// A libcudnn.so.9 for machines without a GPU, over the fake driver, as fake_cublas.h is of
// matrices, and stricter than the library must be.
//
// - Descriptors that do not fit each other, or operands that are not whole in one allocation, are
//   CUDNN_STATUS_BAD_PARAM.
// - Of the algorithms that it proposes, the first has other bits in each run, the second needs a
//   gigabyte, and the third is not for these tensors. Only the fourth computes; it needs 8 KiB,
//   which are written. `dnn_none=1` in FAKE_CUDA leaves that one out.
// - It runs when its stream comes to it, and is captured as a launch is.
// - Operands are rounded by the type of math, at most as far as the library may.
// - Handles and descriptors count among what nobody released.
//
// - The algorithm that computes is proposed with the descriptor's math, and does any. With
//   `dnn_math=1` in FAKE_CUDA it is proposed with that, and does no other.
//
// `dnn_fails=2` in FAKE_CUDA: convolutions have that status when they are launched, with
// `dnn_where=1` when they are described, with 2 when algorithms are asked for, with 3 when one's
// workspace is. `dnn_begins=2`: handles have it, with `begins_gpu=1` those of this GPU
// alone. With `dnn_cuda=13000` it is made for
// CUDA 13.0, else for 12.4. `count=1` tells at the end how many
// were asked for, and how many ran.
//
// Its version is 9.5.1, with `dnn_minor=11` 9.11.1. A copy whose name ends in `.so.8` is of version
// 8, for CUDA 12. From 9.11 on, and where it is made for CUDA 13, it has no kernels for GPUs of a
// compute capability below 7.5: handles are CUDNN_STATUS_NOT_INITIALIZED.
//
// With FAKE_OLD it is built without cudnnSetConvolutionGroupCount, as an old library.
#ifndef PEN_TESTS_CUDA_FAKE_CUDNN_H
#define PEN_TESTS_CUDA_FAKE_CUDNN_H

#include <stdint.h>

typedef struct fake_cudnn_counts {
    uint64_t calls;   // by the host
    uint64_t runs;    // also those of graphs
    uint64_t finds;   // questions for algorithms
    uint64_t misfits; // questions about descriptors that do not fit each other
} fake_cudnn_counts;

typedef void (*fake_cudnn_counts_fn)(fake_cudnn_counts *out_counts);

#endif // PEN_TESTS_CUDA_FAKE_CUDNN_H
