// What kernels of the cuda device are called with: a struct for each. Read by the host's code,
// which knows places in the device's memory as numbers, and by the kernels, to whom they are
// pointers.
//
// The first member of each says whether results are added to what the output holds; it is set when
// a kernel is enqueued. Counts of elements are 64 bits wide, counts of one dimension 32.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_ARGS_H

#include "device/cuda/kernels/cuda_adapt_args.h"
#include "device/cuda/kernels/cuda_element_args.h"
#include "device/cuda/kernels/cuda_index_args.h"
#include "device/cuda/kernels/cuda_loss_args.h"
#include "device/cuda/kernels/cuda_move_args.h"
#include "device/cuda/kernels/cuda_place.h"
#include "device/cuda/kernels/cuda_sequence_args.h"
#include "device/cuda/kernels/cuda_update_args.h"
#include "device/cuda/kernels/cuda_window_args.h"

// Rows and columns of the tile of a product that one block makes.
#define PEN_CUDA_TILE 64

// y = alpha op(a) op(b) + beta c, for each product of a batch: m x k by k x n, row-major. Stored, a
// is k x m where trans_a, b is n x k where trans_b. c is at row * c_row + column * c_column; NULL:
// left out. `precision`, a pen_precision, is that of operands of products, here and below.
struct cuda_product_args {
    uint32_t adds, precision, m, n, k, trans_a, trans_b;
    uint64_t stride_a, stride_b, c_row, c_column;
    PEN_CUDA_PLACE(const float) a;
    PEN_CUDA_PLACE(const float) b;
    PEN_CUDA_PLACE(const float) c;
    PEN_CUDA_PLACE(float) y;
    float alpha, beta;
};

// y[outer][inner] = sum of x[outer][reduced][inner], divided by `divisor`, or what else is reduced
// to: an extremum, the least where `is_least`. Backward y = dy times `factor`, repeated; x and the
// result, `found`, say who gets dy of an extremum, and what the slope is of others.
enum {
    PEN_CUDA_SUM,
    PEN_CUDA_SUM_SIZES,   // of magnitudes
    PEN_CUDA_SUM_SQUARES, // of squares
    PEN_CUDA_SUM_ROOT,    // the root of that
    PEN_CUDA_SUM_LOG,     // the logarithm of the sum
    PEN_CUDA_SUM_LOG_EXP, // the logarithm of the sum of exponentials
};
struct cuda_sum_args {
    uint32_t adds, is_least, what; // what: one of the above
    uint64_t outer, reduced, inner;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(const float) found;
    PEN_CUDA_PLACE(float) y;
    float divisor, factor;
};

// The same of integers of `type`, as cuda_cast_args', with sums and products that wrap.
enum { PEN_CUDA_WHOLE_SUM, PEN_CUDA_WHOLE_MAX, PEN_CUDA_WHOLE_MIN, PEN_CUDA_WHOLE_PRODUCT };
struct cuda_whole_args {
    uint32_t adds, what, type; // what: one of the above
    uint64_t outer, reduced, inner;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(void) y;
};

// y[i] = a function of x[i]; backward: of dy[i], too, and x is what the derivative is of.
enum {
    PEN_CUDA_NEG,
    PEN_CUDA_RELU,
    PEN_CUDA_ABS,
    PEN_CUDA_RECIPROCAL,
    PEN_CUDA_SQRT,
    PEN_CUDA_EXP,
    PEN_CUDA_ERF,
    PEN_CUDA_TANH,
    PEN_CUDA_SIGMOID,
    PEN_CUDA_GELU,
    PEN_CUDA_GELU_TANH,
    PEN_CUDA_SWISH,
    PEN_CUDA_LEAKY_RELU,
    PEN_CUDA_HARD_SIGMOID,
    PEN_CUDA_HARD_SWISH,
    PEN_CUDA_LOG,
    PEN_CUDA_SIN,
    PEN_CUDA_COS,
    PEN_CUDA_SIGN,
    PEN_CUDA_FLOOR,
    PEN_CUDA_CEIL,
    PEN_CUDA_ROUND,
    PEN_CUDA_ELU,
    PEN_CUDA_CELU,
    PEN_CUDA_SELU,
    PEN_CUDA_SOFTPLUS,
    PEN_CUDA_MISH,
    PEN_CUDA_LOG_SIGMOID,
    PEN_CUDA_TANH_SHRINK,
    PEN_CUDA_SOFTSIGN,
    PEN_CUDA_THRESHOLDED_RELU,
    PEN_CUDA_SHRINK,
    // those of angles, and hyperbolic ones
    PEN_CUDA_TAN,
    PEN_CUDA_ASIN,
    PEN_CUDA_ACOS,
    PEN_CUDA_ATAN,
    PEN_CUDA_SINH,
    PEN_CUDA_COSH,
    PEN_CUDA_ASINH,
    PEN_CUDA_ACOSH,
    PEN_CUDA_ATANH,
};
struct cuda_function_args {
    uint32_t adds, what; // one of the above
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(float) y;
    float alpha, beta; // the operator's attributes, in its order
};

