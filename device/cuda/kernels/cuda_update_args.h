// Arguments of the kernels of updates, norms and looks, which are kernels of many, as those in
// cuda_args.h. This header is a part of that contract.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_UPDATE_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_UPDATE_ARGS_H

#include "device/cuda/kernels/cuda_place.h"

// Tensors that one launch goes over: a table of `count` arguments, as the kernel of one tensor
// takes them. Argument t has blocks first_blocks[t] up to first_blocks[t + 1].
struct cuda_many_args {
    uint32_t adds, count;
    PEN_CUDA_PLACE(const uint32_t) first_blocks; // [count + 1]
    PEN_CUDA_PLACE(const void) table;
};

// SGD. Scalars are float64 where their bit in `wide` is set; `scale` NULL: 1; v NULL: no velocity;
// v_new NULL: it is not kept. Where `flag` is raised, nothing is applied.
enum { PEN_CUDA_WIDE_RATE = 1, PEN_CUDA_WIDE_SCALE = 2, PEN_CUDA_WIDE_STEP = 4 };
struct cuda_sgd_args {
    uint32_t adds, wide, nesterov;
    uint64_t count;
    PEN_CUDA_PLACE(const float) p;
    PEN_CUDA_PLACE(const float) gradient;
    PEN_CUDA_PLACE(const float) v;
    PEN_CUDA_PLACE(const void) rate;
    PEN_CUDA_PLACE(const void) scale;
    PEN_CUDA_PLACE(const unsigned int) flag;
    PEN_CUDA_PLACE(float) p_new;
    PEN_CUDA_PLACE(float) v_new;
    double rate_scale;
    float momentum, decay, most; // most: of a gradient's magnitude; 0: any
};

struct cuda_adam_args {
    uint32_t adds, wide, decoupled;
    uint64_t count;
    PEN_CUDA_PLACE(const float) p;
    PEN_CUDA_PLACE(const float) gradient;
    PEN_CUDA_PLACE(const float) m;
    PEN_CUDA_PLACE(const float) v;
    PEN_CUDA_PLACE(const void) rate;
    PEN_CUDA_PLACE(const void) step;
    PEN_CUDA_PLACE(const void) scale; // NULL: 1
    PEN_CUDA_PLACE(const unsigned int) flag;
    PEN_CUDA_PLACE(float) p_new;
    PEN_CUDA_PLACE(float) m_new;
    PEN_CUDA_PLACE(float) v_new;
    double rate_scale, beta1, beta2, decay;
    float epsilon, most; // most: as SGD's
};

// y = sum of the squares of x[count], a float64 where `wide`; `sums` has one for each block.
#define PEN_CUDA_NORM_BLOCK 4096
struct cuda_norm_args {
    uint32_t adds, wide;
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(double) sums;
    PEN_CUDA_PLACE(void) y;
};

// Raises `flag` to `number` where some of x[count], float64 where `is_wide`, is not finite.
struct cuda_look_args {
    uint32_t adds, is_wide, number;
    uint64_t count;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(unsigned int) flag;
};

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_UPDATE_ARGS_H
