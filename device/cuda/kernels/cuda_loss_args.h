// Arguments of the kernels of losses, as those in cuda_args.h. This header is
// a part of that contract.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_LOSS_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_LOSS_ARGS_H

#include "device/cuda/kernels/cuda_place.h"

// Losses over classes. Scores of target t are at t / stride * classes * stride + t % stride,
// `stride` apart; `are_logs`: they are logarithms of probabilities. `error` is raised to count - t
// where the label of t is no class, so that the first such target is left. Labels that are
// `ignored`, if `has_ignored`, do not count. What is NULL is left out.
// Of accuracy `losses` are 1 where the label is among the `top` largest scores, else 0, and `right`
// counts them.
struct cuda_loss_args {
    uint32_t adds, classes, labels_are_wide, is_each, has_ignored, are_logs, top;
    uint64_t count, stride;
    int64_t ignored;
    PEN_CUDA_PLACE(const float) scores;
    PEN_CUDA_PLACE(const void) labels;
    PEN_CUDA_PLACE(const float) weights; // [classes]
    PEN_CUDA_PLACE(double) total;        // of the weights of all targets, by which a mean divides
    PEN_CUDA_PLACE(float) losses;        // [count]
    PEN_CUDA_PLACE(float) logarithms;    // as the scores
    PEN_CUDA_PLACE(const float) dy;      // a number, or [count] where is_each
    PEN_CUDA_PLACE(float) gradient;      // as the scores
    PEN_CUDA_PLACE(unsigned int) error;
    PEN_CUDA_PLACE(int64_t) right;
    float factor;    // of the gradient
    float smoothing; // of labels: what all classes share
};

// The mean of a loss of pairs x[count] and target[count]: `sums` has the sum of each of `blocks`
// pieces. Backward y is the gradient of x. `beta` is smooth_l1's.
enum {
    PEN_CUDA_SQUARE,
    PEN_CUDA_L1,
    PEN_CUDA_SMOOTH_L1,
    PEN_CUDA_BINARY,
    PEN_CUDA_BINARY_LOGITS,
    PEN_CUDA_DIVERGENCE,
};
#define PEN_CUDA_PAIR_PIECE 4096
struct cuda_pair_loss_args {
    uint32_t adds, what; // one of the above
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) target;
    PEN_CUDA_PLACE(const float) dy; // a number
    PEN_CUDA_PLACE(float) sums;
    PEN_CUDA_PLACE(float) y;
    float beta, factor; // factor: of the gradient
};

// y = factor * sum of x[count], by one block; divided by `divisor`, if it is not NULL.
struct cuda_total_args {
    uint32_t adds;
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const double) divisor;
    PEN_CUDA_PLACE(float) y;
    float factor;
};

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_LOSS_ARGS_H
