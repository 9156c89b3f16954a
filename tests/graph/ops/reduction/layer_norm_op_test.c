// Layer, instance, group and root mean square normalisation.
#include <string.h>

#include "tests/support/op_check.h"
#include "tests/support/random_case.h"

static const double ladder[] = {1, 2, 3, 4, -1, -1, 1, 1};
// (x - mean) / deviation of the ladder's rows, without an epsilon
#define A 1.3416407864998738
#define B 0.4472135954999579

static op_case norm_case(const char *op, pen_tensor_type x, const void *data) {
    return (op_case){.op = op,
                     .input_count = 1,
                     .inputs = {{.type = x, .data = data}},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_float("epsilon", 0)}};
}

static void add_weights(op_case *c, pen_tensor_type type, const void *scale, const void *bias) {
    c->inputs[c->input_count++] = (op_case_input){.type = type, .data = scale};
    if (bias == NULL) return;
    c->inputs[c->input_count++] = (op_case_input){.type = type, .data = bias};
}

static void layer_values(void **state) {
    (void)state;
    const double scale[] = {1, 10, 100, 1000}, bias[] = {0.5, 0, 0, -0.5};
    op_case c = norm_case("layer_normalization", op_type(PEN_FLOAT64, 2, 2, 4), ladder);
    op_check_values(&c, 0, (const double[]){-A, -B, B, A, -1, -1, 1, 1}, 8, 1e-14);
    add_weights(&c, op_type(PEN_FLOAT64, 1, 4), scale, bias);
    op_check_values(
        &c, 0, (const double[]){-A + 0.5, -10 * B, 100 * B, 1000 * A - 0.5, -0.5, -10, 100, 999.5},
        8, 1e-14);
    c.output_count = 3;
    op_check_values(&c, 1, (const double[]){2.5, 0}, 2, 1e-14);
    op_check_values(&c, 2, (const double[]){0.8944271909999159, 1}, 2, 1e-14);
    c = norm_case("layer_normalization", op_type(PEN_FLOAT64, 3, 1, 2, 4), ladder);
    c.attributes[c.attribute_count++] = pen_attribute_int("axis", 2);
    op_check_values(&c, 0, (const double[]){-A, -B, B, A, -1, -1, 1, 1}, 8, 1e-14);
    c.attributes[1] = pen_attribute_int("axis", -2); // both rows are one: mean 1.25, squares 34
    const double d = 1 / 1.6393596310755;            // of sqrt(34 / 8 - 1.25^2)
    op_check_values(&c, 0,
                    (const double[]){-0.25 * d, 0.75 * d, 1.75 * d, 2.75 * d, -2.25 * d, -2.25 * d,
                                     -0.25 * d, -0.25 * d},
                    8, 1e-12);
}

static void root_mean_square_values(void **state) {
    (void)state;
    const double scale[] = {1, 1, 2, 1}, r = 1 / 2.7386127875258306; // of sqrt(30 / 4)
    op_case c = norm_case("rms_normalization", op_type(PEN_FLOAT64, 2, 2, 4), ladder);
    add_weights(&c, op_type(PEN_FLOAT64, 1, 4), scale, NULL);
    op_check_values(&c, 0, (const double[]){r, 2 * r, 6 * r, 4 * r, -1, -1, 2, 1}, 8, 1e-14);
    c.attributes[0] = pen_attribute_float("epsilon", 3);
    op_check_values(&c, 0,
                    (const double[]){0.30860669992418382, 0.61721339984836765, 1.8516401995451028,
                                     1.2344267996967353, -0.5, -0.5, 1, 0.5},
                    8, 1e-14);
}

static void channel_values(void **state) {
    (void)state;
    const double scale[] = {1, 2}, bias[] = {0, 10}, four[] = {1, 2, 3, 4};
    op_case c = norm_case("instance_normalization", op_type(PEN_FLOAT64, 3, 1, 2, 4), ladder);
    add_weights(&c, op_type(PEN_FLOAT64, 1, 2), scale, bias);
    op_check_values(&c, 0, (const double[]){-A, -B, B, A, 8, 8, 12, 12}, 8, 1e-14);
    c.op = "group_normalization"; // of a channel each: the same
    c.attributes[c.attribute_count++] = pen_attribute_int("num_groups", 2);
    op_check_values(&c, 0, (const double[]){-A, -B, B, A, 8, 8, 12, 12}, 8, 1e-14);
    c = norm_case("group_normalization", op_type(PEN_FLOAT64, 3, 1, 4, 2), ladder);
    c.attributes[c.attribute_count++] = pen_attribute_int("num_groups", 2);
    add_weights(&c, op_type(PEN_FLOAT64, 1, 4), four, NULL); // a number a channel
    op_check_values(&c, 0, (const double[]){-A, -B, 2 * B, 2 * A, -3, -3, 4, 4}, 8, 1e-14);
    c.inputs[1] = (op_case_input){.type = op_type(PEN_FLOAT64, 1, 2), .data = scale}; // a group
    op_check_values(&c, 0, (const double[]){-A, -B, B, A, -2, -2, 2, 2}, 8, 1e-14);
}

