#include <math.h>

#include "tests/support/dice.h"
#include "tests/support/random_case.h"

static op_case pair(const char *op, op_case_input a, op_case_input b) {
    return (op_case){.op = op, .input_count = 2, .inputs = {a, b}};
}

static op_case_input floats(uint32_t rank, int64_t d0, int64_t d1, const double *data) {
    const int64_t dims[2] = {d0, d1};
    return (op_case_input){.type = pen_tensor_type_make(PEN_FLOAT64, rank, dims), .data = data};
}

static op_case_input vector(pen_element_type element, int64_t count, const void *data) {
    return (op_case_input){.type = pen_tensor_type_make(element, 1, &count), .data = data};
}

static void arithmetic_broadcasts(void **state) {
    (void)state;
    const double a[] = {1, 2, 3, 4, 5, 6}, row[] = {10, 20, 40}, column[] = {2, 4};
    const op_case_input m = floats(2, 2, 3, a), r = floats(1, 3, 0, row),
                        c = floats(2, 2, 1, column);
    op_case add = pair("add", m, r), sub = pair("sub", r, m), mul = pair("mul", c, m);
    op_case div = pair("div", m, c), power = pair("pow", m, c), outer = pair("add", c, r);
    op_check_values(&add, 0, (const double[]){11, 22, 43, 14, 25, 46}, 6, 0);
    op_check_values(&sub, 0, (const double[]){9, 18, 37, 6, 15, 34}, 6, 0);
    op_check_values(&mul, 0, (const double[]){2, 4, 6, 16, 20, 24}, 6, 0);
    op_check_values(&div, 0, (const double[]){0.5, 1, 1.5, 1, 1.25, 1.5}, 6, 0);
    op_check_values(&power, 0, (const double[]){1, 4, 9, 256, 625, 1296}, 6, 1e-15);
    op_check_values(&outer, 0, (const double[]){12, 22, 42, 14, 24, 44}, 6, 0);
}

static void integers_are_exact(void **state) {
    (void)state;
    const int8_t a[] = {100, -7, 7, -128}, b[] = {100, 2, -2, -1};
    op_case add = pair("add", vector(PEN_INT8, 4, a), vector(PEN_INT8, 4, b));
    op_check_values(&add, 0, (const double[]){-56, -5, 5, 127}, 4, 0);
    op_case div = pair("div", vector(PEN_INT8, 4, a), vector(PEN_INT8, 4, b));
    op_check_values(&div, 0, (const double[]){1, -3, -3, -128}, 4, 0);
    op_case mod = pair("mod", vector(PEN_INT8, 4, a), vector(PEN_INT8, 4, b));
    op_check_values(&mod, 0, (const double[]){0, 1, -1, 0}, 4, 0);
    mod.attributes[mod.attribute_count++] = pen_attribute_int("fmod", 1);
    op_check_values(&mod, 0, (const double[]){0, -1, 1, 0}, 4, 0);
    const uint64_t large[] = {UINT64_MAX, 1}, small[] = {2, UINT64_MAX};
    op_case halves = pair("div", vector(PEN_UINT64, 2, large), vector(PEN_UINT64, 2, small));
    op_check_values(&halves, 0, (const double[]){(double)(UINT64_MAX / 2), 0}, 2, 0);
    op_case larger = pair("max", vector(PEN_UINT64, 2, large), vector(PEN_UINT64, 2, small));
    op_check_values(&larger, 0, (const double[]){(double)UINT64_MAX, (double)UINT64_MAX}, 2, 0);
}

static void powers_of_mixed_types(void **state) {
    (void)state;
    const int64_t base[] = {3, -2, -1, 2}, exponent[] = {4, 3, -3, -1};
    op_case exact = pair("pow", vector(PEN_INT64, 4, base), vector(PEN_INT64, 4, exponent));
    op_check_values(&exact, 0, (const double[]){81, -8, -1, 0}, 4, 0);
    const float halves[] = {0.5F, 2, 0, 3};
    op_case mixed = pair("pow", vector(PEN_INT64, 4, base), vector(PEN_FLOAT32, 4, halves));
    op_check_values(&mixed, 0, (const double[]){1, 4, 1, 8}, 4, 0);
    op_case roots = pair("pow", vector(PEN_FLOAT32, 4, halves), vector(PEN_INT64, 4, exponent));
    op_check_values(&roots, 0, (const double[]){0.0625, 8, (double)INFINITY, 1.0 / 3}, 4, 1e-7);
}

