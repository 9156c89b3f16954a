// Arguments of the kernels of attention, recurrent layers, dropout, clipping and casts, as those in
// cuda_args.h. This header is a part of that contract.
#ifndef PEN_DEVICE_CUDA_KERNELS_CUDA_SEQUENCE_ARGS_H
#define PEN_DEVICE_CUDA_KERNELS_CUDA_SEQUENCE_ARGS_H

#include "device/cuda/kernels/cuda_place.h"

// Random numbers of a node in one run (base/random.h): in the device's memory, for it is another in
// each run, and kernels have the same arguments in all.
struct cuda_random {
    uint64_t seed, stream;
};

// y[i] = x[i] / keep where number i is `threshold` 2^-24 or more, else 0; `mask_new` (NULL: not
// wanted) says which. Backward x is dy, and `mask` says it.
struct cuda_dropout_args {
    uint32_t adds, threshold;
    uint64_t count;
    PEN_CUDA_PLACE(const struct cuda_random) random;
    PEN_CUDA_PLACE(const float) x;
    PEN_CUDA_PLACE(const unsigned char) mask;
    PEN_CUDA_PLACE(float) y;
    PEN_CUDA_PLACE(unsigned char) mask_new;
    float keep;
};

// Attention `i` of `attentions` begins in an operand at i / heads * outer + i % heads / shared *
// head; its rows lie `row` apart. The mask of attention i begins at the sum of strides times i's
// digits of `mask_dims`, the last dimension first. Probabilities are dropped as by a dropout, and
// multiplied by `kept`. `rows`: room for [attentions][queries]. There are `masks` masks behind each
// other, which have gradients where `dmask` is not NULL.
#define PEN_CUDA_ATTENTION_ROWS 32
#define PEN_CUDA_ATTENTION_DEPTH 128 // the most numbers in a row
struct cuda_attention_strides {
    uint64_t outer, head, row;
    uint32_t shared;
};
struct cuda_attention_row {
    float largest, sum, mean;
};
struct cuda_attention_args {
    uint32_t adds, precision, heads, queries, keys, depth, value_depth, is_causal, mask_is_bool;
    uint32_t threshold, mask_rank;
    uint64_t attentions, masks, mask_row, mask_column;
    PEN_CUDA_PLACE(const struct cuda_random) random;
    struct cuda_attention_strides of_q, of_k, of_v, of_y;
    PEN_CUDA_PLACE(const float) q;
    PEN_CUDA_PLACE(const float) k;
    PEN_CUDA_PLACE(const float) v;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(const void) mask; // NULL: none
    PEN_CUDA_PLACE(float) y;         // backward it is read
    PEN_CUDA_PLACE(float) dq;
    PEN_CUDA_PLACE(float) dk;
    PEN_CUDA_PLACE(float) dv;
    PEN_CUDA_PLACE(float) dmask;
    PEN_CUDA_PLACE(struct cuda_attention_row) rows;
    float scale, fill, kept;
    uint64_t mask_dims[PEN_CUDA_RANK], mask_strides[PEN_CUDA_RANK];
};

