#include <math.h>

#include "tests/support/op_check.h"
#include "tests/support/random_case.h"

static op_case along(const char *op, pen_tensor_type type, const void *data, int64_t axis) {
    return (op_case){.op = op,
                     .input_count = 1,
                     .inputs = {{.type = type, .data = data}},
                     .attribute_count = 1,
                     .attributes = {pen_attribute_int("axis", axis)}};
}

static void values(void **state) {
    (void)state;
    const double x[] = {0, 1, 2, 0, 0, 0}, third = 1.0 / 3;
    const pen_tensor_type type = op_type(PEN_FLOAT64, 2, 2, 3);
    op_case c = along("softmax", type, x, -1);
    op_check_values(&c, 0,
                    (const double[]){0.09003057317038046, 0.24472847105479764, 0.6652409557748218,
                                     third, third, third},
                    6, 1e-15);
    c.attribute_count = 0; // the last axis by default
    op_check_values(&c, 0,
                    (const double[]){0.09003057317038046, 0.24472847105479764, 0.6652409557748218,
                                     third, third, third},
                    6, 1e-15);
    c = along("softmax", type, x, 0);
    op_check_values(&c, 0,
                    (const double[]){0.5, 0.7310585786300049, 0.8807970779778823, 0.5,
                                     0.2689414213699951, 0.11920292202211755},
                    6, 1e-15);
    c = along("log_softmax", type, x, 1);
    op_check_values(&c, 0,
                    (const double[]){-2.4076059644443806, -1.4076059644443804, -0.4076059644443804,
                                     -1.0986122886681098, -1.0986122886681098, -1.0986122886681098},
                    6, 1e-15);
    c = along("hardmax", type, x, 1);
    op_check_values(&c, 0, (const double[]){0, 0, 1, 1, 0, 0}, 6, 0);
}

static void large_numbers_do_not_overflow(void **state) {
    (void)state;
    const float x[] = {10000, 10001, -10000};
    op_case c = along("softmax", op_type(PEN_FLOAT32, 1, 3), x, 0);
    op_check_values(&c, 0, (const double[]){0.2689414213699951, 0.7310585786300049, 0}, 3, 1e-7);
    c.op = "log_softmax";
    op_check_values(&c, 0, (const double[]){-1.3132616875182228, -0.31326168751822286, -20001.313},
                    3, 1e-7);
}

static void not_a_number_shows(void **state) {
    (void)state;
    const double x[] = {1, (double)NAN};
    op_case c = along("softmax", op_type(PEN_FLOAT64, 1, 2), x, 0);
    op_check_values(&c, 0, (const double[]){(double)NAN, (double)NAN}, 2, 0);
}

static void gradients(void **state) {
    (void)state;
    const char *const ops[] = {"softmax", "log_softmax", "softmax", "log_softmax", "hardmax"};
    for (uint64_t seed = 0; seed < 250; seed++) {
        random_case random = {.seed = seed};
        pen_tensor_type type = random_type(&random, 1, 4, 5, 60);
        type.element = PEN_FLOAT64;
        const int64_t rank = type.shape.rank;
        op_case c = along(ops[seed % 5], type, NULL, random_between(&random, -rank, rank - 1));
        c.inputs[0].low = -3;
        c.inputs[0].high = 3;
        op_check_gradient(&c, seed);
    }
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    op_case c = along("softmax", op_type(PEN_FLOAT64, 2, 2, 3), NULL, 2);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "softmax 'subject': axis 2 is outside of a tensor with 2 dimensions");
    c = along("log_softmax", op_type(PEN_FLOAT32, 0), NULL, 0);
    op_check_error(&c, PEN_INVALID_INPUT, "axis 0 is outside of a tensor with 0 dimensions");
    c = along("softmax", op_type(PEN_INT32, 1, 2), NULL, 0);
    op_check_error(&c, PEN_INVALID_INPUT, "is int32; it may be");
}

PEN_TEST_MAIN(cmocka_unit_test(values), cmocka_unit_test(large_numbers_do_not_overflow),
              cmocka_unit_test(not_a_number_shows), cmocka_unit_test(gradients),
              cmocka_unit_test(wrong_operands_are_refused))