// y = x, or zeros where x is NULL.
struct cuda_fill_args {
    uint32_t adds;
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(float) y;
};

// Element (l / inner, k, l % inner) of a tensor of lines l and `count` elements k each, `inner`
// apart. Backward x is the result.
struct cuda_softmax_args {
    uint32_t adds, is_logarithm;
    uint64_t lines, count, inner;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(float) y;
};

// Of rows of x, [rows, columns]; what is NULL is left out. y: the result, or the gradient of x.
struct cuda_moments {
    float mean, inverse;
};
struct cuda_layer_norm_args {
    uint32_t adds, is_centred, is_plain; // is_plain: a weight for each column
    uint64_t rows, columns;
    uint64_t classes, segments, run; // of weights: graph/ops/reduction/layer_norm_geometry.h
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(const float) scale; // [classes * segments], as those below
    PEN_CUDA_PLACE(const float) bias;
    PEN_CUDA_PLACE(float) y;
    PEN_CUDA_PLACE(float) mean;    // [rows]
    PEN_CUDA_PLACE(float) inverse; // [rows]
    PEN_CUDA_PLACE(float) dscale;
    PEN_CUDA_PLACE(float) dbias;
    PEN_CUDA_PLACE(struct cuda_moments) moments; // [rows]
    float epsilon;
};

// The whole is [outer, dim, inner], the picked [outer, index_count, inner]. `error` is raised to
// index_count - k where index k is outside, so that the first such index is left.
struct cuda_gather_args {
    uint32_t adds, indices_are_wide, bytes; // bytes: of an element; backward it is a float
    uint64_t outer, dim, index_count, inner;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(const void) indices;
    PEN_CUDA_PLACE(void) y;
    PEN_CUDA_PLACE(unsigned int) error;
};

// Raises `largest` to the largest bits of a magnitude in x[count], as integers: what is infinite or
// not a number is above all that is finite.
struct cuda_magnitude_args {
    uint32_t adds;
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(unsigned int) largest;
};

// y = x held to what is not NULL of `low` and `high`; backward: dy where x, the result, is between.
struct cuda_clip_args {
    uint32_t adds;
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(const float) low;
    PEN_CUDA_PLACE(const float) high;
    PEN_CUDA_PLACE(float) y;
};

// Every kernel by its name.
// clang-format off
#define PEN_CUDA_KERNELS(X)                                                                        \
    X(loss_total) X(pair_loss) X(pair_loss_backward) X(adapt) X(factor_rows) X(factor_columns)     \
    X(factor_elements) X(factor_means) X(whole_norms) X(whole_sizes) X(whole_apply) X(average)     \
    X(parts) X(border) X(border_backward) X(triangle) X(running_sum) X(combine) X(combine_whole)   \
    X(combine_shares) X(compare) X(choose) X(layer_norm_shared_weights) X(resize)                  \
    X(resize_backward) X(spread_slope) X(stack) X(pick_elements) X(put_elements) X(product)        \
    X(pair) X(sum_columns) X(sum_rows) X(loss) X(total) X(loss_backward) X(sgd) X(magnitude)       \
    X(function) X(function_backward) X(softmax) X(softmax_backward) X(layer_norm)                  \
    X(layer_norm_moments) X(layer_norm_weights) X(layer_norm_backward) X(move) X(fill) X(gather)   \
    X(gather_backward) X(adam) X(norm_blocks) X(norm_total) X(dropout) X(dropout_backward)         \
    X(attention) X(attention_backward_rows) X(attention_backward_keys) X(attention_backward_mask)  \
    X(recurrent) X(recurrent_backward) X(recurrent_bias) X(recurrent_peepholes) X(accuracy)        \
    X(accuracy_count) X(clip_scale) X(cast) X(spread) X(multiply) X(multiply_backward) X(extremum) \
    X(extremum_backward) X(conv) X(conv_narrow) X(conv_narrow_weight) X(pool) X(pool_backward)     \
    X(plane) X(batch_moments) X(batch_totals) X(batch_norm) X(batch_backward_sums)                 \
    X(batch_backward_totals) X(batch_norm_backward) X(clip) X(clip_backward) X(sgd_many)           \
    X(adam_many) X(norm_blocks_many) X(norm_total_many) X(look) X(look_many) X(adapt_many)         \
    X(average_many) X(gather_nd) X(scatter_nd) X(choose_place) X(choose_top) X(one_hot)            \
    X(constant) X(draw) X(draw_classes) X(reduce_whole) X(lrn) X(lrn_backward)
// clang-format on

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_ARGS_H
