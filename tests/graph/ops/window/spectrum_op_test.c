#include "tests/support/dice.h"

static const double wave[] = {1, 2, 3, 4};

static void transforms(void **state) {
    (void)state;
    op_case c = {.op = "dft",
                 .input_count = 1,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 3, 1, 4, 1), .data = wave}},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_int("onesided", 0)}};
    op_check_values(&c, 0, (const double[]){10, 0, -2, 2, -2, 0, -2, -2}, 8, 1e-12);
    c.attributes[0] = pen_attribute_int("onesided", 1);
    op_check_values(&c, 0, (const double[]){10, 0, -2, 2, -2, 0}, 6, 1e-12);
    static const double spectrum[] = {10, 0, -2, 2, -2, 0, -2, -2};
    c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT64, 3, 1, 4, 2), .data = spectrum};
    c.attributes[0] = pen_attribute_int("inverse", 1);
    op_check_values(&c, 0, (const double[]){1, 0, 2, 0, 3, 0, 4, 0}, 8, 1e-12);
    c.inputs[0].type = op_type(PEN_FLOAT64, 2, 4, 2);
    op_check_error(&c, PEN_INVALID_INPUT, "a transform along axis 1 of [4,2]");
}

static void cuts_frames(void **state) {
    (void)state;
    static const int64_t step = 1, length = 2;
    op_case c = {.op = "stft",
                 .input_count = 4,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 3, 1, 4, 1), .data = wave},
                            {.type = op_type(PEN_INT64, 0), .data = &step, .is_constant = true},
                            {.is_absent = true},
                            {.type = op_type(PEN_INT64, 0), .data = &length, .is_constant = true}}};
    op_check_values(&c, 0, (const double[]){3, 0, -1, 0, 5, 0, -1, 0, 7, 0, -1, 0}, 12, 1e-12);
}

static void windows(void **state) {
    (void)state;
    static const int64_t length = 4;
    op_case c = {.op = "hann_window",
                 .input_count = 1,
                 .inputs = {{.type = op_type(PEN_INT64, 0), .data = &length, .is_constant = true}},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_text("output_datatype", "float64")}};
    op_check_values(&c, 0, (const double[]){0, 0.5, 1, 0.5}, 4, 1e-12);
    c.attributes[c.attribute_count++] = pen_attribute_int("periodic", 0);
    op_check_values(&c, 0, (const double[]){0, 0.75, 0.75, 0}, 4, 1e-12);
    c.op = "blackman_window";
    op_check_values(&c, 0, (const double[]){0, 0.63, 0.63, 0}, 4, 1e-12);
    c.op = "hamming_window";
    op_check_values(&c, 0, (const double[]){4.0 / 46, 35.5 / 46, 35.5 / 46, 4.0 / 46}, 4, 1e-12);
}

static void bands_are_triangles(void **state) {
    (void)state;
    static const int64_t bins = 2, length = 8, rate = 8000;
    static const double low = 0, high = 4000, above = 4001;
    op_case c = {.op = "mel_weight_matrix",
                 .input_count = 5,
                 .inputs = {{.type = op_type(PEN_INT64, 0), .data = &bins, .is_constant = true},
                            {.type = op_type(PEN_INT64, 0), .data = &length, .is_constant = true},
                            {.type = op_type(PEN_INT64, 0), .data = &rate, .is_constant = true},
                            {.type = op_type(PEN_FLOAT64, 0), .data = &low, .is_constant = true},
                            {.type = op_type(PEN_FLOAT64, 0), .data = &high, .is_constant = true}}};
    // 0, 427, 1114 and 2220 Hz fall on terms 0, 0, 1 and 2
    op_check_values(&c, 0, (const double[]){1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, 10, 1e-12);
    c.inputs[4].data = &above;
    op_check_error(&c, PEN_INVALID_INPUT, "bands from 0 to 4001 at a rate of 8000");
}

static void determinants(void **state) {
    (void)state;
    static const double singular[] = {1, 2, 2, 4};
    op_case c = {.op = "det",
                 .input_count = 1,
                 .inputs = {{.type = op_type(PEN_FLOAT64, 2, 2, 2), .data = wave}}};
    op_check_values(&c, 0, (const double[]){-2}, 1, 1e-12);
    c.inputs[0].data = singular;
    op_check_values(&c, 0, (const double[]){0}, 1, 1e-12);
    op_check_gradient(&c, 1);
    c.inputs[0] = (op_case_input){.type = op_type(PEN_FLOAT64, 3, 2, 3, 3)};
    op_check_gradient(&c, 1);
    c.inputs[0].type = op_type(PEN_FLOAT64, 2, 2, 3);
    op_check_error(&c, PEN_INVALID_INPUT, "[2,3] holds no square matrices");
}

PEN_TEST_MAIN(cmocka_unit_test(transforms), cmocka_unit_test(cuts_frames),
              cmocka_unit_test(windows), cmocka_unit_test(bands_are_triangles),
              cmocka_unit_test(determinants))