static void shifts(void **state) {
    (void)state;
    const uint8_t a[] = {1, 255, 16, 9}, by[] = {3, 1, 200, 0};
    op_case c = pair("bit_shift", vector(PEN_UINT8, 4, a), vector(PEN_UINT8, 4, by));
    c.attributes[c.attribute_count++] = pen_attribute_text("direction", "LEFT");
    op_check_values(&c, 0, (const double[]){8, 254, 0, 9}, 4, 0);
    c.attributes[0] = pen_attribute_text("direction", "RIGHT");
    op_check_values(&c, 0, (const double[]){0, 127, 0, 9}, 4, 0);
    c.attributes[0] = pen_attribute_text("direction", "UP");
    op_check_error(&c, PEN_INVALID_INPUT, "direction is 'UP'; it may be LEFT or RIGHT");
}

static void any_number_of_operands(void **state) {
    (void)state;
    const double a[] = {1, 5, (double)NAN}, b[] = {4, 2, 0}, c[] = {3};
    op_case x = {.op = "sum",
                 .input_count = 3,
                 .inputs = {floats(1, 3, 0, a), floats(1, 3, 0, b), floats(1, 1, 0, c)}};
    op_check_values(&x, 0, (const double[]){8, 10, (double)NAN}, 3, 0);
    x.op = "max";
    op_check_values(&x, 0, (const double[]){4, 5, (double)NAN}, 3, 0);
    x.op = "min";
    op_check_values(&x, 0, (const double[]){1, 2, (double)NAN}, 3, 0);
    x.op = "mean";
    op_check_values(&x, 0, (const double[]){8.0 / 3, 10.0 / 3, (double)NAN}, 3, 1e-15);
    x.input_count = 1;
    op_check_values(&x, 0, a, 3, 0);
}

static void equals_share_the_gradient(void **state) {
    (void)state;
    const double dy[] = {6, 6}, a[] = {1, 3}, b[] = {1, 2}, c[] = {0, 3};
    op_case x = {
        .op = "max_backward",
        .input_count = 4,
        .inputs = {floats(1, 2, 0, dy), floats(1, 2, 0, a), floats(1, 2, 0, b), floats(1, 2, 0, c)},
        .attribute_count = 1,
        .attributes = {pen_attribute_int("index", 0)}};
    op_check_values(&x, 0, (const double[]){3, 3}, 2, 0);
    x.attributes[0] = pen_attribute_int("index", 1);
    op_check_values(&x, 0, (const double[]){3, 0}, 2, 0);
    x.op = "min_backward";
    op_check_values(&x, 0, (const double[]){0, 6}, 2, 0);
    x.attributes[0] = pen_attribute_int("index", 3);
    op_check_error(&x, PEN_INVALID_INPUT, "index is 3; there are 3 operands");
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    op_case shapes = pair("add", floats(2, 2, 3, NULL), floats(1, 2, 0, NULL));
    op_check_error(&shapes, PEN_INVALID_INPUT,
                   "add 'subject': shapes [2,3] and [2] do not broadcast");
    op_case types = pair("mul", floats(1, 2, 0, NULL), vector(PEN_FLOAT32, 2, NULL));
    op_check_error(&types, PEN_INVALID_INPUT, "is float32, but input 0");
    op_case flags = pair("sub", vector(PEN_BOOL, 2, NULL), vector(PEN_BOOL, 2, NULL));
    op_check_error(&flags, PEN_INVALID_INPUT, "is bool; it may be float32");
    op_case bytes = pair("pow", vector(PEN_UINT8, 2, NULL), vector(PEN_UINT8, 2, NULL));
    op_check_error(&bytes, PEN_INVALID_INPUT, "is uint8; it may be");
    op_case mod = pair("mod", floats(1, 2, 0, NULL), floats(1, 2, 0, NULL));
    op_check_error(&mod, PEN_INVALID_INPUT, "fmod is 0; floating operands need 1");
    op_case sum = pair("sum", vector(PEN_INT32, 2, NULL), vector(PEN_INT32, 2, NULL));
    op_check_error(&sum, PEN_INVALID_INPUT, "is int32; it may be");
    sum.inputs[0].type.element = PEN_FLOAT32;
    sum.inputs[1].is_absent = true;
    op_check_error(&sum, PEN_INVALID_INPUT, "input 1 is left out");
}

