// What the arguments of all kernels are made of: places in the device's memory, which the host's
// code knows as numbers, and the kernels as pointers. This header is the contract of the folder's
// files of arguments.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_PLACE_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_PLACE_H

#include "base/precision.h"

#ifdef PEN_CUDA_KERNEL_CODE
#define PEN_CUDA_PLACE(type) type *
#else
#include <stdint.h>
#define PEN_CUDA_PLACE(type) uint64_t
#endif

// Threads of a block of every kernel: eight warps.
#define PEN_CUDA_BLOCK 256

// How many threads share a line of `length` elements: 1, 8, a warp, or a block.
#define PEN_CUDA_TEAM(length)                                                                      \
    ((length) > 1024 ? PEN_CUDA_BLOCK + 0u : (length) > 64 ? 32u : (length) > 16 ? 8u : 1u)

// The most dimensions that an argument can have.
#define PEN_CUDA_RANK 8

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_PLACE_H