static void draw_trailing(random_case *random, op_case *c) {
    const pen_shape shape = c->inputs[0].type.shape;
    const int64_t rank = shape.rank, axis = random_between(random, 0, rank - 1);
    c->attributes[c->attribute_count++] =
        pen_attribute_int("axis", random_chance(random, 50) ? axis : axis - rank);
    const uint32_t weights = strcmp(c->op, "rms_normalization") == 0 ? 1 : 2;
    pen_tensor_type type = {PEN_FLOAT64, {0}};
    for (int64_t d = axis; d < rank; d++) {
        type.shape.dims[type.shape.rank++] = shape.dims[d];
    }
    if (random_chance(random, 20)) { // the last dimensions alone
        type.shape.rank = 1;
        type.shape.dims[0] = shape.dims[rank - 1];
    }
    c->input_count = 1 + (uint32_t)random_between(random, 0, weights);
    for (uint32_t i = 1; i < c->input_count; i++) {
        c->inputs[i].type = type;
    }
}

static void draw_channels(random_case *random, op_case *c) {
    pen_shape *shape = &c->inputs[0].type.shape;
    const int64_t groups = random_between(random, 1, 3);
    const bool by_group = strcmp(c->op, "group_normalization") == 0;
    if (by_group) {
        shape->dims[1] = groups * random_between(random, 1, 3);
        c->attributes[c->attribute_count++] = pen_attribute_int("num_groups", groups);
    }
    const bool is_a_group = by_group && random_chance(random, 30);
    c->input_count = 1 + (uint32_t)random_between(random, 0, 2);
    for (uint32_t i = 1; i < c->input_count; i++) {
        c->inputs[i].type = op_type(PEN_FLOAT64, 1, is_a_group ? (int)groups : (int)shape->dims[1]);
    }
}

static void gradients(void **state) {
    (void)state;
    static const char *const ops[] = {"layer_normalization", "rms_normalization",
                                      "instance_normalization", "group_normalization"};
    for (uint64_t seed = 0; seed < 280; seed++) {
        random_case random = {.seed = seed};
        const bool by_channel = seed % 4 >= 2;
        op_case c =
            norm_case(ops[seed % 4], random_type(&random, by_channel ? 3 : 1, 4, 5, 60), NULL);
        c.inputs[0].type.element = PEN_FLOAT64;
        c.inputs[0].low = -2;
        c.inputs[0].high = 2;
        c.attributes[0] = pen_attribute_float("epsilon", 0.1);
        if (by_channel) {
            draw_channels(&random, &c);
        } else {
            draw_trailing(&random, &c);
        }
        for (uint32_t i = 1; i < c.input_count; i++) {
            c.inputs[i].is_fixed = random_chance(&random, 20);
        }
        op_check_gradient(&c, seed);
    }
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    op_case c = norm_case("layer_normalization", op_type(PEN_FLOAT64, 2, 2, 4), NULL);
    add_weights(&c, op_type(PEN_FLOAT64, 1, 3), NULL, NULL);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "layer_normalization 'subject': the weights are [3] and the input is [2,4]; "
                   "expected the dimensions from the axis on, or the last ones");
    c.inputs[1].is_absent = true;
    add_weights(&c, op_type(PEN_FLOAT64, 1, 4), NULL, NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "it has a bias, but no scale");
    c = norm_case("rms_normalization", op_type(PEN_INT32, 2, 2, 4), NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "is int32; it may be");
    c = norm_case("rms_normalization", op_type(PEN_FLOAT32, 2, 2, 4), NULL);
    c.attributes[c.attribute_count++] = pen_attribute_int("axis", 2);
    op_check_error(&c, PEN_INVALID_INPUT, "axis 2 is outside of a tensor with 2 dimensions");
    c = norm_case("instance_normalization", op_type(PEN_FLOAT32, 1, 4), NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "the input is [4]; expected a batch and channels");
    c = norm_case("instance_normalization", op_type(PEN_FLOAT32, 3, 2, 4, 3), NULL);
    add_weights(&c, op_type(PEN_FLOAT32, 1, 3), NULL, NULL);
    op_check_error(&c, PEN_INVALID_INPUT, "expected a number a channel");
    c = norm_case("group_normalization", op_type(PEN_FLOAT32, 3, 2, 4, 3), NULL);
    c.attributes[c.attribute_count++] = pen_attribute_int("num_groups", 3);
    op_check_error(&c, PEN_INVALID_INPUT, "num_groups is 3, which does not divide the 4 channels");
    c.attributes[1] = pen_attribute_int("num_groups", 0);
    op_check_error(&c, PEN_INVALID_INPUT, "num_groups is 0, which does not divide the 4 channels");
}

PEN_TEST_MAIN(cmocka_unit_test(layer_values), cmocka_unit_test(root_mean_square_values),
              cmocka_unit_test(channel_values), cmocka_unit_test(gradients),
              cmocka_unit_test(wrong_operands_are_refused))
