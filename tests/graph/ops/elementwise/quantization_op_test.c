#include "tests/support/dice.h"

static const double numbers[] = {-1, 0, 0.25, 0.75, 3, 1000};
static const double half = 0.5;
static const uint8_t ten = 10;

static void quantizes(void **state) {
    (void)state;
    op_case c = {.op = "quantize_linear",
                 .input_count = 3,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 1, 6), .data = numbers},
                            {.type = op_type(PEN_FLOAT64, 0), .data = &half},
                            {.type = op_type(PEN_UINT8, 0), .data = &ten}},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_int("axis", 0)}};
    op_check_values(&c, 0, (const double[]){8, 10, 10, 12, 16, 255}, 6, 0); // halves to even
    c.inputs[1].type = op_type(PEN_FLOAT64, 1, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "the scale has shape [2]; one number, or 6 (for axis 0)");
}

static void dequantizes(void **state) {
    (void)state;
    static const uint8_t x[] = {0, 10, 255, 12};
    static const double scales[] = {0.5, 2};
    op_case c = {.op = "dequantize_linear",
                 .input_count = 3,
                 .inputs = {{.type = op_type(PEN_UINT8, 2, 2, 2), .data = x},
                            {.type = op_type(PEN_FLOAT64, 1, 2), .data = scales},
                            {.type = op_type(PEN_UINT8, 0), .data = &ten}}};
    op_check_values(&c, 0, (const double[]){-5, 0, 122.5, 4}, 4, 0);
    c.inputs[2].type.element = PEN_INT8;
    op_check_error(&c, PEN_INVALID_INPUT, "is int8, but input 0 ('input_0') is uint8");
}

static void finds_the_range(void **state) {
    (void)state;
    static const float x[] = {0, 2, -3, -2.5F, 1.34F, 0.5F};
    op_case c = {.op = "dynamic_quantize_linear",
                 .input_count = 1,
                 .inputs = {{.type = op_type(PEN_FLOAT32, 1, 6), .data = x}},
                 .output_count = 3};
    op_check_values(&c, 0, (const double[]){153, 255, 0, 26, 221, 179}, 6, 0);
    op_check_values(&c, 1, (const double[]){0.0196078438}, 1, 1e-7);
    op_check_values(&c, 2, (const double[]){153}, 1, 0);
}

PEN_TEST_MAIN(cmocka_unit_test(quantizes), cmocka_unit_test(dequantizes),
              cmocka_unit_test(finds_the_range))
