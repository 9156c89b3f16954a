// Convolutions, pools and batch normalization on an emulated GPU against the reference kernels.
#include <string.h>

#include "tests/support/cuda_check.h"
#include "tests/support/random_case.h"
#include "tests/support/window_case.h"

#define WINDOWS_TOLERANCE 2e-5

static void convolutions(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 56; seed++) {
        conv_trial trial;
        if (conv_random_any(&trial, seed)) cuda_check(&trial.forward, seed / 4, WINDOWS_TOLERANCE);
    }
}

static void convolutions_of_many_tiles(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 9; seed++) {
        conv_trial trial;
        conv_of_many_tiles(&trial, seed);
        cuda_check(&trial.forward, seed, 5e-5);
    }
}

// A weight's gradient of few rows: by warps, and of more terms than these take, by blocks.
static void narrow_weights(void **state) {
    (void)state;
    static const int64_t kernel[] = {2, 3}, pads[] = {0, 1, 1, 1};
    for (uint64_t seed = 0; seed < 2; seed++) {
        const int size = seed == 0 ? 12 : 65;
        op_case c = {.op = "conv_backward_weight", .input_count = 2, .attribute_count = 3};
        c.inputs[0].type = c.inputs[1].type = op_type(PEN_FLOAT32, 4, 2, 3, size, size);
        c.attributes[0] = pen_attribute_ints("kernel_shape", 2, kernel);
        c.attributes[1] = pen_attribute_ints("pads", 4, pads);
        c.attributes[2] = pen_attribute_int("group", 3);
        cuda_check(&c, seed, 5e-5);
    }
}

static void biases(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        op_case c = {.op = "conv_backward_bias", .input_count = 1};
        c.inputs[0].type = seed % 2 ? op_type(PEN_FLOAT32, 3, 5, 3, 7)
                                    : op_type(PEN_FLOAT32, 4, 3, 21, 40, 51 + (int)seed);
        cuda_check(&c, seed, WINDOWS_TOLERANCE);
    }
}

static void pools(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 32; seed++) {
        pool_trial trial;
        op_built built;
        const bool is_max = seed % 2 == 0;
        pool_random(&trial, is_max ? "max_pool" : "average_pool", seed);
        if (seed % 8 == 4) trial.forward.output_count = 2; // with indices
        cuda_check(&trial.forward, seed, 2e-6);
        trial.forward.output_count = 1;
        const op_case c = is_max ? pool_max_backward_case(&trial, seed / 2, &built)
                                 : pool_average_backward_case(&trial, &built);
        cuda_check(&c, seed, 2e-6);
        op_built_free(&built);
    }
}

static void whole_planes(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        const bool is_max = seed % 2 == 1;
        const pen_tensor_type x = seed < 4
                                      ? op_type(PEN_FLOAT32, 4, 2, 9, 7, 5)
                                      : op_type(PEN_FLOAT32, 3, 3, 2, 3000 * (int)(seed % 2) + 1);
        pen_tensor_type y = x;
        for (uint32_t d = 2; d < y.shape.rank; d++)
            y.shape.dims[d] = 1;
        op_case c = {.op = is_max ? "global_max_pool" : "global_average_pool", .input_count = 1};
        c.inputs[0].type = x;
        cuda_check(&c, seed, 2e-6);
        op_case back = {.op = "global_average_pool_backward", .input_count = 1};
        back.inputs[0].type = y;
        back.attributes[0] = pen_attribute_ints("input_shape", x.shape.rank, x.shape.dims);
        back.attribute_count = 1;
        if (!is_max) cuda_check(&back, seed, 2e-6);
    }
    // the first of equals
    static const float x[] = {1, 3, 3, 2, 0, 0, 0, 0}, y[] = {3, 0};
    op_case c = {.op = "global_max_pool_backward", .input_count = 3};
    c.inputs[0].type = op_type(PEN_FLOAT32, 3, 1, 2, 1);
    c.inputs[1] = (op_case_input){.type = op_type(PEN_FLOAT32, 3, 1, 2, 4), .data = x};
    c.inputs[2] = (op_case_input){.type = op_type(PEN_FLOAT32, 3, 1, 2, 1), .data = y};
    cuda_check(&c, 1, 0);
}

