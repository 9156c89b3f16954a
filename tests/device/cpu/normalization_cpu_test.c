#include "tests/support/device_check.h"
#include "tests/support/layout_check.h"
#include "tests/support/random_case.h"

#define NORMALIZATION_CASES 200
#define NORMALIZATION_TOLERANCE 3e-5

// Small ones, with rows that end anywhere, and some large enough for a team.
static pen_tensor_type norm_type(random_case *random) {
    const bool is_large = random_chance(random, 15);
    pen_tensor_type type = {PEN_FLOAT32, {.rank = (uint32_t)random_between(random, 3, 5)}};
    type.shape.dims[0] = random_between(random, 1, 5);
    type.shape.dims[1] = random_between(random, 1, is_large ? 70 : 40);
    for (uint32_t d = 2; d < type.shape.rank; d++) {
        type.shape.dims[d] = random_between(random, 1, is_large ? 30 : 7);
    }
    while (is_large && pen_shape_element_count(&type.shape) > 150000) {
        type.shape.dims[2] = (type.shape.dims[2] + 1) / 2;
        type.shape.dims[0] = 1;
    }
    return type;
}

static void norm_vector_input(op_case *c, uint32_t input, int64_t channels, double low) {
    c->inputs[input].type = op_type(PEN_FLOAT32, 1, (int)channels);
    c->inputs[input].low = low;
    c->inputs[input].high = 2;
}

static void norm_check(const op_case *c, uint64_t seed, uint32_t inputs, uint32_t outputs) {
    op_check_device(c, seed, NORMALIZATION_TOLERANCE);
    for (pen_layout layout = 1; layout <= 2; layout++) {
        const layout_wish wish = {layout, inputs, outputs};
        op_check_layout(c, seed, NORMALIZATION_TOLERANCE, &wish);
    }
}

static void forward_equals_reference(void **state) {
    (void)state;
    static const char *const ops[] = {"batch_normalization", "batch_normalization_relu",
                                      "batch_normalization_add_relu"};
    for (uint64_t seed = 0; seed < 2 * NORMALIZATION_CASES; seed++) {
        random_case random = {seed, 0};
        const bool adds = seed % 3 == 2;
        const bool training = random_chance(&random, 70);
        op_case c = {.op = ops[seed % 3], .input_count = adds ? 6 : 5};
        c.inputs[0].type = c.inputs[5].type = norm_type(&random);
        if (random_chance(&random, 30)) c.inputs[0].low = 90, c.inputs[0].high = 93;
        for (uint32_t i = 1; i < 5; i++) {
            norm_vector_input(&c, i, c.inputs[0].type.shape.dims[1], i == 4 ? 0.1 : -2);
        }
        c.attributes[0] = pen_attribute_int("training_mode", training);
        c.attributes[1] = pen_attribute_float("epsilon", 1e-3);
        c.attributes[2] = pen_attribute_float("momentum", 0.8);
        c.attribute_count = 3;
        c.output_count = training ? 5 : 1;
        norm_check(&c, seed, adds ? 1 | 1 << 5 : 1, 1);
    }
}

// Outputs of a backward op: dx alone, or with those of the weights, or of given statistics as well.
static uint32_t gradient_count(random_case *random, bool training) {
    if (!random_chance(random, 80)) return 1;
    return !training && random_chance(random, 60) ? 5 : 3;
}

static void backward_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2 * NORMALIZATION_CASES; seed++) {
        random_case random = {seed, 0};
        const bool relu = seed % 2 == 1;
        const bool training = random_chance(&random, 70);
        op_case c = {.input_count = relu ? 6 : 5};
        c.op = relu ? "batch_normalization_relu_backward" : "batch_normalization_backward";
        c.inputs[0].type = c.inputs[1].type = norm_type(&random);
        for (uint32_t i = 2; i < c.input_count; i++) {
            norm_vector_input(&c, i, c.inputs[0].type.shape.dims[1],
                              i == c.input_count - 1 ? 0.1 : -2);
        }
        c.attributes[0] = pen_attribute_int("training_mode", training);
        c.attribute_count = 1;
        c.output_count = gradient_count(&random, training);
        norm_check(&c, seed, 3, 1);
    }
}

static void backward_with_residual_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < NORMALIZATION_CASES; seed++) {
        random_case random = {seed, 0};
        const bool adds_2 = random_chance(&random, 50);
        op_case c = {.op = "batch_normalization_add_relu_backward", .input_count = adds_2 ? 7 : 6};
        c.inputs[0].type = norm_type(&random);
        c.inputs[1].type = c.inputs[2].type = c.inputs[6].type = c.inputs[0].type;
        for (uint32_t i = 3; i < 6; i++) {
            norm_vector_input(&c, i, c.inputs[0].type.shape.dims[1], i == 5 ? 0.1 : -2);
        }
        const bool training = random_chance(&random, 70);
        c.attributes[0] = pen_attribute_int("training_mode", training);
        c.attribute_count = 1;
        c.output_count = gradient_count(&random, training) + 1;
        norm_check(&c, seed, adds_2 ? 7 | 1 << 6 : 7, 3);
    }
}

// Without spatial dimensions, as behind dense layers.
static void rows_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < NORMALIZATION_CASES; seed++) {
        random_case random = {seed, 0};
        const int64_t channels =
            (random_chance(&random, 70) ? 8 : 1) * random_between(&random, 1, 9);
        const int64_t dims[] = {random_between(&random, 2, 300), channels};
        op_case c = {.op = "batch_normalization", .input_count = 5, .output_count = 5};
        op_case back = {.op = "batch_normalization_backward", .input_count = 5, .output_count = 3};
        c.inputs[0].type = pen_tensor_type_make(PEN_FLOAT32, 2, dims);
        back.inputs[0].type = back.inputs[1].type = c.inputs[0].type;
        for (uint32_t i = 1; i < 5; i++) {
            norm_vector_input(&c, i, channels, i == 4 ? 0.1 : -2);
            if (i > 1) norm_vector_input(&back, i, channels, i == 4 ? 0.1 : -2);
        }
        c.attributes[0] = back.attributes[0] = pen_attribute_int("training_mode", 1);
        c.attribute_count = back.attribute_count = 1;
        op_check_device(&c, seed, NORMALIZATION_TOLERANCE);
        op_check_device(&back, seed, NORMALIZATION_TOLERANCE);
    }
}

static void lrn_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < NORMALIZATION_CASES; seed++) {
        random_case random = {seed, 0};
        const bool backward = seed % 2 == 1;
        op_case c = {.op = backward ? "lrn_backward" : "lrn", .input_count = backward ? 2 : 1};
        c.inputs[0].type = c.inputs[1].type = norm_type(&random);
        const double beta = random_chance(&random, 60) ? 0.75 : 0.6;
        c.attributes[0] = pen_attribute_int("size", random_between(&random, 1, 6));
        c.attributes[1] = pen_attribute_float("alpha", 0.5);
        c.attributes[2] = pen_attribute_float("beta", beta);
        c.attributes[3] = pen_attribute_float("bias", 1.5);
        c.attribute_count = 4;
        op_check_device(&c, seed, NORMALIZATION_TOLERANCE);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(rows_equal_reference), cmocka_unit_test(lrn_equals_reference),
              cmocka_unit_test(forward_equals_reference),
              cmocka_unit_test(backward_equals_reference),
              cmocka_unit_test(backward_with_residual_equals_reference))