static void integers_are_not_divided_by_zero(void **state) {
    (void)state;
    const int32_t a[] = {1}, b[] = {0};
    const char *const ops[] = {"div", "mod"};
    for (int i = 0; i < 2; i++) {
        op_case c = pair(ops[i], vector(PEN_INT32, 1, a), vector(PEN_INT32, 1, b));
        op_built built;
        run_graph run;
        CHECK_OK(op_build(&c, &built));
        CHECK_OK(run_graph_init(&run, built.graph, built.arena));
        op_fill(&c, &built, 1, &run);
        CHECK_ERROR(run_graph_all(&run), PEN_INVALID_INPUT, "division of an integer by 0");
        op_built_free(&built);
    }
}

// Two operands whose shapes broadcast, either the larger.
static op_case random_pair(const char *op, random_case *random) {
    op_case c = {.op = op, .input_count = 2};
    const bool first_is_larger = random_chance(random, 50);
    pen_tensor_type larger = random_type(random, 0, 4, 4, 40);
    larger.element = PEN_FLOAT64;
    c.inputs[first_is_larger ? 0 : 1].type = larger;
    c.inputs[first_is_larger ? 1 : 0].type = random_broadcast_of(random, &larger);
    return c;
}

static void gradients_of_pairs(void **state) {
    (void)state;
    const char *const ops[] = {"add", "sub", "mul", "div", "pow", "max", "min", "mean", "sum"};
    for (uint64_t seed = 0; seed < 270; seed++) {
        random_case random = {.seed = seed};
        op_case c = random_pair(ops[seed % 9], &random);
        const bool is_power = strcmp(c.op, "pow") == 0;
        if (is_power || strcmp(c.op, "div") == 0) {
            c.inputs[is_power ? 0 : 1].low = 0.5;
            c.inputs[is_power ? 0 : 1].high = 2;
        }
        op_check_gradient(&c, seed);
    }
}

static void gradients_of_many(void **state) {
    (void)state;
    const char *const ops[] = {"sum", "mean", "max", "min"};
    for (uint64_t seed = 0; seed < 60; seed++) {
        random_case random = {.seed = seed};
        op_case c = random_pair(ops[seed % 4], &random);
        const pen_tensor_type larger =
            random_between(&random, 0, 1) == 0 ? c.inputs[0].type : c.inputs[1].type;
        const uint32_t more = (uint32_t)random_between(&random, 0, 3);
        for (uint32_t i = 0; i < more; i++) {
            c.inputs[c.input_count] =
                (op_case_input){.type = random_broadcast_of(&random, &larger)};
            c.inputs[c.input_count++].type.element = PEN_FLOAT64;
        }
        op_check_gradient(&c, seed);
    }
}

// An exponent of another type is not differentiated, and does not change the base's gradient.
static void gradient_of_integer_power(void **state) {
    (void)state;
    const int64_t exponent[] = {3, 0, -2};
    op_case c =
        pair("pow", (op_case_input){.type = op_type(PEN_FLOAT64, 2, 2, 3), .low = 0.5, .high = 2},
             vector(PEN_INT64, 3, exponent));
    op_check_gradient(&c, 1);
    const double dy[] = {1, 1, 1}, base[] = {0, 0, 0}, powers[] = {0, 1, 2};
    op_case at_zero = {
        .op = "pow_backward_base",
        .input_count = 3,
        .inputs = {floats(1, 3, 0, dy), floats(1, 3, 0, base), floats(1, 3, 0, powers)}};
    op_check_values(&at_zero, 0, (const double[]){0, 1, 0}, 3, 0);
    at_zero.op = "pow_backward_exponent";
    op_check_values(&at_zero, 0, (const double[]){0, 0, 0}, 3, 0);
}

PEN_TEST_MAIN(cmocka_unit_test(arithmetic_broadcasts), cmocka_unit_test(integers_are_exact),
              cmocka_unit_test(powers_of_mixed_types), cmocka_unit_test(shifts),
              cmocka_unit_test(any_number_of_operands), cmocka_unit_test(equals_share_the_gradient),
              cmocka_unit_test(wrong_operands_are_refused),
              cmocka_unit_test(integers_are_not_divided_by_zero),
              cmocka_unit_test(gradients_of_pairs), cmocka_unit_test(gradients_of_many),
              cmocka_unit_test(gradient_of_integer_power))
