#include <math.h>

#include "graph/passes/gradient/build_gradients.h"
#include "tests/support/dice.h"

static void give(op_case *c, pen_attribute_given attribute) {
    c->attributes[c->attribute_count++] = attribute;
}

// A batch normalisation of `x`, with operands for its channels.
static op_case batch_case(pen_tensor_type x) {
    const int channels = x.shape.rank < 2 ? 1 : (int)x.shape.dims[1];
    op_case c = {.op = "batch_normalization", .input_count = 5, .inputs = {{.type = x}}};
    for (uint32_t i = 1; i < 5; i++) {
        c.inputs[i].type = op_type(x.element, 1, channels);
    }
    c.inputs[4].low = 0.5; // a variance
    c.inputs[4].high = 2;
    return c;
}

static const double batch[] = {1, 2, 10, 20, 3, 6, 30, 60}; // 2 samples, 2 channels, 2 elements
static const double scale[] = {2, 1}, bias[] = {1, 0}, mean[] = {1, 10}, variance[] = {3, 15};

static op_case fixed_case(void) {
    op_case c = batch_case(op_type(PEN_FLOAT64, 3, 2, 2, 2));
    c.inputs[0].data = batch;
    c.inputs[1].data = scale;
    c.inputs[2].data = bias;
    c.inputs[3].data = mean;
    c.inputs[4].data = variance;
    give(&c, pen_attribute_float("epsilon", 1));
    return c;
}

static void batch_normalization_with_given_statistics(void **state) {
    (void)state;
    const op_case c = fixed_case();
    const double y[] = {1, 2, 0, 2.5, 3, 6, 5, 12.5};
    op_check_values(&c, 0, y, 8, 1e-15);
}

// Channel 0 is 1 2 3 6: mean 3, variance 3.5. Channel 1 is ten times that.
static void batch_normalization_of_a_batch(void **state) {
    (void)state;
    op_case c = fixed_case();
    c.output_count = 5;
    give(&c, pen_attribute_int("training_mode", 1));
    give(&c, pen_attribute_float("momentum", 0.75));
    const double first = 1 / sqrt(4.5), second = 1 / sqrt(351);
    const double y[] = {
        2 * -2 * first + 1, 2 * -1 * first + 1, -20 * second, -10 * second, 1, 2 * 3 * first + 1, 0,
        30 * second};
    op_check_values(&c, 0, y, 8, 1e-14);
    op_check_values(&c, 1, (const double[]){1.5, 15}, 2, 1e-15);
    op_check_values(&c, 2, (const double[]){3.125, 98.75}, 2, 1e-15);
    op_check_values(&c, 3, (const double[]){3, 30}, 2, 1e-15);
    op_check_values(&c, 4, (const double[]){first, second}, 2, 1e-15);
    give(&c, pen_attribute_int("unbiased", 1)); // 14 / 3 and 1400 / 3
    const double running[] = {0.75 * 3 + 0.25 * 14 / 3, 0.75 * 15 + 0.25 * 1400 / 3};
    op_check_values(&c, 2, running, 2, 1e-14);
    op_check_values(&c, 0, y, 8, 1e-14); // which it does not change
}

static void batch_normalization_refuses(void **state) {
    (void)state;
    op_case c = batch_case(op_type(PEN_FLOAT32, 1, 4));
    op_check_error(&c, PEN_INVALID_INPUT, "the input is [4]; expected a batch and channels");
    c = batch_case(op_type(PEN_FLOAT32, 3, 2, 3, 4));
    c.inputs[2].type = op_type(PEN_FLOAT32, 1, 4);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "batch_normalization 'subject': input 2 ('input_2') is [4], expected [3]");
    c = batch_case(op_type(PEN_FLOAT32, 3, 2, 3, 4));
    c.inputs[4].type.element = PEN_INT32;
    op_check_error(&c, PEN_INVALID_INPUT, "input 4 ('input_4') is int32; it may be float32");
    c = batch_case(op_type(PEN_FLOAT32, 3, 2, 3, 4));
    c.output_count = 3;
    op_check_error(&c, PEN_INVALID_INPUT, "3 outputs without training_mode; expected 1");
    c = batch_case(op_type(PEN_FLOAT32, 2, 1, 3));
    c.output_count = 5;
    give(&c, pen_attribute_int("training_mode", 1));
    give(&c, pen_attribute_int("unbiased", 1));
    op_check_error(&c, PEN_INVALID_INPUT, "one value a channel has no unbiased variance");
    c = batch_case(op_type(PEN_FLOAT32, 3, 2, 3, 4));
    c.op = "batch_normalization_backward";
    c.inputs[1] = c.inputs[0];
    c.output_count = 5;
    give(&c, pen_attribute_int("training_mode", 1));
    op_check_error(&c, PEN_INVALID_INPUT, "5 outputs with training_mode; expected at most 3");
}

// The gradient of one operand of a case, which must fail.
static void check_gradient_error(const op_case *c, uint32_t input, const char *text) {
    op_built built;
    CHECK_OK(op_build(c, &built));
    const pen_value seed = {.name = "seed",
                            .kind = PEN_VALUE_INPUT,
                            .type = *pen_value_type(built.graph, built.outputs[0])};
    pen_value_id seed_id;
    pen_gradients *gradients;
    CHECK_OK(pen_graph_add_value(built.graph, &seed, &seed_id));
    CHECK_ERROR(pen_build_gradients(built.graph, built.outputs[0], seed_id, 1, &built.inputs[input],
                                    &gradients),
                PEN_UNSUPPORTED, text);
    op_built_free(&built);
}

