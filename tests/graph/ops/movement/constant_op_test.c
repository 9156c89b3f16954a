#include <math.h>

#include "tests/support/dice.h"

static op_case_input number_of(pen_element_type element, const void *data) {
    return (op_case_input){.type = {.element = element}, .data = data, .is_constant = true};
}

static void tells_shapes(void **state) {
    (void)state;
    op_case c = {.op = "shape", .input_count = 1, .inputs = {{.type = {PEN_BOOL, {3, {2, 3, 4}}}}}};
    op_check_values(&c, 0, (const double[]){2, 3, 4}, 3, 0);
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_int("start", -2);
    op_check_values(&c, 0, (const double[]){3, 4}, 2, 0);
    c.attribute_count = 2;
    c.attributes[1] = pen_attribute_int("end", -1);
    op_check_values(&c, 0, (const double[]){3}, 1, 0);
    c.attributes[1] = pen_attribute_int("end", -10);
    op_check_values(&c, 0, NULL, 0, 0);
    c.attributes[0] = pen_attribute_int("start", -10);
    c.attributes[1] = pen_attribute_int("end", 10);
    op_check_values(&c, 0, (const double[]){2, 3, 4}, 3, 0);
    c.op = "size";
    c.attribute_count = 0;
    op_check_values(&c, 0, (const double[]){24}, 1, 0);
}

static void ranges(void **state) {
    (void)state;
    static const int64_t integers[] = {10, 4, -3, 0};
    op_case c = {.op = "range",
                 .input_count = 3,
                 .inputs = {number_of(PEN_INT64, &integers[0]), number_of(PEN_INT64, &integers[1]),
                            number_of(PEN_INT64, &integers[2])}};
    op_check_values(&c, 0, (const double[]){10, 7}, 2, 0);
    c.inputs[2].data = &integers[3];
    op_check_error(&c, PEN_INVALID_INPUT, "a range from 10 to 4 by 0 is endless or too long");
    c.inputs[2].data = &integers[0];
    op_check_values(&c, 0, NULL, 0, 0);
    static const double numbers[] = {1, 2.5, 0.5, 1e-300, (double)NAN};
    for (int i = 0; i < 3; i++) {
        c.inputs[i] = number_of(PEN_FLOAT64, &numbers[i]);
    }
    op_check_values(&c, 0, (const double[]){1, 1.5, 2}, 3, 0);
    c.inputs[2].data = &numbers[3];
    op_check_error(&c, PEN_INVALID_INPUT, "is endless or too long");
    c.inputs[2].data = &numbers[4];
    op_check_error(&c, PEN_INVALID_INPUT, "is endless or too long");
    c.inputs[2] = number_of(PEN_INT64, &integers[0]);
    op_check_error(&c, PEN_INVALID_INPUT, "input 2 is int64, but input 0 is float64");
}

static void fills_shapes(void **state) {
    (void)state;
    op_case c = {.op = "constant_of_shape",
                 .input_count = 1,
                 .inputs = {constant_ints(2, (const int64_t[]){2, 1})}};
    op_check_values(&c, 0, (const double[]){0, 0}, 2, 0);
    c.attribute_count = 2;
    c.attributes[0] = pen_attribute_float("value", -3);
    c.attributes[1] = pen_attribute_text("element", "int8");
    op_check_values(&c, 0, (const double[]){-3, -3}, 2, 0);
    c.attributes[1] = pen_attribute_text("element", "int7");
    op_check_error(&c, PEN_NOT_FOUND, "'subject': no element type is called 'int7'; there are");
    c.attributes[1] = pen_attribute_text("element", "int64");
    c.inputs[0] = constant_ints(2, (const int64_t[]){INT64_MAX, 2});
    op_check_error(&c, PEN_INVALID_INPUT, "above the limit");
}