static void batch_inputs(op_case *c, uint32_t first, uint32_t last, int channels) {
    for (uint32_t i = first; i <= last; i++) {
        c->inputs[i] = (op_case_input){
            .type = op_type(PEN_FLOAT32, 1, channels), .low = i == last ? 0.1 : -2, .high = 2};
    }
}

// Channels of one piece and of several, and rows without positions.
static pen_tensor_type batch_type(uint64_t seed) {
    return seed % 4 == 0   ? op_type(PEN_FLOAT32, 4, 3, 5, 4, 7)
           : seed % 4 == 1 ? op_type(PEN_FLOAT32, 4, 3, 3, 57, 53)
           : seed % 4 == 2 ? op_type(PEN_FLOAT32, 2, 37, 6)
                           : op_type(PEN_FLOAT32, 3, 2, 4, 300);
}

static void batch_normalizations(void **state) {
    (void)state;
    static const char *const ops[] = {"batch_normalization", "batch_normalization_relu",
                                      "batch_normalization_add_relu"};
    for (uint64_t seed = 0; seed < 18; seed++) {
        const bool is_training = seed % 2 == 0;
        op_case c = {.op = ops[seed % 3], .input_count = seed % 3 == 2 ? 6 : 5};
        c.inputs[0].type = c.inputs[5].type = batch_type(seed / 3);
        if (seed % 5 == 0) c.inputs[0].low = 90, c.inputs[0].high = 93;
        batch_inputs(&c, 1, 4, (int)c.inputs[0].type.shape.dims[1]);
        c.attributes[0] = pen_attribute_int("training_mode", is_training);
        c.attributes[1] = pen_attribute_float("epsilon", 1e-3);
        c.attributes[2] = pen_attribute_float("momentum", 0.8);
        c.attributes[3] = pen_attribute_int("unbiased", seed % 4 == 0);
        c.attribute_count = 4;
        c.output_count = !is_training ? 1 : seed % 4 == 2 ? 5 : 7;
        cuda_check(&c, seed, 3e-5);
    }
}

static void batch_normalizations_backward(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        const bool is_training = seed % 2 == 0;
        const uint64_t kind = seed % 3; // plain, with relu, with a residual
        op_case c = {.op = kind == 0   ? "batch_normalization_backward"
                           : kind == 1 ? "batch_normalization_relu_backward"
                                       : "batch_normalization_add_relu_backward"};
        const uint32_t first = kind == 2 ? 3 : 2, last = kind == 0 ? 4 : 5;
        c.input_count = last + 1 + (kind == 2 && seed % 4 < 2);
        for (uint32_t i = 0; i < c.input_count; i++)
            c.inputs[i].type = batch_type(seed / 3);
        batch_inputs(&c, first, last, (int)c.inputs[0].type.shape.dims[1]);
        c.attributes[0] = pen_attribute_int("training_mode", is_training);
        c.attribute_count = 1;
        c.output_count = (seed % 5 == 4 ? 1u : is_training ? 3u : 5u) + (kind == 2);
        cuda_check(&c, seed, 3e-5);
    }
}

// Windows of odd and even sizes, of one channel and of more than there are.
static void local_response(void **state) {
    (void)state;
    static const int64_t sizes[] = {5, 4, 1, 30};
    for (uint64_t seed = 0; seed < 8; seed++) {
        op_case c = {.op = seed < 4 ? "lrn" : "lrn_backward", .attribute_count = 4};
        c.attributes[0] = pen_attribute_int("size", sizes[seed % 4]);
        c.attributes[1] = pen_attribute_float("alpha", 0.5);
        c.attributes[2] = pen_attribute_float("beta", 0.75);
        c.attributes[3] = pen_attribute_float("bias", 1.5);
        c.input_count = seed < 4 ? 1 : 2;
        c.inputs[0].type = c.inputs[1].type = op_type(PEN_FLOAT32, 4, 2, 11, 3, 5);
        c.inputs[0].low = c.inputs[1].low = -2;
        c.inputs[0].high = c.inputs[1].high = 2;
        cuda_check(&c, seed, 1e-5);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(local_response), cmocka_unit_test(convolutions),
              cmocka_unit_test(convolutions_of_many_tiles), cmocka_unit_test(narrow_weights),
              cmocka_unit_test(biases), cmocka_unit_test(pools), cmocka_unit_test(whole_planes),
              cmocka_unit_test(batch_normalizations),
              cmocka_unit_test(batch_normalizations_backward))
