#include "graph/ops/movement/selection_rule.h"

#include <math.h>

#include "tests/support/dice.h"

static void largest_and_smallest(void **state) {
    (void)state;
    static const double x[] = {3, 1, 2, 2, 5, 2};
    static const int64_t k = 2, too_many = 4;
    op_case c = {.op = "top_k",
                 .input_count = 2,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 3), .data = x},
                            {.type = op_type(PEN_INT64, 1, 1), .data = &k, .is_constant = true}},
                 .output_count = 2};
    op_check_values(&c, 0, (const double[]){3, 2, 5, 2}, 4, 0);
    op_check_values(&c, 1, (const double[]){0, 2, 1, 0}, 4, 0); // the first of equals
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_int("largest", 0);
    op_check_values(&c, 0, (const double[]){1, 2, 2, 2}, 4, 0);
    op_check_values(&c, 1, (const double[]){1, 2, 0, 2}, 4, 0);
    c.attributes[0] = pen_attribute_int("axis", 0);
    op_check_values(&c, 0, (const double[]){3, 5, 2, 2, 1, 2}, 6, 0);
    op_check_values(&c, 1, (const double[]){0, 1, 0, 1, 0, 1}, 6, 0);
    c.inputs[1].data = &too_many;
    op_check_error(&c, PEN_INVALID_INPUT, "k is 4 (of 1 numbers), 0 to 2 elements of axis 0");
}

static void top_gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        dice d = {.seed = seed};
        const int64_t k = 1;
        op_case c = {
            .op = "top_k",
            .input_count = 2,
            .inputs = {dice_tensor(&d, 2, 4),
                       {.type = op_type(PEN_INT64, 1, 1), .data = &k, .is_constant = true}},
            .output_count = 2,
            .attribute_count = 2,
            .attributes = {pen_attribute_int("axis", dice_between(&d, 0, 1)),
                           pen_attribute_int("largest", dice_between(&d, 0, 1))}};
        op_check_gradient(&c, seed);
    }
}

static void compresses(void **state) {
    (void)state;
    static const double x[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t condition[] = {0, 1, 1};
    op_case c = {
        .op = "compress",
        .input_count = 2,
        .inputs = {{.type = op_type(PEN_FLOAT64, 2, 3, 2), .data = x},
                   {.type = op_type(PEN_BOOL, 1, 3), .data = condition, .is_constant = true}}};
    op_check_values(&c, 0, (const double[]){2, 3}, 2, 0);
    op_check_gradient(&c, 1);
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_int("axis", 0);
    op_check_values(&c, 0, (const double[]){3, 4, 5, 6}, 4, 0);
    op_check_gradient(&c, 1);
    c.attributes[0] = pen_attribute_int("axis", -1);
    op_check_error(&c, PEN_INVALID_INPUT, "the condition has 3 elements, but there are only 2");
}

static void finds_different_elements(void **state) {
    (void)state;
    static const double x[] = {2, 1, -0.0, 0, 1, 4};
    op_case c = {.op = "unique",
                 .input_count = 1,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 1, 6), .data = x, .is_constant = true}},
                 .output_count = 4};
    op_check_values(&c, 0, (const double[]){0, 1, 2, 4}, 4, 0);
    op_check_values(&c, 1, (const double[]){2, 1, 0, 5}, 4, 0);
    op_check_values(&c, 2, (const double[]){2, 1, 0, 0, 1, 3}, 6, 0);
    op_check_values(&c, 3, (const double[]){2, 2, 1, 1}, 4, 0);
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_int("sorted", 0);
    op_check_values(&c, 0, (const double[]){2, 1, 0, 4}, 4, 0);
    op_check_values(&c, 2, (const double[]){0, 1, 2, 2, 1, 3}, 6, 0);
    static const int64_t large[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX}; // apart as integers only
    c.attribute_count = 0;
    c.inputs[0].type = op_type(PEN_INT64, 1, 3);
    c.inputs[0].data = large;
    op_check_values(&c, 1, (const double[]){1, 0}, 2, 0);
    c.inputs[0].is_constant = false;
    op_check_error(&c, PEN_UNSUPPORTED, "its input 'input_0' steers shapes, but depends on data");
}

static void orders_numbers(void **state) {
    (void)state;
    static const double rising[] = {-INFINITY, -2, -1e-300, 0, 1e-300, 3, INFINITY, NAN};
    for (size_t i = 0; i + 1 < sizeof rising / sizeof *rising; i++) {
        CHECK(pen_order_of_number(rising[i]) < pen_order_of_number(rising[i + 1]), "%g", rising[i]);
    }
    CHECK(pen_order_of_number(-0.0) == pen_order_of_number(0), "two zeros");
    CHECK(pen_order_of_integer(INT64_MIN) < pen_order_of_integer(-1), "least");
    CHECK(pen_order_of_integer(-1) < pen_order_of_integer(0), "negative");
}

static void leaves_out_overlapping_boxes(void **state) {
    (void)state;
    static const double boxes[] = {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11};
    static const double scores[] = {0.9, 0.95, 0.3};
    static const int64_t limit = 3;
    static const double overlap = 0.5, score = 0.5;
    op_case c = {
        .op = "non_max_suppression",
        .input_count = 4,
        .inputs = {{.type = op_type(PEN_FLOAT64, 3, 1, 3, 4), .data = boxes, .is_constant = true},
                   {.type = op_type(PEN_FLOAT64, 3, 1, 1, 3), .data = scores, .is_constant = true},
                   {.type = op_type(PEN_INT64, 1, 1), .data = &limit, .is_constant = true},
                   {.type = op_type(PEN_FLOAT64, 1, 1), .data = &overlap, .is_constant = true},
                   {.type = op_type(PEN_FLOAT64, 1, 1), .data = &score, .is_constant = true}}};
    op_check_values(&c, 0, (const double[]){0, 0, 1, 0, 0, 2}, 6, 0);
    c.input_count = 5;
    op_check_values(&c, 0, (const double[]){0, 0, 1}, 3, 0);
    c.inputs[0].type.shape.dims[2] = 3;
    op_check_error(&c, PEN_INVALID_INPUT, "boxes of shape [1,3,3] and scores of shape [1,1,3]");
}

PEN_TEST_MAIN(cmocka_unit_test(largest_and_smallest), cmocka_unit_test(top_gradients),
              cmocka_unit_test(compresses), cmocka_unit_test(finds_different_elements),
              cmocka_unit_test(orders_numbers), cmocka_unit_test(leaves_out_overlapping_boxes))
