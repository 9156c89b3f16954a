// Arguments of the kernels of convolutions, pools and batch normalization, as those in cuda_args.h.
// This header is a part of that contract.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_WINDOW_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_WINDOW_ARGS_H

#include "device/cuda/kernels/cuda_place.h"

// A convolution of `groups`, as a product of rows and columns; kernels/convolution.cu says of what.
// What is read in windows is the source, x or, for the gradient of the input, dy. The target is
// the other of them, or its gradient. `kernel`, `stride`, `dilation` and `pad` are those of the
// convolution.
enum { PEN_CUDA_CONV, PEN_CUDA_CONV_INPUT, PEN_CUDA_CONV_WEIGHT };
struct cuda_conv_args {
    uint32_t adds, precision, what;         // one of the above
    uint32_t batch, groups, rows, channels; // rows: of a group; channels: of the source in a group
    uint32_t parts;                         // of a group: classes, pieces, or 1
    uint32_t pieces, piece_terms; // of the weight's gradient: each has its sums in a y of its own
    uint32_t source[3], target[3], kernel[3], stride[3], dilation[3], pad[3];
    PEN_CUDA_PLACE(const float) left;  // the weight, or dy for its gradient
    PEN_CUDA_PLACE(const float) right; // the source
    PEN_CUDA_PLACE(const float) bias;  // [groups * rows]; NULL: none
    PEN_CUDA_PLACE(float) y;
};

// Pools of planes: a plane is a channel of a sample. y: the result, or the gradient of the input.
enum { PEN_CUDA_POOL_MAX, PEN_CUDA_POOL_AVERAGE };
struct cuda_pool_args {
    uint32_t adds, what; // one of the above
    uint32_t counts_pads;
    uint64_t planes;
    uint32_t input[3], output[3], kernel[3], stride[3], dilation[3], pad_begin[3], pad_end[3];
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) maxima; // backward: what the pool gave
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(int64_t) indices; // of the whole of x; NULL: not wanted
    PEN_CUDA_PLACE(float) y;
};

// y[plane] = the largest of a plane, or its sum / divisor.
struct cuda_plane_args {
    uint32_t adds, what;
    uint64_t planes, size;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(float) y;
    float divisor;
};

// x, or backward the gradient of x, is [outer, from.., inner], what is resized [outer, to..,
// inner]. scale and width: as pen_resize_axis has them.
enum { PEN_CUDA_RESIZE_NEAREST, PEN_CUDA_RESIZE_LINEAR, PEN_CUDA_RESIZE_CUBIC };
enum {
    PEN_CUDA_RESIZE_HALF_PIXEL,
    PEN_CUDA_RESIZE_ASYMMETRIC,
    PEN_CUDA_RESIZE_ALIGN_CORNERS,
    PEN_CUDA_RESIZE_PYTORCH, // half_pixel but for one element
    PEN_CUDA_RESIZE_HALF_PIXEL_FOR_NEAREST,
};
enum {
    PEN_CUDA_RESIZE_ROUND_DOWN, // halves
    PEN_CUDA_RESIZE_ROUND_UP,
    PEN_CUDA_RESIZE_FLOOR,
    PEN_CUDA_RESIZE_CEIL,
};
struct cuda_resize_args {
    uint32_t adds, mode, coordinate, nearest, excludes_outside; // three of the above
    uint64_t outer, inner, from[3], to[3];
    PEN_CUDA_PLACE(const float) x; // backward dy
    PEN_CUDA_PLACE(float) y;
    double scale[3], width[3], cubic_a;
};

// Batch normalization: x is [samples, channels, size], and a channel has `count` elements, in
// pieces. What is NULL is left out. Frozen statistics are `mean` and `variance`; backward of
// training `variance` is the inverse deviation.
#define PEN_CUDA_BATCH_PIECE 4096
struct cuda_batch_sums {
    float first, second; // mean and squared distances; backward: gradients of bias and scale
};
struct cuda_batch_norm_args {
    uint32_t adds, is_training, rectifies, is_unbiased;
    uint32_t channels, size, count, pieces;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) residual; // added before relu
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(const float) more_dy;   // added to dy
    PEN_CUDA_PLACE(const float) rectified; // dy counts where this is above 0
    PEN_CUDA_PLACE(const float) scale;
    PEN_CUDA_PLACE(const float) bias;
    PEN_CUDA_PLACE(const float) mean;
    PEN_CUDA_PLACE(const float) variance;
    PEN_CUDA_PLACE(float) y; // or the gradient of x
    PEN_CUDA_PLACE(float) dresidual;
    PEN_CUDA_PLACE(float) running_mean;
    PEN_CUDA_PLACE(float) running_variance;
    PEN_CUDA_PLACE(float) saved_mean;
    PEN_CUDA_PLACE(float) saved_inverse;
    PEN_CUDA_PLACE(double) batch_mean;
    PEN_CUDA_PLACE(double) batch_variance;
    PEN_CUDA_PLACE(float) dscale;
    PEN_CUDA_PLACE(float) dbias;
    PEN_CUDA_PLACE(float) dmean;
    PEN_CUDA_PLACE(float) dvariance;
    PEN_CUDA_PLACE(struct cuda_batch_sums) sums;   // [channels][pieces]
    PEN_CUDA_PLACE(struct cuda_batch_sums) totals; // [channels]; backward: divided by the count
    double momentum;
    float epsilon;
};

// Of x [batch, channels, size] y = x d^-beta, d = bias + share times the sum of the squares of the
// channel and its neighbours. Backward y is the gradient of x, of dy.
struct cuda_lrn_args {
    uint32_t adds, before, after; // before, after: neighbours of a channel
    uint64_t count, channels, size;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(float) y;
    float share, beta, bias;
};

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_WINDOW_ARGS_H