static void batch_normalization_without_gradient(void **state) {
    (void)state;
    op_case c = batch_case(op_type(PEN_FLOAT64, 3, 2, 3, 4));
    give(&c, pen_attribute_int("training_mode", 1));
    c.output_count = 3;
    check_gradient_error(&c, 0, "in training mode does not save the batch's mean");
}

static op_case random_batch_case(dice *d, bool training) {
    op_case_input x = dice_tensor(d, (uint32_t)dice_between(d, 2, 5), 3);
    if (training) x.type.shape.dims[0] += 1; // more than one element a channel
    op_case c = batch_case(x.type);
    if (dice_between(d, 0, 1) == 0) give(&c, pen_attribute_float("epsilon", 0.1));
    if (training) {
        give(&c, pen_attribute_int("training_mode", 1));
        give(&c, pen_attribute_int("unbiased", dice_between(d, 0, 1)));
        c.output_count = 5;
        c.output_mask = 30; // the statistics are not differentiated
    }
    // any subset of x, scale and bias, and of statistics that are given
    const int64_t subset = dice_between(d, 1, training ? 7 : 31);
    for (uint32_t i = 0; i < 5; i++) {
        c.inputs[i].is_fixed = (subset >> i & 1) == 0;
    }
    return c;
}

static void batch_gradients_match_differences(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 160; seed++) {
        dice d = {.seed = seed};
        op_case c = random_batch_case(&d, seed % 3 != 0);
        c.tolerance = 1e-5; // a channel of two near elements has a steep slope
        op_check_gradient(&c, seed);
    }
}

static void lrn_divides_by_neighbours(void **state) {
    (void)state;
    const double x[] = {1, 2, 3, 4};
    op_case c = {.op = "lrn",
                 .input_count = 1,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 3, 1, 4, 1), .data = x}}};
    give(&c, pen_attribute_int("size", 2)); // itself and the next channel
    give(&c, pen_attribute_float("alpha", 2));
    give(&c, pen_attribute_float("beta", 1));
    give(&c, pen_attribute_float("bias", 1));
    op_check_values(&c, 0, (const double[]){1. / 6, 2. / 14, 3. / 26, 4. / 17}, 4, 1e-14);
    c.attributes[0] = pen_attribute_int("size", 3);
    c.attributes[1] = pen_attribute_float("alpha", 3);
    op_check_values(&c, 0, (const double[]){1. / 6, 2. / 15, 3. / 30, 4. / 26}, 4, 1e-14);
}

static void lrn_refuses(void **state) {
    (void)state;
    op_case c = {
        .op = "lrn", .input_count = 1, .inputs = {{.type = op_type(PEN_FLOAT64, 2, 1, 4)}}};
    op_check_error(&c, PEN_INVALID_INPUT, "size");
    give(&c, pen_attribute_int("size", 2));
    op_check_error(&c, PEN_INVALID_INPUT, "lrn 'subject': the input is [1,4]; expected a batch");
    c.inputs[0].type = op_type(PEN_FLOAT64, 3, 1, 4, 1);
    c.attributes[0].value.integer = 0;
    op_check_error(&c, PEN_INVALID_INPUT, "size is 0; it may be 1 to 2147483647");
    c.inputs[0].type.element = PEN_INT64;
    op_check_error(&c, PEN_INVALID_INPUT, "input 0 ('input_0') is int64");
}

static void lrn_gradients_match_differences(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        dice d = {.seed = seed};
        op_case c = {.op = "lrn", .input_count = 1};
        c.inputs[0] = dice_tensor(&d, (uint32_t)dice_between(&d, 3, 4), 4);
        c.inputs[0].type.shape.dims[1] = dice_between(&d, 1, 7);
        give(&c, pen_attribute_int("size", dice_between(&d, 1, 6)));
        give(&c, pen_attribute_float("alpha", 0.5));
        if (dice_between(&d, 0, 1) == 0) give(&c, pen_attribute_float("beta", 0.5));
        if (dice_between(&d, 0, 1) == 0) give(&c, pen_attribute_float("bias", 2));
        op_check_gradient(&c, seed);
    }
}

static void flops_are_counted(void **state) {
    (void)state;
    op_case c = batch_case(op_type(PEN_FLOAT32, 3, 2, 3, 4));
    op_built built;
    CHECK_OK(op_build(&c, &built));
    assert_int_equal(pen_node_flops(built.graph, built.node), 2 * 24);
    op_built_free(&built);
}

PEN_TEST_MAIN(cmocka_unit_test(batch_normalization_with_given_statistics),
              cmocka_unit_test(batch_normalization_of_a_batch),
              cmocka_unit_test(batch_normalization_refuses),
              cmocka_unit_test(batch_normalization_without_gradient),
              cmocka_unit_test(batch_gradients_match_differences),
              cmocka_unit_test(lrn_divides_by_neighbours), cmocka_unit_test(lrn_refuses),
              cmocka_unit_test(lrn_gradients_match_differences),
              cmocka_unit_test(flops_are_counted))
