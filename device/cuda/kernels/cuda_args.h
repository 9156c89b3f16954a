// What kernels of the cuda device are called with: a struct for each. Read by the host's code,
// which knows places in the device's memory as numbers, and by the kernels, to whom they are
// pointers.
//
// The first member of each says whether results are added to what the output holds; it is set when
// a kernel is enqueued. Counts of elements are 64 bits wide, counts of one dimension 32.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_ARGS_H

#ifdef PEN_CUDA_KERNEL_CODE
#define PEN_CUDA_PLACE(type) type *
#else
#include <stdint.h>
#define PEN_CUDA_PLACE(type) uint64_t
#endif

// Threads of a block of every kernel: eight warps.
#define PEN_CUDA_BLOCK 256

// Rows and columns of the tile of a product that one block makes.
#define PEN_CUDA_TILE 64

// y = alpha op(a) op(b) + beta c, for each product of a batch: m x k by k x n, row-major. Stored, a
// is k x m where trans_a, b is n x k where trans_b. c is at row * c_row + column * c_column; NULL:
// left out.
struct cuda_product_args {
    uint32_t adds, m, n, k, trans_a, trans_b;
    uint64_t stride_a, stride_b, c_row, c_column;
    PEN_CUDA_PLACE(const float) a;
    PEN_CUDA_PLACE(const float) b;
    PEN_CUDA_PLACE(const float) c;
    PEN_CUDA_PLACE(float) y;
    float alpha, beta;
};

// y[i] of x[i]; relu_backward: of dy[i], too.
struct cuda_map_args {
    uint32_t adds;
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(float) y;
};

// y[i] = a b of i, where an operand's element is at i / each % count.
enum { PEN_CUDA_ADD, PEN_CUDA_SUB, PEN_CUDA_MUL, PEN_CUDA_DIV };
struct cuda_pair_args {
    uint32_t adds, what; // one of the above
    uint64_t count, a_each, a_count, b_each, b_count;
    PEN_CUDA_PLACE(const float) a;
    PEN_CUDA_PLACE(const float) b;
    PEN_CUDA_PLACE(float) y;
};

// y[outer][inner] = sum of x[outer][reduced][inner].
struct cuda_sum_args {
    uint32_t adds;
    uint64_t outer, reduced, inner;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(float) y;
};

// Scores of target t are at t / stride * classes * stride + t % stride, `stride` apart. `error` is
// raised to count - t where the label of t is no class, so that the first such target is left.
struct cuda_loss_args {
    uint32_t adds, classes, labels_are_wide, is_each;
    uint64_t count, stride;
    PEN_CUDA_PLACE(const float) scores;
    PEN_CUDA_PLACE(const void) labels;
    PEN_CUDA_PLACE(float) losses;     // [count]
    PEN_CUDA_PLACE(float) logarithms; // as the scores; NULL: not wanted
    PEN_CUDA_PLACE(const float) dy;   // a number, or [count] where is_each
    PEN_CUDA_PLACE(float) gradient;   // as the scores
    PEN_CUDA_PLACE(unsigned int) error;
    float factor; // of the gradient
};

// y = factor * sum of x[count], by one block.
struct cuda_total_args {
    uint32_t adds;
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(float) y;
    float factor;
};

// SGD as graph/ops/training/optimizer_op.c has it. Scalars are float64 where their bit is set, rate
// bit 0, scale bit 1; `scale` NULL: 1; v NULL: no velocity; v_new NULL: it is not kept.
struct cuda_sgd_args {
    uint32_t adds, wide, nesterov;
    uint64_t count;
    PEN_CUDA_PLACE(const float) p;
    PEN_CUDA_PLACE(const float) gradient;
    PEN_CUDA_PLACE(const float) v;
    PEN_CUDA_PLACE(const void) rate;
    PEN_CUDA_PLACE(const void) scale;
    PEN_CUDA_PLACE(float) p_new;
    PEN_CUDA_PLACE(float) v_new;
    double rate_scale;
    float momentum, decay, most; // most: of a gradient's magnitude; 0: any
};

// Raises `largest` to the largest bits of a magnitude in x[count], as integers: what is infinite or
// not a number is above all that is finite.
struct cuda_magnitude_args {
    uint32_t adds;
    uint64_t count;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(unsigned int) largest;
};

// Every kernel by its name.
// clang-format off
#define PEN_CUDA_KERNELS(X)                                                                        \
    X(product) X(relu) X(relu_backward) X(pair) X(sum_columns) X(sum_rows) X(loss) X(total)        \
    X(loss_backward) X(sgd) X(magnitude)
// clang-format on

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_ARGS_H
