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

// Of lines of `count` numbers of `type` (cuda_cast_args') that lie `inner` apart in x: in `places`
// the position of the largest, or of the least; or the k that come first, in order, of which `y`
// has the numbers. Of equals the first comes first.
struct cuda_choice_args {
    uint32_t adds, type, bytes, is_least;
    uint64_t lines, count, inner, k;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(void) y;
    PEN_CUDA_PLACE(int64_t) places; // NULL: not wanted
};

// y [outer, depth, inner] is values[1] where its position is the number indices [outer, inner] have
// there, which count from the end below 0; else values[0]. type: of indices, bytes: of values.
struct cuda_one_hot_args {
    uint32_t adds, type, bytes;
    uint64_t count, depth, inner;
    PEN_CUDA_PLACE(const void) indices;
    PEN_CUDA_PLACE(const void) values;
    PEN_CUDA_PLACE(void) y;
};

// y [count] of elements whose bits are `bits`.
struct cuda_constant_args {
    uint32_t adds, bytes;
    uint64_t count, bits;
    PEN_CUDA_PLACE(void) y;
};

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_INDEX_ARGS_H
