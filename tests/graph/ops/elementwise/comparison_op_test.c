#include <math.h>

#include "tests/support/op_check.h"
#include "tests/support/random_case.h"

static op_case_input vector(pen_element_type element, int64_t count, const void *data) {
    return (op_case_input){.type = pen_tensor_type_make(element, 1, &count), .data = data};
}

static op_case pair(const char *op, op_case_input a, op_case_input b) {
    return (op_case){.op = op, .input_count = 2, .inputs = {a, b}};
}

static void comparisons(void **state) {
    (void)state;
    const double a[] = {1, 2, 3, (double)NAN}, b[] = {2};
    const struct {
        const char *op;
        double expected[4];
    } cases[] = {
        {"equal", {0, 1, 0, 0}},
        {"less", {1, 0, 0, 0}},
        {"less_or_equal", {1, 1, 0, 0}},
        {"greater", {0, 0, 1, 0}},
        {"greater_or_equal", {0, 1, 1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const op_case c = pair(cases[i].op, vector(PEN_FLOAT64, 4, a), vector(PEN_FLOAT64, 1, b));
        op_check_values(&c, 0, cases[i].expected, 4, 0);
    }
}

// 2^53 and 2^53 + 1 are one double; 2^64 - 1 is -1 as int64.
static void integers_are_compared_exactly(void **state) {
    (void)state;
    const int64_t a[] = {1LL << 53, -1}, b[] = {(1LL << 53) + 1, 0};
    const op_case less = pair("less", vector(PEN_INT64, 2, a), vector(PEN_INT64, 2, b));
    const op_case same = pair("equal", vector(PEN_INT64, 2, a), vector(PEN_INT64, 2, b));
    const op_case large = pair("less", vector(PEN_UINT64, 2, a), vector(PEN_UINT64, 2, b));
    op_check_values(&less, 0, (const double[]){1, 1}, 2, 0);
    op_check_values(&same, 0, (const double[]){0, 0}, 2, 0);
    op_check_values(&large, 0, (const double[]){1, 0}, 2, 0);
}

static void logic(void **state) {
    (void)state;
    const uint8_t a[] = {0, 0, 1, 1}, b[] = {0, 1, 0, 1};
    const op_case_input x = vector(PEN_BOOL, 4, a), y = vector(PEN_BOOL, 4, b);
    const op_case both = pair("and", x, y), either = pair("or", x, y), one = pair("xor", x, y);
    const op_case negated = {.op = "not", .input_count = 1, .inputs = {x}};
    op_check_values(&both, 0, (const double[]){0, 0, 0, 1}, 4, 0);
    op_check_values(&either, 0, (const double[]){0, 1, 1, 1}, 4, 0);
    op_check_values(&one, 0, (const double[]){0, 1, 1, 0}, 4, 0);
    op_check_values(&negated, 0, (const double[]){1, 1, 0, 0}, 4, 0);
    const op_case same = pair("equal", x, y);
    op_check_values(&same, 0, (const double[]){1, 0, 0, 1}, 4, 0);
}

static void tests_of_floats(void **state) {
    (void)state;
    const double x[] = {1, (double)NAN, (double)INFINITY, -(double)INFINITY};
    op_case c = {.op = "isnan", .input_count = 1, .inputs = {vector(PEN_FLOAT64, 4, x)}};
    op_check_values(&c, 0, (const double[]){0, 1, 0, 0}, 4, 0);
    c.op = "isinf";
    op_check_values(&c, 0, (const double[]){0, 0, 1, 1}, 4, 0);
    c.attribute_count = 1;
    c.attributes[0] = pen_attribute_int("detect_negative", 0);
    op_check_values(&c, 0, (const double[]){0, 0, 1, 0}, 4, 0);
    c.attributes[0] = pen_attribute_int("detect_positive", 0);
    op_check_values(&c, 0, (const double[]){0, 0, 0, 1}, 4, 0);
}

static void where_chooses(void **state) {
    (void)state;
    const uint8_t condition[] = {1, 0};
    const int16_t a[] = {1, 2, 3, 4}, b[] = {-1};
    const op_case c = {.op = "where",
                       .input_count = 3,
                       .inputs = {vector(PEN_BOOL, 2, condition),
                                  {.type = op_type(PEN_INT16, 2, 2, 2), .data = a},
                                  vector(PEN_INT16, 1, b)}};
    op_check_values(&c, 0, (const double[]){1, -1, 3, -1}, 4, 0);
}

static void gradients_of_where(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_case random = {.seed = seed};
        const pen_tensor_type largest = random_type(&random, 0, 4, 4, 40);
        const int64_t full = random_between(&random, 0, 2);
        op_case c = {.op = "where", .input_count = 3};
        for (int64_t i = 0; i < 3; i++) {
            c.inputs[i].type = i == full ? largest : random_broadcast_of(&random, &largest);
            c.inputs[i].type.element = i == 0 ? PEN_BOOL : PEN_FLOAT64;
        }
        c.inputs[0].high = 2; // floor of [0, 2)
        op_check_gradient(&c, seed);
    }
}

static void wrong_operands_are_refused(void **state) {
    (void)state;
    op_case c = pair("less", vector(PEN_BOOL, 2, NULL), vector(PEN_BOOL, 2, NULL));
    op_check_error(&c, PEN_INVALID_INPUT, "less 'subject': input 0 ('input_0') is bool; it may be");
    c = pair("and", vector(PEN_INT32, 2, NULL), vector(PEN_INT32, 2, NULL));
    op_check_error(&c, PEN_INVALID_INPUT, "is int32; it may be bool");
    c = pair("equal", vector(PEN_INT32, 2, NULL), vector(PEN_INT32, 3, NULL));
    op_check_error(&c, PEN_INVALID_INPUT, "shapes [2] and [3] do not broadcast");
    op_case w = {.op = "where",
                 .input_count = 3,
                 .inputs = {vector(PEN_INT32, 2, NULL), vector(PEN_FLOAT32, 2, NULL),
                            vector(PEN_FLOAT32, 2, NULL)}};
    op_check_error(&w, PEN_INVALID_INPUT, "is int32; it may be bool");
    w.inputs[0] = vector(PEN_BOOL, 2, NULL);
    w.inputs[2] = vector(PEN_FLOAT64, 2, NULL);
    op_check_error(&w, PEN_INVALID_INPUT, "is float64, but input 1");
}

PEN_TEST_MAIN(cmocka_unit_test(comparisons), cmocka_unit_test(integers_are_compared_exactly),
              cmocka_unit_test(logic), cmocka_unit_test(tests_of_floats),
              cmocka_unit_test(where_chooses), cmocka_unit_test(gradients_of_where),
              cmocka_unit_test(wrong_operands_are_refused))
