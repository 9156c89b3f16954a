// Arguments of the kernels that read and write where several indices say, as those in cuda_args.h.
// This header is a part of that contract.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_INDEX_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_INDEX_ARGS_H

#include "device/cuda/kernels/cuda_place.h"

// Rows of `inner` elements of data, [batches, dims[0], ... dims[depth - 1], inner]. Tuple t of the
// indices, [tuples, depth], is of batch t / batch_tuples. x: the data, of which y are rows that are
// picked; or rows of updates, [tuples, inner], that replace those of y, or are joined with them, as
// cuda_elements_args' are: `parts` threads share a column of them, each has the rows r with the
// same r % parts. `error` is raised to tuples * depth - k where index k is outside.
struct cuda_nd_args {
    uint32_t adds, bytes, indices_are_wide, put, type, depth;
    uint64_t tuples, batch_tuples, inner, parts;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(const void) indices;
    PEN_CUDA_PLACE(void) y;
    PEN_CUDA_PLACE(unsigned int) error;
    int64_t dims[PEN_CUDA_RANK];
};

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_INDEX_ARGS_H