// lstm, gru and rnn (graph/ops/product/recurrent_geometry.h). Rows are those of x. `products`: x
// times the weights, [rows][directions][gates * hidden]. A block has `group` examples of one
// direction. `weights`: forward [directions][hidden][gates * hidden], backward as the operand.
// What is NULL is left out. Backward `dstates`, [directions][rows][gates * hidden], are the
// gradients by the state's half; NULL: they are those of `products`, which are made, too.
// `before`, [directions][rows][hidden]: the states before each step. Steps from an example's length
// on are left out; one that is no number of steps raises `error` to batch - the example.
// PEN_CUDA_GRU_RESET is a gru that resets its state before the product: `resets`, as `before`, are
// states that are reset, and of each direction `dstates` has two gates in [rows][2 * hidden], and
// behind them the third in [rows][hidden].
enum { PEN_CUDA_RNN_TANH, PEN_CUDA_RNN_RELU, PEN_CUDA_GRU, PEN_CUDA_GRU_RESET, PEN_CUDA_LSTM };
#define PEN_CUDA_RECURRENT_ROOM 2048 // states of a block: group * hidden
struct cuda_recurrent_args {
    uint32_t adds, precision, what, steps, batch, hidden, directions, gates, saved, group;
    uint32_t is_batch_first, lengths_are_wide;
    uint32_t reversed; // a bit for each direction
    PEN_CUDA_PLACE(float) products;
    PEN_CUDA_PLACE(const float) weights;
    PEN_CUDA_PLACE(const float) bias;
    PEN_CUDA_PLACE(const float) peepholes; // [directions][3 * hidden]
    PEN_CUDA_PLACE(const void) lengths;    // [batch]
    PEN_CUDA_PLACE(unsigned int) error;
    PEN_CUDA_PLACE(const float) first_h;
    PEN_CUDA_PLACE(const float) first_c;
    PEN_CUDA_PLACE(float) y; // backward it is read, as gates and cells
    PEN_CUDA_PLACE(float) last_h;
    PEN_CUDA_PLACE(float) last_c;
    PEN_CUDA_PLACE(float) kept_gates;
    PEN_CUDA_PLACE(float) kept_cells;
    PEN_CUDA_PLACE(const float) dy;
    PEN_CUDA_PLACE(const float) dh;
    PEN_CUDA_PLACE(const float) dc;
    PEN_CUDA_PLACE(float) dstates;
    PEN_CUDA_PLACE(float) before;
    PEN_CUDA_PLACE(float) resets;
    PEN_CUDA_PLACE(float) dbias;
    PEN_CUDA_PLACE(float) dpeepholes;
    PEN_CUDA_PLACE(float) dfirst_h;
    PEN_CUDA_PLACE(float) dfirst_c;
};

// y = min(1, limit / (square root of the sum of all norms + 1e-6)), of which a launch has `count`:
// what those before it summed is in `sum`. Norm k is a float64 where bit k of `wide` is set. -1
// where `skips` is set and the sum is not finite.
#define PEN_CUDA_NORMS 64 // bits of `wide`
struct cuda_clip_scale_args {
    uint32_t adds, count, is_first, is_last, y_is_wide, skips;
    uint64_t wide;
    PEN_CUDA_PLACE(double) sum;
    PEN_CUDA_PLACE(void) y;
    double limit;
    PEN_CUDA_PLACE(const void) norms[PEN_CUDA_NORMS];
};

// y[i] = x[i] as another type of element.
enum {
    PEN_CUDA_FLOAT32,
    PEN_CUDA_FLOAT64,
    PEN_CUDA_INT32,
    PEN_CUDA_INT64,
    PEN_CUDA_BOOL, // a byte
};
struct cuda_cast_args {
    uint32_t adds, from, to; // types are those above
    uint64_t count;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(void) y;
};

// y[i] of `type`, of random number i: uniform from `low` up to low + width; of a normal
// distribution about `low`, of the standard deviation `width`; or 1 where it is below x[i] of
// `x_type`, else 0.
enum { PEN_CUDA_UNIFORM, PEN_CUDA_NORMAL, PEN_CUDA_BERNOULLI };
struct cuda_drawn_args {
    uint32_t adds, what, type, x_type; // what: one of the above
    uint64_t count;
    PEN_CUDA_PLACE(const struct cuda_random) random;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(void) y;
    double low, width;
};

// y[row][sample] of `type`, by random number row * samples + sample: a class, by the logarithms of
// shares x[row][class] of `x_type`.
struct cuda_classes_args {
    uint32_t adds, type, x_type;
    uint64_t rows, classes, samples;
    PEN_CUDA_PLACE(const struct cuda_random) random;
    PEN_CUDA_PLACE(const void) x;
    PEN_CUDA_PLACE(void) y;
};

#endif // PEN_DEVICE_CUDA_KERNELS_CUDA_SEQUENCE_ARGS_H
