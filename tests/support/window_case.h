// Random convolutions and pools, and the cases of their gradients.
#ifndef PEN_TESTS_SUPPORT_WINDOW_CASE_H
#define PEN_TESTS_SUPPORT_WINDOW_CASE_H

#include "graph/ops/product/convolution_geometry.h"
#include "tests/support/op_check.h"

// A random convolution: the case of the forward node, and what the others are made of.
typedef struct conv_trial {
    op_case forward;
    pen_conv_geometry geometry;
    pen_tensor_type y;
    pen_window_attributes window;
    int64_t kernel[3], strides[3], dilations[3], pads[6];
} conv_trial;

// Of "conv" or "conv_transpose": one to three dimensions, groups, depthwise ones, strides,
// dilations, pads. Windows of a transposed one may not fit, which op_build says. Cases point into
// the trial, as into that of a pool.
void conv_random(conv_trial *trial, const char *op, uint64_t seed);
// A convolution, with its geometry and the type of y.
void conv_random_backward(conv_trial *trial, uint64_t seed);
// Of "conv_backward_input" or "conv_backward_weight", after the above.
op_case conv_backward_case(conv_trial *trial, const char *op);

// The next of these four, by the seed in turn; false: windows do not fit.
bool conv_random_any(conv_trial *trial, uint64_t seed);
// Nine convolutions and gradients of more rows and columns than a tile of a kernel has, more terms
// than a piece, strides whose classes differ in size and some of which have no tap, and a weight's
// gradient in pieces. Those of seeds from 6 on have pads that differ.
void conv_of_many_tiles(conv_trial *trial, uint64_t seed);

typedef struct pool_trial {
    op_case forward;
    int64_t kernel[3], strides[3], dilations[3], pads[6];
    pen_window_attributes window;
} pool_trial;

// Of "max_pool" or "average_pool", likewise.
void pool_random(pool_trial *trial, const char *op, uint64_t seed);
// The gradients of a random pool. `out_built` is its forward node, which the caller frees when done
// with the case; every other seed has many equal elements.
op_case pool_max_backward_case(pool_trial *trial, uint64_t seed, op_built *out_built);
op_case pool_average_backward_case(pool_trial *trial, op_built *out_built);

#endif // PEN_TESTS_SUPPORT_WINDOW_CASE_H
