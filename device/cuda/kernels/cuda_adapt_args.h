// Arguments of the kernels of optimizers but SGD and Adam, as those in cuda_args.h. This header is
// a part of that contract.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_ADAPT_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_ADAPT_ARGS_H

#include "device/cuda/kernels/cuda_place.h"

// An update of count elements. `states` are those that there are, in the order of the operator.
// `extra`: RMSprop's momentum, Adagrad's decay of the rate, 0.96^momentum_decay of NAdam, the power
// of the step of Adafactor. `beta2` is RMSprop's alpha and Adadelta's rho, too. Scalars are as
// SGD's.
//
// LAMB and Adafactor look at a parameter as a whole: `sums` has its squared norm and that of its
// directions of each of `blocks` blocks. Adafactor's parameter of two dimensions or more is
// `batches` matrices [rows, columns]; `means` has that of the rows' variances of each. Without
// states[2] it is factored.
enum {
    PEN_CUDA_RMSPROP,
    PEN_CUDA_ADAGRAD,
    PEN_CUDA_ADADELTA,
    PEN_CUDA_ADAMAX,
    PEN_CUDA_NADAM,
    PEN_CUDA_RADAM,
    PEN_CUDA_LION,
    PEN_CUDA_LAMB,
    PEN_CUDA_ADAFACTOR,
};
struct cuda_adapt_args {
    uint32_t adds, wide, what, decoupled; // what: one of the above
    uint64_t count, blocks, batches, rows, columns;
    PEN_CUDA_PLACE(const float) p;
    PEN_CUDA_PLACE(const float) gradient;
    PEN_CUDA_PLACE(const float) states[3];
    PEN_CUDA_PLACE(const void) rate;
    PEN_CUDA_PLACE(const void) step;         // NULL: it has none
    PEN_CUDA_PLACE(const void) scale;        // NULL: 1
    PEN_CUDA_PLACE(const unsigned int) flag; // nothing is applied where it is raised
    PEN_CUDA_PLACE(float) p_new;
    PEN_CUDA_PLACE(float) states_new[3];
    PEN_CUDA_PLACE(double) sums;  // [2][blocks]
    PEN_CUDA_PLACE(double) means; // [batches]
    double rate_scale, beta1, beta2, decay, extra, epsilon2, threshold;
    float epsilon, most; // most: of a gradient's magnitude; 0: any
};

// y: the moving average `old` of a parameter with its new value p; a copy of it until step `from`.
// Where `flag` is raised, or the scale (1 where there is none) is below 0, it stays. `wide`: the
// scale is a float64.
struct cuda_average_args {
    uint32_t adds, step_is_wide, wide;
    uint64_t count;
    PEN_CUDA_PLACE(const float) p;
    PEN_CUDA_PLACE(const float) old;
    PEN_CUDA_PLACE(const void) step;
    PEN_CUDA_PLACE(const void) scale;
    PEN_CUDA_PLACE(const unsigned int) flag;
    PEN_CUDA_PLACE(float) y;
    double decay, from;
};

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_ADAPT_ARGS_H
