#include "tests/support/device_check.h"
#include "tests/support/layout_check.h"
#include "tests/support/random_case.h"
#include "tests/support/window_case.h"

#define CONVOLUTION_CASES 200
#define CONVOLUTION_TOLERANCE 2e-5

static void conv_check(const op_case *c, uint64_t seed) {
    op_check_device(c, seed, CONVOLUTION_TOLERANCE);
    op_check_layout(c, seed, CONVOLUTION_TOLERANCE, NULL);
}

static void conv_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < CONVOLUTION_CASES; seed++) {
        conv_trial trial;
        conv_random(&trial, "conv", seed);
        conv_check(&trial.forward, seed);
    }
}

static void conv_transpose_equals_reference(void **state) {
    (void)state;
    uint32_t checked = 0;
    for (uint64_t seed = 0; checked < CONVOLUTION_CASES; seed++) {
        conv_trial trial;
        conv_random(&trial, "conv_transpose", seed);
        op_built built;
        const pen_status status = op_build(&trial.forward, &built);
        op_built_free(&built);
        if (status != PEN_OK) { // pads beyond the output
            pen_status_ignore(status, "another case");
            continue;
        }
        conv_check(&trial.forward, seed);
        checked++;
    }
}

static void conv_backward_input_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < CONVOLUTION_CASES; seed++) {
        conv_trial trial;
        conv_random_backward(&trial, seed);
        const op_case c = conv_backward_case(&trial, "conv_backward_input");
        conv_check(&c, seed);
    }
}

static void conv_backward_weight_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < CONVOLUTION_CASES; seed++) {
        conv_trial trial;
        conv_random_backward(&trial, seed);
        const op_case c = conv_backward_case(&trial, "conv_backward_weight");
        conv_check(&c, seed);
    }
}

// Large enough that Winograd's algorithm is preferred where the instruction set has it.
static void large_windows_of_three_equal_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"conv", "conv_backward_input", "conv_backward_weight"};
    for (uint64_t seed = 0; seed < 6; seed++) {
        random_case random = {seed, 0};
        const int batch = (int)random_between(&random, 2, 3);
        const int size = (int)random_between(&random, 27, 29);
        const int64_t kernel[] = {3, 3}, pads[] = {1, 1, 1, 1};
        const int64_t input_shape[] = {batch, 64, size, size};
        const pen_tensor_type whole = op_type(PEN_FLOAT32, 4, batch, 64, size, size);
        op_case c = {.op = ops[seed % 3], .input_count = 2, .attribute_count = 2};
        c.inputs[0].type = c.inputs[1].type = whole;
        if (seed % 3 < 2) c.inputs[1].type = op_type(PEN_FLOAT32, 4, 64, 64, 3, 3);
        c.attributes[0] = pen_attribute_ints("kernel_shape", 2, kernel);
        c.attributes[1] = pen_attribute_ints("pads", 4, pads);
        if (seed % 3 == 1) {
            c.attributes[c.attribute_count++] = pen_attribute_ints("input_shape", 4, input_shape);
        }
        op_check_layout(&c, seed, 2e-4, NULL);
    }
}

// Of one channel, windows that cannot move sideways, with a stride all the same: oneDNN 3.7.2 by
// itself takes the second row for one that begins where the stride says.
static void windows_that_stand_still_equal_reference(void **state) {
    (void)state;
    const int64_t kernel[] = {3, 2}, strides[] = {1, 3};
    for (uint64_t seed = 0; seed < 8; seed++) {
        op_case c = {.op = "conv", .input_count = 2, .attribute_count = 2};
        c.inputs[0].type = op_type(PEN_FLOAT32, 4, 2, 1, 11, 2 + (int)seed % 3);
        c.inputs[1].type = op_type(PEN_FLOAT32, 4, 16 + (int)seed, 1, 3, 2);
        c.attributes[0] = pen_attribute_ints("kernel_shape", 2, kernel);
        c.attributes[1] = pen_attribute_ints("strides", 2, strides);
        conv_check(&c, seed);
    }
}

static void conv_backward_bias_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < CONVOLUTION_CASES; seed++) {
        random_case random = {seed, 0};
        const bool is_large = random_chance(&random, 20);
        op_case c = {.op = "conv_backward_bias", .input_count = 1};
        c.inputs[0].type = random_type(&random, 3, 5, is_large ? 70 : 20, is_large ? 90000 : 3000);
        op_check_device(&c, seed, CONVOLUTION_TOLERANCE);
        for (pen_layout layout = 1; layout <= 2; layout++) {
            const layout_wish wish = {layout, 1, 0};
            op_check_layout(&c, seed, CONVOLUTION_TOLERANCE, &wish);
        }
    }
}

// Kernels that depthwise convolutions have, over pictures on both sides of a vector and of a band.
static void depthwise_equals_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"conv_backward_input", "conv_backward_weight"};
    for (uint64_t seed = 0; seed < 80; seed++) {
        random_case random = {seed, 0};
        const int64_t widths[] = {5, 7}, channels = random_between(&random, 1, 40);
        const int64_t kernel[2] = {random_between(&random, 1, 8), widths[seed / 2 % 2]};
        const int64_t strides[2] = {random_between(&random, 1, 2), random_between(&random, 1, 2)};
        const int64_t pads[4] = {random_between(&random, 0, 3), random_between(&random, 0, 3),
                                 random_between(&random, 0, 3), random_between(&random, 0, 3)};
        const bool is_large = random_chance(&random, 10);
        const int64_t height = random_between(&random, 8, is_large ? 70 : 20);
        const int64_t width = random_between(&random, 7, is_large ? 130 : 40);
        const int64_t x[4] = {random_between(&random, 1, 3), channels, height, width};
        const int64_t down = (height + pads[0] + pads[2] - kernel[0]) / strides[0] + 1;
        const int64_t across = (width + pads[1] + pads[3] - kernel[1]) / strides[1] + 1;
        const pen_tensor_type picture = {PEN_FLOAT32, {4, {x[0], channels, height, width}}};
        const pen_tensor_type result = {PEN_FLOAT32, {4, {x[0], channels, down, across}}};
        const pen_tensor_type weight = {PEN_FLOAT32, {4, {channels, 1, kernel[0], kernel[1]}}};
        op_case c = {.op = ops[seed % 2], .input_count = 2, .attribute_count = 4};
        c.inputs[0].type = seed % 2 == 0 ? result : picture;
        c.inputs[1].type = seed % 2 == 1 ? result : weight;
        c.attributes[0] = pen_attribute_ints("kernel_shape", 2, kernel);
        c.attributes[1] = pen_attribute_ints("strides", 2, strides);
        c.attributes[2] = pen_attribute_ints("pads", 4, pads);
        c.attributes[3] = pen_attribute_int("group", channels);
        if (seed % 2 == 0) {
            c.attributes[c.attribute_count++] = pen_attribute_ints("input_shape", 4, x);
        }
        op_check_layout(&c, seed, CONVOLUTION_TOLERANCE, NULL);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(depthwise_equals_reference),
              cmocka_unit_test(large_windows_of_three_equal_reference),
              cmocka_unit_test(windows_that_stand_still_equal_reference),
              cmocka_unit_test(conv_backward_bias_equals_reference),
              cmocka_unit_test(conv_equals_reference),
              cmocka_unit_test(conv_transpose_equals_reference),
              cmocka_unit_test(conv_backward_input_equals_reference),
              cmocka_unit_test(conv_backward_weight_equals_reference))
