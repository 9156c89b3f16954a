// Arguments of the kernels of elements of several operands, as those in cuda_args.h. This header
// is a part of that contract.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_ELEMENT_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_ELEMENT_ARGS_H

#include "device/cuda/kernels/cuda_place.h"

// y[i] = a b of i, where an operand's element is at i / each % count.
enum {
    PEN_CUDA_ADD,
    PEN_CUDA_SUB,
    PEN_CUDA_MUL,
    PEN_CUDA_DIV,
    // these and those above are the general kernel's, too
    PEN_CUDA_POW,
    PEN_CUDA_MAX,
    PEN_CUDA_MIN,
    PEN_CUDA_DIV_DIVISOR,  // of dy, y and b
    PEN_CUDA_POW_BASE,     // of dy, a and b
    PEN_CUDA_POW_EXPONENT, // of dy, a and b
    PEN_CUDA_MAX_BACKWARD, // of dy, a and b: the gradient of operand `of`
    PEN_CUDA_MIN_BACKWARD,
    PEN_CUDA_PRELU,       // of x and slope
    PEN_CUDA_PRELU_X,     // of dy, x and slope
    PEN_CUDA_PRELU_SLOPE, // of dy and x
    PEN_CUDA_SCALE,       // of x, times `factor`
    PEN_CUDA_MOD,         // integers: `of` 1 gives the sign of a, 0 that of b; floats: always of a
    // of one integer
    PEN_CUDA_SIZE,
    PEN_CUDA_SIGN_OF,
};
struct cuda_pair_args {
    uint32_t adds, what; // one of the first four
    uint64_t count, a_each, a_count, b_each, b_count;
    PEN_CUDA_PLACE(const float) a;
    PEN_CUDA_PLACE(const float) b;
    PEN_CUDA_PLACE(float) y;
};

// y[i] = what three operands, or fewer, have at i, wherever they are repeated: strides of a
// dimension that is repeated are 0. An operand that is NULL is left out, or zeros. `type` is that
// of operands, as cuda_cast_args', or of a power's exponents, whose base is a float; `bytes` is
// what is chosen. `error` is raised where an integer is divided by 0.
enum {
    PEN_CUDA_EQUAL,
    PEN_CUDA_LESS,
    PEN_CUDA_LESS_OR_EQUAL,
    PEN_CUDA_GREATER,
    PEN_CUDA_GREATER_OR_EQUAL,
    PEN_CUDA_AND,
    PEN_CUDA_OR,
    PEN_CUDA_XOR,
    PEN_CUDA_NOT,
    PEN_CUDA_ISNAN,
    PEN_CUDA_ISINF, // `of`: 1 where above 0 counts, 2 where below
};
struct cuda_broadcast_args {
    uint32_t adds, what, type, bytes, of, rank; // what: one of the above, or of the pairs
    uint64_t count;
    PEN_CUDA_PLACE(const void) x[3];
    PEN_CUDA_PLACE(void) y;
    PEN_CUDA_PLACE(unsigned int) error;
    uint64_t dims[PEN_CUDA_RANK];
    uint64_t strides[3][PEN_CUDA_RANK];
    float factor;
};

// The gradient of operand `of` of an extremum of `operands`, the least where `is_least`: dy where
// it is the extremum, shared by all that are. Strides are as above.
#define PEN_CUDA_OPERANDS 8
struct cuda_shares_args {
    uint32_t adds, is_least, of, operands, rank;
    uint64_t count;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(const float) x[PEN_CUDA_OPERANDS];
    PEN_CUDA_PLACE(float) y;
    uint64_t dims[PEN_CUDA_RANK];
    uint64_t strides[PEN_CUDA_OPERANDS][PEN_CUDA_RANK];
};

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_ELEMENT_ARGS_H