static void casts(void **state) {
    (void)state;
    static const double numbers[] = {-1.5, 0, 2.9, 300};
    op_case c = {.op = "cast",
                 .input_count = 1,
                 .inputs = {{.type = {PEN_FLOAT64, {1, {4}}}, .data = numbers}},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_text("to", "int32")}};
    op_check_values(&c, 0, (const double[]){-1, 0, 2, 300}, 4, 0);
    c.attributes[0] = pen_attribute_text("to", "bool");
    op_check_values(&c, 0, (const double[]){1, 0, 1, 1}, 4, 0);
    c.attributes[0] = pen_attribute_text("to", "float16");
    op_check_values(&c, 0, (const double[]){-1.5, 0, 2.900390625, 300}, 4, 0);
    c.attributes[0] = pen_attribute_text("to", "string");
    op_check_error(&c, PEN_NOT_FOUND, "cast 'subject': no element type is called 'string'");
    static const int64_t wide[] = {INT64_MAX, -2};
    c.inputs[0] = (op_case_input){.type = {PEN_INT64, {1, {2}}}, .data = wide};
    c.attributes[0] = pen_attribute_text("to", "uint64");
    op_check_values(&c, 0, (const double[]){9223372036854775807.0, 18446744073709551614.0}, 2, 0);
    c.attributes[0] = pen_attribute_text("to", "int8");
    op_check_values(&c, 0, (const double[]){-1, -2}, 2, 0);
}

static void marks_and_finds(void **state) {
    (void)state;
    op_case eye = {.op = "eye_like",
                   .input_count = 1,
                   .inputs = {{.type = {PEN_INT32, {2, {2, 3}}}}},
                   .attribute_count = 2,
                   .attributes = {pen_attribute_int("k", 1), pen_attribute_text("dtype", "bool")}};
    op_check_values(&eye, 0, (const double[]){0, 1, 0, 0, 0, 1}, 6, 0);
    static const int64_t indices[] = {1, -1, 7}, depth = 3;
    static const float values[] = {-1, 5};
    op_case hot = {.op = "one_hot",
                   .input_count = 3,
                   .inputs = {{.type = {PEN_INT64, {1, {3}}}, .data = indices},
                              number_of(PEN_INT64, &depth),
                              {.type = {PEN_FLOAT32, {1, {2}}}, .data = values}}};
    op_check_values(&hot, 0, (const double[]){-1, 5, -1, -1, -1, 5, -1, -1, -1}, 9, 0);
    hot.attribute_count = 1;
    hot.attributes[0] = pen_attribute_int("axis", 0);
    op_check_values(&hot, 0, (const double[]){-1, -1, -1, 5, -1, -1, -1, 5, -1}, 9, 0);
    hot.attributes[0] = pen_attribute_int("axis", 2);
    op_check_error(&hot, PEN_INVALID_INPUT, "axis 2 is outside of a tensor with 2 dimensions");
    static const float found[] = {0, 2, -0.0F, 1};
    op_case non_zero = {
        .op = "non_zero",
        .input_count = 1,
        .inputs = {{.type = {PEN_FLOAT32, {2, {2, 2}}}, .data = found, .is_constant = true}}};
    op_check_values(&non_zero, 0, (const double[]){0, 1, 1, 1}, 4, 0);
    non_zero.inputs[0].is_constant = false;
    op_check_error(&non_zero, PEN_UNSUPPORTED, "subject");
}

static void cast_gradients(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        dice d = {.seed = seed};
        const bool narrow = seed % 2 == 1;
        op_case c = {.op = "cast",
                     .input_count = 1,
                     .inputs = {dice_tensor(&d, (uint32_t)dice_between(&d, 0, 3), 4)},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_text("to", narrow ? "float32" : "float64")}};
        if (narrow) { // the quotient sees the rounding to float32
            c.step = 0.25;
            c.tolerance = 1e-5;
        }
        op_check_gradient(&c, seed);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(tells_shapes), cmocka_unit_test(ranges),
              cmocka_unit_test(fills_shapes), cmocka_unit_test(casts),
              cmocka_unit_test(marks_and_finds), cmocka_unit_test(cast_gradients))
